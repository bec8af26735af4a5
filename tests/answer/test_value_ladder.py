"""Quantiles of what the nearest donors fill, by brute force: all neighbours of small tables, donors taken literally."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil, log
from random import Random
from typing import Any

import numpy as np
import pytest

from reticent.answer.expect import LEAST_RANKS
from reticent.answer.quantile import slack
from reticent.answer.value_ladder import LengthRoute
from reticent.engine.wants import (
    NOBODY_SERVES,
    NOT_COUNTED,
    Blocks,
    BlockTable,
    Ring,
    Rows,
    SufficientStatistics,
    Sum,
    Table,
    Tallies,
)
from reticent.errors import PlanError
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from reticent.schema.bind import MISSING, Absent
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.value_ladder import Gains, RankLengths, length_scores
from tests.answer.donating import CIRCLE, Labels, World, cell, place, summed
from tests.answer.test_imputed import COLUMNS, Prescribed, faults, people
from tests.doubles import ZeroNoise
from tests.tables import ADD, REPLACE, _counts, _place, _table, book, make_plan

QUERIES: list[dict[str, Any]] = [
    {"median": "y", "step": "1"},
    {"quantile": "y", "at": "0.25", "step": "1", "weight": "w"},
    {"quantile": "y", "at": "0.9", "step": "1", "where": "u = 'in'"},
    {"median": "y", "step": "1", "where": "y >= 0", "weight": "w"},
    {"median": "v", "step": "1", "where": "y > 0 or u = 'out'"},
]
DONORS = [{"method": "donors", "bound": "hubs", "column": "y", "match": ["g"], "default": 0}]
BOOK = {**COLUMNS, "v": {"kind": "integer", "bounds": [0, 3]}}


def crowd(seed: int, size: int) -> list[dict[str, int | None]]:
    """Few groups, some of them without a donor."""
    dice = Random(seed)
    return [{**each, "v": dice.choice([0, 1, 3])} for each in people(seed, size)]


def plan_of(
    change: str = ADD, *, bar: str = "1", queries: Sequence[dict[str, Any]] = QUERIES, **options: Any
) -> Plan:
    bars = {i: {"interval": {"epsilon": bar}} for i in range(len(queries))} if bar else {}
    return make_plan(
        list(queries), book(BOOK), epsilon="2", asks=bars, repair=DONORS, change=change, **options
    )


class Blocked(World):
    """The same world, which also hands over tables and blocks."""

    def tallies(self, labels: Labels, *, among: Any = None) -> Tallies:
        wants, given, filled = wants_of(self.plan), self.given(labels), self.filled(labels)
        tables = {
            want: _table(want, list(filled.values()), self.plan.schema)
            for want in wants
            if isinstance(want, Table)
        }
        blocks = {want: self.blocks(want, given, filled) for want in wants if isinstance(want, Blocks)}
        sums = {want: summed(want, filled.values()) for want in wants if isinstance(want, Sum)}
        return Tallies(statistics=SufficientStatistics(sums=sums), tables=tables, blocks=blocks)

    def blocks(self, want: Blocks, given: Any, filled: Any) -> BlockTable:
        """Each recipient by itself: its donor, if that is of its cell, and where it is counted."""
        donors, schema = self.plan.repair.of(want.ring.column), self.plan.schema
        lines = []
        for x, own in given.items():
            if own[want.ring.column] is not MISSING or not _counts(want.ring.rows, own):
                continue
            at = cell(donors, own, schema)
            able = [
                t
                for t, cells in given.items()
                if not isinstance(cells[want.ring.column], Absent) and cell(donors, cells, schema) == at
            ]
            first = min(able, key=lambda t: ((place(t) - place(x)) % CIRCLE, t), default=NOBODY_SERVES)
            counted = _counts(want.rows, filled[x])
            place_ = next((_place(key, filled[x][key.column], schema) for key in want.keys if counted), 0)
            weight = int(own[want.weight]) if want.weight else 1
            lines.append((first, place_ if counted else NOT_COUNTED, weight))
        columns = [np.array(each, np.int64) for each in zip(*lines, strict=True)] or [
            np.zeros(0, np.int64)
        ] * 3
        return BlockTable(want=want, block=columns[0], cell=columns[1], weight=columns[2])


def lengths_of(world: Blocked, labels: Labels, ladder: type[RankLengths]) -> list[int]:
    """All lengths of all queries."""
    tallies, found = world.tallies(labels), list[int]()
    for route in world.plan.routes:
        assert isinstance(route, LengthRoute)
        cells = tallies.tables[route.query.table(world.plan.schema)].cells
        held = tallies.blocks[route._blocks]
        made = ladder(cells, held, route.query.at, heaviest=3 if route.query.weight else 1)
        found += [step for at in range(len(cells) + 1) for step in made.at(at)]
    return found


def farthest(ladder: type[RankLengths], worlds: int = 4, size: int = 8) -> int:
    """How far any length moves between neighbours: every table of so many people, and everybody who may leave it."""
    most = 0
    for seed in range(worlds):
        world = Blocked(plan=plan_of(), people=crowd(seed, size))
        tables = [some for k in range(size + 1) for some in combinations(range(size), k)]
        known = {labels: lengths_of(world, labels, ladder) for labels in tables}
        for labels in tables:
            for gone in labels:
                two = known[tuple(label for label in labels if label != gone)]
                most = max(most, *(abs(a - b) for a, b in zip(known[labels], two, strict=True)))
    return most


# covers T08
def test_no_length_moves_by_more_than_one():
    """Exhaustive: every table of eight people in four worlds and every neighbour; weights, filled members, and a column that
    nobody fills where who counts was filled."""
    assert farthest(RankLengths) == 1


class AllRecipients(RankLengths):
    """The twin: every recipient of a block as if it had everything to gain."""

    def gains(self, place: int, *, upwards: bool) -> Gains:
        gain = self._weight * self._b
        blocks = np.add.reduceat(gain[self._visits :], self._starts) if len(self._starts) else gain[:0]
        return Gains(
            blocks=np.cumsum(np.sort(blocks)[::-1]), visitors=int(gain[: self._visits].sum()), own=self._own
        )


class NoVisitors(RankLengths):
    """The twin: as if a newcomer drew nobody from afar."""

    def gains(self, place: int, *, upwards: bool) -> Gains:
        found = super().gains(place, upwards=upwards)
        return Gains(blocks=found.blocks, visitors=0, own=self._own)


class LargestSteps(RankLengths):
    """The twin: k times what one respondent can move now, in place of the k largest gains."""

    def gains(self, place: int, *, upwards: bool) -> Gains:
        found = super().gains(place, upwards=upwards)
        first = int(found.blocks[0]) + found.visitors if len(found.blocks) else found.visitors
        return Gains(blocks=first * np.arange(1, 40), visitors=0, own=self._own)


@pytest.mark.parametrize("twin", [AllRecipients, NoVisitors, LargestSteps])
def test_lengths_by_other_ladders_are_found_out(twin: type[RankLengths]):
    """THEORY 12.3: only gains of current values count, with visitors, block by block."""
    assert farthest(twin) > 1


def test_vectors():
    """A median over three blocks of 6, 3 and 1 at once above it, own rows worth 1, no visitors: by hand.

    Below a candidate stand 2 of 12 respondents: 2 x 2 - 12 = -8. Blocks of six, three and one recipient above it gain 12, 6
    and 2. One step adds 1 + 12 and is past zero. Above: 2 x 11 - 12 = 10; those below have 12, 6 and 2 to lose.
    """
    held = blocks_of([(0, 1, 6), (1, 1, 3), (2, 1, 1)])
    low = RankLengths([2, 10], held, Fraction(1, 2), heaviest=1)
    assert [low.at(place) for place in range(3)] == [(0, 1), (0, 1), (1, 0)]
    calm = RankLengths([2, 10], blocks_of([]), Fraction(1, 2), heaviest=1)
    assert [calm.at(place) for place in range(3)] == [(-12, 12), (-8, 8), (12, -12)]
    afar = RankLengths([2, 10], blocks_of([(NOBODY_SERVES, 1, 3), (0, 1, 1)]), Fraction(1, 2), heaviest=1)
    # One step: 1 + 2 + 6 = 9, past 8; of 12 it leaves 3, and three more rows make it 12.
    assert [afar.at(place) for place in range(3)] == [(-4, 4), (0, 1), (4, -4)]
    assert length_scores(afar, 2) == [-1, 0]


def blocks_of(lines: list[tuple[int, int, int]]) -> BlockTable:
    want = Blocks(ring=Ring(column="y", rows=Rows()), rows=Rows(), keys=())
    columns = np.array(lines, np.int64).reshape(-1, 3).T
    return BlockTable(want=want, block=columns[0], cell=columns[1], weight=columns[2])


@pytest.mark.parametrize("top", [1, 2**45, 2**70])
def test_weights_of_any_size_are_added_exactly(top: int):
    """Past 64 bits in numbers of any size; lengths do not change when everything is so many times as heavy."""
    dice = Random(5)
    lines = [(dice.randint(-1, 4), dice.randint(-1, 3), dice.randint(1, 5)) for _ in range(30)]
    cells = [dice.randint(3, 20) for _ in range(4)]
    one = RankLengths(cells, blocks_of(lines), Fraction(1, 3), heaviest=5)
    held = blocks_of(lines)
    object.__setattr__(held, "weight", held.weight.astype(object) * top)
    many = RankLengths([cell * top for cell in cells], held, Fraction(1, 3), heaviest=5 * top)
    assert [one.at(i) for i in range(5)] == [many.at(i) for i in range(5)]


# covers T08 T20
@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_every_neighbour_is_within_the_public_sensitivity(change: str, unit: str):
    """Scores of the answer and of both ends of its interval, by the noise that the plan runs."""
    plan = plan_of(change) if unit == "epsilon" else plan_of(change, in_rho=True)
    world = Blocked(plan=plan, people=crowd(7, 10))
    known: dict[Labels, Any] = {}
    dice = Random(3)
    for size in (4, 7):
        for _ in range(4):
            table = tuple(sorted(dice.sample(range(10), size)))
            for other in world.neighbours(table):
                for labels in (table, other):
                    if labels not in known:
                        noise = Prescribed(0)
                        evaluate(plan, world.tallies(labels), noise)
                        known[labels] = noise.calls
                assert not faults(known[table], known[other])
    calls = next(iter(known.values()))
    assert len(calls) == 3 * len(QUERIES)
    assert {call.sensitivity for call in calls} == {2 if change == REPLACE else 1}


def test_without_noise_it_is_the_quantile_of_the_filled_rows():
    """The best score is 0, at a candidate whose rank is the wanted one; ends lie around it."""
    world = Blocked(plan=plan_of(), people=crowd(2, 13))
    labels = tuple(range(13))
    answers = evaluate(world.plan, world.tallies(labels), ZeroNoise())
    filled = world.filled(labels).values()
    values = sorted(int(cells["y"]) for cells in filled if not isinstance(cells["y"], Absent))
    (estimate,) = answers["ask 0"].estimates
    below, upto = (sum(v < estimate.value for v in values), sum(v <= estimate.value for v in values))
    assert 2 * below <= len(values) <= 2 * upto
    low, high = estimate.interval(Fraction(95, 100))
    assert low <= estimate.value <= high and estimate.interval(Fraction(99, 100)) == (-1, 3)


@pytest.mark.parametrize("seed", range(6))
def test_some_candidate_always_scores_nothing_and_ends_lie_outside(seed: int):
    """For any shift: what the interval's proof needs of lengths that are not each other's negatives."""
    dice = Random(seed)
    cells = [dice.choice([0, 0, 1, 5, 30]) for _ in range(8)]
    lines = [(dice.randint(-1, 6), dice.randrange(8), dice.randint(1, 4)) for _ in range(20)]
    at = dice.choice([Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
    lengths = RankLengths(cells, blocks_of(lines), at, heaviest=4)
    exact = [i for i, score in enumerate(length_scores(lengths, 8)) if score == 0]
    assert exact
    for shift in range(1, 60):
        lower, upper = length_scores(lengths, 8, shift), length_scores(lengths, 8, -shift)
        assert max(lower) == 0 == max(upper)
        near = [i - 1 for i, score in enumerate(lower) if score > -shift]
        assert all(i <= min(exact) or i < 0 for i in near)
        assert all(i >= max(exact) for i, score in enumerate(upper) if score > -shift)


def test_intervals_cover():
    """600 draws at 90 % on a survey of 400; fewer than 500 have chance below 1e-6."""
    dice = Random(11)
    lines = [(block, dice.randrange(40), 1) for block in range(60) for _ in range(dice.randint(1, 3))]
    cells = [0] * 40
    for _, cell_, weight in lines:
        cells[cell_] += weight
    for _ in range(400):
        cells[dice.randrange(40)] += 1
    lengths = RankLengths(cells, blocks_of(lines), Fraction(1, 2), heaviest=1)
    exact = [i for i, score in enumerate(length_scores(lengths, 40)) if score == 0]
    end, level = Fraction(1, 4), Fraction(9, 10)
    reach = slack(41, bound=Global(bound=Fraction(1)), epsilon=end, chance=(1 - level) / 2)
    noise, held = SystemNoise(), 0
    lower, upper = length_scores(lengths, 40, reach), length_scores(lengths, 40, -reach)
    for _ in range(600):
        low = noise.select(lower, sensitivity=1, epsilon=end) - 1
        high = noise.select(upper, sensitivity=1, epsilon=end)
        held += low <= exact[0] and high >= exact[-1]
    assert held >= 500


REFUSED = {
    "two filled columns": (
        [*DONORS, {**DONORS[0], "column": "z"}],
        {"median": "y", "step": "1", "where": "z > 0"},
        "y and z",
    ),
    "averages": ([{**DONORS[0], "k": 3}], {"median": "y", "step": "1"}, "k = 1"),
    "another bound": ([{**DONORS[0], "bound": "newcomer"}], {"median": "y", "step": "1"}, "bound = 'hubs'"),
    "by": (DONORS, {"median": "y", "step": "1", "by": ["u"]}, "by|domain"),
    "silence": (DONORS, {"median": "v", "step": "1", "where": "y is missing"}, "after the repair"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_theorem_does_not_cover_is_refused_before_the_charge(name: str):
    repair, query, words = REFUSED[name]
    with pytest.raises(PlanError, match=words):
        wants_of(make_plan([query], book(BOOK), epsilon="1", repair=repair))


def test_a_preview_says_the_floor_and_what_is_confidential():
    """Nobody missing: ceil(2 ln(5/.05)) + 1 = 11 steps of half a respondent's weight in ranks of 1/2."""
    plan = plan_of(bar="", queries=[QUERIES[0]])
    (route,) = plan.routes
    found = route.expect()
    assert found.how == LEAST_RANKS and found.margin == Fraction(ceil(2 * log(5 / 0.05) / 2) + 1, 2)
    answers = evaluate(plan, Blocked(plan=plan, people=crowd(1, 6)).tallies(tuple(range(6))), ZeroNoise())
    assert "confidential" in answers["ask 0"].meaning and not answers["ask 0"].estimates[0].has_interval
