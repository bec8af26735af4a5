"""The demonstration: a survey with holes, its codebook, and a plan of twelve asks and a table within its cap, two of them on wages that donors fill."""

import tomllib
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from reticent.answer.parts import HiddenScale
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.lab import demo
from reticent.noise.source import SystemNoise
from reticent.plan.plan import read_plan
from reticent.query.filled import roles
from reticent.release.statistics import evaluate, wants_of
from reticent.schema.codebook import read_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    demo.demo_survey(folder, rows=4000)
    return folder


def test_the_survey_fits_its_codebook_and_has_holes(folder):
    survey = pq.read_table(folder / "survey.parquet")
    assert survey.num_rows == 4000
    assert set(read_schema(folder / "survey.codebook.toml").columns) == {*survey.column_names, "dealt"}
    asked = pc.greater_equal(survey["age"], 15).to_numpy()
    empty = ~survey["wage"].is_valid().to_numpy()
    assert 0.10 < empty[asked].mean() < 0.25 and empty[~asked].all()
    assert not survey["age"].null_count and not survey["sex"].null_count


def test_weights_stay_within_the_bound_and_matter(folder):
    weights = pq.read_table(folder / "survey.parquet")["weight"].cast("float64").to_numpy()
    effect = len(weights) * (weights**2).sum() / weights.sum() ** 2
    assert weights.min() > 0 and weights.max() < 60
    assert abs(effect - 1.6) < 0.2


def test_the_plan_has_thirteen_asks_and_a_table_within_its_cap(folder):
    plan = tomllib.loads((folder / "plan.toml").read_text())
    names = [ask["name"] for ask in plan["statistic"]]
    assert len(names) == len(set(names)) == 13 and [table["name"] for table in plan["tables"]] == [
        "age by sex"
    ]
    assert plan["expect"]["rows"] == 4000
    spent = sum(Decimal(ask.get("epsilon", "0")) for ask in plan["statistic"])
    for bought in ("interval", "sampling"):
        spent += sum(Decimal(ask.get(bought, {}).get("epsilon", "0")) for ask in plan["statistic"])
    spent += Decimal(plan["design"]["epsilon"]) + Decimal(plan["tables"][0]["epsilon"])
    assert spent == Decimal("4.65") <= Decimal(plan["protect"]["epsilon"])
    for ask in plan["statistic"]:
        assert set(ask["query"].get("difference", [])) <= set(names)


def test_capped_donors_fill_the_wages_and_intervals_are_free(folder):
    """What rests on filled wages has noise of public size, made for those whom a donor serves; nothing is confidential."""
    plan = read_plan(folder / "plan.toml")
    assert plan.repair.filled() == {"wage"} and plan.cost == Fraction(93, 20) < plan.cap == 5
    assert plan.repair.capped[0].serve == 5 and plan.repair.rings == 5
    filled = {ask.name for ask in plan.asks if roles(ask.query, plan.schema, plan.repair)}
    assert filled == {"spread of wages, employed", "mean wage, employed", "paid below 15,000, employed"}
    engine = DuckDBEngine(open_path(str(folder / "survey.parquet")), threads=1)
    try:
        answers = evaluate(plan, engine.tally(plan.schema, wants_of(plan), plan.repair), SystemNoise())
    finally:
        engine.close()
    for answer in answers.values():
        assert answer.estimates[0].has_interval and not any(isinstance(p, HiddenScale) for p in answer.parts)


def test_the_same_seed_writes_the_same_survey():
    one, again, other = (demo.survey(rows=500, seed=seed) for seed in (1, 1, 2))
    assert one.equals(again) and not one.equals(other)
    assert np.isclose(float(pc.sum(one["weight"]).as_py()), 500 * demo.PEOPLE_PER_ROW, atol=5)
