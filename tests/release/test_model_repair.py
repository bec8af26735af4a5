"""A release whose gaps are filled from private lines: read, fitted, charged, and no respondent moves more than one row."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.lab.noise import NoModelNoise, SeededBits
from reticent.models.fit import SystemModelNoise
from reticent.models.imputing import predictions
from reticent.noise.bits import SystemBits
from reticent.plan.models import LINES
from reticent.plan.plan import Plan
from reticent.plan.statistics import Statistics
from reticent.preview.preview import expectations
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.document import document
from reticent.release.models import ESTIMATORS, Modelled, ModelsResult, check_models, design_of, fit_models
from reticent.release.release import Release
from reticent.release.statistics import StatisticsResult, evaluate, wants_of
from reticent.release.survey import Survey
from tests.models.doubles import FrozenModelNoise
from tests.tables import ADD, REPLACE, book, make_plan, steps

COLUMNS = {
    "age": {"kind": "integer", "bounds": [18, 98]},
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "job": {"kind": "categorical", "levels": ["none", "part", "full"]},
    "hours": {"kind": "integer", "bounds": [0, 80]},
    "pay": {"kind": "integer", "bounds": [0, 400]},
}
PAY = {"method": "regression", "column": "pay", "from": ["age", "hours", "job"], "epsilon": "0.5"}
HOURS = {"method": "regression", "column": "hours", "from": ["age", "sex"], "epsilon": "0.25"}
QUERIES = [
    {"total": "pay"},
    {"mean": "pay", "where": "age >= 40"},
    {"count": "*", "where": "pay < 60"},
    {"quantile": "pay", "at": "0.5", "step": "4"},
    {"count": "*", "where": "sex = 'f'"},
]
ZERO = NoModelNoise()


def plan_of(*repair: dict[str, Any], queries: Any = QUERIES, **options: Any) -> Plan:
    return make_plan(queries, book(COLUMNS), repair=list(repair or (PAY,)), **options)


def people(n: int, seed: int = 0, *, silent: float = 0.3) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex, job = rng.integers(18, 99, n), rng.integers(0, 2, n), rng.integers(0, 3, n)
    hours = np.clip(10 + 0.2 * age + 5 * sex + rng.normal(0, 3, n), 0, 80).astype(int)
    pay = np.clip(20 + 2 * hours + 60 * (job == 2) + 30 * (job == 1) + rng.normal(0, 5, n), 0, 400).astype(
        int
    )
    lost = [rng.random(n) < silent * (0.5 + job / 2) for _ in range(2)]
    return pa.table(
        {
            "age": age,
            "sex": pa.array(["f", "m"]).take(pa.array(sex)),
            "job": pa.array(["none", "part", "full"]).take(pa.array(job)),
            "hours": pa.array(hours, mask=lost[0]),
            "pay": pa.array(pay, mask=lost[1]),
        }
    )


def run(plan: Plan, table: pa.Table, noise: Any, bits: Any = None) -> tuple[Modelled, dict[str, Any]]:
    engine = DuckDBEngine(open_frame(table), threads=1)
    try:
        modelled = fit_models(plan, engine, None, noise=noise, bits=bits or SystemBits())
        return modelled, evaluate(plan, engine.tally(plan.schema, wants_of(plan), modelled.repair), noise)
    finally:
        engine.close()


def columns_of(table: pa.Table) -> dict[str, np.ndarray]:
    jobs = np.array(table["job"].to_pylist())
    numbers = {n: np.array(table[n].to_pylist(), dtype=float) for n in ("age", "hours", "pay")}
    return {
        **numbers,
        "sex": np.array(table["sex"].to_pylist()) == "m",
        "part": jobs == "part",
        "full": jobs == "full",
    }


def textbook(held: dict[str, np.ndarray], column: str, on: list[str]) -> np.ndarray:
    """Least squares on complete rows, gaps filled, rounded and clamped; a missing number counts as the middle."""
    x = np.column_stack([np.ones(len(held["age"])), *(held[name] for name in on)]).astype(float)
    y = held[column]
    whole = ~np.isnan(y) & ~np.isnan(x).any(axis=1)
    line = np.linalg.lstsq(x[whole], y[whole], rcond=None)[0]
    x = np.where(np.isnan(x), 40, x)
    high = COLUMNS[column]["bounds"][1]
    return np.where(np.isnan(y), np.clip(np.floor(x @ line + 0.5), 0, high), y)


# Reading.


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"column": "sex", "method": "classes", "estimator": "centred"}, "is one of table"),
        ({"column": "sex", "method": "classes", "fill": "mean"}, "is one of drawn, mode"),
        ({"column": "sex", "method": "classes", "copies": 2}, "has one"),
        ({"column": "sex", "method": "classes", "groups": 50, "from": ["age", "hours"]}, "at most 4096"),
        ({"groups": 3}, "remove it"),
        ({"column": "pey"}, "no column"),
        ({"from": ["pay"]}, "again"),
        ({"from": ["age", "age"]}, "again"),
        ({"from": []}, "at least 1"),
        ({"epsilon": "0"}, "0"),
        ({"epsilon": None}, "epsilon"),
        ({"estimator": "robust"}, "is one of"),
        ({"fill": "mean"}, "is one of"),
    ],
)
def test_a_model_that_cannot_be_is_refused_before_any_row(change: dict[str, Any], word: str) -> None:
    with pytest.raises(PlanError, match=word):
        plan_of({k: v for k, v in {**PAY, **change}.items() if v is not None})


def test_kinds_that_no_theorem_covers_together_are_refused() -> None:
    donors = {"method": "donors", "bound": "hubs", "column": "hours", "match": ["sex"]}
    for repair, word in (((PAY, donors), "do not go"), ((PAY, PAY), "twice")):
        with pytest.raises(PlanError, match=word):
            plan_of(*repair)


def test_the_plan_costs_its_lines_and_its_asks() -> None:
    """0.25 + 0.5 for two lines, and five asks at 1; the cap counts them all."""
    plan = plan_of(HOURS, PAY)
    assert plan.cost == Fraction(23, 4) == plan.claim.epsilon
    pages = {page for _, page in plan.claim.rests_on}
    assert {"proofs/models/centred.md", "proofs/release/model_fit.md"} <= pages
    with pytest.raises(PlanError, match="plan needs 5"):
        plan_of(HOURS, PAY, protect={"change": ADD, "epsilon": "5.7"})
    said = [each.words for each in expectations(plan)]
    assert all(
        "missing values of pay were filled from a private line and count as answers" in words
        for words in said[:4]
    )
    assert "private line" not in said[4]


@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("estimator", LINES)
def test_what_is_planned_is_what_is_run(estimator: str, change: str) -> None:
    plan = plan_of({**PAY, "estimator": estimator}, change=change)
    check_models(plan)
    modelled, _ = run(plan, people(60), SystemModelNoise())
    assert modelled.claims(plan) == [plan.models[0].claim(plan.change)] and modelled.epsilon == Fraction(1, 2)
    assert set(ESTIMATORS) == set(LINES)


def test_a_line_that_could_not_be_drawn_is_refused_before_the_charge() -> None:
    """40 levels make 39 coefficients, more than spherical noise can be drawn for."""
    wide = {**COLUMNS, "town": {"kind": "categorical", "levels": [f"t{i}" for i in range(40)]}}
    repair = [{**PAY, "from": ["town"], "estimator": "output"}]
    plan = make_plan(QUERIES, book(wide), repair=repair)
    with pytest.raises(PlanError, match="at most 32"):
        check_models(plan)


# Fitting and filling.


def test_without_noise_it_is_the_textbook_answer() -> None:
    """Chained: hours from age and sex, then pay from the filled hours; levels of job are told apart."""
    table = people(600)
    _, answers = run(plan_of({**HOURS, "epsilon": "400"}, {**PAY, "epsilon": "400"}), table, ZERO)
    held = columns_of(table)
    held["hours"] = textbook(held, "hours", ["age", "sex"])
    pay = textbook(held, "pay", ["age", "hours", "part", "full"])
    total, mean, poor, median, women = (answer.estimates[0].value for answer in answers.values())
    # Coefficients are told in steps of 2^-30, so a prediction at the edge of a half may round the other way.
    assert abs(total - pay.sum()) <= 3 and abs(poor - (pay < 60).sum()) <= 2
    assert abs(float(mean) - pay[held["age"] >= 40].mean()) < 0.05
    assert abs(float(median) - np.median(pay)) <= 4 and women == (~held["sex"].astype(bool)).sum()
    unfilled = textbook(columns_of(table), "pay", ["age", "hours", "part", "full"])
    assert abs(total - unfilled.sum()) > 3


def test_rows_are_filled_as_arrays_are() -> None:
    """The engine's integers and the models' own doubles agree, but for halves."""
    plan = plan_of({**PAY, "from": ["age", "hours"]})
    table = people(400)
    modelled, answers = run(plan, table, ZERO)
    held = columns_of(table)
    design = design_of(plan.models[0], plan.schema)
    said = predictions(modelled.fits[0], design, np.column_stack([held["age"], held["hours"]]))
    pay = np.where(np.isnan(held["pay"]), said, held["pay"])
    assert abs(answers["ask 0"].estimates[0].value - pay.sum()) <= 2


def test_draws_keep_the_spread_that_a_line_takes_away() -> None:
    """4,000 rows, half of them filled from age: the variance of pay comes back with draws alone."""
    whole = people(4_000, silent=0.0)
    lost = np.random.default_rng(1).random(4_000) < 0.5
    pay = pa.array(whole["pay"].to_numpy(), mask=lost)
    table, truth = whole.set_column(4, "pay", pay), float(np.var(whole["pay"].to_numpy()))

    def found(fill: str) -> float:
        repair = {**PAY, "from": ["age"], "epsilon": "100", "fill": fill}
        plan = plan_of(repair, queries=[{"variance": "pay"}])
        _, answers = run(plan, table, ZERO, SeededBits(np.random.default_rng(2)))
        return float(answers["ask 0"].estimates[0].value)

    assert found("predicted") < 0.7 * truth < 0.9 * truth < found("drawn") < 1.1 * truth


# The promise.


CORNERS = [(18, 0, "none", 0), (98, 80, "full", 400), (98, None, "part", 400), (98, 80, "full", None)]


def neighbours(table: pa.Table, *, replaced: bool) -> list[pa.Table]:
    """The last row exchanged for, or joined by, rows at the corners; silent ones among them; and the last one gone."""
    base = table.slice(0, len(table) - 1) if replaced else table
    found = []
    for age, hours, job, pay in CORNERS:
        row = {"age": age, "sex": "f", "job": job, "hours": hours, "pay": pay}
        found.append(pa.concat_tables([base, pa.Table.from_pylist([row], schema=table.schema)]))
    return found if replaced else [*found, table.slice(0, len(table) - 1)]


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_replay_with_frozen_noise_on_every_neighbour(change: str) -> None:  # covers T08 T20
    """Same calls, same public parameters, and no sum further apart than its noise is made for.

    The naive twin fits the line without noise and protects the asks alone: a line through few answers moves
    many filled rows, and the total moves further than one row's bound.
    """
    table = pa.concat_tables([people(12, silent=0.2), people(60, seed=1, silent=2.0)])
    plan = plan_of(HOURS, PAY, queries=QUERIES[:3], change=change)
    first, others = FrozenModelNoise(), neighbours(table, replaced=change == REPLACE)
    run(plan, table, first)
    for other in others:
        again = FrozenModelNoise(prescribed=first.outputs)
        run(plan, other, again)
        assert [c.parameters for c in again.calls] == [c.parameters for c in first.calls]
        for mine, theirs in zip(first.calls, again.calls, strict=True):
            assert mine.distance(theirs) <= mine.sensitivity
    assert len(first.calls) == 2 + 4
    sure = plan_of({**HOURS, "epsilon": "400"}, {**PAY, "epsilon": "400"}, queries=QUERIES[:3], change=change)
    here, there = (naive_calls(sure, each) for each in (table, others[1]))
    assert any(a.distance(b) > a.sensitivity for a, b in zip(here, there, strict=True))


def naive_calls(plan: Plan, table: pa.Table) -> list[Any]:
    """The asks' meetings with the noise, after lines that met none."""
    repair, noise = run(plan, table, ZERO)[0].repair, FrozenModelNoise()
    run(replace(plan, repair=repair, products=(plan.product(Statistics),)), table, noise)
    return noise.calls


