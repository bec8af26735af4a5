"""Sampling designs: inclusion probabilities are exactly what they say, and weights are their inverses."""

from decimal import Decimal
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.lab.world import design
from tests.lab.bounds import ALARM, fits

MEASURES = st.lists(st.integers(1, 12), min_size=2, max_size=12)


@given(measure=MEASURES, data=st.data())
@settings(max_examples=60, deadline=None)
def test_systematic_sampling_is_exact_over_all_starts(measure, data):
    """Every start by brute force: size rows each time, each row in `part` of `whole` starts, no bias."""
    size = data.draw(st.integers(1, len(measure)))
    part, whole = design.probabilities(np.array(measure), size=size, rows=len(measure))
    y = np.arange(len(measure)) ** 2
    hits, estimate = np.zeros(len(measure), dtype=int), Fraction(0)
    for start in range(whole[0]):
        rows = design.steps(part, whole, start)
        assert len(rows) == size
        hits[rows] += 1
        estimate += sum(Fraction(int(y[i]) * int(whole[i]), int(part[i])) for i in rows)
    assert np.array_equal(hits, part)
    assert estimate / int(whole[0]) == y.sum()


@given(measure=MEASURES, data=st.data())
def test_probabilities_sum_to_the_size_and_follow_the_measure(measure, data):
    size = data.draw(st.integers(1, len(measure)))
    part, whole = design.probabilities(np.array(measure), size=size, rows=len(measure))
    chances = [Fraction(int(p), int(w)) for p, w in zip(part, whole, strict=True)]
    assert sum(chances) == size
    ratios = {chance / m for chance, m in zip(chances, measure, strict=True) if chance < 1}
    assert len(ratios) <= 1 and max(chances) <= 1


def test_poisson_sampling_has_its_rates_and_no_others(state):
    """3,000 draws of 8 rows; false alarm below 1e-9 in all. Equal chances would not pass."""
    small, measure, runs = state.slice(0, 8), np.array([1, 1, 2, 3, 5, 8, 13, 40]), 3000
    part, whole = design.probabilities(measure, size=3, rows=8)
    hits = np.zeros(8, dtype=int)
    for seed in range(runs):
        hits[design.poisson(small, size=3, measure=measure, seed=seed).rows] += 1
    assert all(fits(int(h), runs, p / w, alarm=ALARM / 8) for h, p, w in zip(hits, part, whole, strict=True))
    assert not all(fits(int(h), runs, 3 / 8, alarm=ALARM / 8) for h in hits)


def test_simple_samples_include_rows_and_pairs_evenly(state):
    """4,000 draws of 2 from 5; false alarm below 1e-9 in all."""
    small, runs = state.slice(0, 5), 4000
    pairs = np.zeros((5, 5), dtype=int)
    for seed in range(runs):
        rows = design.simple(small, size=2, seed=seed).rows
        pairs[rows[0], rows[1]] += 1
    counts = pairs[np.triu_indices(5, 1)]
    assert counts.sum() == runs
    assert all(fits(int(count), runs, 1 / 10, alarm=ALARM / 10) for count in counts)


def test_stratified_samples_have_their_sizes_and_weigh_back_to_the_frame(state):
    sizes = design.allocate(state, size=3000, rule="equal")
    sample = design.stratified(state, sizes=sizes, seed=4)
    taken = sample.take(state).to_pandas()
    assert taken["stratum"].value_counts().to_dict() == sizes
    room = state.to_pandas()["stratum"].value_counts()
    for stratum, weights in taken.groupby("stratum", observed=True)["weight"]:
        exact = Fraction(int(room[stratum]), sizes[stratum])
        assert set(weights) == {Decimal(floor(100 * exact + Fraction(1, 2))) / 100}
    assert abs(float(taken["weight"].sum()) - state.num_rows) <= 0.005 * len(taken)


@pytest.mark.parametrize("rule", ["proportional", "root", "equal"])
@pytest.mark.parametrize("size", [0, 17, 9000, 29_999, 30_000])
def test_allocations_add_up_and_never_ask_too_much(state, rule, size):
    given_to = design.allocate(state, size=size, rule=rule)
    room = state.to_pandas()["stratum"].value_counts()
    assert sum(given_to.values()) == size
    assert all(0 <= n <= room[stratum] for stratum, n in given_to.items())


def test_weights_round_half_up_and_stop_at_the_bound():
    sample = design.DrawnSample(
        rows=np.arange(4), part=np.array([1, 8, 1, 3]), whole=np.array([1, 9, 75, 179])
    )
    assert sample.weights().tolist() == [100, 113, 6000, 5967]


def test_samples_reproduce(state):
    one, again, other = (design.simple(state, size=50, seed=s).rows for s in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)


def test_a_frame_covers_whole_households_at_its_rate(state):
    listed = design.frame(state, coverage=Fraction(9, 10), seed=6).to_pandas()
    rows = state.to_pandas()
    covered, homes = set(listed["household"]), rows["household"].nunique()
    assert len(listed) == rows["household"].isin(covered).sum()
    assert fits(len(covered), homes, 0.9) and not fits(len(covered), homes, 0.8)
    assert design.frame(state, least_age=18)["age"].to_numpy().min() == 18


@pytest.mark.parametrize("size", [-1, 11])
def test_sizes_the_frame_cannot_give_are_refused(state, size):
    small = state.slice(0, 10)
    for draw in (design.simple, design.allocate):
        with pytest.raises(PlanError):
            draw(small, size=size, **({"seed": 1} if draw is design.simple else {}))
    with pytest.raises(PlanError):
        design.systematic(small, size=size, measure=np.ones(10, dtype=int), seed=1)


def test_measures_are_whole_and_positive(state):
    for measure in (np.ones(10), np.zeros(10, dtype=int), np.ones(9, dtype=int)):
        with pytest.raises(PlanError):
            design.poisson(state.slice(0, 10), size=2, measure=measure, seed=1)


def test_a_sample_refuses_impossible_probabilities():
    with pytest.raises(PlanError):
        design.DrawnSample(rows=np.array([0]), part=np.array([2]), whole=np.array([1]))
    with pytest.raises(PlanError):
        design.DrawnSample(rows=np.array([0, 1]), part=np.array([1]), whole=np.array([1]))
