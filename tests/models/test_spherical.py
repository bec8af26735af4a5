"""Noise that falls with the Euclidean distance has that law, exactly, and no other."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from reticent.errors import PlanError
from reticent.models.fit import MOST, add_spherical, draw_spherical
from reticent.noise.vector import draw_laplace
from reticent.sensitivity.bounds import Global
from tests.audit import ALARM
from tests.noise.seeded import chosen_bits

DRAWS = 4000


def law(n: int, scale: float, reach: int = 25) -> dict[tuple[int, ...], float]:
    """The exact probabilities, by summing over a box far beyond the scale."""
    points = np.array(list(product(range(-reach, reach + 1), repeat=n)))
    weight = np.exp(-np.sqrt((points**2).sum(axis=1)) / scale)
    return dict(zip(map(tuple, points.tolist()), (weight / weight.sum()).tolist(), strict=True))


def fits(draws: list[tuple[int, ...]], wanted: dict[tuple[int, ...], float]) -> float:
    """Pearson's statistic over every point that expects 25 draws, the rest together; its p-value."""
    seen = Counter(draws)
    common = [point for point, p in wanted.items() if p * len(draws) >= 25]
    expected = [wanted[point] * len(draws) for point in common]
    counts = [seen[point] for point in common]
    expected.append(len(draws) - sum(expected))
    counts.append(len(draws) - sum(counts))
    statistic = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    return float(chi2.sf(statistic, len(counts) - 1))


@pytest.mark.parametrize(("n", "scale"), [(1, Fraction(5, 2)), (2, Fraction(3, 2)), (3, Fraction(4, 5))])
def test_draws_have_the_stated_law_and_no_other(n, scale):  # covers T26
    """4,000 draws, false alarm 1e-9; a scale a fifth off and the product of Laplace laws are rejected."""
    bits = chosen_bits(70 + n)
    bound, epsilon = Global(bound=Fraction(scale.numerator)), Fraction(scale.denominator)
    answers = list(range(5, 5 + n))
    made = [add_spherical(answers, sensitivity=bound, epsilon=epsilon, bits=bits) for _ in range(DRAWS)]
    draws = [tuple(y - a for y, a in zip(each, answers, strict=True)) for each in made]
    reach = 25 if n < 3 else 12
    assert fits(draws, law(n, float(scale), reach)) > ALARM
    assert fits(draws, law(n, 1.2 * float(scale), reach)) < ALARM
    if n > 1:  # the naive twin: one Laplace number for each coordinate
        flat = draw_laplace(n * DRAWS, scale=scale * 7 / 5, bits=bits)
        assert fits(list(zip(*[iter(flat)] * n, strict=True)), law(n, float(scale), reach)) < ALARM


@pytest.mark.parametrize("n", [2, 3])
def test_the_loss_is_within_epsilon_and_half_the_scale_s_is_not(n):  # covers T07
    """Exact probabilities at every output near both answers, the second a full bound away."""
    moved = (3, *[0] * (n - 1))
    worst = {}
    for scale in (3.0, 1.5):
        weight = {point: np.log(p) for point, p in law(n, scale, 12).items()}
        there = {tuple(a + b for a, b in zip(point, moved, strict=True)): w for point, w in weight.items()}
        worst[scale] = max(abs(weight[p] - there[p]) for p in weight if p in there)
    assert worst[3.0] <= 1 + 1e-12 < worst[1.5]


def test_large_scales_and_many_numbers_are_drawn():
    """Radius over scale is a gamma number of shape n: its mean over 200 draws within six standard errors."""
    bits, n, scale = chosen_bits(80), 6, Fraction(10**9, 7)
    far = [np.linalg.norm(draw_spherical(n, scale=scale, bits=bits)) / float(scale) for _ in range(200)]
    assert abs(np.mean(far) - n) < 6 * np.sqrt(n / 200)
    assert len(draw_spherical(12, scale=scale, bits=bits)) == 12


def test_what_cannot_be_drawn_is_refused():
    one = Global(bound=Fraction(1))
    bits = chosen_bits(81)
    with pytest.raises(PlanError):
        add_spherical([0] * (MOST + 1), sensitivity=one, epsilon=Fraction(1), bits=bits)
    with pytest.raises(PlanError):
        add_spherical([0], sensitivity=one, epsilon=Fraction(0), bits=bits)
    with pytest.raises(TypeError):
        add_spherical([0.5], sensitivity=one, epsilon=Fraction(1), bits=bits)
