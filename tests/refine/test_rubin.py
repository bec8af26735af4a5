"""Rubin's rules with privacy noise: textbook where there is none, and the total variance is that of the mean."""

import numpy as np
import pytest
from scipy import stats

from reticent.errors import PlanError
from reticent.refine.rubin import Combined, combine, student_quantile


@pytest.mark.parametrize("freedom", [1, 2.5, 4, 30, 1e4, 1e7, float("inf")])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_quantiles_are_students(level: float, freedom: float) -> None:
    exact = stats.t.ppf((1 + level) / 2, freedom)
    assert student_quantile(level, freedom) == pytest.approx(exact, rel=1e-6)


def test_without_noise_they_are_the_textbooks_rules() -> None:
    """m = 3, answers 1, 2, 3: between 1, T = 0.5 + 4/3, and 2 (1 + 0.5/(4/3))^2 degrees of freedom."""
    found = combine([1.0, 2.0, 3.0], within=0.5, noise=0.0)
    assert found.value == 2 and found.variance == pytest.approx(0.5 + 4 / 3)
    assert found.freedom == pytest.approx(2 * (1 + 0.5 / (4 / 3)) ** 2)
    low, high = found.interval(0.9)
    assert high - low == pytest.approx(2 * stats.t.ppf(0.95, found.freedom) * found.variance**0.5)


def test_equal_answers_leave_sampling_alone() -> None:
    assert combine([4.0] * 5, within=0.25, noise=0.0) == Combined(value=4.0, variance=0.25)


def test_the_total_variance_is_that_of_the_mean() -> None:
    """4,000 sets of 5 answers: imputations of variance 1, noise of variance 3, sampling of variance 0.5.

    The mean's own variance is 0.5 + 1 + 1/5 + 3/5 about a truth that the data estimate with between-variance 1. Where
    the noise is not taken off, the naive twin, the total is (1 + 1/5) x 3 too large. Six standard errors; the
    cut at zero adds a little, which is why the bound is one-sided there.
    """
    rng, n = np.random.default_rng(1), 4_000
    answers = rng.normal(0, 1, (n, 5)) + rng.normal(0, 3**0.5, (n, 5))
    totals = np.array([combine(a.tolist(), within=0.5, noise=3.0).variance for a in answers])
    naive = np.array([combine(a.tolist(), within=0.5, noise=0.0).variance for a in answers])
    wanted, error = 0.5 + 1.2 * 1 + 3 / 5, 6 * totals.std() / n**0.5
    assert wanted - error < totals.mean() < wanted + 1.2 * 1
    assert naive.mean() > wanted + 1.2 * 1


def test_one_copy_says_nothing_of_the_imputation() -> None:
    with pytest.raises(PlanError, match="at least 2"):
        combine([1.0], within=1.0, noise=0.0)
    with pytest.raises(PlanError):
        student_quantile(1.0, 3)
