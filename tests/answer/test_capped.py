"""Asks on columns that capped donors fill: every kind, all neighbours of small tables, through the real engine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from statistics import correlation, mean, variance
from typing import Any

import pytest

from reticent.answer import context
from reticent.answer.parts import HiddenScale, is_as_planned
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.refine.total import SampleSize, share_variance
from reticent.release.statistics import evaluate, wants_of
from tests.answer.test_imputed import Prescribed, faults
from tests.doubles import Call, ZeroNoise
from tests.tables import ADD, REPLACE, arrow, book, make_plan

Person = dict[str, Any]
COLUMNS = {
    "g": {"kind": "categorical", "levels": ["a", "b"]},
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
    {"variance": "y", "weight": "w"},
    {"correlation": ["y", "z"], "where": "s = 'p'"},
    {"median": "y", "step": "1"},
    {"quantile": "z", "at": "0.3", "step": "1", "where": "s = 'q'", "weight": "w"},
    {"table": ["s", "z"], "bins": {"z": [0, 1, 2]}},
    {"table": ["g"], "where": "y > 0", "weight": "w"},
    {"count": "*", "where": "g = 'a'"},
]
DOMAINS: list[dict[str, Any]] = [
    {"count": "*", "where": "y > 0", "by": ["u"]},
    {"mean": "z", "by": ["g"], "weight": "w"},
    {"variance": "z", "by": ["g", "u"]},
    {"median": "z", "step": "1", "by": ["u"]},
    {"proportion": "y > 0 or s = 'q'", "by": ["g"]},
]
EACH = [
    {
        "method": "donors",
        "column": "y",
        "match": [{"on": ["g"], "serve": 1}, {"on": [], "serve": 1}],
        "donors": 1,
    },
    {"method": "donors", "columns": ["z", "s"], "match": [{"on": ["g", "u"], "serve": 1}]},
]
TOGETHER = [
    {"method": "donors", "column": "y", "match": [{"on": ["g"], "serve": 2}], "donors": 3, "default": 0},
    {
        "method": "donors",
        "columns": ["z", "s"],
        "together": True,
        "match": ["g"],
        "default": {"z": {"by": "u", "values": {"in": 2, "out": 1}, "otherwise": 0}, "s": "q"},
    },
]


def people(seed: int, size: int) -> list[Person]:
    """Crowded: few groups, much silence, extreme answers."""
    chance = Random(seed)

    def one(answers: Sequence[Any], silence: float) -> Any:
        return None if chance.random() < silence else chance.choice(answers)

    return [
        {
            "who": f"p{i // 2}",
            "g": one("aab", 0.1),
            "y": one([-1, 3, 3, 0], 0.5),
            "z": one([0, 2], 0.4),
            "s": one("pq", 0.3),
            "u": one(["in", "in", "in", "out"], 0.1),
            "w": one([0, 1, 3], 0.1),
        }
        for i in range(size)
    ]


def plan_of(
    repair: list[dict[str, Any]], queries: Sequence[dict[str, Any]] = QUERIES, **options: Any
) -> Plan:
    codebook = book(COLUMNS, **({"unit": "who", "at_most": 2} if options.pop("owners", False) else {}))
    return make_plan(queries, codebook, epsilon="2", repair=repair, **options)


class World:
    """One engine for many tables."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.wants = plan, wants_of(plan)
        self.engine = DuckDBEngine(open_frame(arrow([], plan.schema)), threads=1)

    def tallies(self, rows: Sequence[Person]) -> Any:
        self.engine._source = open_frame(arrow(rows, self.plan.schema))
        return self.engine.tally(self.plan.schema, self.wants, self.plan.repair)

    def calls(self, rows: Sequence[Person]) -> list[Call]:
        noise = Prescribed(2)
        evaluate(self.plan, self.tallies(rows), noise)
        return noise.calls


