"""How wide an error bar must be: quantiles of every noise, from its public parameters alone.

Quantiles of the smooth families are found by bisection on balls and are right in every digit printed.
Half-widths of the integer noises are the least integers that cover, decided at whatever precision it takes.
"""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.calibrate import falling_root
from reticent.noise.families import Family

_PRECISIONS = (64, 128, 256, 512, 1024, 4096)


def _check_level(level: Fraction | float) -> None:
    if not 0 < level < 1:
        raise PlanError(f"it is {level}, but must lie between 0 and 1.", field="level")


def half_width(family: Family, *, level: Fraction, digits: int = 15) -> arb:
    """The x with P(|X| <= x) = level, as a ball of relative radius below 10^-digits."""
    _check_level(level)
    with ctx.workprec(_bits(digits)):
        miss = ball(1 - level)
        low, high = arb(0), arb(1)
        while family.tail(high) > miss:
            low, high = high, 2 * high
        while not (high - low) * arb(10) ** (digits + 1) < low:
            middle = ((low + high) / 2).mid()
            # A quantile may fall on `middle` itself; look a hair to either side of it then.
            for nudge in (0, -1, 1):
                point = (middle * (1 + nudge * arb(10) ** -(digits + 3))).mid()
                tail = family.tail(point)
                low, high = (point, high) if tail > miss else (low, point) if tail < miss else (low, high)
                if nudge == 0 and not tail.overlaps(miss):
                    break
        return low.union(high)


def quantile(family: Family, *, level: Fraction, digits: int = 15) -> arb:
    """The x with P(X <= x) = level. The noise is even, so this is a half-width with a sign."""
    _check_level(level)
    if level == Fraction(1, 2):
        return arb(0)
    width = half_width(family, level=abs(2 * level - 1), digits=digits)
    with ctx.workprec(_bits(digits)):  # even a change of sign rounds to the precision in force
        return width if 2 * level > 1 else -width


def _bits(digits: int) -> int:
    return int(digits * 3.4) + 80


@lru_cache(maxsize=256)  # of every cell of a table the same
def laplace_half_width(scale: Fraction, level: Fraction) -> int:
    """The least w with P(|X| <= w) >= level, where P(X = k) is proportional to e^(-|k|/scale).

    P(|X| > w) = 2 q^(w+1)/(1+q) with q = e^(-1/scale), so w+1 is the least integer not below
    scale * ln(2/((1-level)(1+q))). That number is never an integer: q would be algebraic.
    """
    _check_level(level)
    _check_scale(scale)
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            q = (-1 / ball(scale)).exp()
            edge = ball(scale) * (2 / (ball(1 - level) * (1 + q))).log()
            top = edge.ceil().unique_fmpz()
            if top is not None:
                return max(0, int(top) - 1)
    raise PlanError("the half-width could not be decided; choose a rounder level.", field="level")


def laplace_coverage(scale: Fraction, w: int) -> arb:
    """P(|X| <= w) of the discrete Laplace noise, w >= 0."""
    _check_scale(scale)
    step = 1 / ball(scale)
    return 1 - 2 * (-(w + 1) * step).exp() / (1 + (-step).exp())


def _check_scale(scale: Fraction) -> None:
    if not scale > 0:
        raise PlanError(f"it is {scale}, but must be positive.", field="scale")


def gaussian_half_width(sigma: Fraction, level: Fraction) -> int:
    """The least w with P(|X| <= w) >= level, where P(X = k) is proportional to e^(-k^2/(2 sigma^2))."""
    _check_level(level)
    _check_scale(sigma)
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            width = _gaussian_by_bracket(sigma, level) if sigma >= 1000 and level >= Fraction(3, 4) else None
            if width is None and sigma <= 10**6:  # a sum of some sigma terms
                width = _gaussian_by_sum(sigma, level)
            if width is not None:
                return width
    raise PlanError("the half-width could not be decided; choose a rounder level.", field="level")


def gaussian_coverage(sigma: Fraction, w: int) -> arb:
    """P(|X| <= w) of the discrete Gaussian noise, w >= 0, by summing."""
    c = 1 / (2 * ball(sigma) ** 2)
    return (1 + 2 * sum(((-c * k * k).exp() for k in range(1, w + 1)), arb(0))) / _gaussian_mass(sigma)


def _gaussian_mass(sigma: Fraction) -> arb:
    """The sum over all integers k of e^(-k^2/(2 sigma^2)); by Poisson's formula when sigma is large."""
    s = ball(sigma)
    if sigma < 1:
        return _theta(1 / (2 * s * s))
    return s * (2 * arb.pi()).sqrt() * _theta(2 * (arb.pi() * s) ** 2)


