"""Coded rows: cells of a domain, held to be counted many times. They stay in the engine: only tables leave, and no repr.

The compiled loops are given cells that lie within their tables; whoever calls sees to it.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import floor, prod
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakSet

import numba
import numpy as np
from numpy.typing import NDArray

from reticent.engine.protocol import Cells, Fair, Fill, Places, RowFill, RowSum, Whole
from reticent.errors import EngineError, PlanError

F = TypeVar("F", bound=Callable[..., Any])
Floats = NDArray[np.float64]

STRETCH = 8192  # rows of one column: a pair of them and its table stay in the nearest cache


def compiled(function: F) -> F:
    """The same function as machine code, which other threads need not wait for."""
    return cast(F, numba.njit(nogil=True)(function))


class Sets(NamedTuple):
    """Sets of columns in flat arrays: set t has `places[firsts[t]:firsts[t + 1]]`, its table begins at `starts[t]`."""

    places: Whole
    sizes: Whole
    firsts: Whole
    starts: Whole


@compiled
def count_pair(one: Cells, other: Cells, size: int, table: Whole) -> None:
    """Add one to the cell of every row."""
    width = np.uint64(size)
    for i in range(len(one)):
        table[np.uint64(one[i]) * width + np.uint64(other[i])] += 1


@compiled
def count_set(block: Cells, places: Whole, sizes: Whole, start: int, end: int, table: Whole) -> None:
    """The same for any number of columns, the last fastest."""
    for i in range(start, end):
        cell = np.int64(0)
        for k in range(len(places)):
            cell = cell * sizes[k] + np.int64(block[places[k], i])
        table[cell] += 1


@compiled
def count_block(block: Cells, sets: Sets, totals: Whole) -> None:
    """Add the rows of a block, a line for each column, to the tables of all sets: every stretch is read once."""
    rows = block.shape[1]
    for start in range(0, rows, STRETCH):
        end = min(rows, start + STRETCH)
        for t in range(len(sets.firsts) - 1):
            first, last = sets.firsts[t], sets.firsts[t + 1]
            places, sizes = sets.places[first:last], sets.sizes[first:last]
            table = totals[sets.starts[t] : sets.starts[t + 1]]
            if len(places) == 2:
                count_pair(block[places[0], start:end], block[places[1], start:end], sizes[1], table)
            else:
                count_set(block, places, sizes, start, end, table)


@compiled
def draw_cells(sums: Floats, lines: Whole, uniforms: Floats, out: Whole) -> None:
    """For each row a cell of its line: the first whose running sum is above uniform times the line's total.

    A cell of chance 0 has the sum of the one before and is passed over; the last of positive chance ends the line.
    """
    for r in range(len(lines)):
        line = sums[lines[r]]
        total = line[len(line) - 1]
        at, cell = uniforms[r] * total, 0
        while line[cell] <= at and line[cell] < total:
            cell += 1
        out[r] = cell


MOST_CELLS = 2**27  # of all tables of one call


class LocalCodedRows:
    """CONFIDENTIAL: rows as cells. `sizes` and `silences` say of each column how many cells it has and which is silent.

    Guarantee   a record added or removed moves one cell of each table by one, and so it does after `complete`
                and, draws given, after `filled` and `redrawn`. It changes at most two of the `batches`: in one it takes the place of
                another record, which the last batch then has.
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
        # All that were made from these, as long as anybody holds them: a copy that was filled further is given back.
        self._made: WeakSet[LocalCodedRows] = WeakSet()
        self._above: tuple[WeakSet[LocalCodedRows], ...] = ()

    def count(self, sets: Sequence[Places]) -> list[NDArray[np.int64]]:
        """For each set of columns its table over all their cells, exactly, all by one pass."""
        shapes = [tuple(self._sizes[place] for place in places) for places in sets]
        flat = _flat(sets, shapes)
        if flat.starts[-1] > MOST_CELLS:
            raise PlanError(f"asks for more than {MOST_CELLS:,} cells at once; ask for less", field="columns")
        totals = self._totals(flat)
        cut = zip(flat.starts[:-1], flat.starts[1:], shapes, strict=True)
        return [totals[start:end].reshape(shape) for start, end, shape in cut]

    def complete(self) -> "LocalCodedRows":
        """Only the rows without a silent cell."""
        silences = np.array(self._silences)[:, None]
        return self._like([block[:, (block != silences).all(axis=0)] for block in self._held])

    def filled(self, fills: Sequence[Fill], bits: Fair) -> "LocalCodedRows":
        """The rows with silent cells drawn, one fill after the other: each row uses only itself."""
        for fill in fills:
            if fill.table.shape != tuple(self._sizes[place] for place in (*fill.given, fill.place)):
                raise PlanError("a fill's table does not fit the cells of its columns", field="missing")
        return self._like([self._filled(block, fills, bits) for block in self._held])

    def redrawn(self, fill: RowFill, bits: Fair) -> "LocalCodedRows":
        """The rows with missing cells drawn by `fill`: each row uses only itself and bits of its own."""
        return self._like([_redrawn(block, fill, bits) for block in self._held])

    def summed(self, work: RowSum) -> Whole:
        """The sum over all rows of what `work` makes of each, exactly: whole numbers, so in any order."""
        return self._added(work.length, work.add)

    def sampled_sum(self, work: RowSum, rate: Fraction, bits: Fair) -> Whole:
        """The same over a Poisson sample: every row is in by a coin of its own, with chance `rate`."""
        totals = np.zeros(work.length, np.int64)
        for block in self._held:
            work.add(block[:, coins(block.shape[1], rate, bits)], totals)
        return totals

    def batches(self, size: int, bits: Fair) -> Iterator[Cells]:
        """All rows once, `size` at a time, in an order that `bits` alone settle. One batch is held beside the rows."""
        if size < 1:
            raise PlanError(f"a batch of {size} rows holds nobody; give it 1 or more", field="size")
        ends = np.cumsum([block.shape[1] for block in self._held], dtype=np.int64)
        order = shuffled(int(ends[-1]) if len(ends) else 0, bits)
        return (_picked(self._held, ends, order[at : at + size]) for at in range(0, len(order), size))

    def close(self) -> None:
        """Forget the rows, and all that were made from them."""
        for rows in (self, *self._made):
            rows._blocks = None

    @property
    def _held(self) -> list[Cells]:
        if self._blocks is None:
            raise EngineError("the rows are no longer held; count within the engine's own block")
        return self._blocks

    def _like(self, blocks: Sequence[Cells]) -> "LocalCodedRows":
        made = LocalCodedRows(
            sizes=self._sizes, silences=self._silences, blocks=blocks, threads=self._threads
        )
        made._above = (*self._above, self._made)
        for family in made._above:
            family.add(made)
        return made

    def _totals(self, sets: Sets) -> Whole:
        return self._added(int(sets.starts[-1]), lambda block, totals: count_block(block, sets, totals))

    def _added(self, length: int, add: Callable[[Cells, Whole], None]) -> Whole:
        """Each thread adds blocks of its own into a list of its own; they add up to the same in any order."""
        blocks = self._held
        threads = max(1, min(self._threads, len(blocks)))

        def counted(thread: int) -> Whole:
            totals = np.zeros(length, np.int64)
            for block in blocks[thread::threads]:
                add(block, totals)
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


