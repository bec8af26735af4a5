"""Design-based errors: no neighbour of a small survey moves them further than the bound; the naive ways move them far."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import sqrt

import numpy as np
import pytest

from reticent.errors import PlanError, SchemaError
from reticent.prepare.units import SamplingUnits
from reticent.schema.replicates import replicate_factors
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.design import (
    Residual,
    bound_error,
    bound_paired,
    joined_strata,
    paired_total,
    replicate_error,
    unit_error,
)

# A record: its unit (None: not known), its weight, and the answers to two items (None: no answer).
Record = tuple[int | None, int, int | None, int | None]
UNITS = SamplingUnits(columns=("u",), strata=(0, 0, 1, 1, 2), cells=tuple(range(5)), name="tiny")
RECORDS: list[Record] = [
    *product((0, 1, 4), (2,), (0, 1), (1, None)),
    (2, 1, 1, 0),
    (3, 2, None, 1),
    (None, 2, 1, 1),
    (0, 0, 1, 1),
]
ITEMS = (
    Residual(low=0, high=1, about=3, fine=8, heaviest=2, times=5),
    Residual(low=0, high=1, about=7, fine=8, heaviest=2, times=2),
)
CHANGES = [Neighbours(), Neighbours(replaced=True), Neighbours(records=2)]


def surveys(size: int = 3) -> Iterator[tuple[int, ...]]:
    for n in range(size + 1):
        yield from combinations_with_replacement(range(len(RECORDS)), n)


def sums_of(survey: tuple[int, ...], item: int) -> np.ndarray:
    totals, sizes = [0] * 5, [0] * 5
    for number in survey:
        unit, weight, *answers = RECORDS[number]
        answer = answers[item]
        if unit is not None and answer is not None:
            totals[unit] += weight * answer
            sizes[unit] += weight
    return ITEMS[item].of(totals, sizes)


def paired(survey: tuple[int, ...]) -> int:
    group, sign = UNITS.dealt(2)
    return paired_total(ITEMS, [sums_of(survey, j) for j in range(2)], group=group, sign=sign)


def error(survey: tuple[int, ...]) -> int:
    return unit_error(sums_of(survey, 0), joined_strata(UNITS.strata))


def neighbours_of(survey: tuple[int, ...], change: Neighbours) -> Iterator[tuple[int, ...]]:
    """One respondent leaves (as many records as they may own), or is exchanged for another."""
    for place in range(len(survey)):
        rest = survey[:place] + survey[place + 1 :]
        if change.replaced:
            yield from ((*rest, other) for other in range(len(RECORDS)))
        elif change.records == 2:
            yield from (rest[:other] + rest[other + 1 :] for other in range(len(rest)))
        yield rest


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("found, items", [(paired, ITEMS), (error, ITEMS[:1])], ids=["paired", "error"])
def test_no_neighbour_moves_it_further_than_its_bound(
    change: Neighbours, found: Callable[[tuple[int, ...]], int], items: tuple[Residual, ...]
) -> None:
    """All surveys of up to three records out of sixteen, all of their neighbours."""
    if found is paired:
        bound = bound_paired(items, neighbours=change).bound
    else:
        bound = bound_error(Residual(low=0, high=1, about=3, fine=8, heaviest=2), neighbours=change).bound
    moved = max(abs(found(one) - found(two)) for one in surveys() for two in neighbours_of(one, change))
    assert moved <= bound


def test_the_bound_of_a_pooled_sum_is_attained() -> None:
    """With one record: it moves both items as far as they go."""
    alone = Residual(low=0, high=1, about=2, fine=8, heaviest=3, times=4)
    group, sign = UNITS.dealt(2)
    sums = alone.of([3, 0, 0, 0, 0], [3, 0, 0, 0, 0])
    there = paired_total([alone], [sums], group=group, sign=sign)
    assert there == bound_paired([alone], neighbours=Neighbours()).bound == 4 * 3 * 6


def test_a_naive_pooling_of_squares_moves_further() -> None:
    """Squares in place of absolute values: the bound that holds for these does not hold for them."""
    group, sign = UNITS.dealt(2)
    alone = Residual(low=0, high=1, about=0, fine=8)

    def squares(count: int) -> int:
        held = np.zeros(2, dtype=object)
        np.add.at(held, group, alone.of([count, 0, 0, 0, 0], [count, 0, 0, 0, 0]) * sign)
        return sum(int(each) ** 2 for each in held)

    assert squares(9) - squares(8) > bound_paired([alone], neighbours=Neighbours()).bound


def test_observed_numbers_of_units_jump() -> None:
    """THEORY 13.1: with n_h counted in the rows the error leaps from 0 on one small record; with n_h declared it creeps."""
    fifty = [100_000] * 50

    def observed(values: list[int]) -> float:
        held = [each for each in values if each]
        n = len(held)
        return 0.0 if n < 2 else sqrt((n * sum(v * v for v in held) - sum(held) ** 2) / (n - 1))

    before, after = observed([5000, 0]), observed([5000, 1])
    assert before == 0 and after > 4990
    declared = [unit_error(np.array([5000, last], dtype=object), (0, 0)) for last in (0, 1)]
    assert abs(declared[1] - declared[0]) <= 1
    assert unit_error(np.array(fifty, dtype=object), (0,) * 50) == 0


def test_a_textbook_standard_error() -> None:
    """Two strata, by hand: 2/1 (1 + 1) + 3/2 (4 + 0 + 4) = 16."""
    sums = np.array([3, 5, 1, 3, 5], dtype=object)
    assert unit_error(sums, (0, 0, 1, 1, 1)) == 4
    with pytest.raises(PlanError, match="one unit"):
        unit_error(sums, (0, 1, 1, 1, 1))


@pytest.mark.parametrize("method", ["brr", "fay", "jk1", "sdr"])
def test_a_records_own_replicates_have_length_one(method: str) -> None:
    """Sum of c_r eta_r^2 is 1 for each method, as its replicate weights are made (THEORY 13.1)."""
    hadamard = np.array([[1]])
    for _ in range(3):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    size, fay = len(hadamard), Fraction(3, 10)
    factors = replicate_factors(method, size, fay=fay if method == "fay" else Fraction(0))
    rows = [Fraction(int(each)) for each in hadamard[3]]
    etas = {
        "brr": rows,
        "fay": [(1 - fay) * each for each in rows],
        "jk1": [Fraction(-1), *[Fraction(1, size - 1)] * (size - 1)],
    }
    if method == "sdr":
        # 1 + 2^-3/2 (a - b) with rows a, b of the matrix: eta^2 = (a - b)^2/8.
        squares = [Fraction(int(a - b) ** 2, 8) for a, b in zip(hadamard[2], hadamard[3], strict=True)]
    else:
        squares = [each * each for each in etas[method]]
    assert sum(factor * each for factor, each in zip(factors, squares, strict=True)) == 1


def test_a_clamp_on_factors_leaves_far_more() -> None:
    """THEORY 13.1: |eta| <= 1 with the jackknife of 100 allows 9.95; scaling holds it to 1."""
    factors = replicate_factors("jk1", 100)
    clamped = replicate_error([1000] * 100, factors)
    assert clamped > 9.9 * 1000
    assert bound_error(Residual(low=0, high=1000), neighbours=Neighbours()).bound == 1000


def test_a_record_moves_a_replicate_error_by_its_own_length() -> None:
    """Exhaustive over small sums of deviations: |root - root'| <= ceil(length of the record's own)."""
    factors = replicate_factors("brr", 4)
    for held in product((-7, -2, 0, 3, 9), repeat=4):
        for signs in ((1, 1, 1, 1), (1, -1, 1, -1), (-1, -1, 1, 1)):
            moved = [each + 5 * sign for each, sign in zip(held, signs, strict=True)]
            assert abs(replicate_error(moved, factors) - replicate_error(held, factors)) <= 5


@pytest.mark.parametrize(
    "method, replicates, more, says",
    [
        ("boot", 10, {}, "is one of"),
        ("brr", 1, {}, "at least 2"),
        ("jkn", 4, {}, "one factor for each"),
        ("brr", 2, {"declared": [Fraction(1), Fraction(1)]}, "and none else"),
        ("jkn", 2, {"declared": [Fraction(3, 2), Fraction(1)]}, "at most 1"),
        ("fay", 4, {}, "Fay"),
        ("brr", 4, {"fay": Fraction(1, 2)}, "Fay"),
    ],
)
def test_bad_replicates_are_refused(method: str, replicates: int, more: dict[str, object], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        replicate_factors(method, replicates, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "strata", [(0, 1, 1), (0, 0, 1), (0, 1, 2), (0, 1, 1, 2), (0, 0, 1, 1), (5, 5, 7, 9, 9), (0, 1, 2, 3, 3)]
)
def test_joined_strata_have_no_single_unit(strata: tuple[int, ...]) -> None:
    joined = joined_strata(strata)
    assert all(joined.count(each) > 1 for each in joined)
    assert all(b - a in (0, 1) for a, b in pairwise(joined))
