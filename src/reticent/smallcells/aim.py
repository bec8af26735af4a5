"""What is estimated in every cell, and on which public scale it is published."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.errors import PlanError
from reticent.smallcells.estimators import Estimator, Predict, Ratios, estimates
from reticent.smallcells.moments import Wholes, moments
from reticent.smallcells.points import GridPoints

MOST_STEPS = 1 << 40
MOST_DIGITS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimand:
    """One estimate per cell, kept within [low, high] and published in whole steps from low. All of it is public.

    Units are those of the unit square: y lies in [0, 1], and a slope is theta(1) - theta(0). A cell that has no
    estimate gets the step `fallback`; where that is not said, the one in the middle.
    """

    estimator: Estimator
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    steps: int = 10**6
    fallback: int | None = None

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise PlanError(f"it runs from {self.low} to {self.high}, but must rise.", field="range")
        if not 1 <= self.steps <= MOST_STEPS:
            raise PlanError(f"it is {self.steps}, but must be from 1 to 2^40.", field="steps")
        if not 0 <= self.otherwise <= self.steps:
            raise PlanError(
                f"it is {self.fallback}, but must be a step from 0 to {self.steps}.", field="fallback"
            )
        if isinstance(self.estimator, Predict) and self.estimator.at.denominator > MOST_DIGITS:
            raise PlanError("it has too many digits; a place needs no more than six.", field="predict")

    @property
    def otherwise(self) -> int:
        """The step of a cell that has no estimate."""
        return self.steps // 2 if self.fallback is None else self.fallback

    @property
    def step(self) -> Fraction:
        """The width of a step."""
        return (self.high - self.low) / self.steps

    def value(self, step: int) -> Fraction:
        """The estimate that a released whole number of steps stands for."""
        return self.low + step * self.step


def steps_of(points: GridPoints, aim: Estimand) -> list[int]:
    """The estimate of every cell: exact, rounded half up to a whole step, kept within 0 .. aim.steps. Private."""
    found = estimates(aim.estimator, moments(points))
    return [int(step) for step in np.where(found.is_defined, _nearest(found, aim), aim.otherwise)]


def _nearest(found: Ratios, aim: Estimand) -> Wholes:
    # (top/bottom - low)/step + 1/2, over one denominator; an undefined estimate is replaced by the caller.
    low, step = aim.low, aim.step
    bottom = np.where(found.is_defined, found.bottom, 1)
    over = low.denominator * step.numerator * bottom
    above = (low.denominator * found.top - low.numerator * bottom) * step.denominator
    return np.asarray(np.minimum(np.maximum((2 * above + over) // (2 * over), 0), aim.steps))
