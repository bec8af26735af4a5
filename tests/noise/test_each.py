"""Draws with a scale each have their own law and no other's."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import fractions

from reticent.noise.vector import draw_laplace, draw_laplace_each, round_up
from tests.audit import ALARM, chi_square
from tests.noise import laws
from tests.noise.seeded import chosen_bits

EACH = 40_000
SCALES = [Fraction(1, 2), Fraction(37), Fraction(10**6, 7), Fraction(2**52 + 1, 2**40)]


def drawn_together() -> dict[Fraction, list[int]]:
    """Four scales in turn, the last too long for the arrays; 40,000 draws each, a tenth of that for the last."""
    order = [SCALES[i % 3] for i in range(3 * EACH)] + [SCALES[3]] * (EACH // 10)
    drawn = draw_laplace_each(order, bits=chosen_bits(61))
    return {s: [x for x, at in zip(drawn, order, strict=True) if at == s] for s in SCALES}


def naive(order: list[Fraction]) -> list[int]:
    """One scale for all of them: the largest."""
    return draw_laplace(len(order), scale=max(order), bits=chosen_bits(62))


def test_each_draw_has_the_law_of_its_own_scale():  # covers T26 T07
    """Chi-square on the exact probabilities, false alarm 1e-9 each; a tenth off is rejected where it can be seen."""
    found = drawn_together()
    for scale, draws in found.items():
        assert chi_square(draws, laws.laplace(float(scale)), cells=12) > ALARM
    for scale in SCALES[1:3]:
        assert chi_square(found[scale], laws.laplace(1.1 * float(scale)), cells=12) < ALARM
    order = [SCALES[1], SCALES[2]] * 2000
    assert chi_square(naive(order)[::2], laws.laplace(float(SCALES[1])), cells=12) < ALARM


def test_neighbouring_draws_are_independent():
    """Correlation of |x| / scale between draws made in one round; 40,000 pairs, false alarm below 1e-9."""
    found = drawn_together()
    one, two = (np.abs(found[s]) / float(s) for s in SCALES[1:3])
    assert abs(np.corrcoef(one, two)[0, 1]) < 6.2 / np.sqrt(EACH)


@given(scale=fractions(min_value=Fraction(1, 10**12), max_value=10**18))
def test_a_rounded_scale_is_never_smaller_and_hardly_larger(scale):
    rounded = round_up(scale)
    assert scale <= rounded <= scale * (1 + Fraction(1, 2**39))
    assert rounded.denominator & (rounded.denominator - 1) == 0


def test_a_scale_is_positive():
    with pytest.raises(ValueError, match="positive"):
        draw_laplace_each([Fraction(1), Fraction(0)], bits=chosen_bits(1))
    assert draw_laplace_each([], bits=chosen_bits(1)) == []
