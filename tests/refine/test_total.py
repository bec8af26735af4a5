"""Total intervals: sampling and noise add as variances do, on either side by itself, with Student's quantile."""

from math import inf, isclose, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats
from scipy import stats

from reticent.errors import PlanError
from reticent.refine.total import (
    DesignFactor,
    count_variance,
    filled_factor,
    mean_variance,
    paired_error,
    rank_reach,
    reliability,
    share_variance,
    student_half_width,
    total_interval,
)


@given(df=floats(2, 5000), level=floats(0.5, 0.999))
def test_students_quantile(df: float, level: float) -> None:
    """Against SciPy, to nine digits."""
    assert isclose(student_half_width(df, level), stats.t.ppf((1 + level) / 2, df), rel_tol=1e-9)


def test_many_degrees_of_freedom_are_the_normal_law() -> None:
    assert isclose(student_half_width(inf, 0.95), 1.959963984540054, rel_tol=1e-12)
    assert isclose(student_half_width(1e6, 0.95), student_half_width(inf, 0.95), rel_tol=1e-5)


@given(noise=floats(0, 5), variance=floats(0, 9), deft=floats(0.5, 4))
def test_half_widths_add_as_the_root_of_squares(noise: float, variance: float, deft: float) -> None:
    found = total_interval(
        10,
        privacy=(10 - noise, 10 + noise),
        noise_sd=noise / 2,
        variance=variance,
        factor=DesignFactor(deft=deft),
        level=0.95,
    )
    half = sqrt(noise**2 + (1.959963984540054 * deft) ** 2 * variance)
    assert isclose(found.margin, half, rel_tol=1e-9, abs_tol=1e-12)
    assert isclose(found.high - 10, half, rel_tol=1e-9, abs_tol=1e-9)
    assert found.cv is not None
    assert isclose(found.cv, sqrt(noise**2 / 4 + deft**2 * variance) / 10, rel_tol=1e-9, abs_tol=1e-12)


def test_a_lopsided_privacy_interval_stays_lopsided_and_inside_the_limits() -> None:
    found = total_interval(
        0.1,
        privacy=(0.0, 0.4),
        noise_sd=None,
        variance=0.01,
        factor=DesignFactor(deft=1),
        level=0.95,
        limits=(0, 1),
    )
    assert found.low == 0.0 and 0.4 < found.high < 0.5
    assert isclose(found.margin, found.high - 0.1)


def test_covers_a_normal_population_at_its_level() -> None:
    """20,000 draws of sampling and Laplace noise; false alarm below 1e-6 (five standard errors)."""
    bits = np.random.default_rng(13)
    sampled, noise = bits.normal(0, 2, 20_000), bits.laplace(0, 1, 20_000)
    factor = DesignFactor(deft=2)
    half = total_interval(
        0, privacy=(-np.log(20), np.log(20)), noise_sd=sqrt(2), variance=1, factor=factor, level=0.95
    ).margin
    assert abs((abs(sampled + noise) <= half).mean() - 0.95) < 5 * sqrt(0.95 * 0.05 / 20_000) + 0.01
    # Noise alone, which is what a privacy interval covers, misses far more often.
    assert (abs(sampled + noise) <= np.log(20)).mean() < 0.9


@pytest.mark.parametrize("share, size", [(0.3, 1000), (0.0, 50), (1.0, 50), (-0.2, 50), (0.5, 0)])
def test_shares_keep_some_variance(share: float, size: float) -> None:
    found = share_variance(share, size)
    assert found > 0
    if 0.2 < share < 0.8 and size > 500:
        assert isclose(found, share * (1 - share) / size, rel_tol=0.01)
    if size:
        assert isclose(count_variance(share * size, size), size**2 * share_variance(share, size))


def test_means_and_filled_columns() -> None:
    assert mean_variance(9, 100) == 0.09 and mean_variance(-1, 5) == 0
    assert filled_factor(0) == 1 and isclose(filled_factor(0.2), 1.5)
    assert filled_factor(2) == filled_factor(0.95)


@pytest.mark.parametrize("groups", [5, 25, 50])
def test_paired_differences_give_the_standard_error(groups: int) -> None:
    """4,000 surveys of normal group sums with standard error 3: right on average, and as uncertain as stated."""
    bits = np.random.default_rng(groups)
    sums = bits.normal(0, 3 / sqrt(groups), (4000, groups))
    found = np.array([paired_error(abs(each).sum(), scale=0.0, groups=groups)[0] for each in sums])
    assert abs(found.mean() / 3 - 1) < 0.02
    stated = (pi / 2 - 1) / groups
    assert isclose(found.var() / 9, stated, rel_tol=0.15)
    assert isclose(paired_error(1.0, scale=0.0, groups=groups)[1], max(2, 1 / (2 * stated)))


def test_noise_costs_degrees_of_freedom_and_never_narrows() -> None:
    clean, noisy = (paired_error(10, scale=scale, groups=25) for scale in (0, 3))
    assert clean[0] == noisy[0] > 1 and noisy[1] < clean[1]
    assert paired_error(-4, scale=3, groups=25) == (0, 2)


def test_the_reach_of_a_rank() -> None:
    """Woodruff: 1.96 deft sqrt(p (1 - p) n) respondents."""
    assert isclose(rank_reach(0.5, 400, factor=DesignFactor(deft=2), level=0.95), 1.959963984540054 * 2 * 10)


@pytest.mark.parametrize(
    "cv, words",
    [(0.166, "reliable"), (0.167, "use with caution"), (0.333, "use with caution"), (0.334, "unreliable")],
)
def test_flags(cv: float, words: str) -> None:
    assert reliability(cv) == words and reliability(None) is None


def test_bad_factors_are_refused() -> None:
    for deft, df in ((0, 5), (inf, 5), (1, 1)):
        with pytest.raises(PlanError):
            DesignFactor(deft=deft, df=df)
    with pytest.raises(PlanError):
        student_half_width(3, 1)
