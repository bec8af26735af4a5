"""Coded rows that stay on the cluster: counted by blocks there, drawn by keyed digests, streamed a slice at a time."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.coded import coins
from reticent.engine.protocol import Cells, Fair, Fill, Places, RowFill, RowSum, Whole
from reticent.engine.spark.connection import SLICE, SparkConnection
from reticent.engine.spark.words import SPARK
from reticent.engine.sql import build as sql
from reticent.engine.sql.blocks import cover
from reticent.engine.sql.build import Values
from reticent.engine.sql.keyed import LABEL, labelled, uniform
from reticent.engine.streamed import StreamedCodedRows
from reticent.errors import EngineError, PlanError

MOST_CELLS = 2**27  # of all tables of one call
HASH, LINES = "hash_", "lines_"


class ClusterRows:
    """CONFIDENTIAL: rows as cells in a table of the cluster. `sizes` and `silences` say of each column how many cells it has
    and which is silent.

    Guarantee   as `LocalCodedRows`: rows are mapped one by one, and what is counted of them is the same.
    Adjacency   one record added or removed.
    Theorem     stability one.
    Proof       proofs/engine/coded.md
    Assumes     fills do not depend on the rows beyond what was released before; SHA-256 under the key that the bits give
                is a random function.
    Keeps back  all of it until noise is added.
    """

    def __init__(
        self, held: SparkConnection, name: str, *, sizes: Sequence[int], silences: Sequence[int]
    ) -> None:
        self._on, self._name = held, name
        self._sizes, self._silences = tuple(sizes), tuple(silences)
        self._made: list[ClusterRows] = []
        self._open = True
        self._parts = 0  # of the rows in the order that nobody sees, once they are in it

    def count(self, sets: Sequence[Places]) -> list[Whole]:
        """For each set of columns its table over all their cells, exactly: a few blocks, in one statement."""
        if sum(prod(self._sizes[p] for p in places) for places in sets) > MOST_CELLS:
            raise PlanError(f"asks for more than {MOST_CELLS:,} cells at once; ask for less", field="columns")
        if not sets:  # a method that has nothing left to choose asks for no table
            return []
        blocks = cover(sets, lambda place: self._sizes[place])
        found = self._ask(" UNION ALL ".join(self._counting(at, keys) for at, (keys, _) in enumerate(blocks)))
        tables: dict[int, Whole] = {}
        for at, (keys, members) in enumerate(blocks):
            here = found["block"] == at
            table = np.zeros(prod(self._sizes[key] for key in keys), np.int64)
            table[found["cell"][here]] = found["n"][here]
            whole = table.reshape([self._sizes[key] for key in keys])
            tables |= {member: _margin(whole, keys, sets[member]) for member in members}
        return [tables[place] for place in range(len(sets))]

    def complete(self) -> "ClusterRows":
        """Only the rows without a silent cell."""
        told = " AND ".join(f"k{place} <> {silent}" for place, silent in enumerate(self._silences))
        return self._like(f"SELECT * FROM {self._held} WHERE {told}")

    def filled(self, fills: Sequence[Fill], bits: Fair) -> "ClusterRows":
        """The rows with silent cells drawn, one fill after the other: each row uses only itself."""
        for fill in fills:
            if fill.table.shape != tuple(self._sizes[place] for place in (*fill.given, fill.place)):
                raise PlanError("a fill's table does not fit the cells of its columns", field="missing")
        values = Values()
        rows = self._labelled(bits, values)
        for number, fill in enumerate(fills):
            lines = np.cumsum(fill.table.reshape(prod(fill.table.shape[:-1]), -1), axis=1)
            self._on.give(f"{LINES}{self._name}{number}", _lines(lines))
            rows = self._drawn(rows, number, fill)
        columns = ", ".join(self._columns)
        made = self._like(f"SELECT {columns} FROM ({rows}) t", values)
        return made

    def redrawn(self, fill: RowFill, bits: Fair) -> StreamedCodedRows:
        """The rows with missing cells drawn by `fill`, which is this side's code: rows pass here a slice at a time."""
        rows = StreamedCodedRows(lambda: self._slices(None), sizes=self._sizes, silences=self._silences)
        return rows.redrawn(fill, bits)

    def summed(self, work: RowSum) -> Whole:
        """The sum over all rows of what `work` makes of each, exactly: rows pass here a slice at a time."""
        totals = np.zeros(work.length, np.int64)
        for block in self._slices(None):
            work.add(block, totals)
        return totals

    def sampled_sum(self, work: RowSum, rate: Fraction, bits: Fair) -> Whole:
        """The same over a Poisson sample: coins are thrown here for the rows of each slice."""
        totals = np.zeros(work.length, np.int64)
        for block in self._slices(None):
            work.add(block[:, coins(block.shape[1], rate, bits)], totals)
        return totals

    def batches(self, size: int, bits: Fair) -> Iterator[Cells]:
        """All rows once, `size` at a time, in an order that `bits` alone settle. One slice is held here."""
        if size < 1:
            raise PlanError(f"a batch of {size} rows holds nobody; give it 1 or more", field="size")
        return _recut(self._slices(bits), size)

    def close(self) -> None:
        """Forget the rows, and all that were made from them."""
        self._open = False
        for made in self._made:
            made.close()
        if self._parts:
            self._on.drop(f"{self._name}kept_")
        self._on.drop(self._name)

    @property
    def _held(self) -> str:
        if not self._open:
            raise EngineError("the rows are no longer held; count within the engine's own block")
        return self._name

    @property
    def _columns(self) -> list[str]:
        return [f"k{place}" for place in range(len(self._sizes))]

    def _ask(self, statement: str) -> dict[str, NDArray[np.int64]]:
        return self._on.ask(statement)

    def _counting(self, at: int, keys: Sequence[int]) -> str:
        cell = "CAST(0 AS BIGINT)"
        for key in keys:
            cell = f"({cell}) * {self._sizes[key]} + k{key}"
        return (
            f"SELECT CAST({at} AS BIGINT) AS block, cell, count(*) AS n "
            f"FROM (SELECT {cell} AS cell FROM {self._held}) t GROUP BY cell"
        )

    def _like(self, statement: str, values: Values | None = None) -> "ClusterRows":
        name = f"{self._name}{len(self._made)}_"
        self._on.make(name, statement, values)
        made = ClusterRows(self._on, name, sizes=self._sizes, silences=self._silences)
        self._made.append(made)
        return made

    def _labelled(self, bits: Fair, values: Values) -> str:
        """The rows with a keyed digest each."""
        source = exp.select(*map(sql.column, self._columns)).from_(exp.Table(this=sql.name(self._held)))
        key = f"{bits.take(256):064x}"
        return SPARK.printed(
            labelled(SPARK, source, [sql.column(each) for each in self._columns], key, values)
        )

    def _drawn(self, rows: str, number: int, fill: Fill) -> str:
        """`rows` with one column drawn where it is silent: the first cell whose running sum is above the row's number."""
        line = "CAST(0 AS BIGINT)"
        for place in fill.given:
            line = f"({line}) * {self._sizes[place]} + k{place}"
        even = f"CAST({SPARK.printed(uniform(SPARK, number, 53))} AS DOUBLE) * CAST('{2.0**-53!r}' AS DOUBLE)"
        met = "size(filter(sums, s -> s <= even_ * last_ AND s < last_))"
        kept = [f"t.k{place}" for place in range(len(self._sizes)) if place != fill.place]
        cell = f"CASE WHEN t.k{fill.place} = {self._silences[fill.place]} THEN {met} ELSE t.k{fill.place} END"
        kept += [f"CAST({cell} AS BIGINT) AS k{fill.place}", f"t.{LABEL}"]
        return f"""SELECT {", ".join(kept)} FROM (
            SELECT *, {line} AS line_, {even} AS even_ FROM ({rows}) t) t
            JOIN {LINES}{self._name}{number} l ON l.line = t.line_"""

    def _slices(self, bits: Fair | None) -> Iterator[Cells]:
        """All rows, a slice of the hashes at a time, in their order."""
        if bits is None:  # passed over many times, so it is kept
            self._parts = self._parts or self._hashed(f"{self._name}kept_", _Nothing())
            yield from self._read(f"{self._name}kept_", self._parts)
            return
        name = f"{self._name}slices_"
        try:
            yield from self._read(name, self._hashed(name, bits))
        finally:
            self._on.drop(name)

    def _hashed(self, name: str, bits: Fair) -> int:
        """A table of the rows with a digest each, and how many slices they are cut into."""
        values, columns = Values(), ", ".join(self._columns)
        digest = SPARK.printed(uniform(SPARK, 0, 60))
        labelled_ = self._labelled(bits, values)
        self._on.make(name, f"SELECT {columns}, {digest} AS {HASH} FROM ({labelled_}) t", values)
        (rows,) = self._ask(f"SELECT count(*) AS n FROM {name}")["n"]
        return max(1, -(-int(rows) // SLICE))

    def _read(self, name: str, parts: int) -> Iterator[Cells]:
        columns = ", ".join(self._columns)
        for part in range(parts):
            low, high = part * 2**60 // parts, (part + 1) * 2**60 // parts
            here = f"{HASH} >= {low} AND {HASH} < {high}"
            yield self._block(self._ask(f"SELECT {columns}, {HASH} FROM {name} WHERE {here}"))

    def _block(self, found: dict[str, NDArray[np.int64]]) -> Cells:
        cells = np.stack([found[name] for name in self._columns])
        order = np.lexsort([*cells[::-1], found[HASH]])
        kind: Any = np.uint8 if max(self._sizes) <= 2**8 else np.uint16
        return np.ascontiguousarray(cells[:, order].astype(kind))


class _Nothing:
    """Bits for an order that nobody sees: sums are the same in any."""

    def take(self, n: int) -> int:
        return 0


def _margin(table: Whole, keys: Sequence[int], places: Places) -> Whole:
    """The table of `places`, from that of all keys of a block."""
    others = tuple(axis for axis, key in enumerate(keys) if key not in places)
    left = [key for key in keys if key in places]
    summed = np.asarray(table.sum(axis=others), np.int64)
    return summed.transpose([left.index(place) for place in places]).copy()


def _lines(sums: NDArray[np.float64]) -> pa.Table:
    return pa.table(
        {
            "line": pa.array(np.arange(len(sums), dtype=np.int64)),
            "sums": pa.array(sums.tolist(), pa.list_(pa.float64())),
            "last_": pa.array(sums[:, -1]),
        }
    )


def _recut(blocks: Iterator[Cells], size: int) -> Iterator[Cells]:
    """The same rows, `size` at a time; the last may be fewer."""
    left: Cells | None = None
    for block in blocks:
        held = block if left is None else np.concatenate([left, block], axis=1)
        whole = held.shape[1] // size * size
        yield from (held[:, at : at + size] for at in range(0, whole, size))
        left = held[:, whole:]
    if left is not None and left.shape[1]:
        yield left
