"""A Bayesian network, and rows drawn from it: as many as are asked for, each group as near to its chances as whole rows can be.

Noisy tables are made fit for it: one scale for all, no negative cells, lines that sum to one. Rows that are alike in what a
column is given share its line of chances. Of n such rows a cell of chance p gets n p,
rounded down or up: by systematic sampling, so that each cell gets n p on average and all of them together get n
(Madow 1949). Which rows get which cell is settled by lot, afresh for every column, or columns would follow each other; then
rows of a group change cells until other pairs of columns, too, are near to what is expected of them.

Which of a group's rows gets which cell, settled by lot, makes every pair of the column with another that was drawn before vary
as a sample does: of a table of 48,842 rows and 15 columns that was .0015 of a two-way distance of .0376. What is expected of
such a pair is known: over all rows the sum of their lines. So two rows of a group change cells wherever that brings these pairs
nearer to it, and what a group has of each cell stays as it is. After the noise, all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import compiled
from reticent.errors import PlanError
from reticent.noise.bits import Bits, words
from reticent.privacy.claim import Claim
from reticent.synth.base import Conditional, Floats
from reticent.synth.domain import Domain
from reticent.synth.lists import Lists
from reticent.synth.spending import NoisyCounts
from reticent.synth.written import written

Rows = NDArray[np.int32]
Whole = NDArray[np.int64]

LEAST = 1 / 64
"""No table is scaled up further than this."""
STEPS = 1 << 20
"""Steps to a row in expectations, so that gains are compared as whole numbers."""
SWEEPS = 3
MOST_ROWS = 2**18
"""Of more rows the chance of drawing is too little to be worth it."""
MOST_CELLS = 2**20
MOST_WORK = 2**27


def total_of(noisy: list[NoisyCounts]) -> float:
    """About how many respondents there are: every list has each of them once; the shorter, the better."""
    weights = [1 / len(each.cells) for each in noisy]
    return max(1.0, float(np.average([float(each.cells.sum()) for each in noisy], weights=weights)))


def one_scale(noisy: NoisyCounts, total: float, blocks: NDArray[np.int64]) -> NoisyCounts:
    """A table of available cells on the scale of all `total` respondents, with its own noise level.

    `noisy.cells` is a list as `View.parted` makes it: the table's cells, whose blocks are `blocks`, then for each block the
    rows left out of it. Raw tables have sums of .8 n, .64 n and so on, which no model can meet at once; and who was not asked
    cannot be silent, so each block has a share of its own. It comes from noisy numbers alone. The noise level is that
    of the block with most cells.
    """
    sizes = np.bincount(blocks)
    kept, left = noisy.cells[: len(blocks)], noisy.cells[len(blocks) :]
    widest = int(sizes.argmax())
    rows = np.bincount(blocks, weights=kept) + left
    rows[widest] = total - (rows.sum() - rows[widest])
    rows = np.maximum(rows, 1.0)
    share = np.minimum(np.maximum(1 - left / rows, np.maximum(noisy.deviation / rows, LEAST)), 1.0)
    main = float(share[widest])
    return NoisyCounts(cells=kept / share[blocks], deviation=noisy.deviation / main, size=noisy.size / main)


def lines(joint: Floats) -> Floats:
    """Conditional lines of a non-negative table, its own column last; a line without mass gets the column's own shares."""
    own = joint.reshape(-1, joint.shape[-1]).sum(axis=0)
    own = own / own.sum() if own.sum() > 0 else np.full(len(own), 1 / len(own))
    sums = joint.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), own)


def simplex(table: Floats, total: float) -> Floats:
    """The nearest table without negative cells that sums to `total`.

    Counted from the largest cell, which changes nothing and keeps a total that is small beside the noise.
    """
    apart = table - table.max()
    flat = np.sort(apart.ravel())[::-1]
    over = (np.cumsum(flat) - max(total, 1.0)) / np.arange(1, len(flat) + 1)
    cut = over[np.flatnonzero(flat > over)[-1]]
    return np.asarray(np.maximum(apart - cut, 0.0))


