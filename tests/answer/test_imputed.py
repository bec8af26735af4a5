"""Asks on filled columns, by brute force: all neighbours of small tables, donors taken literally."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from math import floor
from random import Random
from statistics import correlation
from typing import Any

import pytest

from reticent.answer.parts import HiddenScale
from reticent.exact import ball
from reticent.noise.calibrate import lomax
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate
from reticent.schema.bind import truth
from reticent.sensitivity.hubs import Hubs
from tests.answer.donating import Labels, World
from tests.doubles import Call, FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, book, make_plan, visible

COLUMNS = {
    "g": {"kind": "categorical", "levels": ["a", "b", "c"]},
    "y": {"kind": "integer", "bounds": [-1, 3], "universe": "u = 'in'"},
    "z": {"kind": "integer", "bounds": [0, 2]},
    "s": {"kind": "categorical", "levels": ["p", "q"]},
    "u": {"kind": "categorical", "levels": ["in", "out"]},
    "w": {"kind": "integer", "bounds": [0, 3], "role": "weight"},
}
QUERIES: list[dict[str, Any]] = [
    {"count": "*", "where": "y > 0"},
    {"count": "*", "where": "not (y > 0 and s = 'p')", "weight": "w"},
    {"total": "y"},
    {"total": "y", "where": "z >= 1", "weight": "w"},
    {"mean": "y", "where": "s = 'p'"},
    {"mean": "z", "where": "y <= 1"},
    {"proportion": "y > 0 or s = 'q'"},
    {"proportion": "z = 1 or y > 0", "where": "s = 'p'"},
    {"variance": "y", "weight": "w"},
    {"correlation": ["y", "z"], "where": "s = 'p'"},
]
NEAREST = [
    {"method": "donors", "bound": "hubs", "column": "y", "match": ["g"], "default": 0},
    {"method": "donors", "bound": "hubs", "columns": ["z", "s"], "match": ["g", "u"]},
]
SEVERAL = [
    {"method": "donors", "bound": "hubs", "column": "y", "match": ["g"], "k": 3, "default": [0, 3, -1]},
    {"method": "donors", "bound": "hubs", "columns": ["s"], "match": ["g"], "k": 2},
    {"method": "donors", "bound": "hubs", "column": "z", "match": ["g"], "k": 2, "default": [0, 2]},
]


def people(seed: int, size: int) -> list[dict[str, int | None]]:
    """Crowded: few groups, much silence, extreme answers."""
    chance = Random(seed)

    def one(codes: list[int], silence: float) -> int | None:
        return None if chance.random() < silence else chance.choice(codes)

    return [
        {
            "g": one([0, 0, 1, 2], 0.1),
            "y": one([-1, 3, 3, 0], 0.5),
            "z": one([0, 2], 0.4),
            "s": one([0, 1], 0.3),
            "u": one([0, 0, 0, 1], 0.1),
            "w": one([0, 1, 3], 0.1),
        }
        for _ in range(size)
    ]


def plan_of(repair: list[dict[str, Any]], *, epsilon: str, bar: str = "", **options: Any) -> Plan:
    codebook = book(COLUMNS, **({"unit": "who", "at_most": 2} if options.pop("owners", False) else {}))
    bars = {i: {"interval": {"epsilon": bar}} for i in range(len(QUERIES))} if bar else {}
    return make_plan(QUERIES, codebook, epsilon=epsilon, asks=bars, repair=repair, **options)


class Prescribed(FrozenNoise):
    """One and the same output for every question, whatever the exact answer."""

    def __init__(self, output: int) -> None:
        super().__init__()
        self.output = output

    def _give(self, call: Call, answers: tuple[int, ...]) -> tuple[int, ...]:
        self.calls.append(call)
        return (self.output,) * len(answers)


def calls(world: World, labels: Labels, output: int, **options: Any) -> list[Call]:
    noise = Prescribed(output)
    evaluate(world.plan, world.tallies(labels, **options), noise)
    return noise.calls


def pairs(world: World, sizes: tuple[int, ...], seed: int) -> Iterator[tuple[Labels, Labels]]:
    """Some tables, and every neighbour of each."""
    chance = Random(seed)
    for size in sizes:
        table = tuple(sorted(chance.sample(range(len(world.people)), size)))
        for other in world.neighbours(table):
            yield table, other


def faults(one: list[Call], other: list[Call]) -> set[str]:
    """What two neighbours' calls have that they must not have."""
    found = set()
    if [call.parameters for call in one] != [call.parameters for call in other]:
        return {"other calls"}
    for a, b in zip(one, other, strict=True):
        if a.distance(b) > min(a.sensitivity, b.sensitivity):
            found.add("moved too far")
        if a.beta and not _drifts(a, b):
            found.add("drifted too far")
    return found


