"""The points of every declared cell, on a public grid: what all estimates for small cells start from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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


def _is_cover(starts: NDArray[np.int64], points: int) -> bool:
    """Whether the offsets rise from 0 to the number of points."""
    if len(starts) < 1 or starts[0] != 0 or starts[-1] != points:
        return False
    return bool((starts[1:] >= starts[:-1]).all())


def _is_within(codes: NDArray[np.int64], steps: int) -> bool:
    """Whether all codes lie in 0 .. steps."""
    return codes.dtype == np.int64 and (not len(codes) or bool(codes.min() >= 0 and codes.max() <= steps))
