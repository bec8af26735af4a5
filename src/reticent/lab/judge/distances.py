"""Distances between tables of the truth and of synthetic rows: half of the summed differences of their shares.

For every choice of k columns both are counted over all cells of the domain, bins being public; the mean over the choices
is the k-way distance. 0 is equality, 1 is no cell in common.

Compiled counts of rows in the cells of a table. Whoever calls sees to it that every cell is within its side.

What no synthesizer can be asked to beat: as many rows drawn again from the truth, and the truth through bins and back.

And two ways to go wrong, for comparison: mid-points written as whole numbers, and silence counted as the first answer.
"""

from collections.abc import Sequence
from itertools import combinations

import numba
import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.lab.trials.tables import Cells, Codes, cells_of, decoded
from reticent.noise.bits import Bits
from reticent.schema import Number
from reticent.synth.domain import Domain

Counted = NDArray[np.int64]


def tally(columns: NDArray[np.int32], sizes: tuple[int, ...]) -> Counted:
    """How many rows are in each cell; `columns` has a line for every side of the table."""
    return _tally(columns, np.array(sizes, dtype=np.int64)).reshape(sizes)


@numba.njit(nogil=True)
def _tally(columns: NDArray[np.int32], sizes: NDArray[np.int64]) -> Counted:
    found = np.zeros(sizes.prod(), dtype=np.int64)
    for row in range(columns.shape[1]):
        cell = 0
        for side in range(len(sizes)):
            cell = cell * sizes[side] + columns[side, row]
        found[cell] += 1
    return found


WAYS = (1, 2, 3)


def distance(truth: NDArray[np.int32], made: NDArray[np.int32], sizes: tuple[int, ...]) -> float:
    """The distance of one table; both have a line for every side."""
    shares = [tally(rows, sizes) / rows.shape[1] for rows in (truth, made)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def distances(truth: Cells, made: Cells, domain: Domain, *, ways: Sequence[int] = WAYS) -> dict[int, float]:
    """The mean distance over all choices of k columns, for each k of `ways`."""
    first, second = _lines(truth, domain), _lines(made, domain)
    found = {}
    for k in ways:
        sets = [list(places) for places in combinations(range(len(domain.axes)), k)]
        each = [distance(first[places], second[places], domain.sizes(places)) for places in sets]
        found[k] = float(np.mean(each))
    return found


def by_column(truth: Cells, made: Cells, domain: Domain) -> dict[str, float]:
    """The 1-way distance of each column."""
    first, second = _lines(truth, domain), _lines(made, domain)
    return {
        axis.column: distance(first[[place]], second[[place]], (axis.size,))
        for place, axis in enumerate(domain.axes)
    }


def _lines(cells: Cells, domain: Domain) -> NDArray[np.int32]:
    """Columns as lines, checked against the domain: a cell outside would be counted as another."""
    if cells.ndim != 2 or cells.shape[1] != len(domain.axes) or not len(cells):
        raise PlanError("has rows, and a column for each axis of the domain", field="cells")
    if (cells < 0).any() or (cells >= np.array(domain.shape)).any():
        raise PlanError("holds a cell outside the domain", field="cells")
    return np.ascontiguousarray(cells.T, dtype=np.int32)


def bootstrap(truth: Codes, rng: np.random.Generator) -> Codes:
    """As many rows, each drawn anew from all of them."""
    return np.asarray(truth[rng.integers(0, len(truth), len(truth))])


def round_trip(truth: Codes, domain: Domain, bits: Bits) -> Codes:
    """The truth put into the bins of the domain and drawn evenly inside them again, without noise."""
    return decoded(cells_of(truth, domain), domain, bits)


def midpoints(truth: Codes, domain: Domain, *, bins: int) -> Codes:
    """The truth with every number at the middle of one of `bins` bins from bound to bound, cut to a whole code.

    These bins are (high - low) / bins wide, where the domain's hold (high - low + 1) / bins codes each: the two grids
    are shifted against each other, a little more from one bin to the next.
    """
    moved = truth.copy()
    for place, axis in enumerate(domain.axes):
        column = domain.schema.coded[axis.column]
        if isinstance(column, Number):
            width = (column.high - column.low) / bins
            codes = truth[:, place]
            bin_ = np.clip(np.floor((codes - column.low) / width), 0, bins - 1)
            middle = np.trunc(column.low + (bin_ + 0.5) * width).astype(np.int64)
            moved[:, place] = np.where(codes >= column.low, middle, codes)
    return moved


def first_for_silence(cells: Cells, domain: Domain) -> Cells:
    """Every silent cell called the first answer, as happens where the code of a missing cell is taken for a category."""
    silent = cells == np.array([axis.silence for axis in domain.axes])
    return np.where(silent, 0, cells).astype(np.int32)
