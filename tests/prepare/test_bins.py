"""Base cells, strategies and collapsing orders are partitions, and what is no partition is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.prepare.strata import (
    ACS,
    BaseCells,
    BaseWeights,
    Candidates,
    Order,
    Strategy,
    Stratifier,
    outward,
    separate,
    summed,
)

F = Fraction
AGE = Stratifier(name="age", bins=5, missing=2)
SEX = Stratifier(name="sex", bins=2, missing=0)
PEOPLE = BaseCells(stratifiers=(AGE, SEX))


def test_a_missing_answer_goes_to_the_declared_bin():
    """Null comes as -1; whatever else is no declared bin is missing too."""
    ages, sexes = np.array([0, 4, -1, 5, 2**62, 3]), np.array([1, -1, 1, 0, 9, 0])
    assert PEOPLE.of([ages, sexes]).tolist() == [1, 8, 5, 4, 4, 6]
    assert PEOPLE.size == 10


def test_strategies_by_several_sets_of_attributes():
    """One by grouped ages, one by sex, one by both, one by neither: every one a partition of the ten base cells."""
    minors = {"age": [[0, 1], [2, 3, 4]]}
    assert PEOPLE.by(minors) == (0, 0, 0, 0, 1, 1, 1, 1, 1, 1)
    assert PEOPLE.by({"sex": None}) == (0, 1) * 5
    assert PEOPLE.by(minors | {"sex": None}) == (0, 1, 0, 1, 2, 3, 2, 3, 2, 3)
    assert PEOPLE.by({}) == (0,) * 10
    assert PEOPLE.by({"age": None, "sex": None}) == tuple(range(10))


@settings(max_examples=60, deadline=None)
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=9), data=st.data())
def test_joining_keeps_the_population_and_the_partition(labels, data):
    """Of any groups, base cells that were together stay together, and totals are sums over base cells."""
    labels = [sorted(set(labels)).index(each) for each in labels]
    base = [F(data.draw(st.integers(1, 9))) for _ in labels]
    start = summed("start", labels, base)
    first = data.draw(st.lists(st.integers(0, max(labels)), unique=True, min_size=1))
    made = start.joined([first], name="made")
    assert sum(made.totals) == sum(start.totals) and len(made.totals) == len(start.totals) - len(first) + 1
    for one, cell in enumerate(labels):
        for other, there in enumerate(labels):
            together = cell == there or {cell, there} <= set(first)
            assert (made.bins[one] == made.bins[other]) == together
    for number, total in enumerate(made.totals):
        assert total == sum(n for n, each in zip(base, made.bins, strict=True) if each == number)


def test_delta_of_the_running_example():
    """THEORY 6.6; a bin of total 0 counts neither as a bin nor as the least total."""
    five = separate([F(100_000)] * 5)
    assert Candidates(strategies=(five, five.joined([range(5)], name="all"))).delta == F(5, 100_000)
    empty = Strategy(name="s", bins=(0, 1, 2), totals=(F(0), F(3), F(5)))
    assert Candidates(strategies=(empty,)).delta == F(2, 3) and empty.size == 2


def test_a_chain_is_nested_and_ends_in_one_bin():
    start = separate([F(n) for n in (1, 2, 3, 4)])
    chain = outward(4).chain(start)
    assert [each.totals for each in chain] == [(1, 2, 3, 4), (3, 3, 4), (6, 4), (10,)]
    again = Order(merges=((0, 1), (1, 0), (0, 1))).chain(start)
    assert [len(each.totals) for each in again] == [4, 3]
    assert Candidates(strategies=chain).delta == 4


def test_only_short_bins_are_collapsed():
    """Counts 5, 40, 3, 50 with 10 wanted: the first joins the second, and the third, next in the order, joins both."""
    counts = [5, 40, 3, 50]
    start = separate([F(1)] * 4)
    made = outward(4).collapse(start, lambda members: sum(counts[each] for each in members) < 10)
    assert made.bins == (0, 0, 0, 1)
    assert outward(4).collapse(start, lambda members: False).bins == (0, 1, 2, 3)
    assert outward(4).collapse(start, lambda members: True).bins == (0, 0, 0, 0)


def test_one_round_of_merges_is_not_enough():
    """20, 12 and -5 with 10 wanted: joining the last two makes them short together, and the first pair is due again."""
    counts, start = [20, 12, -5], separate([F(1)] * 3)
    made = outward(3).collapse(start, lambda members: sum(counts[each] for each in members) < 10)
    assert made.bins == (0, 0, 0)


@settings(max_examples=80, deadline=None)
@given(
    counts=st.lists(st.integers(-20, 60), min_size=2, max_size=7), limit=st.integers(0, 50), data=st.data()
)
def test_a_short_bin_is_left_only_where_the_order_has_nothing_more(counts, limit, data):
    """Also for negative counts, which can make two fine bins short together."""
    pairs = st.tuples(*[st.integers(0, len(counts) - 1)] * 2)
    order = Order(merges=tuple(data.draw(st.lists(pairs, max_size=10))))
    made = order.collapse(separate([F(1)] * len(counts)), lambda m: sum(counts[each] for each in m) < limit)
    held = [sum(c for c, b in zip(counts, made.bins, strict=True) if b == n) for n in range(len(made.totals))]
    for one, other in order.merges:
        if made.bins[one] != made.bins[other]:
            assert min(held[made.bins[one]], held[made.bins[other]]) >= limit


def test_the_cut_offs_of_the_american_community_survey():
    assert (ACS.records, ACS.factor) == (10, F("3.5"))


REFUSED = {
    "no stratifier": lambda: BaseCells(stratifiers=()),
    "twice": lambda: BaseCells(stratifiers=(AGE, AGE)),
    "missing nowhere": lambda: Stratifier(name="age", bins=3, missing=3),
    "unknown": lambda: PEOPLE.by({"ags": None}),
    "bin left out": lambda: PEOPLE.by({"age": [[0, 1], [2, 3]]}),
    "bin twice": lambda: PEOPLE.by({"age": [[0, 1], [1, 2, 3, 4]]}),
    "empty group": lambda: PEOPLE.by({"age": [[0, 1, 2, 3, 4], []]}),
    "bin without a cell": lambda: Strategy(name="s", bins=(0, 0), totals=(F(1), F(2))),
    "cell without a total": lambda: Strategy(name="s", bins=(0, 1), totals=(F(1),)),
    "negative total": lambda: separate([F(1), F(-1)]),
    "all zero": lambda: separate([F(0), F(0)]),
    "too large": lambda: separate([F(2**61)]),
    "too small": lambda: separate([F(1), F(1, 2**61)]),
    "sums differ": lambda: Candidates(strategies=(separate([F(1)]), separate([F(2)], name="b"))),
    "other cells": lambda: Candidates(strategies=(separate([F(2)]), separate([F(1)] * 2, name="b"))),
    "same name": lambda: Candidates(strategies=(separate([F(1)]), separate([F(1)]))),
    "no strategy": lambda: Candidates(strategies=()),
    "joined twice": lambda: separate([F(1)] * 3).joined([[0, 1], [1, 2]], name="s"),
    "joined to nothing": lambda: separate([F(1)] * 3).joined([[0, 3]], name="s"),
    "merge of nothing": lambda: Order(merges=((0, 3),)).chain(separate([F(1)] * 3)),
    "no heaviest weight": lambda: BaseWeights(heaviest=0),
    "nothing kept": lambda: BaseWeights(heaviest=2),
    "unit": lambda: BaseWeights(unit=F(0)),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_does_not_fit_is_refused_before_a_row_is_read(how):  # covers B092 B095
    with pytest.raises(PlanError):
        REFUSED[how]()
