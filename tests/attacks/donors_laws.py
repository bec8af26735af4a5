"""The law of a noisy answer on its grid, in balls: the chance of every step, and the largest loss between two laws."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from reticent.exact import ball
from reticent.noise.calibrate import lomax
from tests.doubles import Call

BITS = 160


@dataclass(frozen=True)
class Lomax:
    """answer + scale X, X double Lomax of exponent m, rounded to whole steps."""

    answer: Fraction
    scale: Fraction
    m: int

    def above(self, x: arb) -> arb:
        """P(X > x) for x >= 0."""
        return (1 + x) ** -self.m / 2


@dataclass(frozen=True)
class Cauchy:
    """answer + scale X, X generalised Cauchy of exponent gamma; scale and gamma need not be rational."""

    answer: Fraction
    scale: arb
    gamma: arb

    def above(self, x: arb) -> arb:
        """|X|^g/(1 + |X|^g) is Beta(1/g, 1 - 1/g); this is the other end of it."""
        return (1 / (1 + x**self.gamma)).beta_lower(1 - 1 / self.gamma, 1 / self.gamma, True) / 2


Law = Lomax | Cauchy


def law_of(call: Call) -> Lomax:
    """What becomes of an answer that meets Lomax noise, at the scale the library gives it."""
    assert call.beta is not None
    scale = call.sensitivity / lomax(epsilon=call.epsilon, beta=call.beta)
    return Lomax(Fraction(call.answers[0]), Fraction(scale), int(call.epsilon / call.beta))


def chance(law: Law, step: int, grid: Fraction = Fraction(1)) -> arb:
    """The probability that the rounded answer is `step` times the grid."""
    low, high = ((step * grid + side * grid / 2) - law.answer for side in (-1, 1))
    if low < 0 < high:
        return 1 - law.above(_units(high, law)) - law.above(_units(-low, law))
    near, far = (low, high) if low >= 0 else (-high, -low)
    return law.above(_units(near, law)) - law.above(_units(far, law))


def _units(distance: Fraction, law: Law) -> arb:
    return ball(distance) / (ball(law.scale) if isinstance(law.scale, Fraction) else law.scale)


def loss(one: Law, other: Law, steps: Iterable[int], grid: Fraction = Fraction(1)) -> arb:
    """The largest |ln p - ln p'| over the steps given."""
    with ctx.workprec(BITS):
        losses = [abs((chance(one, step, grid) / chance(other, step, grid)).log()) for step in steps]
        return max(losses, key=lambda each: float(each))


def loss_beyond(one: Lomax, other: Lomax, low: int, high: int) -> arb:
    """A bound of the loss at every step below `low` and above `high`, both beyond the two answers.

    There the ratio of densities is a power of (u + y)/(v + y), which is monotone in y, so it lies between what it
    is at the end and what it tends to; and the ratio of two integrals lies between the ends of the integrand.
    """
    with ctx.workprec(BITS):
        scales = ball(one.scale) / ball(other.scale)
        far = one.m * scales.log()
        ends = []
        for y in (Fraction(low), Fraction(high)):
            mine, theirs = (1 + _units(abs(y - law.answer), law) for law in (one, other))
            ends.append((one.m + 1) * (theirs / mine).log() - scales.log())
        return max((abs(each) for each in (far, *ends)), key=lambda each: float(each))