def _drifts(a: Call, b: Call) -> bool:
    wide, narrow = max(a.sensitivity, b.sensitivity), min(a.sensitivity, b.sensitivity)
    return bool(ball(Fraction(wide)) <= ball(Fraction(narrow)) * ball(a.beta).exp())


def all_faults(world: World, *, sizes: tuple[int, ...] = (6, 8), seed: int = 1, **options: Any) -> set[str]:
    found: set[str] = set()
    known: dict[Labels, list[Call]] = {}
    for table, other in pairs(world, sizes, seed):
        for labels in (table, other):
            if labels not in known:
                known[labels] = calls(world, labels, 2, **options)
        found |= faults(known[table], known[other])
    return found


CASES = [
    (NEAREST, "90", "", "hubs"),
    (SEVERAL, "90", "", "hubs"),
    (NEAREST, "8", "1", "hubs"),
    (SEVERAL, "8", "1", "hubs"),
    (NEAREST, "8", "", "newcomer"),
    (SEVERAL, "8", "", "global"),
]


# covers T08 T20
@pytest.mark.parametrize(("repair", "epsilon", "bar", "bound"), CASES)
def test_every_neighbour_is_within_the_smooth_bound_and_the_bound_drifts_slowly(repair, epsilon, bar, bound):
    """At a large epsilon the bound is next to the local one, at a smaller one many rungs decide."""
    repair = [{**each, "bound": bound} for each in repair]
    world = World(plan_of(repair, epsilon=epsilon, bar=bar), people(5, 16))
    assert all_faults(world) == set()


def test_a_bound_from_local_sensitivity_alone_is_found_out(monkeypatch):
    """The twin: the first rung, without those above it."""
    monkeypatch.setattr(Hubs, "serves", lambda self, k: self.reach(self._k0))
    world = World(plan_of(NEAREST, epsilon="8"), people(5, 16))
    assert "drifted too far" in all_faults(world, sizes=(6, 7))


# ---- the other twins, each in a world that is made for it ----

LINE = {
    "x": {"kind": "integer", "bounds": [0, 20]},
    "y": {"kind": "integer", "bounds": [0, 1]},
}


def line_world(query: dict[str, Any], there: list[tuple[int, int | None]], **repair: Any) -> World:
    """People at places of a line, nearest first; all but the last are in the table."""
    donors = [{"method": "donors", "bound": "hubs", "column": "y", "match": ["x"], "default": 0, **repair}]
    plan = make_plan([query], book(LINE), epsilon="90", repair=donors)
    return World(plan, [{"x": x, "y": y} for x, y in there])


def newcomer(world: World, **options: Any) -> set[str]:
    """What happens when the last person comes."""
    table = tuple(range(len(world.people) - 1))
    everybody = tuple(range(len(world.people)))
    return faults(calls(world, table, 2, **options), calls(world, everybody, 2, **options))


