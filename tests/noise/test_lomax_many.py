"""Double Lomax noise for lists: each answer at its own scale, and exactly as the scalar code draws it."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.noise import calibrate
from reticent.noise import vector as lomax_many
from reticent.noise.bits import Largest, line, words
from reticent.noise.laplace import settle_lomax
from reticent.noise.vector import add_lomax_many
from tests.audit import ALARM, chi_square
from tests.noise.laws import lomax, on_grid
from tests.noise.seeded import SeededBits, chosen_bits

EPSILON, BETA = Fraction(1), Fraction(1, 8)
A = calibrate.lomax(epsilon=EPSILON, beta=BETA)


@pytest.mark.parametrize("bound", [0.5, 37.25, 1e9])
def test_each_answer_has_the_law_of_its_own_bound(bound: float):  # covers T26
    """30,000 draws among as many of another bound, chi-square at 1e-9; a bound 8 percent off is rejected."""
    bounds = np.tile([bound, 4.0 * bound], 30_000)
    drawn = add_lomax_many([7] * len(bounds), bounds=bounds, beta=BETA, epsilon=EPSILON, bits=chosen_bits(3))
    for share, right in ((0, bound), (1, 4 * bound)):
        law, wrong = (
            on_grid(lomax(8), answer=Fraction(7), scale=Fraction(scale) / A, grid=Fraction(1))
            for scale in (right, 1.08 * right)
        )
        assert chi_square(drawn[share::2], law) > ALARM > chi_square(drawn[share::2], wrong)


def test_fast_draws_are_the_exact_ones():
    """The same words through integers alone: 3,000 draws at bounds from 1e-3 to 1e14, where doubles give up."""
    bounds = np.geomspace(1e-3, 1e14, 3000)
    same = SeededBits(5)
    digits, signs = words(8 * 3000, same).reshape(8, 3000), words(3000, same)
    drawn = lomax_many._batch(bounds, A, 8, SeededBits(5))
    is_sure = 0
    for i, bound in enumerate(bounds.tolist()):
        p = int(digits[:, i].max())
        where = line(0, scale=Fraction(bound) / A, grid=Fraction(1))
        sign = -1 if signs[i] >> np.uint64(63) else 1
        ends = [where.steps(sign * (2**64 - p - more), p + more) for more in (0, 1)]
        if ends[0] == ends[1]:  # these digits settle it, whatever follows
            is_sure += 1
            assert drawn[i] == ends[0] == settle_lomax(where, sign, Largest(SeededBits(1), 1, p, 64))
    assert is_sure > 2900


def test_refuses_bounds_that_scale_no_noise():
    """Not positive, not finite, not one for each answer; a beta that is no whole part of epsilon."""
    for bounds in ([0.0], [-1.0], [np.inf], [np.nan], [1.0, 1.0]):
        with pytest.raises(ValueError, match="bound"):
            add_lomax_many([1], bounds=np.array(bounds), beta=BETA, epsilon=EPSILON, bits=SeededBits(0))
    with pytest.raises(PlanError, match="beta"):
        add_lomax_many([1], bounds=np.ones(1), beta=Fraction(2, 7), epsilon=EPSILON, bits=SeededBits(0))
