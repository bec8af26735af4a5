"""Replicate weights and dealt groups: words in the codebook, sound for every neighbour, right without noise, refused early."""

from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from itertools import combinations_with_replacement
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.answer.design import OwnError, PooledDesign
from reticent.answer.design_domains import DomainErrors
from reticent.answer.unit_sums import ReleasedValue, ReplicateWeights
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import Bins, Key, Rows, Tallies
from reticent.errors import PlanError, SchemaError
from reticent.plan.plan import Plan
from reticent.prepare.repair import Repair
from reticent.query.base import Subpopulation
from reticent.query.kinds import Count, Mean, Proportion
from reticent.query.sides import Sides
from reticent.release.document import document
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.schema.parse import parse
from reticent.sensitivity.bounds import Neighbours
from tests.doubles import Call, FrozenNoise, ZeroNoise

BOOK: dict[str, Any] = {
    "survey": {
        "name": "replicated",
        "unit": "row",
        "replicates": {"weight": "w", "columns": "w{}", "count": 4, "method": "brr"},
    },
    "columns": {
        "y": {"kind": "categorical", "levels": ["no", "yes"]},
        "x": {"kind": "integer", "bounds": [-1, 3]},
        "w": {"kind": "integer", "bounds": [0, 3], "role": "weight"},
    },
}
SCHEMA = schema_from(BOOK)
assert SCHEMA.replicates is not None
BASIS = ReplicateWeights(replicates=SCHEMA.replicates)
# Answers, weight and replicates: as BRR makes them, too far off, missing, of no weight, without a weight.
PEOPLE = [
    {"y": "yes", "x": 3, "w": 3, "w1": 6, "w2": 0, "w3": 6, "w4": 0},
    {"y": "no", "x": -1, "w": 3, "w1": 6, "w2": 6, "w3": 0, "w4": 0},
    {"y": "yes", "x": 3, "w": 2, "w1": 12, "w2": -12, "w3": 12, "w4": 12},
    {"y": "no", "x": None, "w": 3, "w1": None, "w2": 6, "w3": 6, "w4": 0},
    {"y": "yes", "x": 3, "w": 0, "w1": 9, "w2": 9, "w3": 9, "w4": 9},
    {"y": "yes", "x": 3, "w": None, "w1": 9, "w2": 9, "w3": 9, "w4": 9},
    {"y": None, "x": -1, "w": 3, "w1": 0, "w2": 0, "w3": 6, "w4": 6},
]
KINDS = {"y": pa.string()}
CHANGES = {
    "added": Neighbours(),
    "replaced": Neighbours(replaced=True),
    "household": Neighbours(records=2),
}
YES, WEIGHTED = parse("y = 'yes'", field="q"), Subpopulation(weight="w")


def frame(people: list[dict[str, Any]]) -> pa.Table:
    columns = ["y", "x", "w", "w1", "w2", "w3", "w4"]
    return pa.table(
        {name: pa.array([p[name] for p in people], KINDS.get(name, pa.int64())) for name in columns}
    )


def tallied(rows: pa.Table, schema: Schema, wants: Any, repair: Repair | None = None) -> Tallies:
    engine = DuckDBEngine(open_frame(rows), threads=1)
    try:
        return engine.tally(schema, list(wants), *([repair] if repair else []))
    finally:
        engine.close()


def own(query: Any) -> OwnError:
    return OwnError(shape=query.shape(SCHEMA), basis=BASIS, epsilon=Fraction(1))


VALUE = ReleasedValue(value=Fraction(2, 3), size=Fraction(5))
SIDES = Sides(columns=("y",))
PURCHASES: dict[str, tuple[Any, Any]] = {
    "share": (own(Proportion(of=YES, among=WEIGHTED)), VALUE),
    "mean": (own(Mean(column="x", among=WEIGHTED)), VALUE),
    "count": (own(Count(among=Subpopulation(where=YES, weight="w"))), VALUE),
    "pooled": (
        PooledDesign(
            items={"a": Proportion(of=YES, among=WEIGHTED).shape(SCHEMA)},  # type: ignore[dict-item]
            basis=BASIS,
            epsilon=Fraction(1),
            weight="w",
        ),
        {"a": VALUE},
    ),
    "by domain": (
        DomainErrors(own=own(Mean(column="x", among=WEIGHTED)), sides=SIDES),
        dict.fromkeys(SIDES.cells(SCHEMA), VALUE),
    ),
}
SURVEYS = [c for n in range(3) for c in combinations_with_replacement(range(len(PEOPLE)), n)]