def test_recipients_restricted_by_what_was_imputed_are_found_out():
    """The twin: only recipients whose filled answers make them members now. A donor comes and makes them members."""
    world = line_world({"count": "*", "where": "y = 1"}, [(3, None)] * 5 + [(3, 1)])
    where = world.plan.asks[0].query.count(world.plan.schema).rows.where
    assert newcomer(world) == set()
    assert "moved too far" in newcomer(world, among=lambda ring, given, filled: truth(where, filled) is True)


def test_hubs_of_represented_cells_are_found_out(monkeypatch):
    """The twin: a newcomer is looked for only where somebody is already. The one who moves most stands between."""

    def reaches(self: Hubs) -> Iterator[int]:
        held = (self._rings.donors + self._rings.recipients) > 0
        for k in count(self._k0):
            yield int((self._elsewhere(k, 1)[0] + self._rings.recipients)[held].max())

    there = [(8, None), (8, None), (8, None), (12, None), (12, None), (12, None), (5, 0), (15, 0), (10, 1)]
    world = line_world({"count": "*", "where": "y = 1"}, there, bound="newcomer")
    assert newcomer(world) == set()
    monkeypatch.setattr(Hubs, "_reaches", reaches)
    assert "moved too far" in newcomer(world)


def test_a_mean_of_donors_that_forgets_rounding_is_found_out(monkeypatch):
    """The twin: (b - a)/K for a rounded mean. The mean of 0 and 1 is rounded to 1."""
    world = line_world({"total": "y"}, [(3, None)] * 7 + [(3, 1)], k=2)
    assert newcomer(world) == set()
    naive = lambda self, low, high: Fraction(high - low) / self.averaged
    monkeypatch.setattr("reticent.sensitivity.donors.FilledPart.step", naive)
    assert "moved too far" in newcomer(world)


# ---- the finished mechanism ----


def chance(step: int, answer: Fraction, scale: Fraction, m: int) -> Fraction:
    """P(floor(answer + scale X + 1/2) = step), exactly: the tails of Lomax noise are rational."""

    def below(y: Fraction) -> Fraction:
        x = (y - answer) / scale
        return (1 - x) ** -m / 2 if x < 0 else 1 - (1 + x) ** -m / 2

    return below(step + Fraction(1, 2)) - below(step - Fraction(1, 2))


def law(call: Call, step: int) -> Fraction:
    """What the noise gives back with this probability, at its true scale."""
    scale = call.sensitivity / lomax(epsilon=call.epsilon, beta=call.beta)
    return chance(step, Fraction(call.answers[0]), scale, int(call.epsilon / call.beta))


@pytest.mark.parametrize(
    ("change", "steps"), [(ADD, 1), (REPLACE, 2)], ids=["one record", "one record replaced by another"]
)
def test_the_exact_loss_of_the_finished_mechanism_is_at_most_epsilon(change, steps):
    """At the scale that is used, over the steps around the answers and far out. Replacing is two steps."""
    world = World(plan_of(SEVERAL, epsilon="2", change=change), people(5, 16))
    table = (0, 1, 3, 4, 6, 8, 9)
    others = world.neighbours(table) if steps == 1 else exchanged(world, table)[::5]
    worst = 0.0
    here = calls(world, table, 2)
    for other in others:
        for a, b in zip(here, calls(world, other, 2), strict=True):
            if a.kind != "lomax":
                continue
            for step in (-(10**6), -40, -3, 0, 2, int(a.answers[0]), int(b.answers[0]), 60, 10**6):
                loss = law(a, step) / law(b, step)
                assert abs(ball(loss).log()) <= ball(steps * a.epsilon)
                worst = max(worst, abs(float(ball(loss).log())) / float(steps * a.epsilon))
    assert worst > 0.5 / steps


def exchanged(world: World, table: Labels) -> list[Labels]:
    """One record of the table for another, each that there is."""
    return [
        tuple(sorted((*(label for label in table if label != gone), new)))
        for gone in table
        for new in range(len(world.people))
        if new not in table
    ]


