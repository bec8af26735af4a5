"""From one measure of privacy to another. Every result is a decimal of 12 places, rounded up."""

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball

PLACES = 12
_ULP = Fraction(1, 10**PLACES)


def rounded_up(value: Fraction) -> Fraction:
    """The least decimal of 12 places that is not below `value`."""
    return math.ceil(value / _ULP) * _ULP


def ball_up(value: arb) -> Fraction:
    """The least decimal of 12 places, but 0, that is not below the upper end of the ball."""
    top = value.upper()
    if top < ball(_ULP):
        return _ULP  # before 2**exponent is formed: it may be far below anything that fits in memory
    if not top < arb(2) ** 200:
        raise PlanError("the cost is beyond reason at these amounts; use smaller ones.")
    mantissa, exponent = top.man_exp()
    return rounded_up(int(mantissa) * Fraction(2) ** int(exponent))


def ball_down(value: arb) -> Fraction:
    """The greatest decimal of 12 places, from 0 on, that is not above the lower end of the ball."""
    bottom = value.lower()
    if not bottom >= ball(_ULP):
        return Fraction(0)
    if not bottom < arb(2) ** 200:
        raise PlanError("the amount is beyond reason; use smaller ones.")
    mantissa, exponent = bottom.man_exp()
    return math.floor(int(mantissa) * Fraction(2) ** int(exponent) / _ULP) * _ULP


def pure_to_zcdp(*, epsilon: Fraction) -> Fraction:
    """rho such that every epsilon-DP mechanism is rho-zCDP: epsilon squared over two.

    Guarantee   rho-zCDP of any epsilon-DP mechanism.
    Adjacency   unchanged.
    Theorem     Bun and Steinke 2016, proposition 1.4.
    Proof       proofs/privacy/convert.md
    Assumes     epsilon > 0.
    Keeps back  nothing: no row is read.
    """
    return rounded_up(epsilon * epsilon / 2)


def zcdp_to_epsilon_simple(*, rho: Fraction, delta: Fraction) -> Fraction:
    """rho + 2 sqrt(rho ln(1/delta)): the textbook conversion, for comparison; never below the tight one."""
    _check_delta(delta)
    with ctx.workprec(256):
        r = ball(rho)
        return ball_up(r + 2 * (-r * ball(delta).log()).sqrt())


def zcdp_to_epsilon(*, rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP, to the last decimal.

    Guarantee   (epsilon, delta)-DP of any rho-zCDP mechanism.
    Adjacency   unchanged.
    Theorem     Canonne, Kamath and Steinke 2020, proposition 12; any order alpha > 1 is valid.
    Proof       proofs/privacy/convert.md
    Assumes     rho > 0 and 0 < delta < 1.
    Keeps back  nothing: no row is read.
    """
    _check_delta(delta)
    excess = _root(
        lambda x: float(rho) * x * x + math.log(delta) + math.log1p(x), top=math.sqrt(-math.log(delta) / rho)
    )
    with ctx.workprec(256):
        return ball_up(_epsilon_at(ball(rho), ball(delta), arb(excess)))


def _epsilon_at(rho: arb, delta: arb, x: arb) -> arb:
    """The bound at order alpha = 1 + x: rho alpha + ln(1/(alpha delta))/x + ln(x/alpha)."""
    alpha = 1 + x
    return rho * alpha - (alpha * delta).log() / x + (x / alpha).log()


def zcdp_to_delta(*, rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta such that every rho-zCDP mechanism is (epsilon, delta)-DP, to the last decimal; see above."""
    r, e = float(rho), float(epsilon)
    # The slope in x of ln delta; it rises from minus infinity, and is positive from `top` on.
    excess = _root(lambda x: (1 + 2 * x) * r - e + math.log(x / (1 + x)), top=max(1.0, (e + 1) / r))
    with ctx.workprec(256):
        x = arb(excess)
        log_delta = x * ((1 + x) * ball(rho) - ball(epsilon)) + x * x.log() - (1 + x) * x.log1p()
        return min(Fraction(1), ball_up(log_delta.exp()))


def group(*, epsilon: Fraction, delta: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """(k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)), the second rounded up.

    Guarantee   that of an (epsilon, delta)-DP mechanism to k records changed together.
    Adjacency   k changes of the kind the mechanism was proved for.
    Theorem     THEORY 7.4.
    Proof       proofs/privacy/convert.md
    Assumes     epsilon > 0, 0 <= delta < 1, k >= 1.
    Keeps back  nothing: no row is read.
    """
    if k == 1 or delta == 0:
        return k * epsilon, delta
    with ctx.workprec(256):
        total = ball_up(ball(delta) * _group_factor(epsilon, k))
    if total >= 1:
        raise PlanError(f"for a group of {k} it would reach 1; start from a smaller one.", field="delta")
    return k * epsilon, total


def _group_factor(epsilon: Fraction, k: int) -> arb:
    """1 + e^epsilon + ... + e^((k-1) epsilon)."""
    return ball(k * epsilon).expm1() / ball(epsilon).expm1()


def root_below(square: Fraction) -> Fraction:
    """A decimal of 12 places not above the root of `square`: of 8 rho, the epsilon at which a choice costs rho."""
    found = Fraction(math.isqrt(int(square / (_ULP * _ULP))), 10**PLACES)
    if found == 0:
        raise PlanError("it is too small to choose anything with; use a larger one.", field="epsilon")
    return found


def _check_delta(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise PlanError(f"it is {delta}, but must lie between 0 and 1.", field="delta")


def _root(slope: Callable[[float], float], *, top: float) -> float:
    """About where an increasing `slope` crosses 0 below `top`. Any answer is sound; a close one is tight."""
    low, high = 0.0, top
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high