def neighbours(rows: list[Person], others: list[Person], change: str, owners: bool) -> Iterator[list[Person]]:
    """Somebody leaves or, replaced, answers otherwise; with owners, with all their rows."""
    groups = [[row for row in rows if row["who"] == who] for who in dict.fromkeys(row["who"] for row in rows)]
    for place, gone in enumerate(groups if owners else [[row] for row in rows]):
        left = [row for row in rows if not any(row is each for each in gone)]
        if change == ADD:
            yield left
        else:
            yield left + [
                {**each, "who": gone[0]["who"]} for each in others[2 * place : 2 * place + len(gone)]
            ]


def all_faults(world: World, change: str, *, owners: bool = False, seeds: Sequence[int] = (1, 2)) -> set[str]:
    found: set[str] = set()
    for seed in seeds:
        rows = people(seed, 10)
        here = world.calls(rows)
        for other in neighbours(rows, people(seed + 100, 40), change, owners):
            found |= faults(here, world.calls(other))
    return found


# covers T08 T20
@pytest.mark.parametrize("owners", [False, True], ids=["rows", "owners"])
@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("repair", [EACH, TOGETHER], ids=["each", "together"])
def test_every_neighbour_is_within_the_public_bound(repair: list[Any], change: str, owners: bool):
    """Counts, totals, means, shares, variances, correlations, quantiles and tables, with base weights and filled members."""
    world = World(plan_of(repair, change=change, owners=owners))
    assert all_faults(world, change, owners=owners) == set()


# covers T08 T20
@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("repair", [EACH, TOGETHER], ids=["each", "together"])
def test_every_neighbour_is_within_the_public_bound_in_rho(repair: list[Any], change: str):
    """The same by Gaussian noise: moves in Euclidean length, quantiles by the exponential mechanism."""
    world = World(plan_of(repair, change=change, in_rho=True))
    kinds = {call.kind for call in world.calls(people(1, 10))}
    assert kinds == {"gaussian", "gaussian_many", "choose"}
    assert all_faults(world, change) == set()


def test_a_bound_without_donees_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """The twin: noise made for one's own row alone."""
    for where in ("shares", "count", "quantile"):
        name = f"reticent.answer.{where}.with_donees"
        monkeypatch.setattr(name, lambda own, moved, change, repair, **more: own)
    assert "moved too far" in all_faults(World(plan_of(EACH)), ADD)


def test_rings_added_up_without_their_number_are_found_out(monkeypatch: pytest.MonkeyPatch):
    """The twin: three completions added, and the bound of one."""
    from reticent.answer.context import Context

    def measure(self: Context, exact: int, what: str, **given: Any) -> Any:
        return plain(replace(self, copies=1), exact, what, **given)

    plain = Context.measure
    monkeypatch.setattr(Context, "measure", measure)
    assert "moved too far" in all_faults(World(plan_of(TOGETHER)), ADD)


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_all_domains_together_lose_no_more_than_one_epsilon(change: str):
    """THEORY 14.2: losses added up over domains, for each of an ask's measurements, on every neighbour."""
    for query in DOMAINS:
        world = World(plan_of(TOGETHER, [query], change=change))
        for seed in (1, 2):
            rows = people(seed, 10)
            here = world.calls(rows)
            for other in neighbours(rows, people(seed + 100, 40), change, owners=False):
                there = world.calls(other)
                assert [call.parameters for call in here] == [call.parameters for call in there]
                lost: dict[Fraction, Fraction] = {}
                for a, b in zip(here, there, strict=True):
                    part = Fraction(a.distance(b), a.sensitivity)
                    lost[a.epsilon] = lost.get(a.epsilon, Fraction(0)) + part
                twice = 2 if "variance" in query else 1  # two of its three measurements may share an epsilon
                assert all(share <= twice for share in lost.values())


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_all_domains_together_lose_no_more_than_one_rho(change: str):
    """Squares of losses added up over domains, for each of an ask's measurements, on every neighbour."""
    for query in DOMAINS:
        world = World(plan_of(TOGETHER, [query], change=change, in_rho=True))
        rows = people(1, 10)
        here = world.calls(rows)
        for other in neighbours(rows, people(101, 40), change, owners=False):
            there = world.calls(other)
            assert [call.parameters for call in here] == [call.parameters for call in there]
            lost: dict[Fraction, Fraction] = {}
            for a, b in zip(here, there, strict=True):
                part = Fraction(a.distance(b)) / Fraction(a.sensitivity)
                lost[a.epsilon] = lost.get(a.epsilon, Fraction(0)) + part**2
            twice = 2 if "variance" in query else 1  # two of its three measurements may share a rho
            assert all(share <= twice for share in lost.values())


