"""Noise scaled by a smooth bound, as it would be if the busiest donor served a given number of recipients.

How many a donor serves is read off the rows, so a preview cannot know it. It can say what follows from an
assumption, and the floor: what is left when nobody is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt

from reticent.noise import calibrate
from reticent.noise.family import Cauchy, Lomax
from reticent.prepare.donors import Bounding
from reticent.refine.quantiles import half_width
from reticent.sensitivity.constants import Constants
from reticent.sensitivity.hubs import LN2
from reticent.sensitivity.ladder import smooth_bound, straight

NOBODY = 0
HUBS = (NOBODY, 5, 20, 100)
FINITE_VARIANCE = 3  # the least tail exponent of Cauchy noise beyond which it has a variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A part under an assumption; `reach` is the most that a respondent's own row adds to it."""

    what: str
    epsilon: Fraction
    scale: Fraction
    family: Lomax | Cauchy
    reach: Fraction

    @property
    def sd(self) -> float:
        """Standard deviation of the noise, in the answer's own unit; infinite where the noise has none."""
        if isinstance(self.family, Cauchy) and self.family.gamma <= FINITE_VARIANCE:
            return inf
        return float(self.scale) * sqrt(float(self.family.variance()))

    def half_width(self, level: Fraction) -> Fraction:
        """The noise stays within this distance with probability `level`."""
        return self.scale * Fraction(float(half_width(self.family, level=level)))


def foresee(
    what: str,
    constants: Sequence[Constants],
    *,
    hub: int,
    epsilon: Fraction,
    runs_at: Fraction,
    smoothness: int,
    bounding: Bounding = Bounding.HUBS,
) -> Foreseen:
    """The part whose noise runs at epsilon `runs_at`, if each filled column's busiest donor serves `hub` recipients.

    U_k = c0 + sum of c1 (hub + k): with nobody missing, hub = 0, no survey can have less.
    """
    c0, c1 = max(each.c0 for each in constants), sum((each.c1 for each in constants), Fraction(0))
    if bounding is Bounding.PUBLISHED:
        gamma = 1 + runs_at / (2 * LN2)
        a = calibrate.cauchy_as_published(epsilon=runs_at, beta=LN2, gamma=gamma)
        scale, family = (c0 + c1 * max(1, hub)) / a, Cauchy(gamma)
        return Foreseen(what=what, epsilon=epsilon, scale=scale, family=family, reach=c0)
    beta = runs_at / smoothness
    bound = smooth_bound(straight(base=c0 + c1 * hub, slope=c1), beta).bound
    scale = bound / calibrate.lomax(epsilon=runs_at, beta=beta)
    return Foreseen(what=what, epsilon=epsilon, scale=scale, family=Lomax(smoothness), reach=c0)
