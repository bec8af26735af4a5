"""Rubin's rules for several completed answers, each with privacy noise of a known variance. Costs nothing.

Let Q_j be the answer from the j-th completed data set and V the variance of its privacy noise. The spread of the noisy
answers is that between imputations plus V, so V is taken off before the rules and the noise of the mean, V/m, is
added after them: T = within + (1 + 1/m) between + V/m.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from statistics import NormalDist, fmean, variance

from flint import arb

from reticent.errors import PlanError

MANY = 1e6
"""With more degrees of freedom than this, Student's law is the normal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """One answer from several: its value, its total variance and the degrees of freedom of that variance."""

    value: float
    variance: float
    freedom: float = inf

    def interval(self, level: float) -> tuple[float, float]:
        """The value and Student's quantile times the standard error on either side."""
        half = student_quantile(level, self.freedom) * sqrt(self.variance)
        return self.value - half, self.value + half


def combine(answers: Sequence[float], *, within: float, noise: float) -> Combined:
    """The mean of the answers, and how far it may be off: sampling, imputation and privacy together.

    `within` is the sampling variance of a completed answer, `noise` the variance of each one's privacy noise. The
    degrees of freedom are Rubin's, counted as if the noise belonged to the imputation: never too many, and at
    least m - 1.
    """
    m = len(answers)
    if m < 2:
        raise PlanError("takes at least 2, or nothing is known of the imputation.", field="copies")
    raw = variance(answers)
    between = max(0.0, raw - noise)
    total = max(0.0, within) + (1 + 1 / m) * between + noise / m
    freedom = max(m - 1.0, (m - 1) * (total / ((1 + 1 / m) * raw)) ** 2) if raw else inf
    return Combined(value=fmean(answers), variance=total, freedom=freedom)


def student_quantile(level: float, freedom: float) -> float:
    """The t with P(|T| <= t) = level, T Student's with so many degrees of freedom; to nine digits."""
    if not 0 < level < 1 or freedom <= 0:
        raise PlanError("lies between 0 and 1, and degrees of freedom are positive.", field="level")
    if freedom > MANY or not isfinite(freedom):
        return NormalDist().inv_cdf((1 + level) / 2)
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: float) -> float:
    """P(|T| <= t): one less the incomplete beta function at v/(v + t^2)."""
    outside = arb(freedom / (freedom + t * t)).beta_lower(arb(freedom / 2), arb(0.5), regularized=True)
    return 1 - float(outside)