def neighbours_of(people: tuple[int, ...], change: Neighbours) -> Iterator[tuple[int, ...]]:
    for place in range(len(people)):
        rest = people[:place] + people[place + 1 :]
        yield rest
        if change.replaced:
            yield from (tuple(sorted((*rest, new))) for new in range(len(PEOPLE)))
        if change.records == 2:
            yield from (rest[:two] + rest[two + 1 :] for two in range(len(rest)))


@pytest.fixture(scope="module")
def tallies() -> dict[tuple[int, ...], Tallies]:
    wants = dict.fromkeys(want for bought, _ in PURCHASES.values() for want in bought.wants(SCHEMA))
    return {each: tallied(frame([PEOPLE[i] for i in each]), SCHEMA, wants) for each in SURVEYS}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("bought, released", PURCHASES.values(), ids=PURCHASES)
def test_no_neighbour_moves_it_further_than_its_sensitivity(
    bought: Any, released: Any, change: Neighbours, tallies: Any
) -> None:
    """All surveys of up to two of seven people through the engine, wild replicates among them, and all their neighbours.

    Distances over sensitivities add up to at most 1 over the domains too, for all of them share one epsilon.
    """

    def calls(people: tuple[int, ...]) -> list[Call]:
        noise = FrozenNoise(prescribed=[(4,)] * 3)
        bought.run(tallies[people], released, schema=SCHEMA, neighbours=change, noise=noise)
        return noise.calls

    found = {people: calls(people) for people in SURVEYS}
    for people in SURVEYS:
        for other in neighbours_of(people, change):
            pairs = list(zip(found[people], found[other], strict=True))
            assert all(one.parameters == two.parameters for one, two in pairs)
            parts = [Fraction(one.distance(two)) / one.sensitivity for one, two in pairs]
            assert max(parts) <= 1
            assert not isinstance(bought, DomainErrors) or sum(parts) <= 1


def test_replicates_as_they_stand_in_the_file_would_move_it_further(tallies: Any) -> None:
    """The twin: without scaling, one respondent with wild replicates moves the root beyond the bound."""
    item = own(Count(among=Subpopulation(where=YES, weight="w")))
    bound = item.parts(SCHEMA, Neighbours())[0].bound / BASIS.fine
    wild = PEOPLE[2]
    naive = sqrt(sum((wild[f"w{r}"] - wild["w"]) ** 2 / 4 for r in range(1, 5)))
    assert naive > 3 * bound
    (scaled,) = item.run(
        tallies[2,],
        VALUE,
        schema=SCHEMA,
        neighbours=Neighbours(),
        noise=ZeroNoise(),
    ).parts
    assert scaled.bound / BASIS.fine == bound


def survey(size: int = 3000, replicates: int = 50, seed: int = 3) -> tuple[pa.Table, dict[str, Any]]:
    """Clusters dealt into groups of which each replicate leaves one out: JK1."""
    bits = np.random.default_rng(seed)
    cluster = bits.integers(0, 50, size)
    shift = bits.normal(0, 0.6, 50)[cluster]
    yes = bits.random(size) < 1 / (1 + np.exp(-shift))
    w = np.round(bits.uniform(1, 3, size), 1)
    columns: dict[str, Any] = {
        "y": np.where(yes, "yes", "no"),
        "x": np.clip(np.round(50 + 9 * shift + bits.normal(0, 12, size)), 0, 100).astype(int),
        "sex": np.where(bits.random(size) < 0.5, "f", "m"),
        "w": w,
    }
    for r in range(replicates):
        factor = np.where(cluster % replicates == r, 0, replicates / (replicates - 1))
        columns[f"w{r + 1}"] = np.round(w * factor, 4)
    book = {
        "survey": {
            "name": "jackknife",
            "unit": "row",
            "replicates": {"weight": "w", "columns": "w{}", "count": replicates, "method": "jk1"},
        },
        "columns": {
            "y": {"kind": "categorical", "levels": ["no", "yes"]},
            "sex": {"kind": "categorical", "levels": ["f", "m"]},
            "x": {"kind": "integer", "bounds": [0, 100]},
            "w": {"kind": "decimal", "bounds": [0, 3], "grid": "0.0001", "role": "weight"},
        },
    }
    return pa.table(columns), book


