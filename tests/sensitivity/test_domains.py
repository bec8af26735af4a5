"""Domains under one epsilon: every pair of neighbours of small tables, and the bounds of a single ask, which fail."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil

import pytest

from reticent.answer.parts import plan_part
from reticent.answer.quantile import scores
from reticent.sensitivity.bounds import (
    FINE,
    Global,
    Neighbours,
    additive_bound,
    bound_rank,
    bound_sum,
    within_domains,
)

DOMAINS = 3
Record = tuple[int, int]
"""A domain, and a value."""
Rows = tuple[Record, ...]


def records(low: int, high: int) -> list[Record]:
    return list(product(range(DOMAINS), range(low, high + 1)))


def pairs(kinds: list[Record], neighbours: Neighbours) -> Iterator[tuple[Rows, Rows]]:
    """A respondent's records before and after, with two others who stay: all of them."""
    owned = [
        rows for size in range(neighbours.records + 1) for rows in combinations_with_replacement(kinds, size)
    ]
    others: list[Rows] = [(), (kinds[0], kinds[-1])]
    for mine, theirs in product(owned, owned):
        if neighbours.replaced or not mine or not theirs:
            for rest in others:
                yield (*rest, *mine), (*rest, *theirs)


CHANGES = [Neighbours(replaced=replaced, records=records) for replaced in (False, True) for records in (1, 2)]
single = pytest.mark.parametrize("neighbours", CHANGES, ids=str)


def sums(rows: Rows) -> list[int]:
    return [sum(value for domain, value in rows if domain == j) for j in range(DOMAINS)]


def moved(kinds: list[Record], neighbours: Neighbours) -> int:
    """The most that all sums together move."""
    return max(
        sum(abs(a - b) for a, b in zip(sums(one), sums(other), strict=True))
        for one, other in pairs(kinds, neighbours)
    )


@single
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (1, 3), (-2, -1)])
def test_sums_over_all_domains_stay_within_the_bound_and_attain_it(neighbours, low, high):
    bound = bound_sum(low, high, neighbours=within_domains(neighbours)).bound
    assert moved(records(low, high), neighbours) == bound


def test_the_bound_of_a_single_sum_is_too_small_for_domains():
    """Replaced answers leave one domain for another: 2h, where one sum of [0, h] moves by h."""
    replaced = Neighbours(replaced=True)
    assert moved(records(0, 2), replaced) > bound_sum(0, 2, neighbours=replaced).bound


def ranked(rows: Rows, at: Fraction, shift: int) -> list[list[int]]:
    """The scores of every candidate, in each domain."""
    cells = [tuple(sum(r == (j, v) for r in rows) for v in range(3)) for j in range(DOMAINS)]
    return [scores(each, at, shift) for each in cells]


def lost(one: Rows, other: Rows, at: Fraction, shift: int) -> int:
    """The largest move of a score in each domain, added: what choices at one rate lose together."""
    return sum(
        max(abs(a - b) for a, b in zip(here, there, strict=True))
        for here, there in zip(ranked(one, at, shift), ranked(other, at, shift), strict=True)
    )


@single
@pytest.mark.parametrize("at", [Fraction(1, 2), Fraction(1, 3), Fraction(3, 4)], ids=str)
@pytest.mark.parametrize("shift", [0, 2, -2])
def test_ranks_over_all_domains_stay_within_the_bound(neighbours, at, shift):
    bound = bound_rank(at, 1, neighbours=within_domains(neighbours)).bound
    worst = max(lost(one, other, at, shift) for one, other in pairs(records(0, 2), neighbours))
    assert worst <= bound and (shift or worst == bound)


def test_the_bound_of_a_single_rank_is_too_small_for_domains():
    """At 1/3: 2 max(a, b - a) = 4, where one choice moves by b = 3."""
    at, replaced = Fraction(1, 3), Neighbours(replaced=True)
    worst = max(lost(one, other, at, 0) for one, other in pairs(records(0, 2), replaced))
    assert worst == 4 > bound_rank(at, 1, neighbours=replaced).bound


Bounding = Callable[[Global, int], Global]


def as_it_is(bound: Global, _: int) -> Global:
    """The naive twin: coarser steps as for a single sum."""
    return bound


def additive(bound: Global, count: int) -> Global:
    return additive_bound(bound, records=count, fine=FINE)


def is_covered(bounding: Bounding, each: int, count: int) -> bool:
    """Whether `count` records that move one domain each, rounded to coarser steps, stay within what the noise hides."""
    bound = bounding(Global(bound=Fraction(each * count)), count)
    part = plan_part("sum", bound=bound, grid=Fraction(1), epsilon=Fraction(1))
    hidden = ceil(bound.bound / part.unit)
    return all(r * ceil(each / part.unit) * count <= r * hidden for r in range(1, count + 1))


EACH = [2**19, 2**19 + 1, 2**20 - 1, 2**20 + 3, 3 * 2**21 + 1, 10**9 + 7, 10**12]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 10, 1000])
def test_records_in_different_domains_are_covered_after_rounding(count):
    assert all(is_covered(additive, each, count) for each in [1, 5, *EACH])


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_sum_apart_has_the_bound_that_is_shared_out_evenly(count):
    """So whoever asks for the bound of a sum in a domain has it, by whatever door."""
    neighbours = within_domains(Neighbours(records=count))
    for each in EACH:
        bound = bound_sum(0, each, neighbours=neighbours)
        assert bound == additive(Global(bound=Fraction(each * count)), count)


def test_rounding_all_records_at_once_does_not_cover_them():
    assert not all(is_covered(as_it_is, each, 2) for each in EACH)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_bound_grows_by_less_than_a_step_for_each_record(count):
    """Nothing is added where steps are not coarser, nor for a respondent of one record who comes or goes by more."""
    assert additive(Global(bound=Fraction(5 * count)), count).bound == 5 * count
    for each in EACH:
        bound = additive(Global(bound=Fraction(each * count)), count)
        step = plan_part("sum", bound=bound, grid=Fraction(1), epsilon=Fraction(1)).unit
        assert 0 <= bound.bound - each * count < step * count
