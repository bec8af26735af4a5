"""Rubin's rules for a mean over several completed data sets that was asked once. Costs nothing.

Let Q_j be the answer from the j-th of m completed data sets. The variance between them is that of the model's own
uncertainty and of the draws; where both are known from released numbers, no two of the Q_j need be seen apart. With
privacy noise of variance V on the mean of them all: T = within + (1 + 1/m) between + V.
"""

from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist

from reticent.errors import PlanError

ALIKE = 8
"""Of two parts of an error, one this many times as wide as the other has the law of both."""

MOST = 600
"""Beyond so many scales a Laplace law has nothing left that a double can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """One answer from several: its value and its total variance.

    `heavy` is the part of the variance that comes from Laplace noise, whose tails are longer than a normal law's.
    """

    value: float
    variance: float
    heavy: float = 0.0

    def interval(self, level: float) -> tuple[float, float]:
        """The value, and on either side the quantile of a normal number and Laplace noise."""
        half = mixed_quantile(level, normal=self.variance - self.heavy, heavy=self.heavy)
        return self.value - half, self.value + half


def combine(
    value: float, *, within: float, between: float, heavy: float, copies: int, noise: float
) -> Combined:
    """A mean over `copies` completed data sets, and how far it may be off: sampling, imputation and privacy together.

    `within` is the sampling variance of a completed answer, `between` + `heavy` the variance between completed
    answers, `heavy` of it from Laplace noise in the model; `noise` the variance of the answer's own.
    """
    if copies < 1:
        raise PlanError("takes at least 1.", field="copies")
    more = 1 + 1 / copies
    total = within + more * (between + heavy) + noise
    return Combined(value=value, variance=total, heavy=more * heavy + noise)


def mixed_quantile(level: float, *, normal: float, heavy: float) -> float:
    """The h with P(|X + L| <= h) = level, X normal of variance `normal`, L Laplace of variance `heavy`; nine digits."""
    if not 0 < level < 1:
        raise PlanError("lies between 0 and 1.", field="level")
    s, b = sqrt(max(0.0, normal)), sqrt(max(0.0, heavy) / 2)
    low, high = 0.0, sqrt(s * s + 2 * b * b)
    while high and _beyond(high, s, b) > 1 - level:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, s, b) > 1 - level else (low, middle)
    return high


def _beyond(h: float, s: float, b: float) -> float:
    """P(|X + L| > h): E exp(X/b) over X < h, and the like, by completing the square."""
    phi = NormalDist().cdf
    if s > ALIKE * b:
        return 2 * phi(-h / sqrt(s * s + 2 * b * b))
    if s < b / ALIKE**2:
        return exp(-h / b)
    tilt = exp(s * s / (2 * b * b)) / 2
    near = exp(-h / b) * phi(h / s - s / b)
    far = exp(h / b) * phi(-h / s - s / b) if h < MOST * b else 0.0
    return 2 * (phi(-h / s) + tilt * (near - far))
