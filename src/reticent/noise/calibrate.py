"""How large the noise must be: the `a` of q + (S/a) X, rounded down, never out of here uncertified.

Closed forms where there is one (THEORY 2.2 to 2.4), bisection on the certifier where there is none. Every
value returned is a multiple of 2^-60 for which `certify` has said yes.
"""

from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.noise.certify import certify
from reticent.noise.family import Cauchy, Heavy, Lomax, Student

GRID = Fraction(1, 2**60)
_PRECISION = 320


def lomax(*, epsilon: Fraction, beta: Fraction) -> Fraction:
    """`a` for double Lomax noise with m = epsilon/beta, an integer from 3 on.

    Guarantee   epsilon-DP of q + (S/a) X for every beta-smooth bound S.
    Adjacency   the one S was bounded for.
    Theorem     THEORY 2.1 and 2.2.
    Proof       proofs/noise/calibrate.md
    Assumes     epsilon and beta fixed before any row is read.
    Keeps back  nothing: no row is read.
    """
    return _certified(Lomax(_ratio(epsilon, beta)), beta=beta, epsilon=epsilon)


def _ratio(epsilon: Fraction, beta: Fraction) -> int:
    _check(epsilon, beta)
    m = Fraction(epsilon) / beta
    if m.denominator != 1 or m < 3:
        raise PlanError(
            f"beta is {beta}, so epsilon/beta is {m}, but Lomax noise needs an integer of at least 3; "
            f"use beta = epsilon/8 = {Fraction(epsilon) / 8}.",
            field="beta",
        )
    return m.numerator


def student(*, epsilon: Fraction, beta: Fraction, g: Fraction = Fraction(4)) -> Fraction:
    """`a` for Student noise of tail exponent g; the guarantee reads as for `lomax`, by THEORY 2.3."""
    _check(epsilon, beta)
    if (g - 1) * beta >= epsilon:
        raise PlanError(
            f"beta is {beta}, but Student noise at epsilon {epsilon} needs less than {epsilon / (g - 1)}; "
            "smooth the bound with a smaller beta.",
            field="beta",
        )
    return _certified(Student(g), beta=beta, epsilon=epsilon)


def student4(*, epsilon: Fraction, beta: Fraction) -> Fraction:
    """`a` for the Student noise whose sampler we have, g = 4."""
    return student(epsilon=epsilon, beta=beta)


def cauchy(*, epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """The largest certified `a`, to one part in 2^40, for generalized Cauchy noise; reads as for `lomax`, by THEORY 2.1."""
    _check(epsilon, beta)
    family = Cauchy(gamma)
    _check_cauchy(epsilon, beta, gamma)
    return _largest(family, beta, epsilon)


def cauchy_closed(*, epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """The smaller `a` of the closed form, valid for any gamma > 1: min(eps, e^b (eps - max(g-1, 1) b))/kappa."""
    _check(epsilon, beta)
    family = Cauchy(gamma)
    _check_cauchy(epsilon, beta, gamma)
    return _certified(family, beta=beta, epsilon=epsilon)


def cauchy_as_published(*, epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """a = beta = epsilon/(2(gamma-1)), as printed; refused where that is not private (THEORY 3.6, 10.1)."""
    _check(epsilon, beta)
    family = Cauchy(gamma)
    if gamma < 2:
        raise PlanError(
            f"it is {gamma}; the published calibration a = beta = epsilon/(2(gamma-1)) is proved for gamma of at "
            "least 2 only, and with the doubling ladder (beta = ln 2) it loses up to 0.94 where it claims 0.25; "
            "use the exact calibration.",
            field="gamma",
        )
    if beta > epsilon / 2:
        raise PlanError(
            f"it is {beta}; the published calibration needs at most epsilon/2 = {epsilon / 2}, and with the "
            "doubling ladder (beta = ln 2) epsilon of at least 2 ln 2; smooth the bound with a smaller beta.",
            field="beta",
        )
    if beta != epsilon / (2 * (gamma - 1)):
        raise PlanError(
            f"it is {beta}; the published calibration ties it to gamma: epsilon/(2(gamma-1)) is "
            f"{epsilon / (2 * (gamma - 1))}.",
            field="beta",
        )
    a = beta // GRID * GRID
    return _sure(family, a, beta=beta, epsilon=epsilon)


def _check(epsilon: Fraction, beta: Fraction) -> None:
    for name, value in (("epsilon", epsilon), ("beta", beta)):
        if not isinstance(value, Fraction | int) or value <= 0:
            raise PlanError(f"it is {value!r}, but must be a positive rational.", field=name)


def _check_cauchy(epsilon: Fraction, beta: Fraction, gamma: Fraction) -> None:
    limit = epsilon / max(gamma - 1, Fraction(1))
    if beta >= limit:
        raise PlanError(
            f"beta is {beta}, but Cauchy noise at epsilon {epsilon} needs less than {limit}; "
            "smooth the bound with a smaller beta.",
            field="beta",
        )


@lru_cache(maxsize=1024)
def _certified(family: Heavy, *, beta: Fraction, epsilon: Fraction) -> Fraction:
    with ctx.workprec(_PRECISION):
        a = _floor(_closed(family, epsilon=ball(epsilon), beta=ball(beta)))
    return _sure(family, a, beta=beta, epsilon=epsilon)


def _closed(family: Heavy, *, epsilon: arb, beta: arb) -> arb:
    """The closed forms of THEORY 2.2, 2.3 and 2.4."""
    match family:
        case Lomax(m=m):
            slide = (epsilon / (m + 1)).expm1()
            return slide.min(beta.exp() * ((epsilon - beta) / (m + 1)).expm1())
        case Student(g=g):
            slide = 2 * (epsilon / ball(g)).sinh()
            turn = (2 * epsilon - (ball(g) - 2) * beta) / ball(g)
            # cosh T - cosh b = 2 sinh((T+b)/2) sinh((T-b)/2), without cancellation.
            product = 4 * beta.exp() * ((turn + beta) / 2).sinh() * ((turn - beta) / 2).sinh()
            return slide.min(product.sqrt())
        case Cauchy(gamma=gamma):
            stretch = ball(max(gamma - 1, Fraction(1)))
            return epsilon.min(beta.exp() * (epsilon - stretch * beta)) / family.steepest()


@lru_cache(maxsize=1024)
def _largest(family: Cauchy, beta: Fraction, epsilon: Fraction) -> Fraction:
    with ctx.workprec(_PRECISION):
        low = _floor(_closed(family, epsilon=ball(epsilon), beta=ball(beta)))
    low = _sure(family, low, beta=beta, epsilon=epsilon)
    high = 2 * low
    while certify(family, a=high, beta=beta, epsilon=epsilon):
        low, high = high, 2 * high
    while high - low > max(GRID, low / 2**40):
        middle = (low + high) / 2 // GRID * GRID
        is_private = certify(family, a=middle, beta=beta, epsilon=epsilon)
        low, high = (middle, high) if is_private else (low, middle)
    return low


def _floor(value: arb) -> Fraction:
    """The largest multiple of 2^-60 proved not to exceed `value`."""
    mantissa, exponent = value.lower().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent) // GRID * GRID


def _sure(family: Heavy, a: Fraction, *, beta: Fraction, epsilon: Fraction) -> Fraction:
    if a > 0 and certify(family, a=a, beta=beta, epsilon=epsilon):
        return a
    raise PlanError(
        f"no noise of this family is certified at epsilon {epsilon} and beta {beta}; choose another beta.",
        field="beta",
    )