def _redrawn(block: Cells, fill: RowFill, bits: Fair) -> Cells:
    made, n = block.copy(), block.shape[1]
    fill.fill(made, np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64))
    return made


def _uniforms(n: int, bits: Fair) -> NDArray[np.float64]:
    """`n` multiples of 2^-53 below one."""
    words = np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, np.float64)


def coins(n: int, rate: Fraction, bits: Fair) -> NDArray[np.bool_]:
    """`n` independent coins that fall heads with chance `rate`, exactly: a word of 64 bits each, and more where that is a tie."""
    words = np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64)
    bound = floor(rate * 2**64)
    heads = words < np.uint64(bound)
    for i in np.flatnonzero(words == np.uint64(bound)):
        heads[i] = _settled(rate * 2**64 - bound, bits)
    return heads


def _settled(rest: Fraction, bits: Fair) -> bool:
    """A coin of chance `rest`, word by word."""
    while rest:
        word, bound = bits.take(64), floor(rest * 2**64)
        if word != bound:
            return word < bound
        rest = rest * 2**64 - bound
    return False


def shuffled(n: int, bits: Fair) -> Whole:
    """The numbers below `n`, every order of them equally likely: by keys of 64 bits, all drawn anew if two are equal."""
    while True:
        keys = np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64)
        order = np.argsort(keys).astype(np.int64)
        found = keys[order]
        if (found[1:] != found[:-1]).all():
            return order


def _picked(blocks: Sequence[Cells], ends: Whole, rows: Whole) -> Cells:
    """The rows of those numbers, as they are counted through all blocks."""
    block = np.searchsorted(ends, rows, side="right")
    found = np.empty((blocks[0].shape[0], len(rows)), blocks[0].dtype)
    for number in np.unique(block):
        here = block == number
        first = ends[number] - blocks[number].shape[1]
        found[:, here] = blocks[number][:, rows[here] - first]
    return found