ASKS: list[dict[str, Any]] = [
    {"name": "y", "query": {"proportion": "y = 'yes'", "weight": "w"}, "epsilon": "1"},
    {
        "name": "x",
        "query": {"mean": "x", "weight": "w"},
        "epsilon": "1",
        "sampling": {"epsilon": "1"},
    },
    {
        "name": "x by sex",
        "query": {"mean": "x", "weight": "w", "by": ["sex"]},
        "epsilon": "1",
        "sampling": {"epsilon": "1"},
    },
]


def plan_of(rows: pa.Table, book: dict[str, Any], asks: list[dict[str, Any]], **sections: Any) -> Plan:
    made = Survey(rows, codebook=book)
    return made.plan("r-1", epsilon="40", statistics=asks, protect={"accept_large": True}, **sections)


def told(plan: Plan, rows: pa.Table, noise: Any) -> dict[str, Any]:
    made = evaluate_sampled(plan, tallied(rows, plan.schema, wants_of(plan), plan.repair), noise)
    result = StatisticsResult(plan=plan, answers=made.answers, sampled=made.sampled)
    return document(plan, [result], receipt=None, engine="test")


def jackknife(values: Any, rows: pa.Table, replicates: int = 50) -> float:
    """The linearised jackknife of a weighted mean, by hand."""
    w = rows["w"].to_numpy()
    z = values - (w * values).sum() / w.sum()
    off = [((rows[f"w{r + 1}"].to_numpy() - w) * z).sum() / w.sum() for r in range(replicates)]
    return sqrt((replicates - 1) / replicates * np.square(off).sum())


def test_without_noise_it_is_the_jackknife_of_the_textbook() -> None:
    """A survey of 3,000: own standard errors, of everybody and by sex, and the design factor of a share."""
    rows, book = survey()
    plan = plan_of(rows, book, ASKS, design={"items": ["y"], "epsilon": "1"})
    made = told(plan, rows, ZeroNoise())
    x, yes = rows["x"].to_numpy(), np.asarray(rows["y"].to_pylist()) == "yes"
    sampling = made["sampling"]
    assert sampling["own"]["x"]["se"] == pytest.approx(jackknife(x, rows), rel=0.02)
    for each in sampling["own"]["x by sex"]["domains"]:
        mask = np.asarray(rows["sex"].to_pylist()) == each["cell"].get("sex")
        if mask.any():
            w = rows["w"].to_numpy()
            inside = rows.filter(pa.array(mask))
            ratio = (w * mask).sum() / w.sum()
            assert each["se"] == pytest.approx(jackknife(x[mask], inside), rel=0.02) and 0 < ratio < 1
    share = (rows["w"].to_numpy() * yes).sum() / rows["w"].to_numpy().sum()
    deft = jackknife(yes.astype(float), rows) / sqrt(share * (1 - share) / len(rows))
    assert sqrt(sampling["design_effect"]) == pytest.approx(max(1.0, deft), rel=0.02)
    assert "50 replicate weights (JK1)" in sampling["basis"]
    assert all(each["total_low"] is not None for s in made["statistics"] for each in s["estimates"][:1])


def changed(path: str, value: Any) -> dict[str, Any]:
    book = deepcopy(BOOK)
    *keys, last = path.split(".")
    at = book
    for key in keys:
        at = at[key]
    at[last] = value
    return book


