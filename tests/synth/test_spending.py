"""A budget is never overdrawn, and each table's noise is that of its move."""

from fractions import Fraction
from itertools import product
from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.privacy.convert import root_below, zcdp_to_epsilon
from reticent.synth.base import Spend
from reticent.synth.spending import ROOT, Accountant, claim_of, rho_within
from tests.synth.standins import FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, spent

# covers T17 T24

ONE = Fraction(1)
DELTA = Fraction(1, 10**6)
STEP = Fraction(1, 10**12)
SPENDS = [
    Spend(epsilon=ONE, delta=delta, change=change, records=records)
    for delta, change, records in product((Fraction(0), DELTA), Change, (1, 3))
] + [Spend(rho=Fraction("0.03"), change=change, records=records) for change in Change for records in (1, 3)]


@given(st.integers(1, 80), st.integers(2, 12))
def test_rho_is_the_largest_decimal_that_keeps_within(tenths, digits):
    epsilon, delta = Fraction(tenths, 10), Fraction(1, 10**digits)
    rho = rho_within(epsilon, delta)
    assert zcdp_to_epsilon(rho=rho, delta=delta) <= epsilon
    assert zcdp_to_epsilon(rho=rho + STEP, delta=delta) > epsilon


def test_amounts_too_small_to_spend_are_refused():
    with pytest.raises(PlanError):
        rho_within(STEP, STEP)
    with pytest.raises(PlanError):
        root_below(STEP**3)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=100))
def test_the_root_is_rounded_down(square):
    """So that epsilon^2/8 never exceeds the amount taken."""
    assert root_below(square) ** 2 <= square < (root_below(square) + STEP) ** 2


def test_the_root_of_two_is_rounded_up():
    assert Fraction(*ROOT) ** 2 > 2 > Fraction(ROOT[0] - 1, ROOT[1]) ** 2


@pytest.mark.parametrize("spend", SPENDS)
def test_all_calls_cost_what_the_purse_says_and_no_more_can_be_bought(spend):
    """Ten unequal steps spend it to the last; an eleventh is refused before any noise is asked for."""
    noise = FrozenSynthNoise()
    accountant = Accountant(spend=spend, noise=noise)
    part = accountant.total / 10
    for i in range(10):
        if i % 2:
            accountant.choose([3, 1, i], sensitivity=2, amount=part)
        else:
            accountant.measure([np.arange(4), np.zeros((2, 3), dtype=np.int64)], amount=part)
    assert accountant.left == 0
    cost = spent(noise.met, pure=accountant.is_pure)
    assert accountant.total - 10 * STEP < cost <= accountant.total
    calls = len(noise.met)
    with pytest.raises(PlanError):
        accountant.measure([np.arange(4)], amount=Fraction(1, 10**30))
    with pytest.raises(PlanError):
        accountant.choose([1, 2], sensitivity=1, amount=Fraction(1, 10**30))
    with pytest.raises(PlanError):
        accountant.measure([np.arange(4)], amount=Fraction(0))
    assert len(noise.met) == calls


def moves(change: Change, records: int, cells: int) -> list[np.ndarray]:
    """All ways in which one respondent can move a table of counts."""
    one = [*np.eye(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)]
    if change is Change.REPLACE:
        one = [a - b for a in one for b in one]
    return [sum(each) for each in product(one, repeat=records)]


@pytest.mark.parametrize("spend", SPENDS)
def test_every_move_of_a_table_is_covered_and_one_meets_the_bound(spend):
    """All moves of up to three records over three cells, both changes, on the grid that was measured."""
    noise = FrozenSynthNoise()
    base = np.array([9, 9, 9])
    every = moves(spend.change, spend.records, 3)
    for move in [np.zeros(3, dtype=np.int64), *every]:
        Accountant(spend=spend, noise=noise).measure([base + move], amount=Fraction(1, 100))
    first, *others = noise.met
    assert {each.parameters for each in others} == {first.parameters}
    far = max(first.distance(each) for each in others)
    assert 0.999 * first.sensitivity < far <= first.sensitivity
    # The naive twin: a bound for one record added, whoever is protected.
    plain = 70 if spend.change is Change.REPLACE and not spend.is_pure else 1
    assert far > plain or (spend.records == 1 and spend.change is Change.ADD_REMOVE)


@pytest.mark.parametrize("spend", [SPENDS[0], *SPENDS[-4:]])
def test_the_stated_size_is_the_size_of_the_noise(spend):
    """40,000 draws: the mean of |noise| within 3 % of `size` (over 6 deviations), its square root mean of `deviation`."""
    accountant = Accountant(spend=spend, noise=QuickSynthNoise(seed=5))
    (noisy,) = accountant.measure([np.full(40_000, 7)], amount=accountant.total / 50)
    off = noisy.cells - 7
    assert np.abs(off).mean() == pytest.approx(noisy.size, rel=0.03)
    assert sqrt((off**2).mean()) == pytest.approx(noisy.deviation, rel=0.03)
    assert noisy.size == accountant.size(accountant.total / 50)
    assert noisy.deviation / noisy.size == pytest.approx(sqrt(2) if accountant.is_pure else sqrt(pi / 2))


def test_without_noise_tables_come_back_as_they_are():
    table = np.arange(6).reshape(2, 3)
    for spend in SPENDS:
        (noisy,) = Accountant(spend=spend, noise=NoSynthNoise()).measure([table], amount=Fraction(1, 1000))
        assert (noisy.cells == table).all()


def test_the_claim_is_the_whole_spend():
    for spend in SPENDS:
        claim = claim_of(spend)
        assert (claim.epsilon, claim.delta, claim.change) == (spend.epsilon, spend.delta, spend.change)
        assert claim.measure == ("zcdp" if spend.rho else "approximate" if spend.delta else "pure")
        assert (
            claim.rho
            == spend.rho
            == (Accountant(spend=spend, noise=NoSynthNoise()).total if spend.rho else 0)
        )
