"""Selection: exact probabilities, edges, and the coins they are made of."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.noise import bits
from reticent.noise.bits import Uniform, exp_bracket, is_below_exp
from reticent.noise.selection import exponential, permute_and_flip
from tests.noise.seeded import SeededBits

BOTH = pytest.mark.parametrize("mechanism", [permute_and_flip, exponential])


@given(gamma=st.fractions(0, 40), places=st.integers(0, 300))
def test_brackets_of_the_exponential_hold_it_and_are_narrow(gamma: Fraction, places: int) -> None:
    """Against ball arithmetic with far more digits."""
    low, high = exp_bracket(gamma, places)
    assert 0 <= high - low <= 2
    with ctx.workprec(1000):
        exact = (-arb(fmpq(gamma.numerator, gamma.denominator))).exp() * arb(2) ** places
        # A gamma of 0 makes the value whole, and then the ball is not wholly on one side.
        assert not arb(low) > exact and not exact > arb(high)


def test_the_table_exponential_is_well_within_its_margin() -> None:
    """2,000 points of [0, 60], against integer arithmetic."""
    grid = np.linspace(0, 60, 2000)
    for x, e in zip(grid.tolist(), bits.exp_minus(grid).tolist(), strict=True):
        exact = Fraction(exp_bracket(Fraction(x), 200)[0], 1 << 200)
        assert abs(Fraction(e) / exact - 1) < Fraction(1, 1 << 48)


GAMMAS = [Fraction(1, 10**9), Fraction(30), Fraction(10**300), *(Fraction(k, 37) for k in range(1, 150))]


def test_fast_coins_and_exact_coins_agree_on_every_word() -> None:
    """152 probabilities; words around the threshold, where floating point would be unsure, and elsewhere."""
    for gamma in GAMMAS:
        edge = exp_bracket(gamma, 64)[0]
        near = [edge + d for d in (-(2**30), -(2**14), -(2**12), -1000, -3, 3, 1000, 2**12, 2**14, 2**30)]
        drawn = [w for w in [*near, 0, 1, 2**63, 2**64 - 1] if 0 <= w < 2**64 and abs(w - edge) > 1]
        approximate = np.full(len(drawn), min(float(gamma), bits.LARGEST))
        fast = bits.decide(np.array(drawn, np.uint64), approximate, lambda _, g=gamma: g, SeededBits(2))
        exact = [is_below_exp(Uniform(SeededBits(3), w, 64), gamma) for w in drawn]
        assert fast.tolist() == exact


@BOTH
def test_far_apart_scores_choose_the_best(mechanism) -> None:  # covers T18
    """Scores 1e300 apart, one candidate, a thousand equal ones, a hundred thousand: never raises."""
    one = Fraction(1)
    far = [10**300 * i for i in (2, 0, 5, -7)]
    assert mechanism(far, sensitivity=1, epsilon=one, bits=SeededBits(0)) == 2
    assert mechanism([-(10**300)], sensitivity=1, epsilon=one, bits=SeededBits(0)) == 0
    assert 0 <= mechanism([7] * 1000, sensitivity=1, epsilon=one, bits=SeededBits(0)) < 1000
    many = [0] * 99_999 + [10**4]
    assert mechanism(many, sensitivity=1, epsilon=one, bits=SeededBits(0)) == 99_999


@BOTH
def test_adding_the_same_to_every_score_changes_nothing(mechanism) -> None:  # covers T18
    """Same bits, same choice."""
    scores = [3, 1, 4, 1, 5]
    for seed in range(20):
        chosen = {
            mechanism([s + shift for s in scores], sensitivity=2, epsilon=Fraction(1), bits=SeededBits(seed))
            for shift in (0, 1, -(10**300))
        }
        assert len(chosen) == 1


@BOTH
def test_refuses_what_has_no_meaning(mechanism) -> None:
    """No candidates, no epsilon, no sensitivity."""
    for scores, sensitivity, epsilon in (([], 1, 1), ([1], 0, 1), ([1], 1, 0)):
        with pytest.raises(PlanError):
            mechanism(scores, sensitivity=sensitivity, epsilon=Fraction(epsilon), bits=SeededBits(0))
