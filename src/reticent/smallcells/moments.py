"""Counts and sums of every cell, as exact whole numbers of any size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.smallcells.points import GridPoints

Wholes = NDArray[Any]
"""Python integers in an array: exact whatever their size."""

MOST_STEPS = 1 << 31
"""The finest grid: a product of two codes then fits 62 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CellMoments:
    """n, the sums of x, y, xx, xy and yy on the grid, and what a line is made of. Private.

    q = n sum(xx) - sum(x)**2 and p = n sum(xy) - sum(x) sum(y): the line's slope is p / q, and there is none where q
    is 0, with fewer than two different x.
    """

    n: Wholes
    x: Wholes
    y: Wholes
    xx: Wholes
    xy: Wholes
    yy: Wholes
    x_steps: int
    y_steps: int

    @property
    def q(self) -> Wholes:
        """n times the sum of squares of x about its mean, in squared steps."""
        return np.asarray(self.n * self.xx - self.x * self.x)

    @property
    def p(self) -> Wholes:
        """n times the sum of products about the means, in steps of x times steps of y."""
        return np.asarray(self.n * self.xy - self.x * self.y)


def moments(points: GridPoints) -> CellMoments:
    """The moments of all cells, empty ones too.

    Sums are taken in 64 bits over blocks so short that no sum of theirs can pass 2**62, whatever the points; what is
    added up and multiplied after that are Python integers.
    """
    steps = max(points.x_steps, points.y_steps)
    if steps > MOST_STEPS:
        raise PlanError("the grid has more than 2**31 steps; declare coarser steps.", field="step")
    block = (1 << 62) // (steps * steps)
    x, y = points.x, points.y
    return CellMoments(
        n=np.diff(points.starts).astype(object),
        x=_sums(x, points.starts, block),
        y=_sums(y, points.starts, block),
        xx=_sums(x * x, points.starts, block),
        xy=_sums(x * y, points.starts, block),
        yy=_sums(y * y, points.starts, block),
        x_steps=points.x_steps,
        y_steps=points.y_steps,
    )


def _sums(values: NDArray[np.int64], starts: NDArray[np.int64], block: int) -> Wholes:
    """The sum of each cell's values; 0 for an empty cell."""
    sums = np.zeros(len(starts) - 1, dtype=object)
    is_full = np.diff(starts) > 0
    if not len(values):
        return sums
    firsts = starts[:-1][is_full]
    cuts = np.union1d(firsts, np.arange(0, len(values), min(block, len(values)), dtype=np.int64))
    parts = np.add.reduceat(values, cuts).astype(object)
    sums[is_full] = np.add.reduceat(parts, np.searchsorted(cuts, firsts))
    return sums
