"""A released line as rows can follow it: whole coefficients, so that each gap is filled by integers alone."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError

SCALE = 32
"""Coefficients are counted in steps of 2^-32 of the response's grid."""

FINE = 16
"""Draws, and the spread they are multiplied with, in steps of 2^-16."""

FARTHEST = 8 << FINE
"""No draw is farther out than eight standard deviations."""

LARGEST = 1 << 120

Draw = Callable[[int], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One predictor: its code from `low` on, or, with a `level`, 1 for those who gave that answer and 0 for others.

    `gap` is the code that stands for an answer that is missing or was not asked.
    """

    column: str
    slope: int
    low: int = 0
    high: int = 1
    level: int | None = None
    gap: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionLine:
    """Fills `column` with floor((base + sum of slope x value + spread x draw) / 2^32), held within its codes.

    All of it was released before. `draw` gives a number of its own to each of n rows, standard normal, in steps
    of 2^-16; without it everybody lies on the line.
    """

    column: str
    low: int
    high: int
    base: int
    terms: tuple[Term, ...]
    spread: int = 0
    draw: Draw | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.low > self.high or any(term.low > term.high for term in self.terms):
            raise PlanError("its lowest code lies above its highest.", field=self.column)
        if any(term.column == self.column for term in self.terms):
            raise PlanError("it cannot be predicted from itself.", field=self.column)
        if self.reach >= LARGEST:
            raise PlanError("a prediction could overflow; declare a coarser grid.", field=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that it speaks of."""
        return tuple(dict.fromkeys((self.column, *(term.column for term in self.terms))))

    @property
    def reach(self) -> int:
        """No sum on the way to a prediction is larger than this."""
        steps = sum(abs(term.slope) * (term.high - term.low) for term in self.terms)
        bounds = max(abs(self.low), abs(self.high)) + 1
        return abs(self.base) + steps + abs(self.spread) * FARTHEST + (bounds << SCALE)
