"""Conversions between measures round against us, and by no more than the last digit."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from flint import ctx

from reticent.errors import PlanError
from reticent.privacy import convert

ULP = Fraction(1, 10**12)
RHOS = [Fraction(n, 10**6) for n in (1, 7, 50, 333, 1000, 5000, 12345, 31416, 70000, 100000)]
RHOS += [Fraction(n, 100) for n in (15, 20, 25, 33, 50, 71, 100, 150, 200, 271, 314, 500, 700, 1000, 2500)]
DELTAS = [Fraction(n, 10**k) for k in range(3, 13) for n in (1, 2, 5, 9)]
POINTS = [(rho, delta) for rho in RHOS for delta in DELTAS]


def exactly(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def tight_epsilon(rho: Fraction, delta: Fraction) -> Decimal:
    """min over x = alpha - 1 > 0, by Newton's method on rho x^2 + ln((1+x) delta) = 0, to 100 digits."""
    r, d = exactly(rho), exactly(delta)
    x = (-(d.ln()) / r).sqrt()
    for _ in range(200):
        step = (r * x * x + ((1 + x) * d).ln()) / (2 * r * x + 1 / (1 + x))
        x = x - step if step < x else x / 2
        if abs(step) < x * Decimal(10) ** -60:  # the minimum is flat: 60 digits of x give 100 of epsilon
            break
    else:
        raise ArithmeticError("Newton's method did not settle")
    return r * (1 + x) - ((1 + x) * d).ln() / x + (x / (1 + x)).ln()


def float_epsilon(rho: float, delta: float) -> float:
    """The naive twin: the same formula in doubles, rounded to the nearest 12 places."""
    low, high = 0.0, math.sqrt(-math.log(delta) / rho)
    for _ in range(100):
        x = (low + high) / 2
        low, high = (x, high) if rho * x * x + math.log((1 + x) * delta) < 0 else (low, x)
    return round(rho * (1 + x) - math.log((1 + x) * delta) / x + math.log(x / (1 + x)), 12)


# covers T24
def test_zcdp_to_epsilon_is_never_below_hundred_digits_and_the_float_twin_is():
    assert len(POINTS) == 1000
    twin_below = 0
    with localcontext() as arithmetic:
        arithmetic.prec = 100
        for rho, delta in POINTS:
            truth = max(tight_epsilon(rho, delta), Decimal(0))
            ours = exactly(convert.zcdp_to_epsilon(rho=rho, delta=delta))
            assert truth <= ours <= truth + Decimal("1.001e-12")
            twin_below += Decimal(float_epsilon(float(rho), float(delta))) < truth
    assert twin_below > 300  # about half of them, by rounding to nearest


# covers T24
def test_the_other_conversions_are_never_below_hundred_digits():
    with localcontext() as arithmetic:
        arithmetic.prec = 100
        for rho, delta in POINTS:
            simple = exactly(rho) + 2 * (-exactly(rho) * exactly(delta).ln()).sqrt()
            ours = exactly(convert.zcdp_to_epsilon_simple(rho=rho, delta=delta))
            assert simple <= ours <= simple + Decimal("1e-12")
            e = exactly(rho)
            for k in (2, 3, 10):
                factor = (1 - (e * k).exp()) / (1 - e.exp())
                if factor * exactly(delta) < Decimal("0.999999"):
                    epsilon, grouped = convert.group(epsilon=rho, delta=delta, k=k)
                    assert epsilon == k * rho
                    assert (
                        factor * exactly(delta)
                        <= exactly(grouped)
                        <= factor * exactly(delta) + Decimal("1e-12")
                    )


def test_delta_and_epsilon_convert_back_to_one_another():
    """The tight delta at the tight epsilon is the delta we began with, to the digits epsilon was rounded at."""
    for rho, delta in POINTS[::7]:
        epsilon = convert.zcdp_to_epsilon(rho=rho, delta=delta)
        if epsilon > ULP:
            back = convert.zcdp_to_delta(rho=rho, epsilon=epsilon)
            assert delta * (1 - Fraction(1, 10**6)) <= back <= delta + ULP


def test_the_tight_conversion_beats_the_simple_one_at_every_point():
    for rho, delta in POINTS[::13]:
        simple = convert.zcdp_to_epsilon_simple(rho=rho, delta=delta)
        assert convert.zcdp_to_epsilon(rho=rho, delta=delta) <= simple


def test_published_vectors_of_group_privacy():
    with ctx.workprec(100):
        assert f"{float(convert._group_factor(Fraction(1), 3)):.8f}" == "11.10733793"
        assert f"{float(convert._group_factor(Fraction(1, 10), 10)):.8f}" == "16.33799400"


def test_pure_gives_half_its_square_rounded_up():
    assert convert.pure_to_zcdp(epsilon=Fraction(1, 2)) == Fraction(1, 8)
    assert convert.pure_to_zcdp(epsilon=ULP) == ULP
    assert convert.pure_to_zcdp(epsilon=1 + ULP) - (1 + ULP) ** 2 / 2 < ULP


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_a_delta_that_promises_nothing_is_refused(delta):
    for conversion in (convert.zcdp_to_epsilon, convert.zcdp_to_epsilon_simple):
        with pytest.raises(PlanError):
            conversion(rho=Fraction(1), delta=delta)


def test_extreme_amounts_are_answered_or_refused_at_once():
    huge, tiny = Fraction(10**12), ULP
    assert convert.zcdp_to_delta(rho=tiny, epsilon=huge) == ULP
    assert convert.zcdp_to_delta(rho=huge, epsilon=tiny) == 1
    assert convert.zcdp_to_epsilon(rho=huge, delta=tiny) > huge
    with pytest.raises(PlanError):
        convert.group(epsilon=huge, delta=tiny, k=2)
