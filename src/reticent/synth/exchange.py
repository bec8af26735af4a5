"""Exchange cells among drawn rows until pairs of columns that no table holds are as near to what is expected as rows allow.

A column is drawn group by group: rows that are alike in what it is given share a line of chances, and which of them gets
which cell is settled by lot. Every pair of the column with another that was drawn before then varies as a sample does. Of a
table of 48,842 rows and 15 columns that was .0015 of a two-way distance of .0376. So two rows of a group change cells
wherever that brings these pairs nearer to their expectation, which is known: over all rows the sum of their lines. What a
group has of each cell stays as it is. After the noise, all of it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import compiled
from reticent.noise.bits import Bits, words
from reticent.synth.base import Floats

Wholes = NDArray[np.int64]
Rows = NDArray[np.int32]

STEPS = 1 << 20
"""Steps to a row in expectations, so that gains are compared as whole numbers."""
SWEEPS = 3
MOST_ROWS = 2**18
"""Of more rows the chance of drawing is too little to be worth it."""
MOST_CELLS = 2**20
MOST_WORK = 2**27


def exchange(
    cells: Rows, others: Sequence[Rows], group: Wholes, lines: Floats, order: Wholes, bits: Bits
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


def _over(cells: Rows, other: Rows, group: Wholes, lines: Floats) -> Wholes:
    """By cell of the pair, how many rows it has beyond what is expected, in steps."""
    shape = (int(other.max()) + 1, lines.shape[1])
    by_group = np.bincount(other.astype(np.int64) * len(lines) + group, minlength=shape[0] * len(lines))
    expected = by_group.reshape(shape[0], len(lines)).astype(np.float64) @ lines
    found = np.bincount(other.astype(np.int64) * shape[1] + cells, minlength=shape[0] * shape[1])
    return np.asarray(STEPS * found - np.rint(STEPS * expected.ravel()).astype(np.int64))


@compiled
def _sweep(
    cells: Rows, at: Wholes, over: Wholes, starts: Wholes, order: Wholes, lots: NDArray[np.uint64]
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
