"""The noises we scale to a bound, as values: minus log density, spread, distribution function.

All four are even, with density e^(-phi) up to a constant and phi(x) = psi(ln|x|), psi convex and
nondecreasing, as Theorem 2.1 asks. The three with heavy tails also satisfy phi(x) = p ln x + phi(1/x) for
x > 0, p being the tail exponent of the density; the certifier uses it to fold the tail onto [0, 1].
Numbers are balls (`flint.arb`): what comes back holds the true value at whatever precision is set.
"""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from reticent.errors import PlanError
from reticent.exact import ball

_CAP = 10**6


def hull(low: arb, high: arb) -> arb:
    """A ball that holds both arguments and all between."""
    return low.union(high)


def _power(x: arb, p: Fraction) -> arb:
    """x^p for x >= 0 and p >= 0, on a ball that may touch 0: the power is monotone, so ends suffice."""
    return hull(_power_at(x.lower(), p), _power_at(x.upper(), p))


def _power_at(x: arb, p: Fraction) -> arb:
    if p == 0:
        return arb(1)
    return (x.log() * ball(p)).exp() if x > 0 else arb(0)


@dataclass(frozen=True, slots=True)
class Laplace:
    """f(x) = e^(-|x|)/2. For global bounds only: no beta > 0 is certified."""

    def phi(self, x: arb) -> arb:
        return x

    def variance(self) -> arb:
        return arb(2)

    def tail(self, x: arb) -> arb:
        """P(|X| > x) for x >= 0."""
        return (-x).exp()


@dataclass(frozen=True, slots=True)
class Lomax:
    """f(x) = (m/2)(1+|x|)^-(m+1), the default for smooth bounds."""

    m: int

    def __post_init__(self) -> None:
        if not isinstance(self.m, int) or not 3 <= self.m <= _CAP:
            raise PlanError(f"it is {self.m}, but must be an integer from 3 to {_CAP}.", field="m")

    @property
    def exponent(self) -> Fraction:
        return Fraction(self.m + 1)

    def phi(self, x: arb) -> arb:
        return (self.m + 1) * x.log1p()

    def slope(self, x: arb) -> arb:
        return (self.m + 1) / (1 + x)

    def bend(self, x: arb) -> arb:
        return -(self.m + 1) / (1 + x) ** 2

    def variance(self) -> arb:
        return ball(Fraction(2, (self.m - 1) * (self.m - 2)))

    def tail(self, x: arb) -> arb:
        """P(|X| > x) for x >= 0."""
        return (1 + x) ** -self.m


@dataclass(frozen=True, slots=True)
class Student:
    """f proportional to (1+x^2)^(-g/2): Student with g-1 degrees of freedom over sqrt(g-1)."""

    g: Fraction = Fraction(4)

    def __post_init__(self) -> None:
        if not isinstance(self.g, Fraction | int) or not 3 < self.g <= _CAP:
            raise PlanError(f"it is {self.g}, but must be a rational above 3, to {_CAP}.", field="g")

    @property
    def exponent(self) -> Fraction:
        return Fraction(self.g)

    def phi(self, x: arb) -> arb:
        return ball(self.g) / 2 * (x * x).log1p()

    def slope(self, x: arb) -> arb:
        return ball(self.g) * x / (1 + x * x)

    def bend(self, x: arb) -> arb:
        return ball(self.g) * (1 - x * x) / (1 + x * x) ** 2

    def variance(self) -> arb:
        return ball(1 / Fraction(self.g - 3))

    def tail(self, x: arb) -> arb:
        """P(|X| > x) for x >= 0; 1/(1+X^2) is Beta((g-1)/2, 1/2)."""
        return (1 / (1 + x * x)).beta_lower((ball(self.g) - 1) / 2, ball(Fraction(1, 2)), True)


@dataclass(frozen=True, slots=True)
class Cauchy:
    """f proportional to 1/(1+|x|^gamma), the generalized Cauchy noise of the literature."""

    gamma: Fraction = Fraction(4)

    def __post_init__(self) -> None:
        if not isinstance(self.gamma, Fraction | int) or not 1 < self.gamma <= _CAP:
            raise PlanError(f"it is {self.gamma}, but must be a rational above 1, to {_CAP}.", field="gamma")

    @property
    def exponent(self) -> Fraction:
        return Fraction(self.gamma)

    def phi(self, x: arb) -> arb:
        return _power(x, self.gamma).log1p()

    def slope(self, x: arb) -> arb:
        return ball(self.gamma) * _power(x, self.gamma - 1) / (1 + _power(x, self.gamma))

    def bend(self, x: arb) -> arb:
        """Not finite on a ball that touches 0 when gamma < 2."""
        g, y = ball(self.gamma), _power(x, self.gamma)
        near = _power(x, self.gamma - 2) if self.gamma >= 2 else 1 / _power(x, 2 - self.gamma)
        return g * near * ((g - 1) - y) / (1 + y) ** 2

    def constant(self) -> arb:
        """What 1/(1+|x|^gamma) is multiplied by to integrate to 1."""
        g = ball(self.gamma)
        return g * (arb.pi() / g).sin() / (2 * arb.pi())

    def mean_size(self) -> arb:
        """E|X|, for gamma > 2."""
        return self._moment(1)

    def variance(self) -> arb:
        """E X^2, for gamma > 3."""
        return self._moment(2)

    def _moment(self, k: int) -> arb:
        if self.gamma <= k + 1:
            raise PlanError(
                f"it is {self.gamma}, but this moment is finite only above {k + 1}.", field="gamma"
            )
        angle = arb.pi() / ball(self.gamma)
        return angle.sin() / ((k + 1) * angle).sin()

    def tail(self, x: arb) -> arb:
        """P(|X| > x) for x >= 0; 1/(1+|X|^gamma) is Beta(1 - 1/gamma, 1/gamma)."""
        share = 1 / ball(self.gamma)
        return (1 / (1 + _power(x, self.gamma))).beta_lower(1 - share, share, True)

    def steepest(self) -> arb:
        """kappa(gamma), the largest slope of phi: (gamma-1)^(1-1/gamma)."""
        return _power_at(ball(self.gamma - 1), 1 - 1 / Fraction(self.gamma))


Heavy = Lomax | Student | Cauchy
Family = Laplace | Heavy


def cdf(family: Family, x: arb) -> arb:
    """P(X <= x) for x of either sign, from the tail of |X|."""
    return family.tail(-x) / 2 if x < 0 else 1 - family.tail(x) / 2
