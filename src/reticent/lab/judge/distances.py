"""Distances between tables of the truth and of synthetic rows: half of the summed differences of their shares.

For every choice of k columns both are counted over all cells of the domain, bins being public; the mean over the choices
is the k-way distance. 0 is equality, 1 is no cell in common.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.lab.judge.counting import tally
from reticent.lab.trials.coding import Cells
from reticent.synth.domain import Domain

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
