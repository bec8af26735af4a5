"""Counts of what the nearest donors fill by value ladders, by brute force: all neighbours of small tables, exact probabilities."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil, exp, log, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest

from reticent.answer.expect import LEAST_STEPS
from reticent.answer.length_count import LengthCountRoute, Steps, end_scores
from reticent.answer.parts import UNBOUNDED
from reticent.engine.wants import NOBODY_SERVES, NOT_COUNTED, Tallies
from reticent.errors import PlanError
from reticent.noise.selection import _geometric, exponential_around
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.preview.preview import expectations
from reticent.release.statistics import evaluate, wants_of
from reticent.sensitivity.value_ladder import CountLengths, Gains, RankLengths
from tests.answer.donating import Labels
from tests.answer.test_imputed import Prescribed, faults
from tests.answer.test_value_ladder import (
    BOOK,
    DONORS,
    AllRecipients,
    Blocked,
    LargestSteps,
    NoVisitors,
    blocks_of,
    crowd,
)
from tests.doubles import ZeroNoise
from tests.noise.seeded import SeededBits
from tests.tables import ADD, REPLACE, book, make_plan

QUERIES: list[dict[str, Any]] = [
    {"count": "*", "where": "y > 0"},
    {"count": "*", "where": "y > 0", "weight": "w"},
    {"count": "*", "where": "not (y = 3) and u = 'in'"},
    {"count": "*", "where": "y >= 0 and v > 0", "weight": "w"},
    {"count": "*", "where": "y > 0 or u = 'out'"},
]
NUMBERS = range(-20, 40)
LADDER = {"noise": "ladder"}


def plan_of(change: str = ADD, *, bar: str = "", epsilon: str = "2", **options: Any) -> Plan:
    ask = {**LADDER, **({"interval": {"epsilon": bar}} if bar else {})}
    asks = dict.fromkeys(range(len(QUERIES)), ask)
    expected = {"expect": {"rows": 20}}
    return make_plan(
        QUERIES, book(BOOK), epsilon=epsilon, asks=asks, repair=DONORS, change=change, **expected, **options
    )


@cache
def tallied(seed: int, size: int = 7) -> tuple[Blocked, dict[Labels, Tallies]]:
    """Every table of so many people, donors taken literally."""
    world = Blocked(plan=plan_of(), people=crowd(seed, size))
    tables = [some for k in range(size + 1) for some in combinations(range(size), k)]
    return world, {labels: world.tallies(labels) for labels in tables}


@dataclass(frozen=True)
class Known:
    """What one table says of one query: for every number steps, below and above; and the ladder they come from."""

    lengths: CountLengths
    at: Any

    def whole(self, q: Fraction) -> Fraction:
        return whole(self.lengths, q)


def known(ladder: type[RankLengths], seed: int) -> dict[Labels, list[Known]]:
    world, tables = tallied(seed)
    return {labels: [*_known(world, tallies, ladder)] for labels, tallies in tables.items()}


def _known(world: Blocked, tallies: Tallies, ladder: type[RankLengths]) -> Iterator[Known]:
    for route in world.plan.routes:
        assert isinstance(route, LengthCountRoute)
        exact = tallies.statistics[route._members]
        held = tallies.blocks[route._blocks]
        made = CountLengths(exact, held, heaviest=3 if route.query.weight else 1, ladder=ladder)
        found = [[way(number) for number in NUMBERS] for way in (made.steps, made.below, made.above)]
        yield Known(lengths=made, at=np.array(found))


def pairs(ladder: type[RankLengths]) -> Iterator[tuple[Known, Known]]:
    """Every table of seven people in three worlds, and what is left without anybody of them, query by query."""
    for seed in range(3):
        found = known(ladder, seed)
        for labels, here in found.items():
            for gone in labels:
                yield from zip(here, found[tuple(label for label in labels if label != gone)], strict=True)


def farthest(ladder: type[RankLengths]) -> int:
    """How far any length of any number moves between neighbours."""
    return max(int(np.abs(one.at - other.at).max()) for one, other in pairs(ladder))


# covers T08
def test_no_length_moves_by_more_than_one():
    """Exhaustive: every table of seven people in three worlds and every neighbour; with weights, by the value or beside others."""
    assert farthest(RankLengths) == 1


TWINS = [AllRecipients, NoVisitors, LargestSteps]


@pytest.mark.parametrize("twin", TWINS)
def test_lengths_by_other_ladders_are_found_out(twin: type[RankLengths]):
    """THEORY 12.3: only what recipients have to gain now counts, with visitors, block by block."""
    assert farthest(twin) > 1


def whole(lengths: CountLengths, q: Fraction) -> Fraction:
    """The sum of q^steps over all whole numbers: level by level, and a geometric series where only own rows are left."""
    up, down = lengths.up, lengths.down
    last = max(len(up.held), len(down.held)) + 1
    sizes = [sum(way.upto(k) - way.upto(k - 1) for way in (up, down)) for k in range(1, last + 1)]
    tail = q ** (last + 1) / (1 - q) * 2 * up.own
    return 1 + sum((size * q**k for k, size in enumerate(sizes, 1)), Fraction(0)) + tail


def worst(ladder: type[RankLengths], q: Fraction) -> Fraction:
    """The largest exact ratio of probabilities of one number between neighbours, q = exp(-epsilon/2)."""
    most = Fraction(1)
    for one, other in pairs(ladder):
        ratio = one.whole(q) / other.whole(q)
        more, fewer = int((one.at[0] - other.at[0]).max()), int((one.at[0] - other.at[0]).min())
        most = max(most, ratio / q**more, 1 / ratio / q**-fewer)
    return most


# covers T08
@pytest.mark.parametrize("q", [Fraction(99, 100), Fraction(3, 5), Fraction(1, 20)])
def test_probabilities_of_neighbours_are_within_epsilon(q: Fraction):
    """Exhaustive, exact: at epsilon 0.02, 1 and 6, every number of every table and every neighbour."""
    assert 1 < worst(RankLengths, q) <= 1 / q**2


@pytest.mark.parametrize("twin", TWINS)
def test_probabilities_by_other_ladders_are_not(twin: type[RankLengths]):
    """At an epsilon of 6 their ratios pass e^6."""
    q = Fraction(1, 20)
    assert worst(twin, q) > 1 / q**2


def test_vectors():
    """Four members in blocks of 3 and 1 with two who are none, and one visitor who is none: by hand.

    One step adds 1 + 2 + 1 (own row, the block's two, the visitor), and the next 1 for itself. It takes 1 + 3, then 1 + 1.
    """
    held = blocks_of([(0, 0, 3), (0, NOT_COUNTED, 2), (1, 0, 1), (NOBODY_SERVES, NOT_COUNTED, 1)])
    lengths = CountLengths(10, held, heaviest=1)
    assert [lengths.up.upto(k) for k in range(5)] == [0, 4, 5, 6, 7]
    assert [lengths.down.upto(k) for k in range(5)] == [0, 4, 6, 7, 8]
    assert [lengths.steps(x) for x in range(2, 18)] == [4, 3, 2, 2, 1, 1, 1, 1, 0, 1, 1, 1, 1, 2, 3, 4]
    assert [lengths.below(x) for x in (6, 9, 10, 13, 14, 15)] == [1, 1, 0, 0, -1, -2]
    assert [lengths.above(x) for x in (4, 6, 7, 10, 11, 15)] == [-2, -1, 0, 0, 1, 2]


def test_with_nobody_missing_it_is_the_geometric_mechanism_at_half_the_epsilon():
    lengths = CountLengths(7, blocks_of([]), heaviest=2)
    assert [lengths.steps(x) for x in (3, 4, 5, 6, 7, 8, 9, 10, 11)] == [2, 2, 1, 1, 0, 1, 1, 2, 2]


MIXED = [(0, 0, 3), (0, NOT_COUNTED, 2), (1, 0, 1), (2, NOT_COUNTED, 4), (NOBODY_SERVES, NOT_COUNTED, 5)]


def distance(drawn: list[int], lengths: CountLengths, q: float) -> float:
    """The largest gap between the share of draws at or below a number and its probability."""
    size = float(whole(lengths, Fraction(q)))
    numbers = np.arange(-200, 220)
    law = np.cumsum([q ** lengths.steps(int(x)) / size for x in numbers])
    seen = np.searchsorted(np.sort(drawn), numbers, side="right") / len(drawn)
    return float(np.abs(seen - law).max())


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(6)])
def test_numbers_are_drawn_with_the_stated_law_and_no_other(epsilon: Fraction):
    """4,000 draws; a gap of 0.035 has chance below 2e-4 (Massart), and other rates and a lost visitor lie farther off."""
    lengths, bits = CountLengths(10, blocks_of(MIXED), heaviest=1), SeededBits(4)
    drawn = [exponential_around(lengths, sensitivity=1, epsilon=epsilon, bits=bits) for _ in range(4000)]
    q = exp(-float(epsilon) / 2)
    assert distance(drawn, lengths, q) < 0.035
    without = CountLengths(10, blocks_of(MIXED[:-1]), heaviest=1)
    assert distance(drawn, without, q) > 0.035
    assert distance(drawn, lengths, q**1.6) > 0.035 or epsilon > 1  # at 6 nearly all lie within a step


def test_numbers_of_steps_are_geometric():
    """5,000 draws at a rate of 3/7: mean 1/(e^(3/7) - 1) = 1.8687, four standard errors apart 0.131."""
    bits = SeededBits(9)
    mean = np.mean([_geometric(Fraction(3, 7), bits) for _ in range(5000)])
    assert abs(mean - 1 / (exp(3 / 7) - 1)) < 0.131


# covers T08 T20
@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_every_neighbour_is_within_the_public_sensitivity(change: str, unit: str):
    """Steps of the answer and scores of both ends of its interval, by the noise that the plan runs."""
    plan = plan_of(change, bar="1", **({"in_rho": True} if unit == "rho" else {}))
    world = Blocked(plan=plan, people=crowd(7, 10))
    made: dict[Labels, Any] = {}
    dice = Random(3)
    for size in (4, 7):
        for _ in range(4):
            table = tuple(sorted(dice.sample(range(10), size)))
            for other in world.neighbours(table):
                for labels in (table, other):
                    if labels not in made:
                        noise = Prescribed(0)
                        evaluate(plan, world.tallies(labels), noise)
                        made[labels] = noise.calls
                assert not faults(made[table], made[other])
    found = next(iter(made.values()))
    assert len(found) == 3 * len(QUERIES)
    assert {call.sensitivity for call in found} == {2 if change == REPLACE else 1}


def test_without_noise_it_is_the_count_of_the_filled_rows_and_ends_lie_around_it():
    world = Blocked(plan=plan_of(bar="1"), people=crowd(2, 13))
    labels = tuple(range(13))
    answers = evaluate(world.plan, world.tallies(labels), ZeroNoise())
    (estimate,) = answers["ask 0"].estimates
    filled = world.filled(labels).values()
    assert estimate.value == sum(int(cells["y"]) > 0 for cells in filled if not hasattr(cells["y"], "name"))
    low, high = estimate.interval(Fraction(95, 100))
    assert low <= estimate.value <= high
    assert estimate.interval(Fraction(99, 100))[1] > 10**20


@pytest.mark.parametrize("seed", range(6))
def test_some_end_always_scores_nothing_and_those_near_it_lie_outside(seed: int):
    """For any shift, any count, and any candidates: what the interval's proof needs."""
    dice = Random(seed)
    lines = [(dice.randint(-1, 6), dice.choice([0, NOT_COUNTED]), dice.randint(1, 4)) for _ in range(20)]
    lengths = CountLengths(dice.randint(0, 90), blocks_of(lines), heaviest=4)
    values = range(0, dice.choice([60, 100]), dice.choice([1, 7]))
    for shift in range(1, 30):
        lower = end_scores([lengths.below(value) for value in values], shift)
        upper = end_scores([lengths.above(value) for value in reversed(values)], shift)
        assert max(lower) == 0 == max(upper)
        assert len(lower) == len(upper) == len(values) + 1
        for i, value in enumerate(values, 1):
            assert lower[i] <= -shift or value < lengths.count
            assert upper[len(values) + 1 - i] <= -shift or value > lengths.count


def test_intervals_cover():
    """500 releases at 90 % of a count of 250 with 60 busy donors: fewer than 425 hold it with chance below 1e-3 if it covers."""
    dice = Random(11)
    lines = [(block, dice.choice([0, NOT_COUNTED]), dice.randint(1, 3)) for block in range(60)]
    noise, held, count = SystemNoise(), 0, 250
    asks = {0: {**LADDER, "interval": {"epsilon": "1", "level": "0.9"}}}
    plan = make_plan(QUERIES[:1], book(BOOK), epsilon="1", asks=asks, repair=DONORS, expect={"rows": 500})
    (route,) = plan.routes
    assert isinstance(route, LengthCountRoute)
    lengths = CountLengths(count, blocks_of(lines), heaviest=1)

    class Given:
        in_rho = False

    given: Any = Given()
    given.noise = noise
    for _ in range(500):
        low, high = route._interval(lengths, given)
        held += low <= count <= high
    assert held >= 425


REFUSED = {
    "two filled columns": (
        [*DONORS, {**DONORS[0], "column": "z"}],
        {"count": "*", "where": "y > 0 and z > 0"},
        "y and z",
    ),
    "averages": ([{**DONORS[0], "k": 3}], QUERIES[0], "k = 1"),
    "another bound": ([{**DONORS[0], "bound": "newcomer"}], QUERIES[0], "bound = 'hubs'"),
    "capped": ([{k: v for k, v in DONORS[0].items() if k != "bound"}], QUERIES[0], "capped donors"),
    "no filled column": (DONORS, {"count": "*", "where": "v > 0"}, "no donor enters"),
    "by": (DONORS, {**QUERIES[0], "by": ["u"]}, "not by domains"),
    "a mean": (DONORS, {"mean": "y"}, "is for a count"),
    "a share": (DONORS, {"proportion": "y > 0"}, "is for a count"),
    "silence": (DONORS, {"count": "*", "where": "y is missing"}, "no donor enters"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_theorem_does_not_cover_is_refused_before_the_charge(name: str):
    repair, query, words = REFUSED[name]
    with pytest.raises(PlanError, match=words):
        wants_of(make_plan([query], book(BOOK), epsilon="1", repair=repair, asks={0: LADDER}))


def test_another_word_and_an_interval_among_no_numbers_are_refused():
    with pytest.raises(PlanError, match="is 'ladder', or left out"):
        make_plan(QUERIES[:1], book(BOOK), repair=DONORS, asks={0: {"noise": "smooth"}})
    bought = {0: {**LADDER, "interval": {"epsilon": "1"}}}
    with pytest.raises(PlanError, match="expected rows"):
        wants_of(make_plan(QUERIES[:1], book(BOOK), repair=DONORS, asks=bought))


def test_a_ratio_has_an_interval_where_the_count_has_one_at_half_its_chance_of_error():
    """Above its own level a count says nothing, and then neither does the ratio."""
    queries = [QUERIES[0], {"count": "*", "where": "v >= 0"}, {"ratio": ["ask 0", "ask 1"]}]
    for level, is_told in (("0.975", True), ("0.95", False)):
        asks = {0: {**LADDER, "interval": {"epsilon": "9", "level": level}}, 1: {"epsilon": "50"}}
        plan = make_plan(queries, book(BOOK), epsilon="1", asks=asks, repair=DONORS, expect={"rows": 400})
        tallies = Blocked(plan=plan, people=crowd(2, 13)).tallies(tuple(range(13)))
        (ratio,) = evaluate(plan, tallies, ZeroNoise())["ask 2"].estimates
        low, high = ratio.interval(Fraction(95, 100))
        assert (-1 < low <= ratio.value <= high < 20) is is_told
        assert (high >= UNBOUNDED) is not is_told


def exact_sd(lengths: CountLengths, q: float) -> float:
    numbers = np.arange(-4000, 4000)
    weights = np.array([q ** lengths.steps(int(x) + lengths.count) for x in numbers])
    return sqrt(float((weights * numbers**2).sum() / weights.sum()))


def test_a_preview_says_the_floor_and_at_most_what_busier_donors_bring():
    """Nobody missing: discrete Laplace noise of rate epsilon/2, of deviation sqrt(2q)/(1-q), q = e^(-epsilon/2)."""
    plan = plan_of(epsilon="1")
    found = expectations(plan)[0]
    q = exp(-0.5)
    assert found.how == LEAST_STEPS
    assert [each.hub for each in found.assumed] == [0, 5, 20, 100]
    assert found.assumed[0].sd == pytest.approx(sqrt(2 * q) / (1 - q))
    # Beyond k steps lie 2 q^(k+1) / (1 + q) of it: 5 % or less first at k = 6.
    assert found.margin == 6 == ceil(log(0.05 * (1 + q) / 2) / log(q)) - 1
    for hub, assumed in zip((5, 20), found.assumed[1:3], strict=True):
        full = Gains(blocks=np.arange(1, 200) * hub, visitors=0, own=1)
        lengths = CountLengths(0, blocks_of([]), heaviest=1)
        lengths.up = lengths.down = full
        assert assumed.sd == pytest.approx(exact_sd(lengths, q), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_noise_stays_below_what_is_assumed(seed: int):
    """Thirty random blocks of at most five, members or not, nobody from afar."""
    dice = Random(seed)
    lines = [(b, dice.choice([0, NOT_COUNTED]), 1) for b in range(30) for _ in range(dice.randint(0, 5))]
    lengths = CountLengths(200, blocks_of(lines), heaviest=1)
    for rate in (0.05, 0.5, 2.0):
        assert exact_sd(lengths, exp(-rate)) <= Steps(width=6, rate=rate).sd


def test_without_an_interval_nothing_is_told_of_the_noise():
    plan = plan_of()
    answers = evaluate(plan, Blocked(plan=plan, people=crowd(1, 6)).tallies(tuple(range(6))), ZeroNoise())
    (estimate,) = answers["ask 0"].estimates
    assert "confidential" in answers["ask 0"].meaning
    assert not estimate.has_interval and estimate.noise_sd is None
    assert [part.mechanism for part in answers["ask 0"].parts] == ["exponential mechanism"]
