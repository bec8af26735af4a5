"""Points and moments of every declared cell, on a public grid: what all estimates for small cells start from.

Counts and sums are exact whole numbers of any size.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GridPoints:
    """The points of every declared cell on the public grid. All of it is private, so a repr shows no point.

    Cell g holds points starts[g] to starts[g + 1], sorted by (x, y). A point stands for (x / x_steps, y / y_steps)
    in the unit square.
    """

    starts: NDArray[np.int64]
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    x_steps: int
    y_steps: int

    def __post_init__(self) -> None:
        if self.x_steps < 1 or self.y_steps < 1:
            raise ValueError("a grid has at least one step")
        if not _is_cover(self.starts, len(self.x)) or len(self.x) != len(self.y):
            raise ValueError("the offsets do not cut the points into cells")
        if not _is_within(self.x, self.x_steps) or not _is_within(self.y, self.y_steps):
            raise ValueError("a point lies outside the grid")

    @property
    def cells(self) -> int:
        """How many cells were declared: a public number."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many points each cell has."""
        return np.diff(self.starts)


def _is_cover(starts: NDArray[np.int64], points: int) -> bool:
    """Whether the offsets rise from 0 to the number of points."""
    if len(starts) < 1 or starts[0] != 0 or starts[-1] != points:
        return False
    return bool((starts[1:] >= starts[:-1]).all())


def _is_within(codes: NDArray[np.int64], steps: int) -> bool:
    """Whether all codes lie in 0 .. steps."""
    return codes.dtype == np.int64 and (not len(codes) or bool(codes.min() >= 0 and codes.max() <= steps))


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