def _theta(c: arb) -> arb:
    """1 + 2 sum over j >= 1 of e^(-c j^2), for c >= 1/2; what is left after J is below e^(-c J^2)/(1 - e^-c)."""
    total, j = arb(1), 1
    while (term := (-c * j * j).exp()) > arb(2) ** -ctx.prec:
        total, j = total + 2 * term, j + 1
    rest = 2 * term / (1 - (-c).exp())
    return total + arb(0).union(rest)


def _gaussian_by_sum(sigma: Fraction, level: Fraction) -> int | None:
    goal = ball(level) * _gaussian_mass(sigma)
    q = (-1 / (2 * ball(sigma) ** 2)).exp()
    held, term, ratio, w = arb(1), q, q**3, 0  # e^-c(k+1)^2 = e^-ck^2 * q^(2k+1)
    while held < goal:
        held, term, ratio, w = held + 2 * term, term * ratio, ratio * q * q, w + 1
    return w if held >= goal else None


def _gaussian_by_bracket(sigma: Fraction, level: Fraction) -> int | None:
    """Beyond sigma the density is convex: its sum lies between the trapezoid and the midpoint rule."""
    s, miss = ball(sigma), ball(1 - level) * _gaussian_mass(sigma)

    def integral(x: arb) -> arb:
        return s * (arb.pi() / 2).sqrt() * (x / (s * arb(2).sqrt())).erfc()

    def misses(w: int) -> arb:  # P(|X| > w) times the mass
        edge = (-((ball(w + 1) / s) ** 2) / 2).exp()
        return (2 * integral(ball(w + 1)) + edge).union(2 * integral(ball(w) + arb(1) / 2))

    low = math.ceil(sigma)
    if not misses(low) > miss:
        return None
    high = 2 * low
    while not misses(high) <= miss:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if misses(middle).overlaps(miss):
            return None
        low, high = (middle, high) if misses(middle) > miss else (low, middle)
    return high


def laplace_tail_sum(t: float, b1: float, b2: float) -> float:
    """P(|X1 + X2| > t) for independent Laplace variables of scales b1, b2; signs do not matter.

    (b1^2 e^(-t/b1) - b2^2 e^(-t/b2))/(b1^2 - b2^2), written so that nothing cancels as b1 nears b2.
    """
    wide, narrow = max(b1, b2), min(b1, b2)
    if narrow == 0 or t <= 0:
        return math.exp(-max(t, 0) / wide)
    u = t / wide * ((wide - narrow) / narrow)
    share = -math.expm1(-u) / u if u else 1.0
    return math.exp(-t / wide) * (1 + t / wide * (narrow / (wide + narrow)) * share)


def ratio_half_width(b1: float, b2: float, level: float) -> float:
    """The t with P(|L1 + L2| <= t) = level, independent Laplace variables of scales b1, b2 (either may be 0)."""
    _check_level(level)
    if not (min(b1, b2) >= 0 and 0 < max(b1, b2) < math.inf):
        raise PlanError("the scales must be finite and not both 0.", field="scale")
    return falling_root(lambda t: laplace_tail_sum(t, b1, b2), 1 - level, start=max(b1, b2))


def normal_half_width(level: float) -> float:
    """The t with P(|N| <= t) = level for a standard normal N, a hair above."""
    _check_level(level)
    return NormalDist().inv_cdf((1 + level) / 2) * (1 + 1e-12)


def gaussian_ratio_half_width(s1: float, s2: float, level: float) -> float:
    """The t with P(|N1 + N2| <= t) = level, independent normal variables of deviations s1, s2 (either may be 0).

    For discrete Gaussian noise of these deviations on the grid, 3/2 of a step of each is added (`GRID_STEPS`).

    Guarantee   with 3/2 of a step of each, |X1 + X2| of discrete Gaussian noises stays within it with at least `level`.
    Adjacency   none: this is about an interval, after the noise.
    Theorem     a discrete Gaussian with an even step is more peaked than the normal with two even steps.
    Proof       proofs/refine/gaussian.md
    Assumes     independent noises, symmetric about 0; rounding of doubles is neglected.
    Keeps back  nothing: deviations are public.
    """
    return math.hypot(s1, s2) * normal_half_width(level)


GRID_STEPS = Fraction(3, 2)
"""By how many steps of its grid discrete Gaussian noise can reach beyond the normal it is compared with."""
