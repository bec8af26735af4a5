"""Quotients with discrete Gaussian noise: each lemma of proofs/refine/gaussian.md by its law, and the width by summing."""

from fractions import Fraction
from math import hypot

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.refine.pivot import NoisyValue, quotient_interval
from reticent.refine.quantiles import GRID_STEPS, gaussian_half_width, gaussian_ratio_half_width

SIGMAS = [0.05, 0.2, 0.4, 0.5, 0.51, 0.6, 0.75, 0.9, 1.0, 1.3, 1.5, 1.51, 2.0, 2.5, 3.7, 5.0, 12.0, 40.0]


def masses(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    reach = int(12 * sigma) + 12
    k = np.arange(-reach, reach + 1)
    g = np.exp(-((k / sigma) ** 2) / 2)
    return k, g / g.sum()


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_discrete_law_is_more_peaked_than_the_rounded_normal(sigma):
    """Lemma 1, at every whole number; a quarter of a step less, the naive twin, is not enough."""
    k, p = masses(sigma)
    m = np.arange(1, int(6 * sigma) + 4)
    tail = np.array([p[np.abs(k) >= each].sum() for each in m])
    assert (tail <= 2 * ndtr(-(m - 0.5) / sigma) + 1e-15).all()
    if sigma >= 2:
        assert (tail > 2 * ndtr(-(m + 0.5) / sigma)).any()


@pytest.mark.parametrize("sigma", SIGMAS)
def test_with_an_even_step_it_is_more_peaked_than_the_normal_with_two(sigma):
    """Lemma 2, on a grid of 200 points to a step; the normal alone is not spread enough."""
    k, p = masses(sigma)
    t = np.arange(0, 8 * sigma + 4, 0.005)
    edges = np.arange(0, k.max() + 1) + 0.5
    tails = np.array([1.0, *(p[np.abs(k) > each].sum() for each in edges)])
    own = np.interp(t, [0.0, *edges], tails)
    b = np.linspace(-1, 1, 401)
    spread = np.trapezoid(2 * ndtr(-(t[:, None] - b[None, :]) / sigma), b, axis=1) / 2
    # The trapezoid is off by at most 2 h^2 max|f''|/12 = (1/200)^2/6 * 0.484/sigma^2.
    assert (own <= spread + 1e-12 + 2.1e-6 / sigma**2).all()
    alone = 2 * ndtr(-t / sigma)
    assert (own > alone + 1e-9).any()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(
    ("s1", "s2", "c"),
    [
        (0.6, 0.6, 1.0),
        (3.0, 2.0, 0.37),
        (5.0, 40.0, 0.05),
        (1.0, 7.3, 2.0),
        (20.0, 1.0, 13.0),
        (0.3, 4.0, 0.5),
        (40.0, 40.0, 1.0),
    ],
)
def test_the_width_covers_by_the_exact_law_of_both(s1, s2, c, level):
    """Every pair of whole numbers, summed. A width without the count's noise does not cover."""
    (k1, p1), (k2, p2) = masses(s1), masses(s2)
    law, apart = np.outer(p1, p2), np.abs(k1[:, None] - c * k2[None, :])
    width = gaussian_ratio_half_width(s1, c * s2, level) + float(GRID_STEPS) * (1 + c)
    assert law[apart <= width].sum() >= level
    naive = gaussian_ratio_half_width(s1, 0.0, level)
    if c * s2 > s1:
        assert law[apart <= naive].sum() < level


@pytest.mark.parametrize("sigma", [20, 100, 5000])
def test_it_is_nearly_the_width_of_one_noise_alone(sigma):
    """So the price of the proof is a step and a half."""
    exact = gaussian_half_width(Fraction(sigma), Fraction(95, 100))
    assert abs(gaussian_ratio_half_width(sigma, 0.0, 0.95) - exact) <= 1.5


def test_an_interval_for_a_quotient_covers():
    """2,000 seeded draws of T~ and s~ at 90 %: misses beyond 250 would come by chance below 1e-4 (mean 200)."""
    draw, misses = np.random.default_rng(3), 0
    for _ in range(2_000):
        top, bottom = 300 + round(draw.normal(0, 40)), 1000 + round(draw.normal(0, 60))
        told = [
            NoisyValue(value=float(value), scale=float(scale), blur=1.5, law="gaussian")
            for value, scale in ((top, 40), (bottom, 60))
        ]
        low, high = quotient_interval(*told, level=0.9, low=-1.0, high=1.0)
        misses += not low <= 0.3 <= high
    assert 100 < misses <= 250


def test_laws_are_not_mixed():
    one, other = NoisyValue(value=1.0, scale=1.0), NoisyValue(value=9.0, scale=1.0, law="gaussian")
    with pytest.raises(ValueError, match="both"):
        quotient_interval(one, other, level=0.9, low=0.0, high=1.0)
    with pytest.raises(ValueError, match="Laplace noise alone"):
        _ = other.shape
    low, high = quotient_interval(other, NoisyValue(value=10.0), level=0.9, low=0.0, high=2.0)
    assert 0 < low < 0.9 < high and hypot(high - 0.9, 0) == pytest.approx(0.1645, abs=1e-4)
