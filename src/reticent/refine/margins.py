"""Public margins that a table is to be fitted to, and what can be refused about them before a table is seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import PlanError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Margin:
    """Known totals over some axes of a table, the other axes summed out; `totals` has one axis for each of `axes`."""

    axes: tuple[int, ...]
    totals: Floats = field(repr=False)
    total: float

    def __init__(self, axes: Sequence[int] | int, totals: ArrayLike) -> None:
        given = (axes,) if isinstance(axes, int) else tuple(axes)
        values = np.array(totals, dtype=np.float64)
        if not given or len(set(given)) < len(given) or min(given) < 0:
            raise PlanError(f"{given} names no axes, or one twice, or a negative one.", field="axes")
        if values.ndim != len(given):
            raise PlanError(
                f"a margin over {len(given)} axes has {values.ndim} in its totals.", field="totals"
            )
        total = float(values.sum())
        if not (values.size and values.min() >= 0 and 0 < total < inf):
            raise PlanError("they must be finite, not negative, and not all 0.", field="totals")
        # In the order of the table's axes.
        object.__setattr__(self, "axes", tuple(sorted(given)))
        object.__setattr__(self, "totals", np.ascontiguousarray(values.transpose(np.argsort(given))))
        object.__setattr__(self, "total", total)
        self.totals.setflags(write=False)

    def over(self, axes: tuple[int, ...]) -> Floats:
        """The totals over fewer axes."""
        gone = tuple(place for place, axis in enumerate(self.axes) if axis not in axes)
        return np.asarray(self.totals.sum(axis=gone))

    def project(self, table: NDArray[np.generic]) -> NDArray[np.generic]:
        """What the table says about this margin."""
        return np.asarray(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in self.axes)))


def check_margins(
    margins: Sequence[Margin], *, shape: tuple[int, ...], zeroes: Mask | None, tolerance: float
) -> None:
    """Refuse what no table of this shape and these structural zeroes can meet. Everything here is public."""
    if not margins:
        raise PlanError("give at least one margin.", field="margins")
    for number, margin in enumerate(margins):
        _check_shape(number, margin, shape)
        if zeroes is not None:
            _check_zeroes(number, margin, zeroes)
    for (i, one), (j, other) in combinations(enumerate(margins), 2):
        _check_pair(i, one, j, other, tolerance)


def _check_shape(number: int, margin: Margin, shape: tuple[int, ...]) -> None:
    if margin.axes[-1] >= len(shape) or margin.totals.shape != tuple(shape[axis] for axis in margin.axes):
        raise PlanError(
            f"margin {number} has totals of shape {margin.totals.shape} over axes {margin.axes}, which does not "
            f"fit a table of shape {shape}.",
            field="margins",
        )


def _check_zeroes(number: int, margin: Margin, zeroes: Mask) -> None:
    """A total above 0 needs a cell that may be above 0."""
    stuck = (margin.project(~zeroes) == 0) & (margin.totals > 0)
    if stuck.any():
        where = tuple(int(place) for place in np.argwhere(stuck)[0])
        raise PlanError(
            f"margin {number} has a total above 0 at {where}, where every cell is a structural zero.",
            field="margins",
        )


def _check_pair(i: int, one: Margin, j: int, other: Margin, tolerance: float) -> None:
    """Two margins agree about the axes they share, and about the grand total if they share none."""
    shared = tuple(axis for axis in one.axes if axis in other.axes)
    agree = abs(one.total - other.total) <= tolerance / 10 * one.total
    if agree and shared:
        here, there = one.over(shared), other.over(shared)
        agree = not (np.abs(here - there) > tolerance / 10 * np.maximum(here, there)).any()
    if not agree:
        what = f"the totals over axes {shared}" if shared else "the grand total"
        raise PlanError(f"margins {i} and {j} contradict each other about {what}.", field="margins")
