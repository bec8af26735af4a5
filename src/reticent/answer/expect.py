"""What can be said of an answer's noise before a row is read: known, or under an assumption that is told with it.

How many recipients a donor serves is read off the rows, so nobody can know the scale of smooth noise beforehand. One can say
what follows from an assumed number, and the floor: what is left when nobody is missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

EXACT, AT_SIZE, IN_RANKS, DERIVED, UNKNOWN = "exact", "at size", "in ranks", "derived", "unknown"
AT_LEAST, LEAST_RANKS, OPEN, AS_TOTALS = "at least", "at least, in ranks", "open", "as totals"
IN_WEIGHT, EVEN, FACTORED, BY_ROWS = "in weight", "even domains", "by factors", "by rows"
LEAST_STEPS = "at least, by steps"
MOST_STEPS = 2**20


class NoiseOfPart(Protocol):
    """The noise of one measurement, known or assumed, in the answer's own unit."""

    @property
    def what(self) -> str: ...
    @property
    def bound(self) -> Fraction: ...
    @property
    def sd(self) -> float: ...
    def half_width(self, level: Fraction) -> Fraction: ...


Noises = Sequence[NoiseOfPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """The noise of an ask if the busiest donor served `hub` recipients, in the answer's own unit."""

    hub: int
    sd: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Half the width of the interval, None where nothing can be said, and how that was found.

    `assumed` is told of noise whose scale is confidential: the floor first, then for busier donors.
    """

    margin: Fraction | None
    how: str
    assumed: tuple[Assumed, ...] = ()


def least_epsilon(enough: Callable[[Fraction], bool]) -> Fraction | None:
    """The least thousandth at which the noise is small enough; it falls as epsilon grows. None above 1000."""
    low, high = 0, 1
    while not enough(Fraction(high, 1000)):
        low, high = high, 2 * high
        if high > MOST_STEPS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(Fraction(middle, 1000)) else (middle, high)
    return Fraction(high, 1000)
