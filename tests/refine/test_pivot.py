"""Error bars under a confidential scale cover as stated, whatever the scale is."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.refine.pivot import Pivot, pivot
from reticent.sensitivity.bounds import Smooth

EXAMPLE = pivot(
    epsilon=Fraction(1), beta=Fraction(1, 8), epsilon_scale=Fraction(1, 4), level=Fraction(95, 100)
)
ORACLE = 20 ** (1 / 8) - 1  # P(|X| <= ORACLE) = 0.95 for m = 8


def test_median_width_is_1_44_times_an_oracles():
    """THEORY 3.5a. The median of the noise is 0, so the median width is the factor times S."""
    assert f"{EXAMPLE.factor() * float(EXAMPLE.a) / ORACLE:.2f}" == "1.44"


def test_a_finer_grid_comes_down_to_the_continuous_quantile():
    """1.43560 by quadrature of the continuous law; each grid is above it, and nearer as it is finer."""
    widths = [
        replace(EXAMPLE, grid=Fraction(1, 8 * n)).factor() * float(EXAMPLE.a) / ORACLE for n in (4, 32, 1024)
    ]
    assert widths[0] > widths[1] > widths[2] > 1.43559 and widths[2] < 1.4370


@pytest.mark.parametrize("place", [-0.5, -0.25, 0.0, 0.25, 0.5])
def test_coverage_is_at_least_the_level_wherever_the_scale_falls_in_its_step(place):
    """Exactly: S = e^(grid (k + place)) misses with probability miss(Q e^(-grid place))."""
    grid = float(EXAMPLE.grid)
    miss = EXAMPLE.miss(EXAMPLE.factor() * math.exp(-grid * place))
    assert 0.0495 < miss <= 0.05


def simulate(bar, factor, runs=400_000):
    """Draw noise and heights in doubles for one S, and count how often the interval misses the answer 0."""
    rng = np.random.default_rng(20240229)
    s, grid = 37.0, float(bar.grid)
    m = int(bar.epsilon / bar.beta)
    size = rng.random(runs) ** (-1 / m) - 1
    answer = s / float(bar.a) * size
    p = -math.expm1(-1 / float(bar.scale))
    noise = rng.geometric(p, runs) - rng.geometric(p, runs)
    height = bar.height(Smooth(bound=Fraction(37), beta=bar.beta))
    return float(np.mean(answer > factor * np.exp(grid * (height + noise))))


def test_simulated_coverage_and_two_naive_twins():
    """400,000 runs: the miss rate is within 5 standard errors (0.0017; false alarm 6e-7) of the exact one."""
    grid, height = float(EXAMPLE.grid), EXAMPLE.height(Smooth(bound=Fraction(37), beta=EXAMPLE.beta))
    exact = EXAMPLE.miss(EXAMPLE.factor() * math.exp(grid * height) / 37)
    assert abs(simulate(EXAMPLE, EXAMPLE.factor()) - exact) < 0.0017
    oracle = ORACLE / float(EXAMPLE.a)
    assert simulate(EXAMPLE, oracle) > 0.08  # the noise on the scale forgotten
    coarse = replace(EXAMPLE, grid=Fraction(1, 2))
    assert simulate(coarse, coarse.factor()) <= 0.0517


@settings(max_examples=200, deadline=None)
@given(
    bound=st.fractions("0.0001", 10**6, max_denominator=10**6),
    drift=st.floats(-1, 1),
    steps=st.fractions("0.1", 300, max_denominator=100),
)
def test_height_moves_by_less_than_its_sensitivity_between_neighbours(bound, drift, steps):
    """And by at most ceil(beta/grid), the one to spare left unused."""
    bar = replace(EXAMPLE, grid=EXAMPLE.beta / steps)
    other = bound * Fraction(math.exp(drift / 8 * (1 - 1e-12)))
    here, there = (bar.height(Smooth(bound=b, beta=bar.beta)) for b in (bound, other))
    assert abs(here - there) <= bar.sensitivity.bound - 1


def test_sensitivity_is_the_ceiling_and_one():
    assert replace(EXAMPLE, grid=Fraction(1, 8)).sensitivity.bound == 2
    assert replace(EXAMPLE, grid=Fraction(1, 20)).sensitivity.bound == 4
    assert EXAMPLE.scale == Fraction(257 * 4)


def test_half_width_grows_by_one_grid_step():
    ratio = EXAMPLE.half_width(11) / EXAMPLE.half_width(10)
    assert math.isclose(ratio, math.exp(float(EXAMPLE.grid)), rel_tol=1e-12)
    assert math.isfinite(EXAMPLE.half_width(10**9))


def test_height_uses_one_rounding_rule():
    bar = replace(EXAMPLE, grid=Fraction(1, 8))
    assert bar.height(Smooth(bound=Fraction(1), beta=bar.beta)) == 0
    for bound in (Fraction(2), Fraction(1, 3), Fraction(10**9, 7)):
        assert bar.height(Smooth(bound=bound, beta=bar.beta)) == math.floor(8 * math.log(bound) + 0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"grid": Fraction(0)},
        {"epsilon_scale": Fraction(0)},
        {"level": Fraction(1)},
        {"beta": Fraction(3, 10)},
        {"grid": Fraction(1, 10**6)},
    ],
)
def test_parameters_that_mean_nothing_are_refused(wrong):
    with pytest.raises(PlanError):
        replace(EXAMPLE, **wrong)


def test_a_bound_smoothed_for_another_beta_is_refused():
    with pytest.raises(PlanError):
        EXAMPLE.height(Smooth(bound=Fraction(3), beta=Fraction(1, 4)))
    assert isinstance(EXAMPLE, Pivot)


def test_neighbours_several_records_apart_need_as_much_more_noise():
    """S is smooth for one record; respondents may own three, and be replaced."""
    far = replace(EXAMPLE, steps=6)
    assert far.sensitivity.bound == 6 * 256 + 1
    here, there = (
        far.height(Smooth(bound=b, beta=far.beta)) for b in (Fraction(5), Fraction(5 * math.exp(6 / 8)))
    )
    assert abs(here - there) <= far.sensitivity.bound - 1
    assert abs(here - there) > EXAMPLE.sensitivity.bound  # forgetting the steps would be found out
    assert math.isclose(far.spread, float(6 * EXAMPLE.beta / EXAMPLE.epsilon_scale), rel_tol=0.001)


def test_a_lent_height_keeps_its_own_law_and_lends_only_to_larger_betas():
    lent = replace(EXAMPLE, lent=Fraction(1, 16), grid=Fraction(1, 16 * 256))
    assert lent.sensitivity.bound == 257 and lent.a == EXAMPLE.a
    assert lent.height(Smooth(bound=Fraction(3), beta=Fraction(1, 16))) == math.floor(
        16 * 256 * math.log(3) + 0.5
    )
    assert lent.factor() < EXAMPLE.factor()  # half the beta at the same cost: half the noise on the log scale
    with pytest.raises(PlanError):
        replace(EXAMPLE, lent=Fraction(1, 4))
    with pytest.raises(PlanError):
        lent.height(Smooth(bound=Fraction(3), beta=EXAMPLE.beta))
