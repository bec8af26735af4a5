"""What a model is fitted to: noisy tables, and cells that are known to be empty."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.synth.base import Floats, Places


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTable:
    """One noisy table over `places`; `deviation` is the standard deviation of one cell's noise. May be negative."""

    places: Places
    table: Floats = field(repr=False)
    deviation: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", np.ascontiguousarray(self.table, dtype=np.float64))
        _check_places(self.places, self.table.ndim)
        if not np.isfinite(self.table).all():
            raise PlanError("a measured table holds a number that is not finite", field="measured")
        if not (isfinite(self.deviation) and self.deviation > 0):
            raise PlanError("is a positive number", field="deviation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Zeroes:
    """Structural zeroes: cells of `places` that nobody can be in are those not `allowed`."""

    places: Places
    allowed: NDArray[np.bool_] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", np.ascontiguousarray(self.allowed, dtype=np.bool_))
        _check_places(self.places, self.allowed.ndim)


def _check_places(places: Places, sides: int) -> None:
    if list(places) != sorted(set(places)) or not places or places[0] < 0:
        raise PlanError("are numbers of axes, each once, in order", field="places")
    if len(places) != sides:
        raise PlanError(f"name {len(places)} axes, but the table has {sides} sides", field="places")


def check_fits(shape: Sequence[int], places: Places, sides: tuple[int, ...]) -> None:
    """Refuse a table that does not have the sizes of its axes."""
    if places[-1] >= len(shape):
        raise PlanError(f"names axis {places[-1]}, but there are {len(shape)}", field="places")
    if sides != tuple(shape[place] for place in places):
        raise PlanError(f"the table over axes {list(places)} has other sizes than they", field="places")
