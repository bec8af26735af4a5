"""Quantiles to the digits printed; half-widths of integer noise are the least that cover."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.families import Cauchy, Lomax, Student, cdf
from reticent.refine import quantiles as qs

LEVELS = [Fraction(x) for x in ("0.75", "0.95", "0.975", "0.995")]
PRINTED = {
    Cauchy(Fraction(2)): ("1.000000", "6.313752", "12.706205", "63.656741"),
    Cauchy(Fraction(3)): ("0.641542", "1.984659", "2.851489", "6.425533"),
    Cauchy(Fraction(4)): ("0.566396", "1.393951", "1.793362", "3.102832"),
    Cauchy(Fraction(5)): ("0.538444", "1.187816", "1.446596", "2.194340"),
    Student(): ("0.441610792", "1.358715013", "1.837386231", "3.372250562"),
    Lomax(8): ("0.090507733", "0.333521432", "0.454215433", "0.778279410"),
}


@pytest.mark.parametrize("family", PRINTED, ids=repr)
def test_quantiles_are_those_printed(family):
    for level, digits in zip(LEVELS, PRINTED[family], strict=True):
        places = len(digits.split(".")[1])
        assert f"{float(qs.quantile(family, level=level)):.{places}f}" == digits
        assert float(qs.quantile(family, level=1 - level)) == -float(qs.quantile(family, level=level))


@settings(max_examples=25, deadline=None)
@given(family=st.sampled_from(list(PRINTED)), level=st.fractions("0.001", "0.999", max_denominator=1000))
def test_quantile_encloses_the_level_and_is_as_narrow_as_asked(family, level):
    if level == Fraction(1, 2):
        assert float(qs.quantile(family, level=level)) == 0
        return
    x = qs.quantile(family, level=level, digits=20)
    with ctx.workprec(200):
        assert cdf(family, x.lower()) <= ball(level) <= cdf(family, x.upper())
        assert x.rad() * 10**20 <= abs(x.mid())


def test_a_quantile_on_the_first_midpoint_is_found():
    """P(|X| > 1/2) = (3/2)^-8 for Lomax: the very first point tried."""
    x = qs.half_width(Lomax(8), level=1 - Fraction(2, 3) ** 8)
    assert x.contains(ball(Fraction(1, 2)).mid()) and x.rad() < 1e-15


# ---- discrete Laplace ----


def laplace_mass(scale, reach):
    k = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(k) / float(scale))
    return k, p / p.sum()


@pytest.mark.parametrize(
    "scale", [Fraction(1, 10), Fraction(1, 3), Fraction(2), Fraction(10), Fraction(355, 113)]
)
@pytest.mark.parametrize("level", [Fraction(1, 10), Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_laplace_half_width_is_the_least_that_covers(scale, level):
    """By summing the probabilities."""
    k, p = laplace_mass(scale, 2000)
    covered = [p[np.abs(k) <= w].sum() for w in range(200)]
    assert qs.laplace_half_width(scale, level) == next(w for w in range(200) if covered[w] >= float(level))
    for w in (0, 1, 5):
        assert math.isclose(float(qs.laplace_coverage(scale, w)), covered[w], rel_tol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    scale=st.fractions("0.01", 10**9, max_denominator=10**6),
    level=st.fractions("0.01", "0.9999", max_denominator=10**4),
)
def test_laplace_half_width_covers_and_one_less_does_not(scale, level):
    w = qs.laplace_half_width(scale, level)
    with ctx.workprec(300):
        assert qs.laplace_coverage(scale, w) >= ball(level)
        assert w == 0 or qs.laplace_coverage(scale, w - 1) < ball(level)


def test_a_level_a_hair_from_the_coverage_is_still_decided():
    """The level lies within 1e-60 of the coverage at 7, above and below: doubles could not tell."""
    with ctx.workprec(600):
        mantissa, exponent = qs.laplace_coverage(Fraction(3), 7).mid().man_exp()
    level = int(mantissa) * Fraction(2) ** int(exponent)
    assert qs.laplace_half_width(Fraction(3), level - Fraction(1, 10**60)) == 7
    assert qs.laplace_half_width(Fraction(3), level + Fraction(1, 10**60)) == 8


# ---- discrete Gaussian ----


@pytest.mark.parametrize("sigma", [Fraction(1, 4), Fraction(1), Fraction(7, 3), Fraction(50)])
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(19, 20), Fraction(9999, 10000)])
def test_gaussian_half_width_is_the_least_that_covers(sigma, level):
    k = np.arange(-1000, 1001)
    p = np.exp(-(k**2) / (2 * float(sigma) ** 2))
    p /= p.sum()
    covered = [p[np.abs(k) <= w].sum() for w in range(400)]
    w = qs.gaussian_half_width(sigma, level)
    assert w == next(w for w in range(400) if covered[w] >= float(level))
    assert math.isclose(float(qs.gaussian_coverage(sigma, w)), covered[w], rel_tol=1e-12)


@pytest.mark.parametrize("sigma", [Fraction(1000), Fraction(5001, 2), Fraction(10**4)])
def test_bracket_and_sum_agree_where_both_apply(sigma):
    for level in (Fraction(4, 5), Fraction(19, 20), Fraction(999, 1000)):
        assert qs._gaussian_by_bracket(sigma, level) == qs._gaussian_by_sum(sigma, level)


def test_large_gaussian_is_the_normal():
    assert qs.gaussian_half_width(Fraction(10**9), Fraction(19, 20)) == 1959963985


def test_gaussian_mass_by_poisson_equals_the_plain_sum():
    for sigma in (Fraction(1), Fraction(3, 2), Fraction(20)):
        plain = 1 + 2 * sum(math.exp(-(k**2) / (2 * float(sigma) ** 2)) for k in range(1, 2000))
        assert math.isclose(float(qs._gaussian_mass(sigma)), plain, rel_tol=1e-14)


# ---- two Laplace variables ----


@pytest.mark.parametrize(
    ("b1", "b2"), [(1.0, 2.0), (3.0, 0.1), (1.0, 1.0), (1.0, 1.0 + 1e-9), (5.0, 5.0 - 1e-15), (1, 1e-9)]
)
def test_tail_of_two_laplace_variables_by_numerical_convolution(b1, b2):
    """Integrate P(|x + L1| > t) over the law of L2: 400,000 quantiles of it, symmetric about 0."""
    p = (np.arange(400_000) + 0.5) / 400_000
    x = b2 * -np.log1p(-p)  # |L2|
    for t in (0.0, 0.5, 3.0, 8.0):
        over = np.where(
            x <= t, np.exp(-t / b1) * np.cosh(np.minimum(x, t) / b1), 1 - np.exp(-x / b1) * math.sinh(t / b1)
        )
        assert math.isclose(qs.laplace_tail_sum(t, b1, b2), float(over.mean()), rel_tol=2e-4, abs_tol=1e-5)


def test_tail_formula_is_continuous_where_the_scales_meet():
    """(1 + t/2b) e^(-t/b) at b1 = b2; a plain difference of squares would lose all digits here."""
    for t in (0.1, 1.0, 20.0):
        limit = (1 + t / 2) * math.exp(-t)
        assert math.isclose(qs.laplace_tail_sum(t, 1.0, 1.0), limit, rel_tol=1e-14)
        assert math.isclose(qs.laplace_tail_sum(t, 1.0, 1.0 + 1e-14), limit, rel_tol=1e-12)


@settings(max_examples=60, deadline=None)
@given(b1=st.floats(1e-6, 1e6), ratio=st.floats(0, 1), level=st.floats(0.01, 0.9999))
def test_ratio_half_width_inverts_the_tail(b1, ratio, level):
    t = qs.ratio_half_width(b1, b1 * ratio, level)
    assert math.isclose(qs.laplace_tail_sum(t, b1, b1 * ratio), 1 - level, rel_tol=1e-11)
    assert qs.ratio_half_width(b1 * ratio, b1, level) == t


def test_one_scale_of_zero_is_one_laplace_variable():
    assert math.isclose(qs.ratio_half_width(0.0, 2.0, 0.95), 2 * math.log(20), rel_tol=1e-13)


@pytest.mark.parametrize("level", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_levels_outside_the_open_interval_are_refused(level):
    for call in (
        lambda: qs.half_width(Lomax(8), level=level),
        lambda: qs.quantile(Lomax(8), level=level),
        lambda: qs.laplace_half_width(Fraction(1), level),
        lambda: qs.gaussian_half_width(Fraction(1), level),
        lambda: qs.ratio_half_width(1.0, 1.0, float(level)),
    ):
        with pytest.raises(PlanError):
            call()


def test_scales_that_are_none_are_refused():
    for call in (qs.laplace_half_width, qs.gaussian_half_width):
        with pytest.raises(PlanError):
            call(Fraction(0), Fraction(1, 2))
    for pair in ((0.0, 0.0), (-1.0, 1.0), (math.inf, 1.0), (math.nan, 1.0)):
        with pytest.raises(PlanError):
            qs.ratio_half_width(*pair, 0.95)