@pytest.mark.parametrize(
    "path, value, says",
    [
        ("survey.replicates.weight", "y", "role = 'weight'"),
        ("survey.replicates.columns", "w", "in the place of its number"),
        ("survey.replicates.count", 1, "how many there are"),
        ("survey.replicates.method", "bootstrap", "is one of brr, fay, jk1, jkn, sdr"),
        ("survey.replicates.reach", "0", "from 0.1 to 10"),
        ("survey.replicates.degrees_of_freedom", 1, "from 2 on"),
        ("columns.g", {"kind": "categorical", "dealt": 100}, "role = 'psu'"),
        ("columns.g", {"kind": "categorical", "role": "psu", "dealt": 2}, "how many groups"),
        ("columns.g", {"kind": "categorical", "role": "psu", "dealt": 9, "levels": ["a"]}, "remove it"),
    ],
)
def test_a_codebook_that_cannot_be_is_refused(path: str, value: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        schema_from(changed(path, value))


@pytest.mark.parametrize(
    "query, sections, says",
    [
        ({"proportion": "y = 'yes'"}, {"sampling": {"epsilon": "1"}}, "write weight = 'w'"),
        ({"mean": "w_r1"}, {}, "is not an answer"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(query: Any, sections: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_of(frame(PEOPLE), BOOK, [{"name": "a", "query": query, "epsilon": "1", **sections}])


def test_groups_go_with_units() -> None:
    asks = [{"name": "a", "query": {"proportion": "y = 'yes'", "weight": "w"}, "epsilon": "1"}]
    with pytest.raises(PlanError, match="not with replicate weights"):
        plan_of(frame(PEOPLE), BOOK, asks, design={"items": ["a"], "epsilon": "1", "groups": 5})


DEALT = {
    "survey": {"name": "dealt", "unit": "row"},
    "columns": {
        "g": {"kind": "categorical", "role": "psu", "dealt": 40},
        "y": {"kind": "categorical", "levels": ["no", "yes"]},
        "x": {"kind": "integer", "bounds": [0, 9]},
    },
}


def groups(people: list[tuple[Any, ...]], book: dict[str, Any], names: str = "y x") -> Any:
    """How many of each kind of record are in each group; the last is for nobody."""
    schema = schema_from(book)
    kinds = {"y": pa.string(), "x": pa.int64(), "id": pa.string()}
    columns = {name: pa.array([p[i] for p in people], kinds[name]) for i, name in enumerate(names.split())}
    keys = (Key(column="g", silent=True), Key(column="y", silent=True), Key(column="x", silent=True))
    want = Bins(rows=Rows(), keys=keys, silent=(0, 0, 0))
    held = tallied(pa.table(columns), schema, [want]).bins[want].matching
    return held.reshape(41, 33)


def test_one_more_respondent_moves_nobody_else_to_another_group() -> None:
    """200 people of few kinds, so that many are alike; order does not matter, and equals are spread over groups."""
    bits = np.random.default_rng(2)
    people = [("yes" if bits.random() < 0.5 else "no", int(bits.integers(0, 2))) for _ in range(200)]
    before = groups(people, DEALT)
    shuffled = groups(people[::-1], DEALT)
    assert (before == shuffled).all() and before[40].sum() == 0
    for newcomer in [("yes", 1), ("no", 7), (None, 1), (None, None)]:
        after = groups([*people, newcomer], DEALT)
        assert np.abs(after - before).sum() == 1
    assert (before.sum(axis=1)[:40] > 0).sum() > 35


def test_records_of_one_owner_are_in_one_group() -> None:
    book = deepcopy(DEALT)
    book["survey"] = {"name": "dealt", "unit": "id", "at_most": 3}
    book["columns"]["id"] = {"kind": "identifier"}
    people = [("yes", i, "anna") for i in range(3)] + [("no", 5, "berta"), ("no", 5, None), ("no", 5, None)]
    held = groups(people, book, "y x id")
    assert held.sum() == 6
    anna = [held[:, 11 + i].argmax() for i in range(3)]
    assert len(set(anna)) == 1


def test_dealt_groups_give_the_error_of_a_simple_sample() -> None:
    """A simple random sample of 20,000: the design effect is near 1, and the page says what it was made of."""
    bits = np.random.default_rng(8)
    rows = pa.table(
        {"y": np.where(bits.random(20_000) < 0.3, "yes", "no"), "x": bits.integers(0, 10, 20_000)}
    )
    asks = [
        {"name": "y", "query": {"proportion": "y = 'yes'"}, "epsilon": "1"},
        {"name": "x", "query": {"mean": "x"}, "epsilon": "1", "sampling": {"epsilon": "1"}},
    ]
    book = deepcopy(DEALT)
    book["columns"]["g"]["dealt"] = 200
    plan = plan_of(rows, book, asks, design={"items": ["y"], "epsilon": "1"})
    made = told(plan, rows, ZeroNoise())
    assert 1 <= made["sampling"]["design_effect"] < 1.5
    se = rows["x"].to_numpy().std() / sqrt(20_000)
    assert 0.7 < made["sampling"]["own"]["x"]["se"] / se < 1.35
    assert any("200 groups of respondents" in each for each in plan.design.words)
    with pytest.raises(PlanError, match="cannot be asked about"):
        plan_of(rows, book, [{"name": "g", "query": {"table": ["g"]}, "epsilon": "1"}])