def test_the_same_noisy_numbers_give_the_same_document_whatever_the_rows() -> None:  # covers T22
    """Coefficients are released; how many rows had gaps, or gave the line, is not."""
    plan = plan_of(HOURS, PAY)
    shown = []
    outputs: Any = ()
    for table in (people(50), people(90, seed=4, silent=0.9)):
        noise = FrozenModelNoise(prescribed=outputs)
        modelled, answers = run(plan, table, noise)
        outputs = noise.outputs
        done = (ModelsResult(plan=plan, modelled=modelled), StatisticsResult(plan=plan, answers=answers))
        made = document(plan, done, receipt={"entry": 2}, engine="engine")
        shown.append(Release(made).to_bytes())
    assert shown[0] == shown[1]


def test_it_is_charged_and_tells_its_lines(tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "a.db", dataset="tiny", change=ADD, unit="epsilon", budget="10")
    survey = Survey(people(300), codebook=book(COLUMNS))
    asks = [{"name": f"q{i}", "query": q, "epsilon": "0.5"} for i, q in enumerate(QUERIES)]
    repair = [HOURS, {**PAY, "fill": "drawn"}]
    plan = survey.plan("r-1", epsilon="6", statistics=asks, **steps(repair))
    made = Curator(ledger).release(plan, survey, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "r-1.json").read_bytes())
    assert ledger.spent == plan.cost == Fraction(13, 4)
    assert [each["column"] for each in told["models"]] == ["hours", "pay"]
    assert {s.get("level") for s in told["models"][1]["slopes"]} == {None, "part", "full"}
    assert "drawn about a private line on age, hours and job" in told["imputation"][1]
    assert "its own error is not covered" in told["statistics"][0]["interval"]["meaning"]
    assert "its own error" not in told["statistics"][4]["interval"]["meaning"]
    assert "proofs/release/model_fit.md" in {each["proof"] for each in told["guarantee"]["rests_on"]}
    assert Curator(ledger).release(plan, survey, tmp_path / "out").to_bytes() == made.to_bytes()
    assert ledger.spent == plan.cost
    # Nobody at all, or nobody who answered: a release all the same.
    for name, rows in (("r-2", people(0)), ("r-3", people(30, silent=3.0))):
        empty = Survey(rows, codebook=book(COLUMNS))
        Curator(ledger).release(
            empty.plan(name, epsilon="6", statistics=asks[:1], **steps(repair)), empty, tmp_path
        )


@pytest.mark.parametrize("kind", ["is missing", "is not missing", "is answered"])
def test_nobody_is_asked_about_silence_that_a_model_has_filled(kind: str) -> None:
    """The answer would always be nobody, or everybody, wherever it stands; other columns, and who was asked, may be asked."""
    for query in (
        {"count": "*", "where": f"age > 30 and pay {kind}"},
        {"proportion": f"pay {kind}"},
        {"mean": "hours", "where": f"pay {kind}"},
    ):
        with pytest.raises(PlanError, match="without this repair"):
            plan_of(queries=[query])
    assert plan_of(queries=[{"count": "*", "where": f"hours {kind}"}])
    assert plan_of(queries=[{"count": "*", "where": "not pay is structural"}])
