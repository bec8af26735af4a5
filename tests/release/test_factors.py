"""Released factors in plans: tables, medians, domains and variances weighted to known totals, charged once, bounded by what was released."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.statistics import evaluate, evaluate_sampled, wants_of
from reticent.release.survey import Survey
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD

BOOK: dict[str, Any] = {
    "survey": {"name": "weighed", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "region": {"kind": "categorical", "levels": ["n", "s"]},
        "x": {"kind": "integer", "bounds": [0, 20]},
        "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.5", "role": "weight"},
    },
}
WEIGHT = {
    "base": "w",
    "by": [{"column": "sex", "missing": "f"}],
    "totals": [{"sex": "f", "total": 6000}, {"sex": "m", "total": 4000}],
    "factors": {"epsilon": "0.5"},
}
POST = {"weight": "poststratified"}
ASKS: list[dict[str, Any]] = [
    {"name": "count", "query": {"count": "*", "where": "x >= 10", **POST}, "epsilon": "1"},
    {"name": "mean", "query": {"mean": "x", **POST}, "epsilon": "1"},
    {"name": "table", "query": {"table": ["region"], **POST}, "epsilon": "1"},
    {"name": "median", "query": {"median": "x", "step": "1", **POST}, "epsilon": "1"},
    {"name": "spread", "query": {"variance": "x", **POST}, "epsilon": "1"},
    {"name": "by region", "query": {"mean": "x", "by": ["region"], **POST}, "epsilon": "1"},
    {"name": "plain", "query": {"count": "*"}, "epsilon": "1"},
]


def people(size: int = 1500, seed: int = 2) -> pa.Table:
    """Women answer less often than men: without weights their share is far off."""
    bits = np.random.default_rng(seed)
    woman = bits.random(size) < 0.35
    return pa.table(
        {
            "sex": np.where(woman, "f", "m"),
            "region": np.where(bits.random(size) < 0.4, "n", "s"),
            "x": np.clip(np.round(bits.normal(12, 3, size) - 4 * woman), 0, 20).astype(int),
            "w": np.round(bits.uniform(0.5, 3, size) * 2) / 2,
        }
    )


def plan_of(asks: list[dict[str, Any]] = ASKS, weight: dict[str, Any] = WEIGHT, **sections: Any) -> Plan:
    survey = Survey(people(), codebook=BOOK)
    return survey.plan(
        "r-1", epsilon="30", statistics=asks, weight=weight, protect={"accept_large": True}, **sections
    )


class Told(FrozenNoise):
    """Prescribed base weights of the bins, and one and the same output for every later question."""

    def __init__(self, bins: tuple[int, ...]) -> None:
        super().__init__()
        self.bins = bins

    def laplace(self, answer: int, **parameters: Any) -> int:
        super().laplace(answer, **parameters)
        return 40

    def laplace_many(self, answers: Any, **parameters: Any) -> list[int]:
        super().laplace_many(answers, **parameters)
        return list(self.bins) if len(self.calls) == 1 else [40] * len(answers)

    def select(self, scores: Any, **parameters: Any) -> int:
        super().select(scores, **parameters)
        return 0


def tallies(plan: Plan, rows: pa.Table) -> Any:
    engine = Survey(rows, codebook=BOOK).open()
    try:
        return engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()


def test_without_noise_they_are_the_textbooks() -> None:
    """Post-stratified by hand, to the rounding of factors: one in some ten thousand."""
    rows = people()
    w, woman = rows["w"].to_numpy(), np.asarray(rows["sex"].to_pylist()) == "f"
    x, north = rows["x"].to_numpy(), np.asarray(rows["region"].to_pylist()) == "n"
    post = w * np.where(woman, 6000 / w[woman].sum(), 4000 / w[~woman].sum())
    plan = plan_of()
    found = evaluate(plan, tallies(plan, rows), ZeroNoise())
    value = {name: [float(each.value) for each in answer.estimates] for name, answer in found.items()}
    mean = (post * x).sum() / post.sum()
    assert value["count"][0] == pytest.approx(post[x >= 10].sum(), rel=1e-3)
    assert value["mean"][0] == pytest.approx(mean, rel=1e-3)
    assert value["table"][:2] == pytest.approx([post[north].sum(), post[~north].sum()], rel=1e-3)
    assert value["spread"][0] == pytest.approx((post * (x - mean) ** 2).sum() / post.sum(), rel=0.01)
    assert value["by region"][0] == pytest.approx((post * x)[north].sum() / post[north].sum(), rel=1e-3)
    order = np.argsort(x, kind="stable")
    at = np.searchsorted(np.cumsum(post[order]), post.sum() / 2)
    assert value["median"][0] == x[order][at]
    assert value["plain"] == [1500]


def test_it_is_charged_once_and_told(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.db", dataset="weighed", change=ADD, unit="epsilon", budget="30")
    survey = Survey(people(), codebook=BOOK)
    plan = survey.plan("r-1", epsilon="10", statistics=ASKS, weight=WEIGHT)
    Curator(ledger).release(plan, survey, tmp_path / "out")
    assert ledger.spent == plan.cost == Fraction("7.5")
    made = json.loads((tmp_path / "out" / "r-1.json").read_bytes())
    told = made["weights"]["factors"]
    assert told["epsilon"] == "0.5" and len(told["base_weights"]) == 2 and told["largest_weight"] > 0
    grounds = [each["proof"] for each in made["weights"]["guarantee"]["rests_on"]]
    assert "proofs/answer/factors.md" in grounds
    (table,) = (each for each in made["statistics"] if each["name"] == "table")
    assert "weighted to known totals by sex" in table["words"]


@pytest.mark.parametrize("change", [ADD, "one respondent's answers replaced"])
def test_neighbours_share_every_call(change: str) -> None:
    """Along transcripts with small, negative and large bins: all removals, or exchanges, of 14 people."""
    rows, other = people(14), people(1, seed=8)
    size = {"sample_size": 14} if change != ADD else {}
    book = {**BOOK, "survey": {**BOOK["survey"], **size}}
    survey = Survey(rows, codebook=book)
    plan = survey.plan(
        "r-1", epsilon="30", statistics=ASKS, weight=WEIGHT, protect={"change": change, "accept_large": True}
    )

    def calls(table: pa.Table, first: tuple[int, ...]) -> list[Any]:
        noise = Told(first)
        evaluate(plan, tallies(plan, table), noise)
        return noise.calls

    for first in ((-7, 3), (900, 700)):
        here = calls(rows, first)
        for place in range(len(rows)):
            rest = pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])
            there = calls(rest if change == ADD else pa.concat_tables([rest, other]), first)
            moved = [one.distance(two) for one, two in zip(here, there, strict=True)]
            assert all(one.parameters == two.parameters for one, two in zip(here, there, strict=True))
            # In domains a record moves one of them alone, and each is told the sensitivity of one.
            apart = [call for call, far in zip(here, moved, strict=True) if far > call.sensitivity]
            assert apart == []


@pytest.mark.parametrize(
    "more, says",
    [
        ({"factors": {"epsilon": "0"}}, "epsilon"),
        ({"factors": {"epsilon": "1"}, "noise": "lomax"}, "public noise"),
        ({"factors": {}}, "epsilon"),
    ],
)
def test_bad_factors_are_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_of(weight={**WEIGHT, **more})


def test_unused_factors_and_too_fine_weights_are_refused() -> None:
    with pytest.raises(PlanError, match="drop the section"):
        plan_of(ASKS[-1:])
    fine = {**BOOK, "columns": {**BOOK["columns"], "w": {**BOOK["columns"]["w"], "grid": "0.0001"}}}
    with pytest.raises(PlanError, match="coarser grid"):
        Survey(people(), codebook=fine).plan("r-1", epsilon="30", statistics=ASKS, weight=WEIGHT)


def test_a_table_without_factors_says_what_to_write() -> None:
    bare = {key: each for key, each in WEIGHT.items() if key != "factors"}
    with pytest.raises(PlanError, match="factors"):
        plan_of(ASKS[2:3], weight=bare)


@pytest.mark.parametrize(
    "query",
    [{"count": "*"}, {"table": ["region"]}, {"mean": "x", "by": ["sex"]}, {"median": "x", "step": "1"}],
)
def test_complete_rows_beside_it_are_those_of_the_codebook(query: dict[str, Any]) -> None:
    """The weight is no column of the rows, so nobody lacks it."""
    ask = {"name": "plain", "query": query, "epsilon": "1", "missing": "complete"}
    beside = plan_of([ASKS[0], ask])
    alone = Survey(people(), codebook=BOOK).plan(
        "r-1", epsilon="30", statistics=[ask], protect={"accept_large": True}
    )
    found = [evaluate(plan, tallies(plan, people()), ZeroNoise())["plain"] for plan in (beside, alone)]
    values = [[each.value for each in answer.estimates] for answer in found]
    assert values[0] == values[1]


def test_totals_are_widened_for_unequal_factors_and_need_items_with_the_base_weight() -> None:
    """With items that know the base weight, as many respondents as say what these do, in shares, counts and medians; with
    others nothing is known of unequal weights, so nothing is told, and a median pays for no total."""
    item = {"name": "men", "query": {"proportion": "sex = 'm'", "weight": "w"}, "epsilon": "1"}
    plain = {**item, "name": "plain men", "query": {"proportion": "sex = 'm'"}}
    share = {"name": "north", "query": {"proportion": "region = 'n'", **POST}, "epsilon": "8"}
    median = {**ASKS[3], "interval": {"epsilon": "1"}}
    weight = {**WEIGHT, "totals": [{"sex": "f", "total": 9000}, {"sex": "m", "total": 1000}]}
    found = {}
    for name in ("men", "plain men"):
        design = {"items": [name], "epsilon": "1"}
        psu = {"kind": "categorical", "role": "psu", "dealt": 60}
        book = {**BOOK, "columns": {**BOOK["columns"], "dealt": psu}}
        survey = Survey(people(), codebook=book)
        asks = [item, plain, share, {**ASKS[0], "epsilon": "8"}, median]
        given: dict[str, Any] = {"epsilon": "30", "protect": {"accept_large": True}, "expect": {"rows": 1500}}
        plan = survey.plan("r-1", statistics=asks, weight=weight, design=design, **given)
        engine = survey.open()
        try:
            tallied = engine.tally(plan.schema, wants_of(plan), plan.repair)
        finally:
            engine.close()
        found[name] = (plan, evaluate_sampled(plan, tallied, ZeroNoise()))
    plan, made = found["men"]
    assert (
        made.sampled is not None
        and made.sampled.section()["sampling"]["unequal_factors"]["poststratified"] > 1.5
    )
    effect = made.sampled.unequal["poststratified"]
    narrow = replace(made.sampled, factors=None)
    for place, name in ((2, "north"), (3, "count")):
        wide, short = (each.total(plan.asks[place], made.answers, 0) for each in (made.sampled, narrow))
        assert wide is not None and short is not None
        assert wide.margin == pytest.approx(short.margin * effect**0.5, rel=0.02), name
    assert len(plan.routes[4].parts) == 6
    plan, made = found["plain men"]
    assert made.sampled is not None and len(plan.routes[4].parts) == 3
    assert all(made.sampled.total(plan.asks[place], made.answers, 0) is None for place in (2, 3, 4))
