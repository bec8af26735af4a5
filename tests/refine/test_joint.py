"""Widths for two noises cover whatever their scales are, though one scale or both are known only by a noisy log."""

import math

import numpy as np
import pytest

from reticent.refine.pivot import LAPLACE, Shape, exponent, joined, misses

LEVELS = [0.5, 0.8, 0.95]
SCALES = np.exp(np.linspace(-12.0, 12.0, 121))
"""Finer and wider than the scales the exponent was found on."""


@pytest.mark.parametrize("spread", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("level", LEVELS)
def test_with_laplace_noise_below_coverage_is_near_the_level_at_every_ratio_of_scales(spread, level):
    """The whole range of relative count noise."""
    one = Shape(8, spread)
    p = exponent(one, LAPLACE, level=level)
    covered = 1 - misses(one, LAPLACE, p, level=level, scales=SCALES)
    assert covered.min() >= level - 0.001 and covered.max() <= level + 0.02


@pytest.mark.parametrize(
    ("other", "common", "level"),
    [(Shape(8, 0.5), True, 0.95), (Shape(8, 0.25), False, 0.8), (Shape(8, 0.5), False, 0.95)],
)
def test_with_two_confidential_scales_too(other, common, level):
    one = Shape(8, 0.5)
    p = exponent(one, other, level=level, common=common)
    covered = 1 - misses(one, other, p, level=level, common=common, scales=SCALES[::10])
    assert covered.min() >= level - 0.001 and covered.max() <= level + 0.02


def drawn(one: Shape, scale: float, level: float, p: float, runs: int) -> float:
    """How often the width misses, by drawing both noises and the noise on the log scale."""
    rng = np.random.default_rng(20250301)
    x = scale * (rng.random(runs) ** (-1 / one.m) - 1) * rng.choice([-1, 1], runs)
    z = rng.laplace(size=runs)
    first = scale * one.width(1 - level) * np.exp(rng.laplace(scale=one.spread, size=runs))
    width = (first**p + LAPLACE.width(1 - level) ** p) ** (1 / p)
    return float(np.mean(np.abs(x - z) > width))


@pytest.mark.parametrize("scale", [1.0, 5.0, 30.0])
def test_drawing_gives_what_the_integral_says(scale):
    """400,000 runs: within five standard errors, 0.0032; false alarm 6e-7."""
    one, level, p = Shape(8, 0.5), 0.8, 2.2
    exact = misses(one, LAPLACE, p, level=level, scales=np.array([scale]))[0]
    assert abs(drawn(one, scale, level, p, 400_000) - exact) < 0.0032


def test_two_naive_twins_are_found_out():
    """The scale taken as if it had no noise; and the larger width alone where both noises matter."""
    one, level = Shape(8, 0.5), 0.95
    forgetful = Shape(8, 0.0)
    ratio = forgetful.width(0.05) / one.width(0.05)
    missed = misses(one, LAPLACE, 2.9, level=level, scales=np.array([1e4]))[0]
    assert missed < 0.0501 and drawn_alone(one, ratio * one.width(0.05)) > 0.08
    small = Shape(8, 0.1)
    assert misses(small, LAPLACE, 16.0, level=0.5, scales=SCALES).max() > 0.55


def drawn_alone(one: Shape, width: float) -> float:
    rng = np.random.default_rng(7)
    x = rng.random(200_000) ** (-1 / one.m) - 1
    return float(np.mean(x > width * np.exp(rng.laplace(scale=one.spread, size=200_000))))


def test_joined_widths_are_a_norm():
    """Between the larger and the sum, and either where the other is nothing."""
    assert joined(3.0, 4.0, 2.0) == pytest.approx(5.0)
    assert joined(3.0, 4.0, 1.0) == pytest.approx(7.0)
    assert joined(0.0, 4.0, 3.0) == 4.0 == joined(4.0, 0.0, 3.0)
    assert joined(0.0, 0.0, 2.0) == 0.0
    assert math.isfinite(joined(1e300, 1e-300, 16.0))