def test_a_domain_that_the_nearest_donors_fill_is_refused():
    hubs = [{"method": "donors", "bound": "hubs", "column": "s", "match": ["g"]}]
    with pytest.raises(PlanError, match="change its domain"):
        plan_of(hubs, [{"mean": "z", "by": ["s"]}])


def completions(world: World, rows: list[Person]) -> list[list[dict[str, Any]]]:
    """The filled rows of each ring, as the engine has them."""
    plan, found = world.plan, []
    world.engine._source = open_frame(arrow(rows, plan.schema))
    with world.engine._capping(plan.schema, plan.repair) as held:
        for ring in range(plan.repair.rings):
            names = [f"c_{name} AS {name}" for name in plan.schema.coded]
            text = f"SELECT {', '.join(names)} FROM ({held.rows(ring).sql('duckdb')})"
            found.append(world.engine._connection.sql(text).to_arrow_table().to_pylist())
    return found


def test_answers_are_means_over_the_completions_of_all_rings():
    """Without noise, against the filled rows themselves."""
    queries = [
        {"count": "*", "where": "y > 0"},
        {"total": "z", "where": "y > 0", "weight": "w"},
        {"mean": "z"},
        {"proportion": "z = 2"},
        {"variance": "z"},
        {"correlation": ["z", "y"]},
        {"median": "z", "step": "1"},
        {"table": ["s"]},
        {"count": "*", "where": "g = 'a'"},
    ]
    world, rows = World(plan_of(TOGETHER, queries)), people(3, 60)
    answers = evaluate(world.plan, world.tallies(rows), ZeroNoise())
    value = {i: answers[f"ask {i}"].estimates[0].value for i in range(len(queries))}
    rings = completions(world, rows)
    every = [row for ring in rings for row in ring]
    assert len(rings) == 3 and len(every) == 180
    assert value[0] == Fraction(sum(row["y"] is not None and row["y"] > 0 for row in every), 3)
    total = sum((row["w"] or 0) * row["z"] for row in every if row["y"] is not None and row["y"] > 0)
    assert value[1] == Fraction(total, 3)
    zs = [row["z"] for row in every]
    assert value[2] == Fraction(sum(zs), 180) and value[3] == Fraction(sum(z == 2 for z in zs), 180)
    about = round(float(value[2]))
    assert value[4] == Fraction(sum((z - about) ** 2 for z in zs), 3) / 59
    both = [(row["z"], row["y"]) for row in every if row["y"] is not None]
    a, b = (round(mean(each)) for each in zip(*both, strict=True))
    top = sum((z - a) * (y - b) for z, y in both)
    below = sum((z - a) ** 2 for z, _ in both) * sum((y - b) ** 2 for _, y in both)
    assert float(value[5]) == pytest.approx(top / below**0.5, abs=1e-9)
    assert abs(float(value[5]) - correlation(*map(list, zip(*both, strict=True)))) < 0.2
    assert value[6] in (0, 1, 2) and variance(zs) > 0
    cells = [each.value for each in answers["ask 7"].estimates]
    assert cells == [*(Fraction(sum(row["s"] == code for row in every), 3) for code in (0, 1)), *cells[2:]]
    # What nobody fills is counted once, in whole respondents.
    assert value[8] == sum(row["g"] == "a" for row in rows) and answers["ask 8"].parts[0].unit == 1


