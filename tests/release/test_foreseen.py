"""What a preview says of noise with a confidential scale follows from the assumption and closed forms."""

from fractions import Fraction
from math import exp, inf, log, sqrt

import pytest

from reticent.prepare.donors import Bounding
from reticent.release.foreseen import HUBS, foresee
from reticent.sensitivity.constants import Constants, Span, count, total

ONE = Fraction(1)


def seen(constants=None, *, hub=0, epsilon=ONE, m=8, **options):
    return foresee(
        "count",
        [count()] if constants is None else constants,
        hub=hub,
        epsilon=epsilon,
        runs_at=epsilon,
        smoothness=m,
        **options,
    )


def lomax_a(epsilon: float, m: int) -> float:
    """THEORY 2.2, in floating point."""
    beta, c = epsilon / m, m + 1
    return min(exp(epsilon / c) - 1, exp(beta) * (exp((epsilon - beta) / c) - 1))


@pytest.mark.parametrize(("m", "floor"), [(6, 2.607589251), (8, 3.334896157), (10, 4.065696597)])
def test_the_floor_is_the_bound_with_nobody_missing(m, floor):
    """The vectors of THEORY 3.5 at epsilon 1, and the spread and tail of Lomax noise around them."""
    scale = floor / lomax_a(1.0, m)
    assert float(seen(m=m).scale) == pytest.approx(scale, rel=1e-8)
    assert seen(m=m).sd == pytest.approx(scale * sqrt(2 / ((m - 1) * (m - 2))), rel=1e-8)
    half = scale * (0.05 ** (-1 / m) - 1)
    assert float(seen(m=m).half_width(Fraction(95, 100))) == pytest.approx(half, rel=1e-8)


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(3)])
def test_the_bound_is_the_highest_rung_of_the_assumed_ladder(hub, epsilon):
    """All rungs by brute force, two filled columns; counting one column only, a naive twin, is too little."""
    parts = [Constants(c0=Fraction(7), c1=Fraction(3)), Constants(c0=Fraction(7), c1=Fraction(5))]
    beta = float(epsilon) / 8
    rungs = [exp(-beta * k) * (7 + 8 * (hub + k)) for k in range(2000)]
    bound = float(seen(parts, hub=hub, epsilon=epsilon).scale) * lomax_a(float(epsilon), 8)
    assert bound == pytest.approx(max(rungs), rel=1e-7)
    naive = max(exp(-beta * k) * (7 + 5 * (hub + k)) for k in range(2000))
    assert naive < bound


def test_busier_donors_and_smaller_budgets_need_more_noise():
    wages = [total(Span(low=Fraction(0), high=Fraction(500_000)))]
    spread = [seen(wages, hub=hub).sd for hub in HUBS]
    assert spread == sorted(spread) and len(set(spread)) == len(HUBS)
    assert seen(wages, epsilon=Fraction(1, 2)).sd > 2 * seen(wages).sd


def test_the_published_noise_has_no_spread_below_four_ln_two():
    """Its scale is (c0 + c1 max(1, hub)) / ln 2 in the printed calibration; its variance starts at 4 ln 2."""
    made = seen(hub=5, epsilon=Fraction(3), bounding=Bounding.PUBLISHED)
    assert float(made.scale) == pytest.approx(6 / log(2), rel=1e-9) and made.sd < inf
    assert seen(hub=5, epsilon=Fraction(2), bounding=Bounding.PUBLISHED).sd == inf
    assert seen(hub=0, epsilon=Fraction(3), bounding=Bounding.PUBLISHED).scale * 3 == made.scale
