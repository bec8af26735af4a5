"""Real tables, where the data folder is there: with the noise taken out, answers equal pandas' own."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.plan.plan import plan_from
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import ZeroNoise

DATA = Path(os.environ.get("RETICENT_DATA", Path(__file__).parents[2] / "shared" / "data"))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not (DATA / "adult.parquet").is_file(), reason="the data folder is not here"),
]
WORK = [
    "Private",
    "Self-emp-not-inc",
    "Self-emp-inc",
    "Federal-gov",
    "Local-gov",
    "State-gov",
    "Without-pay",
    "Never-worked",
]
MARITAL = [
    "Married-civ-spouse",
    "Divorced",
    "Never-married",
    "Separated",
    "Widowed",
    "Married-spouse-absent",
    "Married-AF-spouse",
]
CODEBOOK = {
    "survey": {"name": "adult", "unit": "row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [17, 90]},
        "work": {"kind": "categorical", "source": "workclass", "levels": WORK},
        "marital": {"kind": "categorical", "source": "marital-status", "levels": MARITAL},
        "hours": {"kind": "integer", "source": "hours-per-week", "bounds": [1, 99]},
    },
}
ASKS = [
    {"name": "count", "query": {"count": "*", "where": "hours >= 40 and work = 'Private'"}, "epsilon": "1"},
    {"name": "mean", "query": {"mean": "hours", "where": "marital != 'Divorced'"}, "epsilon": "1"},
    {"name": "silent", "query": {"proportion": "work is missing"}, "epsilon": "1"},
    {"name": "median", "query": {"median": "age", "step": "1"}, "epsilon": "1"},
    {"name": "variance", "query": {"variance": "age"}, "epsilon": "1"},
    {"name": "table", "query": {"table": ["work"]}, "epsilon": "1"},
]


def test_adult_without_noise_equals_pandas():
    """Odd headers, dictionary-encoded text and real holes, through the whole path but the noise."""
    import pandas as pd

    data = {
        "survey": {"source": "a.parquet", "codebook": "a.toml", "ledger": "a.db"},
        "release": {"id": "adult-1"},
        "protect": {"change": "one respondent added or removed", "epsilon": "6"},
        "statistic": ASKS,
    }
    plan = plan_from(data, CODEBOOK)
    engine = DuckDBEngine(open_path(str(DATA / "adult.parquet")))
    engine.check(plan.schema)
    answers = evaluate(plan, engine.tally(plan.schema, wants_of(plan)), ZeroNoise())
    engine.close()
    frame = pd.read_parquet(DATA / "adult.parquet")
    found = {name: [e.value for e in answer.estimates] for name, answer in answers.items()}
    hours, work = frame["hours-per-week"], frame["workclass"].astype("object")
    assert found["count"] == [int(((hours >= 40) & (work == "Private")).sum())]
    others = hours[frame["marital-status"] != "Divorced"]
    assert found["mean"] == [Fraction(int(others.sum()), len(others))]
    assert found["silent"] == [Fraction(int(work.isna().sum()), len(frame))]
    assert found["median"] == [int(frame["age"].median())]
    about = round(frame["age"].mean())
    assert found["variance"] == [Fraction(int(((frame["age"] - about) ** 2).sum()), len(frame) - 1)]
    assert found["table"] == [*(int((work == level).sum()) for level in WORK), int(work.isna().sum())]