def test_what_ran_is_what_was_planned_and_nothing_is_confidential():
    for repair in (EACH, TOGETHER):
        world = World(plan_of(repair, owners=True))
        answers = evaluate(world.plan, world.tallies(people(1, 20)), Prescribed(2))
        for route in world.plan.routes:
            made = answers[route.statistic.name]
            assert is_as_planned(made.parts, route.parts)
            assert not any(isinstance(part, HiddenScale) for part in made.parts)
            if "median" not in route.statistic.written and "quantile" not in route.statistic.written:
                assert all(each.has_interval and each.noise_sd is not None for each in made.estimates)


def test_noise_is_a_number_of_the_plan():
    """THEORY 11.3: a count needs 1 + tau, a table 1 + 2 tau, a centred sum (b - a)/2 + (b - a) tau."""
    donors = {"method": "donors", "column": "z", "match": [{"on": ["g"], "serve": 2}, {"on": [], "serve": 1}]}
    asked = [
        {"count": "*", "where": "z > 0"},
        {"table": ["z"], "bins": {"z": [0, 1, 2]}},
        {"mean": "z"},
        {"median": "z", "step": "1"},
    ]
    plan = plan_of([donors], asked)
    count, table, ratio, median = (route.parts for route in plan.routes)
    assert [part.bound for part in (count[0], table[0])] == [4, 7]
    assert [part.bound for part in ratio] == [1, 7] and median[0].bound == Fraction(1, 2) + 3
    assert count[0].sd == pytest.approx(2**0.5 * 4 / 2, rel=0.01)


def test_the_sampling_error_is_widened_by_what_is_missing():
    """(1 + f/r)/(1 - f) times that of complete rows, where the plan expects f; told of nothing else."""
    donors = {"method": "donors", "column": "z", "match": ["g"], "donors": 4}
    share = {"proportion": "z = 2"}
    told = plan_of([donors], [share], expect={"rows": 100, "missing": {"z": "0.2"}})
    silent = plan_of([donors], [share], expect={"rows": 100})
    rows = people(5, 50)
    (one,), (other,) = (
        evaluate(plan, World(plan).tallies(rows), ZeroNoise())["ask 0"].estimates for plan in (told, silent)
    )
    p = float(one.value)
    assert one.sampling is not None and other.sampling is None
    assert one.sampling(None) == pytest.approx(p * (1 - p) / 50 * (1 + 0.2 / 4) / 0.8)


def test_with_base_weights_the_sampling_error_is_that_of_as_many_respondents():
    """A weighted share among its weight's respondents, times the same factor; none where their weight is not known."""
    donors = {"method": "donors", "column": "z", "match": ["g"], "donors": 4}
    told = plan_of(
        [donors],
        [{"proportion": "z = 2", "weight": "w"}, {"count": "*", "where": "z = 2", "weight": "w"}],
        expect={"rows": 100, "missing": {"z": "0.2"}},
    )
    found = evaluate(told, World(told).tallies(people(5, 50)), ZeroNoise())
    (share,), (count,) = (found[f"ask {i}"].estimates for i in range(2))
    p, among = float(share.value), float(sum(row["w"] or 0 for row in people(5, 50)))
    size = SampleSize(respondents=50, weights={"w": among})
    assert share.sampling is not None and share.sampling(None) is None and count.sampling is not None
    assert share.sampling(size) == pytest.approx(p * (1 - p) / 50 * (1 + 0.2 / 4) / 0.8)
    plain = among**2 * share_variance(float(count.value) / among, 50)
    assert count.sampling(size) == pytest.approx(plain * (1 + 0.2 / 4) / 0.8)


def test_what_capped_donors_cannot_do_is_refused():
    donors = {"method": "donors", "column": "z", "match": ["g"]}
    with pytest.raises(PlanError, match="says nothing"):
        plan_of([donors], [{"count": "*", "where": "z is missing"}])
    with pytest.raises(PlanError, match="interval is free"):
        plan_of([donors], [{"mean": "z"}], asks={0: {"interval": {"epsilon": "1"}}})
    assert (
        context.rings_of(
            plan_of([donors]).routes[-1].query, plan_of([donors]).schema, plan_of([donors]).repair
        )
        == 1
    )
