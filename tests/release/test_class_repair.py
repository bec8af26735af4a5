"""Columns with levels filled from private chances: as by hand, chained with lines, and no respondent moves another's row."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.lab.noise import NoModelNoise, SeededBits
from reticent.plan.plan import Plan
from reticent.prepare.repair import WHOLE, Chances, PredictorCells, Repair
from reticent.privacy.ledger import Ledger
from reticent.release.check import gaps
from reticent.release.curator import Curator
from reticent.release.models import check_models, fit_models
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from tests.models.doubles import FrozenModelNoise
from tests.models.draws import follow_rows
from tests.tables import ADD, REPLACE, book, make_plan, steps

COLUMNS = {
    "age": {"kind": "integer", "bounds": [18, 97]},
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "job": {"kind": "categorical", "levels": ["none", "part", "full"], "universe": "age < 70"},
    "pay": {"kind": "integer", "bounds": [0, 400]},
}
JOB = {"method": "classes", "column": "job", "from": ["age", "sex"], "epsilon": "1"}
PAY = {"method": "regression", "column": "pay", "from": ["job", "age"], "epsilon": "1", "fill": "drawn"}
MARGIN = {"table": ["job"]}
QUERIES = [MARGIN, {"proportion": "job = 'full'"}, {"mean": "pay"}]
ZERO = NoModelNoise()


def plan_of(*repair: dict[str, Any], queries: Any = QUERIES, **options: Any) -> Plan:
    return make_plan(queries, book(COLUMNS), repair=list(repair or (JOB,)), **options)


def people(n: int, seed: int, silent: float = 0.4) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 98, n), rng.integers(0, 2, n)
    job = (rng.random(n) < 0.3 + 0.4 * sex).astype(int) + (rng.random(n) < 0.5)
    pay = np.clip(50 + 80 * job + rng.normal(0, 20, n), 0, 400).astype(int)
    lost = [rng.random(n) < silent * (0.5 + sex) for _ in range(2)]
    return pa.table(
        {
            "age": age,
            "sex": pa.array(["f", "m"]).take(pa.array(sex)),
            "job": pa.array(["none", "part", "full"]).take(pa.array(job, mask=lost[0])),
            "pay": pa.array(pay, mask=lost[1]),
        }
    )


def run(plan: Plan, table: pa.Table, noise: Any, bits: Any) -> Any:
    engine = DuckDBEngine(open_frame(table), threads=1)
    try:
        modelled = fit_models(plan, engine, None, noise=noise, bits=bits)
        return modelled, evaluate(plan, engine.tally(plan.schema, wants_of(plan), modelled.repair), noise)
    finally:
        engine.close()


def values(answer: Any) -> list[int]:
    return [int(each.value) for each in answer.estimates]


def test_the_likeliest_level_is_filled_as_by_hand() -> None:
    """Every row by its own cell of age group and sex; those who were not asked stay so, and nobody is left silent."""
    table, plan = people(2_000, 1), plan_of({**JOB, "fill": "mode"}, queries=[MARGIN])
    modelled, answers = run(plan, table, ZERO, SeededBits(np.random.default_rng(2)))
    best = modelled.fits[0].chances.argmax(axis=1)
    counts = [0, 0, 0, 0, 0]
    for row in table.to_pylist():
        place = 3 * ((row["age"] - 18) // 20) + ["f", "m"].index(row["sex"])
        level = ["none", "part", "full"].index(row["job"]) if row["job"] else int(best[place])
        counts[4 if row["age"] >= 70 else level] += 1
    assert values(answers["ask 0"]) == counts and counts[3] == 0


def test_draws_follow_the_chances() -> None:
    """20,000 gaps in two cells: shares within six standard errors; and the likeliest level alone, the naive twin, not."""
    n = 20_000
    silent = pa.array([None] * n, pa.string())
    sex = pa.array(["f", "m"] * (n // 2))
    table = pa.table({"age": [20] * n, "sex": sex, "job": silent, "pay": [1] * n})
    schema = plan_of().schema
    rng = np.random.default_rng(3)
    steps = tuple((WHOLE // 10 * a, WHOLE // 10 * b, 0) for a, b in ((2, 5), (5, 9)))
    shares = {}
    for name, draw in (("draws", lambda k: rng.integers(0, WHOLE, k).astype(np.int32)), ("mode", None)):
        chances = Chances(
            column="job", low=0, high=2, sides=(PredictorCells(column="sex"),), steps=steps, draw=draw
        )
        engine = DuckDBEngine(open_frame(table), threads=1)
        want = plan_of(queries=[{"table": ["sex", "job"]}]).asks[0].query.wants(schema)[0]
        found = engine.tally(schema, [want], Repair(lines=(chances,)))
        engine.close()
        shares[name] = np.array(found.tables[want].cells).reshape(3, 5)[:2, :3] / (n / 2)
    truth = np.array([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1]])
    assert (
        np.abs(shares["draws"] - truth).max()
        < 6 * (0.25 / (n / 2)) ** 0.5
        < np.abs(shares["mode"] - truth).max()
    )


def test_a_chain_takes_levels_as_just_filled() -> None:
    """Job is drawn first, then pay from it: without noise the mean pay is the truth, within six standard errors of 1.6.
    Without the chain, the naive twin, rows that lack a job are filled as those with none, 20 lower."""
    table = people(6_000, 4)
    whole = people(6_000, 4, silent=0.0)
    truth = float(np.mean(whole["pay"].to_numpy()))
    chain, alone = plan_of(JOB, PAY, queries=QUERIES[2:]), plan_of(PAY, queries=QUERIES[2:])
    found = [
        float(run(plan, table, ZERO, SeededBits(np.random.default_rng(5)))[1]["ask 0"].estimates[0].value)
        for plan in (chain, alone)
    ]
    assert abs(found[0] - truth) < 6 * 1.6 and abs(found[0] - truth) < abs(found[1] - truth)


CORNERS = [(18, "f", "none", 0), (69, "m", "full", 400), (18, "m", None, None), (97, "f", None, 400)]


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_replay_with_frozen_noise_on_every_neighbour(change: str) -> None:  # covers T08 T20
    """Table, line and asks: same calls, same parameters, nothing further apart than its noise is made for.

    The naive twin fills the likeliest level by a table without noise, and many rows follow one respondent.
    """
    plan, table = plan_of(JOB, PAY, change=change), people(14, 6)
    base = table.slice(0, 13) if change == REPLACE else table
    rows = [dict(zip(COLUMNS, each, strict=True)) for each in CORNERS]
    others = [pa.concat_tables([base, pa.Table.from_pylist([row], schema=table.schema)]) for row in rows]
    first = FrozenModelNoise()
    for place, survey in enumerate([table, *others]):
        again = first if place == 0 else FrozenModelNoise(prescribed=first.outputs)
        with pytest.MonkeyPatch.context() as patch:
            follow_rows(patch)
            run(plan, survey, again, SeededBits(np.random.default_rng(7)))
        assert [c.parameters for c in again.calls] == [c.parameters for c in first.calls]
        for mine, theirs in zip(first.calls, again.calls, strict=True):
            assert mine.distance(theirs) <= mine.sensitivity
    assert len(first.calls) == 1 + 1 + 1 + 2 + 2


def test_without_noise_on_the_table_one_respondent_moves_many() -> None:
    """The naive twin: 50 silent rows follow the one who answers."""
    silent = [{"age": 30, "sex": "f", "job": None, "pay": 1}] * 50
    told = [pa.Table.from_pylist([*silent, {**silent[0], "job": level}]) for level in ("none", "full")]
    plan = plan_of({**JOB, "fill": "mode"}, queries=[MARGIN])
    found = [values(run(plan, t, ZERO, SeededBits(np.random.default_rng(8)))[1]["ask 0"]) for t in told]
    assert sum(abs(a - b) for a, b in zip(*found, strict=True)) == 2 * 51


def test_it_is_charged_and_tells_its_chances(tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "a.db", dataset="tiny", change=ADD, unit="epsilon", budget="20")
    survey = Survey(people(200, 9), codebook=book(COLUMNS))
    asks = [{"name": f"q{i}", "query": q, "epsilon": "0.5"} for i, q in enumerate(QUERIES)]
    plan = survey.plan("r-1", epsilon="6", statistics=asks, **steps([JOB, PAY]))
    check_models(plan)
    Curator(ledger).release(plan, survey, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "r-1.json").read_bytes())
    assert ledger.spent == plan.cost == Fraction(7, 2)
    first = told["models"][0]
    assert first["estimator"] == "table" and len(first["chances"]) == 5 * 3
    assert all(abs(sum(row) - 1) < 1e-3 for row in first["chances"])
    assert "was drawn from private chances given age and sex" in told["imputation"][0]
    assert "proofs/models/tabled.md" in {each["proof"] for each in told["guarantee"]["rests_on"]}
    empty = Survey(people(0, 9), codebook=book(COLUMNS))
    Curator(ledger).release(empty.plan("r-2", epsilon="6", statistics=asks, **steps([JOB])), empty, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": ((1,),)},
        {"sides": ()},
        {"sides": (PredictorCells(column="job"),)},
        {"steps": ((1, 2), (1,))},
    ],
)
def test_chances_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"column": "job", "low": 0, "high": 2, "sides": (PredictorCells(column="sex"),), "steps": ((1, 1), (2, 2))}  # fmt: skip
    Chances(**good)
    with pytest.raises(PlanError):
        Chances(**{**good, **change})
    engine = DuckDBEngine(open_frame(people(3, 1)), threads=1)
    plan = plan_of()
    with pytest.raises(PlanError, match="other cells"):
        engine.tally(plan.schema, wants_of(plan), Repair(lines=(Chances(**good),)))
    engine.close()


def test_check_counts_the_gaps_of_models() -> None:
    """By hand: gaps among those who were asked, rows with the answer for a table, with everything for a line."""
    plan, table = plan_of(JOB, PAY), people(500, 11)
    engine = DuckDBEngine(open_frame(table), threads=1)
    job, pay = gaps(engine, plan)
    engine.close()
    rows = table.to_pylist()
    asked = [row for row in rows if row["age"] < 70]
    assert job.is_modelled and pay.is_modelled and not job.has_donors
    assert job.before == job.after == sum(row["job"] is None for row in asked)
    assert job.donors == sum(row["job"] is not None for row in asked)
    assert pay.after == sum(row["pay"] is None for row in rows)
    assert pay.donors == sum(row["pay"] is not None and row["job"] is not None for row in asked)
