"""The reach of a weighted sum of noises: against the exact law where it is known, and against nothing smaller."""

from fractions import Fraction
from itertools import product
from math import exp, log, sqrt

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.refine.combination import Draws, NoiseLaw, half_width, standard_deviation
from reticent.refine.quantiles import gaussian_half_width, laplace_half_width

SLACK = 1 / 20
"""In standard deviations: what the normal noise adds to a width, and the step in which widths are found."""


def probabilities(draws: Draws, reach: int) -> dict[float, float]:
    """The law of the sum of these draws, by convolution."""
    k = np.arange(-reach, reach + 1)
    one = np.exp(
        -np.abs(k) / draws.scale if draws.law is NoiseLaw.LAPLACE else -(k**2) / (2 * draws.scale**2)
    )
    one /= one.sum()
    found = {0.0: 1.0}
    for _ in range(draws.count):
        summed: dict[float, float] = {}
        for (a, p), (b, q) in product(found.items(), zip(k, one, strict=True)):
            at = round(a + draws.weight * b, 9)
            summed[at] = summed.get(at, 0.0) + p * q
        found = summed
    return found


def together(all_draws: list[Draws], reach: int) -> list[tuple[float, float]]:
    found = {0.0: 1.0}
    for draws in all_draws:
        mine = probabilities(draws, reach)
        summed: dict[float, float] = {}
        for (a, p), (b, q) in product(found.items(), mine.items()):
            at = round(a + b, 9)
            summed[at] = summed.get(at, 0.0) + p * q
        found = summed
    return sorted((abs(at), p) for at, p in found.items())


def least(law: list[tuple[float, float]], level: float) -> float:
    held = 0.0
    for at, p in law:
        held += p
        if held >= level:
            return at
    raise AssertionError("reach too short")


MIXED = [
    [Draws(weight=1, scale=2.0)],
    [Draws(weight=1, scale=0.3)],
    [Draws(weight=1, scale=1.5, count=2)],
    [Draws(weight=1, scale=1.0), Draws(weight=-0.37, scale=1.0)],
    [Draws(weight=0.75, scale=1.0), Draws(weight=0.25, scale=1.0, count=2)],
    [Draws(weight=1, scale=1.2, law=NoiseLaw.GAUSSIAN), Draws(weight=0.5, scale=0.8, law=NoiseLaw.GAUSSIAN)],
    [Draws(weight=1, scale=1.2, law=NoiseLaw.GAUSSIAN), Draws(weight=0.5, scale=0.8)],
]


@pytest.mark.parametrize("draws", MIXED, ids=str)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_width_covers_and_is_hardly_larger_than_the_least(draws, level):
    """Against the whole law, summed by hand; reach of 60 scales, so nothing above e^-40 is left out."""
    reach = 22 if len(draws) > 1 or draws[0].count > 1 else 80
    exact = least(together(draws, reach), level)
    spread = standard_deviation(draws)
    found = half_width(draws, level)
    assert exact <= found <= exact + SLACK * spread + 1e-6


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40), Fraction(5000)], ids=str)
@pytest.mark.parametrize("level", [Fraction(9, 10), Fraction(95, 100), Fraction(9999, 10000)], ids=str)
def test_one_draw_has_the_known_width(scale, level):
    for law, known in ((NoiseLaw.LAPLACE, laplace_half_width), (NoiseLaw.GAUSSIAN, gaussian_half_width)):
        draws = [Draws(weight=1, scale=float(scale), law=law)]
        exact, found = known(scale, level), half_width(draws, float(level))
        assert exact <= found <= exact + SLACK * standard_deviation(draws) + 1e-6


@pytest.mark.parametrize("scale", [0.05, 0.1, 0.12])
def test_noise_that_is_mostly_none_is_not_folded_onto_itself(scale):
    """P(X != 0) = 2q/(1+q) is just above 1 - level: one whole step is needed, though it is many standard deviations."""
    q = exp(-1 / scale)
    level = 1 - q
    if level < 1 - 1e-6:
        assert 1 <= half_width([Draws(weight=1, scale=scale)], level) < 1.2


def test_many_draws_are_nearly_normal():
    draws = [Draws(weight=1, scale=2.0, count=400)]
    assert half_width(draws, 0.95) == pytest.approx(1.96 * standard_deviation(draws), rel=0.02)


def test_two_continuous_looking_laplace_draws_have_the_closed_form():
    """At a large scale the lattice is not seen: (b1^2 e^(-t/b1) - b2^2 e^(-t/b2))/(b1^2 - b2^2) = 1 - level."""
    found = half_width([Draws(weight=1, scale=3000.0), Draws(weight=-0.5, scale=3000.0)], 0.95)
    tail = (3000.0**2 * exp(-found / 3000) - 1500.0**2 * exp(-found / 1500)) / (3000.0**2 - 1500.0**2)
    assert 0.045 < tail < 0.05


def test_uniform_draws_are_what_they_are():
    """One of them, of width 10: the level-share of half its length."""
    found = half_width([Draws(weight=10, law=NoiseLaw.UNIFORM)], 0.8)
    assert 4 <= found <= 4 + 0.05
    triangle = half_width(
        [Draws(weight=2, law=NoiseLaw.UNIFORM), Draws(weight=-2, law=NoiseLaw.UNIFORM)], 0.75
    )
    assert 1 <= triangle <= 1 + 0.03


def test_a_width_made_for_one_draw_fewer_does_not_cover():
    """The naive twin: a sum of five cells with the width of four."""
    exact = least(together([Draws(weight=1, scale=1.0, count=5)], 22), 0.95)
    assert half_width([Draws(weight=1, scale=1.0, count=4)], 0.95) < exact


def test_what_cannot_be_told_is_refused():
    with pytest.raises(PlanError, match="level"):
        half_width([Draws(weight=1)], 0.9999999)
    with pytest.raises(PlanError, match="sigma"):
        half_width([Draws(weight=1, scale=0.2, law=NoiseLaw.GAUSSIAN)], 0.9)
    assert half_width([], 0.9) == 0.0


def test_the_variance_is_that_of_the_law():
    law = probabilities(Draws(weight=1.5, scale=1.3, count=2), 45)
    assert standard_deviation([Draws(weight=1.5, scale=1.3, count=2)]) == pytest.approx(
        sqrt(sum(p * at * at for at, p in law.items())), rel=1e-9
    )
    assert log(sum(law.values())) == pytest.approx(0, abs=1e-9)
