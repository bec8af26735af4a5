"""Coded rows that stay where they are and pass here a batch at a time, anew for every count: one batch is held."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from hashlib import shake_256

import numpy as np

from reticent.engine.coded import LocalCodedRows
from reticent.engine.protocol import Cells, Fair, Fill, Places, RowFill, RowSum, Whole
from reticent.errors import PlanError

ORDERED = (
    "draws rows in a shuffled order, which a stream does not have; use a method that counts tables, or a file"
)
KEY_BITS = 256

Stage = Callable[[LocalCodedRows, int], LocalCodedRows]


class Keyed:
    """Fair bits of one batch, the same at every pass: SHAKE-256 of a secret key and the batch's number."""

    def __init__(self, key: bytes, batch: int) -> None:
        self._key, self._batch, self._turn = key, batch, 0

    def take(self, n: int) -> int:
        self._turn += 1
        data = shake_256(self._key + f"|{self._batch}|{self._turn}".encode()).digest((n + 7) // 8)
        return int.from_bytes(data) >> (-n % 8)


class StreamedCodedRows:
    """CONFIDENTIAL: rows as cells, passed over by `blocks` as often as needed, with what `stages` make of each batch.

    Guarantee   a record added or removed moves one cell of each table by one, and so it does after `complete`
                and, draws given, after `filled`.
    Adjacency   one record added or removed.
    Theorem     stability one: rows are mapped one by one.
    Proof       proofs/engine/postgres.md
    Assumes     fills do not depend on the rows beyond what was released before; every pass sees the rows in one order;
                SHAKE-256 under a fresh key is a random function.
    Keeps back  all of it until noise is added.
    """

    def __init__(
        self,
        blocks: Callable[[], Iterator[Cells]],
        *,
        sizes: Sequence[int],
        silences: Sequence[int],
        stages: Sequence[Stage] = (),
    ) -> None:
        self._blocks, self._sizes, self._silences = blocks, tuple(sizes), tuple(silences)
        self._stages = tuple(stages)

    def count(self, sets: Sequence[Places]) -> list[Whole]:
        """For each set of columns its table over all their cells, exactly, all by one pass."""
        empty = np.zeros((len(self._sizes), 0), np.uint16)
        found = self._rows(empty, 0).count(sets)
        for rows in self._batches():
            found = [one + other for one, other in zip(found, rows.count(sets), strict=True)]
        return found

    def complete(self) -> "StreamedCodedRows":
        """Only the rows without a silent cell."""
        return self._then(lambda rows, _: rows.complete())

    def filled(self, fills: Sequence[Fill], bits: Fair) -> "StreamedCodedRows":
        """The rows with silent cells drawn: each row uses only itself, and has the same draws at every pass."""
        key = bits.take(KEY_BITS).to_bytes(KEY_BITS // 8)
        return self._then(lambda rows, batch: rows.filled(fills, Keyed(key, batch)))

    def redrawn(self, fill: RowFill, bits: Fair) -> "StreamedCodedRows":
        """The rows with missing cells drawn by `fill`: each row uses only itself, and has the same bits at every pass."""
        key = bits.take(KEY_BITS).to_bytes(KEY_BITS // 8)
        return self._then(lambda rows, batch: rows.redrawn(fill, Keyed(key, batch)))

    def summed(self, work: RowSum) -> Whole:
        """The sum over all rows of what `work` makes of each, exactly."""
        total = np.zeros(work.length, np.int64)
        for rows in self._batches():
            total += rows.summed(work)
        return total

    def sampled_sum(self, work: RowSum, rate: Fraction, bits: Fair) -> Whole:
        """The same over a Poisson sample: every row is in by a coin of its own, thrown in this one pass."""
        total = np.zeros(work.length, np.int64)
        for rows in self._batches():
            total += rows.sampled_sum(work, rate, bits)
        return total

    def batches(self, size: int, bits: Fair) -> Iterator[Cells]:
        """Refused: a shuffled order of all rows would have to be held."""
        raise PlanError(ORDERED, field="synth")

    def close(self) -> None:
        """Nothing is held."""

    def _then(self, stage: Stage) -> "StreamedCodedRows":
        return StreamedCodedRows(
            self._blocks, sizes=self._sizes, silences=self._silences, stages=(*self._stages, stage)
        )

    def _batches(self) -> Iterator[LocalCodedRows]:
        for batch, cells in enumerate(self._blocks()):
            yield self._rows(cells, batch)

    def _rows(self, cells: Cells, batch: int) -> LocalCodedRows:
        rows = LocalCodedRows(sizes=self._sizes, silences=self._silences, blocks=[cells])
        for stage in self._stages:
            rows = stage(rows, batch)
        return rows