def nearest(cells: Floats) -> Floats:
    """The nearest table without negative cells and with the same sum."""
    return simplex(cells, float(cells.sum()))


def clipped(cells: Floats) -> Floats:
    """Negative cells set to zero, as published. Cells that nobody is in gain by it."""
    return np.maximum(cells, 0.0)


MOST_AT_ONCE = 2**21
STRATA = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A Bayesian network with its guarantee: conditionals in an order in which each is given only earlier ones.

    `total` is the noisy number of respondents, for the curious; how many rows are drawn is said by whoever draws.
    `lists` are the noisy tables it was fitted to, as they were measured, where the method keeps them.
    """

    domain: Domain
    steps: tuple[Conditional, ...] = field(repr=False)
    total: float
    claim: Claim
    lists: Lists | None = field(default=None, repr=False)

    def draw(self, rows: int, bits: Bits) -> Rows:
        """`rows` rows of cells, one column for each axis. Costs nothing: the network is private already."""
        if rows < 0:
            raise PlanError("is a whole number from 0 up", field="rows")
        drawn = np.zeros((rows, len(self.domain.axes)), dtype=np.int32)
        before: list[int] = []
        for step in self.steps if rows else ():
            apart = [place for place in before if place not in step.given]
            drawn[:, step.place] = draw_column(step, drawn, bits, apart)
            before.append(step.place)
        return drawn

    def files(self) -> dict[str, bytes]:
        """A TOML file that says what it is, and one array for each step."""
        return written(self.domain, self.steps, self.total, self.claim, self.lists)


def draw_column(step: Conditional, drawn: Rows, bits: Bits, apart: Sequence[int] = ()) -> Rows:
    """The cells of one column for rows whose given columns are drawn already.

    Pairs with the columns of `apart`, which are drawn and not given, are brought near to what is expected of them.
    """
    lines = step.table.reshape(-1, step.table.shape[-1])
    group = _groups(step, drawn)
    order = _shuffled(group, bits)
    numbers, inverse, sizes = np.unique(group, return_inverse=True, return_counts=True)
    cells = np.empty(len(drawn), dtype=np.int32)
    cells[order] = _cells(lines, numbers, sizes, bits)
    if apart:
        met = lines[numbers] / lines[numbers].sum(axis=1, keepdims=True)
        exchange(cells, [drawn[:, place] for place in apart], inverse, met, order, bits)
    return cells


def _groups(step: Conditional, drawn: Rows) -> Whole:
    """For each row the number of its line."""
    if not step.given:
        return np.zeros(len(drawn), dtype=np.int64)
    given = tuple(drawn[:, place] for place in step.given)
    return np.ravel_multi_index(given, step.table.shape[:-1]).astype(np.int64)


def _shuffled(group: Whole, bits: Bits) -> Whole:
    """Row numbers sorted by group, and by lot within it."""
    return np.lexsort((words(len(group), bits), group))


def _cells(lines: Floats, numbers: Whole, sizes: Whole, bits: Bits) -> Rows:
    """Cells for all groups one after the other, in order within a group."""
    starts = _starts(len(numbers), bits)
    many = max(1, MOST_AT_ONCE // lines.shape[1])
    parts = []
    for a in range(0, len(numbers), many):
        some = slice(a, a + many)
        counts = rounded(lines[numbers[some]], sizes[some], starts[some])
        cell = np.tile(np.arange(lines.shape[1], dtype=np.int32), len(counts))
        parts.append(np.repeat(cell, counts.ravel()))
    return np.concatenate(parts)


def rounded(chances: Floats, sizes: Whole, starts: Floats) -> Whole:
    """Whole numbers within one of sizes x chances that add up to the sizes; each line from its own random start."""
    reached = np.cumsum(chances, axis=1)
    # Divided by the last of itself, a line ends at exactly 1, and impossible cells at its end stay impossible.
    reached = np.floor(reached / reached[:, -1:] * sizes[:, None] + starts[:, None])
    reached = np.minimum(reached, sizes[:, None])
    return np.diff(reached, axis=1, prepend=0).astype(np.int64)


def _starts(groups: int, bits: Bits) -> Floats:
    """A uniform number below 1 for each group; among 32 neighbours each 32nd part is met once, in an order by lot.

    Groups next to each other have much in common. If their starts are spread out, what one group gets too much
    another gets too little, and the sum over them is nearer to its chances, too.
    """
    blocks = -(-groups // STRATA)
    lots = words(2 * blocks * STRATA, bits).reshape(2, blocks, STRATA)
    stratum = np.argsort(lots[0], axis=1).ravel()
    inside: Floats = (lots[1].ravel() >> np.uint64(11)).astype(np.float64) * 2.0**-53
    starts: Floats = (stratum + inside) / STRATA
    return starts[:groups]


def exchange(
    cells: Rows, others: Sequence[Rows], group: Whole, lines: Floats, order: Whole, bits: Bits
) -> None:
    """Change which rows of a group have which of its cells, in place, towards what is expected of pairs with `others`.

    Parameters
    ----------
    cells : the column's cell of each row
    others : cells of columns that were drawn before, none of which the column is given
    group : the group of each row, from 0 up
    lines : by group the chances of the column's cells
    order : rows, those of a group together
    bits : which rows are tried with which
    """
    many, rows = lines.shape[1], len(cells)
    kept = [each for each in others if _is_small(each, lines)]
    if not kept or not 1 < rows <= MOST_ROWS:
        return
    over = [_over(cells, each, group, lines) for each in kept]
    offsets = np.cumsum([0, *(len(each) for each in over)])[:-1].astype(np.int64)
    starts = np.cumsum([0, *np.bincount(group)]).astype(np.int64)
    at = (np.stack(kept).astype(np.int64) * many + offsets[:, None]).T
    _sweep(cells, np.ascontiguousarray(at), np.concatenate(over), starts, order, words(SWEEPS * rows, bits))


def _is_small(other: Rows, lines: Floats) -> bool:
    cells = (int(other.max()) + 1) * lines.shape[1]
    return bool(cells <= MOST_CELLS and cells * len(lines) <= MOST_WORK)


def _over(cells: Rows, other: Rows, group: Whole, lines: Floats) -> Whole:
    """By cell of the pair, how many rows it has beyond what is expected, in steps."""
    shape = (int(other.max()) + 1, lines.shape[1])
    by_group = np.bincount(other.astype(np.int64) * len(lines) + group, minlength=shape[0] * len(lines))
    expected = by_group.reshape(shape[0], len(lines)).astype(np.float64) @ lines
    found = np.bincount(other.astype(np.int64) * shape[1] + cells, minlength=shape[0] * shape[1])
    return np.asarray(STEPS * found - np.rint(STEPS * expected.ravel()).astype(np.int64))


@compiled
def _sweep(
    cells: Rows, at: Whole, over: Whole, starts: Whole, order: Whole, lots: NDArray[np.uint64]
) -> None:
    """Try every row with one of its group by lot, again and again; they change where the sum of squares falls."""
    rows, others = at.shape
    for tried in range(SWEEPS):
        for group in range(len(starts) - 1):
            first, size = starts[group], starts[group + 1] - starts[group]
            for place in range(first, first + size):
                one = order[place]
                two = order[first + np.int64(lots[tried * rows + place] % np.uint64(size))]
                x, y = cells[one], cells[two]
                if x == y:
                    continue
                gain = 0
                for other in range(others):
                    u, v = at[one, other], at[two, other]
                    if u != v:
                        gain += over[u + x] - over[u + y] - over[v + x] + over[v + y] - 2 * STEPS
                if gain > 0:
                    for other in range(others):
                        u, v = at[one, other], at[two, other]
                        over[u + x] -= STEPS
                        over[u + y] += STEPS
                        over[v + y] -= STEPS
                        over[v + x] += STEPS
                    cells[one], cells[two] = y, x
