"""What an answer is once noise is on it: estimates with intervals, and the parts it was made of."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.parts import AnyMeasurement

Interval = tuple[Fraction, Fraction]

UNBOUNDED = Fraction(10**30)
"""An end so far off that it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One published number. `interval` covers the privacy noise; `sampling` is the variance of being a sample.

    `sampling` is a function of the design effect, or None where it cannot be told from what was released.
    Without an interval of its own, `interval` gives the public limits. `noise_sd` is None where the scale of the
    noise is confidential.
    """

    value: Fraction
    interval: Callable[[Fraction], Interval]
    noise_sd: float | None
    sampling: Callable[[float], float] | None = None
    has_interval: bool = True
    cell: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The estimates of one ask, what was measured for them, and what the interval means in words."""

    estimates: tuple[Estimate, ...]
    parts: tuple[AnyMeasurement, ...]
    meaning: str

    @property
    def epsilon(self) -> Fraction:
        return sum((part.epsilon for part in self.parts), Fraction(0))


EXACT_WORDS = "covers the privacy noise with at least the stated probability, computed exactly from its law"
RATIO_WORDS = (
    "covers the value that the same respondents would give without privacy noise, with at least the stated "
    "probability; the noise of numerator and count are both in it"
)
RANK_WORDS = "bounds, with at least the stated probability, how many respondents lie between this value and the exact one"
SELECTED_WORDS = "holds the exact quantile of the same respondents, to the nearest candidate, with at least the stated probability"
DERIVED_WORDS = (
    "holds whenever the intervals of both asks hold, each taken at half the allowed chance of error"
)
COPIES_WORDS = (
    "covers the value of those the sample stands for, if silence depends on what the lines see and the lines are right: "
    "sampling, filling, the uncertainty of the lines and all noise are in it, to first order"
)
