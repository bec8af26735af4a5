"""Rows as cells of a domain, held to be counted many times. They stay in the engine: only tables leave, and no repr."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.engine.counting import Cells, Sets, Whole, count_block, draw_cells
from reticent.errors import EngineError, PlanError

MOST_CELLS = 2**27  # of all tables of one call
Places = tuple[int, ...]


class Fill(Protocol):
    """How a silent cell is drawn from cells of its own row: a line of `table` for each cell of those in `given`."""

    @property
    def place(self) -> int: ...

    @property
    def given(self) -> Places: ...

    @property
    def table(self) -> NDArray[np.float64]: ...


class Fair(Protocol):
    """A source of fair bits."""

    def take(self, n: int) -> int: ...


class CodedRows:
    """CONFIDENTIAL: rows as cells. `sizes` and `silences` say of each column how many cells it has and which is silent.

    Guarantee   a record added or removed moves one cell of each table by one, and so it does after `complete`
                and, draws given, after `filled`.
    Adjacency   one record added or removed.
    Theorem     stability one: rows are mapped one by one.
    Proof       proofs/engine/coded.md
    Assumes     fills do not depend on the rows beyond what was released before.
    Keeps back  all of it until noise is added.
    """

    def __init__(
        self, *, sizes: Sequence[int], silences: Sequence[int], blocks: Sequence[Cells], threads: int = 1
    ) -> None:
        self._sizes, self._silences, self._threads = tuple(sizes), tuple(silences), threads
        self._blocks: list[Cells] | None = list(blocks)
        self._made: list[CodedRows] = []

    def count(self, sets: Sequence[Places]) -> list[NDArray[np.int64]]:
        """For each set of columns its table over all their cells, exactly, all by one pass."""
        shapes = [tuple(self._sizes[place] for place in places) for places in sets]
        flat = _flat(sets, shapes)
        if flat.starts[-1] > MOST_CELLS:
            raise PlanError(f"asks for more than {MOST_CELLS:,} cells at once; ask for less", field="columns")
        totals = self._totals(flat)
        cut = zip(flat.starts[:-1], flat.starts[1:], shapes, strict=True)
        return [totals[start:end].reshape(shape) for start, end, shape in cut]

    def complete(self) -> "CodedRows":
        """Only the rows without a silent cell."""
        silences = np.array(self._silences)[:, None]
        return self._like([block[:, (block != silences).all(axis=0)] for block in self._held])

    def filled(self, fills: Sequence[Fill], bits: Fair) -> "CodedRows":
        """The rows with silent cells drawn, one fill after the other: each row uses only itself."""
        for fill in fills:
            if fill.table.shape != tuple(self._sizes[place] for place in (*fill.given, fill.place)):
                raise PlanError("a fill's table does not fit the cells of its columns", field="missing")
        return self._like([self._filled(block, fills, bits) for block in self._held])

    def close(self) -> None:
        """Forget the rows, and all that were made from them."""
        self._blocks = None
        for made in self._made:
            made.close()

    @property
    def _held(self) -> list[Cells]:
        if self._blocks is None:
            raise EngineError("the rows are no longer held; count within the engine's own block")
        return self._blocks

    def _like(self, blocks: Sequence[Cells]) -> "CodedRows":
        made = CodedRows(sizes=self._sizes, silences=self._silences, blocks=blocks, threads=self._threads)
        self._made.append(made)
        return made

    def _totals(self, sets: Sets) -> Whole:
        """Each thread counts blocks of its own into tables of its own; they add up to the same in any order."""
        blocks = self._held
        threads = max(1, min(self._threads, len(blocks)))

        def counted(thread: int) -> Whole:
            totals = np.zeros(int(sets.starts[-1]), np.int64)
            for block in blocks[thread::threads]:
                count_block(block, sets, totals)
            return totals

        with ThreadPoolExecutor(threads) as pool:
            return np.asarray(sum(pool.map(counted, range(threads))))

    def _filled(self, block: Cells, fills: Sequence[Fill], bits: Fair) -> Cells:
        made = block.copy()
        for fill in fills:
            gaps = np.flatnonzero(made[fill.place] == self._silences[fill.place])
            lines = np.zeros(len(gaps), np.int64)
            for place in fill.given:
                lines = lines * self._sizes[place] + made[place, gaps]
            sums = np.cumsum(fill.table.reshape(prod(fill.table.shape[:-1]), -1), axis=1)
            out = np.zeros(len(gaps), np.int64)
            draw_cells(sums, lines, _uniforms(len(gaps), bits), out)
            made[fill.place, gaps] = out
        return made


def _flat(sets: Sequence[Places], shapes: Sequence[Places]) -> Sets:
    def ends(lengths: Sequence[int]) -> Whole:
        return np.cumsum([0, *lengths], dtype=np.int64)

    return Sets(
        places=np.array([place for places in sets for place in places], np.int64),
        sizes=np.array([size for shape in shapes for size in shape], np.int64),
        firsts=ends([len(places) for places in sets]),
        starts=ends([prod(shape) for shape in shapes]),
    )


def _uniforms(n: int, bits: Fair) -> NDArray[np.float64]:
    """`n` multiples of 2^-53 below one."""
    words = np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, np.float64)