def test_the_epsilons_of_all_calls_add_up_to_the_cost():
    """Each record's epsilon times the records that neighbours differ in; bars included."""
    for change, owners, steps in ((ADD, False, 1), (REPLACE, False, 2), (REPLACE, True, 4)):
        plan = plan_of(NEAREST, epsilon="2", bar="0.5", change=change, owners=owners)
        world = World(plan, people(5, 16))
        spent = sum(c.epsilon * (steps if c.beta else 1) for c in calls(world, (0, 1, 3), 2))
        answers = evaluate(plan, world.tallies((0, 1, 3)), ZeroNoise())
        assert spent == plan.cost == sum(answer.epsilon for answer in answers.values())


# ---- the textbook, and what is visible ----


def kept(world: World, labels: Labels, where: Any, *columns: str) -> list[dict[str, int]]:
    rows = world.filled(labels).values()
    return [row for row in rows if where(row) and all(isinstance(row[c], int) for c in columns)]


def test_without_noise_the_answers_are_the_textbooks():
    """Of the filled table; the textbook is written here once more."""
    world = World(plan_of(SEVERAL, epsilon="2"), people(11, 60))
    labels = tuple(range(60))
    found = [a.estimates[0].value for a in evaluate(world.plan, world.tallies(labels), ZeroNoise()).values()]
    p, known = 0, lambda row: isinstance(row["s"], int)
    ys = kept(world, labels, lambda row: True, "y")
    assert found[0] == sum(row["y"] > 0 for row in ys)
    assert found[2] == sum(row["y"] for row in ys)
    inside = kept(world, labels, lambda row: row["s"] == p, "y")
    assert found[4] == Fraction(sum(row["y"] for row in inside), len(inside))
    low = kept(world, labels, lambda row: row["y"] in (-1, 0, 1), "z")
    assert found[5] == Fraction(sum(row["z"] for row in low), len(low))
    weighed = kept(world, labels, lambda row: True, "y", "w")
    mean = Fraction(sum(r["w"] * r["y"] for r in weighed), sum(r["w"] for r in weighed))
    about = floor(mean + Fraction(1, 2))
    squares = sum(r["w"] * (r["y"] - about) ** 2 for r in weighed)
    assert found[8] == Fraction(squares, sum(r["w"] for r in weighed))
    assert all(known(row) for row in world.filled(labels).values())


def test_without_noise_a_correlation_is_the_textbooks():
    """About means rounded to the grid, so within what that rounding does; exactly, where means are whole."""
    plan = make_plan([{"correlation": ["y", "z"]}], book(COLUMNS), repair=NEAREST[:1])
    rows = [(y, z) for y, z in [(-1, 0), (0, 0), (1, 2), (2, 1), (3, 2)]]
    world = World(plan, [{"g": 0, "y": y, "z": z, "s": 0, "u": 0, "w": 1} for y, z in rows])
    value = evaluate(plan, world.tallies(tuple(range(5))), ZeroNoise())["ask 0"].estimates[0].value
    assert abs(float(value) - correlation(*zip(*rows, strict=True))) < 1e-11


def seen(world: World, labels: Labels, output: int) -> bytes:
    return visible(world.plan, evaluate(world.plan, world.tallies(labels), Prescribed(output)))


def test_all_that_is_visible_is_a_function_of_the_noisy_numbers():
    """Replayed along one transcript, neighbours look alike: no scale, no bound, no count of recipients."""
    world = World(plan_of(NEAREST, epsilon="2", bar="0.5"), people(5, 16))
    here = seen(world, (0, 1, 3, 4, 6, 8, 9), 3)
    assert all(seen(world, other, 3) == here for other in world.neighbours((0, 1, 3, 4, 6, 8, 9))[::4])
    answers = evaluate(world.plan, world.tallies((0, 1, 3)), ZeroNoise())
    hidden = [part for answer in answers.values() for part in answer.parts if isinstance(part, HiddenScale)]
    assert hidden and all(part.sd is None and not hasattr(part, "scale") for part in hidden)
