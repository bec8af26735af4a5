"""Rubin's rules with privacy noise: textbook where there is none, and quantiles of the law they state."""

import numpy as np
import pytest
from scipy import stats

from reticent.errors import PlanError
from reticent.refine.rubin import Combined, combine, mixed_quantile


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    ("normal", "heavy"), [(1.0, 0.0), (1.0, 1e-9), (1.0, 0.05), (1.0, 1.0), (0.01, 2.0), (0.0, 2.0)]
)
def test_quantiles_are_those_of_a_normal_number_and_laplace_noise(
    level: float, normal: float, heavy: float
) -> None:
    """By quadrature; two thousandths where one part is so small that it is counted with the other.

    The naive twin, a normal law of the same variance, is too narrow where the noise is half of it, at 99.9 %.
    """
    h = mixed_quantile(level, normal=normal, heavy=heavy)
    s, b = max(normal, 1e-12) ** 0.5, max(heavy / 2, 1e-24) ** 0.5
    x = np.linspace(-12 * s, 12 * s, 200_001)
    inside = stats.laplace.cdf(h - x, scale=b) - stats.laplace.cdf(-h - x, scale=b)
    held = np.sum(inside * stats.norm.pdf(x, scale=s)) * (x[1] - x[0])
    assert held == pytest.approx(level, abs=2e-3 if normal > 16 * heavy else 1e-6)
    if normal == heavy and level == 0.999:
        assert stats.norm.ppf((1 + level) / 2) * (normal + heavy) ** 0.5 < 0.95 * h


def test_without_noise_they_are_the_textbooks_rules() -> None:
    """Between 1 from m = 3, within 0.5: T = 0.5 + 4/3; and no gaps leave sampling alone."""
    found = combine(2.0, within=0.5, between=1.0, heavy=0.0, copies=3, noise=0.0)
    assert found.value == 2 and found.variance == pytest.approx(0.5 + 4 / 3)
    low, high = found.interval(0.9)
    assert high - low == pytest.approx(2 * stats.norm.ppf(0.95) * found.variance**0.5)
    alone = combine(4.0, within=0.25, between=0.0, heavy=0.0, copies=5, noise=0.0)
    assert alone == Combined(value=4.0, variance=0.25)


def test_a_mean_asked_once_has_its_noise_once() -> None:
    """m = 4: 1 + 5/4 (2 + 0.5) + 3, of which 5/4 x 0.5 + 3 is Laplace noise; more copies come nearer to 6.5."""
    found = combine(2.0, within=1.0, between=2.0, heavy=0.5, copies=4, noise=3.0)
    assert found.variance == pytest.approx(1 + 1.25 * 2.5 + 3) and found.heavy == pytest.approx(3.625)
    many = combine(2.0, within=1.0, between=2.0, heavy=0.5, copies=10**9, noise=3.0)
    assert many.variance == pytest.approx(6.5)


def test_the_total_variance_is_that_of_the_mean() -> None:
    """20,000 surveys: a posterior mean of variance 2 about the truth, 5 completed answers of variance 2 about it and
    sampling 1, noise 3 on their mean. The mean is off by 1 + 2 + 2/5 + 3; six standard errors of 1.1 % each."""
    rng, n = np.random.default_rng(1), 20_000
    truth = rng.normal(0, 1, n) + rng.normal(0, 2**0.5, n)
    mean = (truth[:, None] + rng.normal(0, 2**0.5, (n, 5))).mean(axis=1) + rng.laplace(0, 1.5**0.5, n)
    stated = combine(0.0, within=1.0, between=2.0, heavy=0.0, copies=5, noise=3.0).variance
    assert abs(mean.var() / stated - 1) < 6 * 0.011
    assert abs(mean.var() / (stated - 2) - 1) > 6 * 0.011  # the naive twin leaves the imputation out


def test_what_cannot_be_is_refused() -> None:
    for level in (0.0, 1.0):
        with pytest.raises(PlanError):
            mixed_quantile(level, normal=1, heavy=1)
    with pytest.raises(PlanError, match="at least 1"):
        combine(1.0, within=1.0, between=0.0, heavy=0.0, copies=0, noise=0.0)
