"""Real surveys with real base weights, where the data folder is there: without noise, weights equal pandas' own.

The totals are round numbers of the size of the population, as a curator would copy them from a census table; they
are not read off the rows.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.plan.plan import Plan, plan_from
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import ZeroNoise
from tests.test_real_data import DATA

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not (DATA / "nhanes.parquet").is_file(), reason="the data folder is not here"),
]
EDGES = {"nhanes": [0, 20, 40, 60, 80], "gss2016": [18, 35, 50, 65, 89]}
TOTALS = {
    "nhanes": {"female": (40, 41, 44, 32), "male": (42, 40, 42, 26)},
    "gss2016": {"Female": (35, 32, 33, 27), "Male": (36, 31, 31, 21)},
}
MILLION = 1_000_000
COLUMNS: dict[str, dict[str, Any]] = {
    "nhanes": {
        "age": {"kind": "integer", "source": "Age", "bounds": [0, 80]},
        "sex": {"kind": "categorical", "source": "Gender", "levels": ["female", "male"]},
        "poverty": {"kind": "decimal", "source": "Poverty", "bounds": ["0", "5"], "grid": "0.01"},
        "w": {
            "kind": "decimal",
            "source": "WTINT2YR",
            "bounds": ["0", "250000"],
            "grid": "1",
            "role": "weight",
        },
    },
    "gss2016": {
        "age": {"kind": "integer", "bounds": [18, 89]},
        "sex": {"kind": "categorical", "levels": ["Female", "Male"]},
        "happy": {
            "kind": "categorical",
            "levels": ["Not Too Happy", "Pretty Happy", "Very Happy"],
        },
        "w": {
            "kind": "decimal",
            "source": "wtssall",
            "bounds": ["0", "8"],
            "grid": "0.001",
            "role": "weight",
        },
    },
}
CONDITION = {"nhanes": "poverty < 1", "gss2016": "happy = 'Very Happy'"}


def labels(name: str) -> list[str]:
    edges = EDGES[name]
    inner = [f"{a} to under {b}" for a, b in pairwise(edges[:-1])]
    return [*inner, f"{edges[-2]} to {edges[-1]}"]


def plan_for(name: str) -> Plan:
    totals = [
        {"age": label, "sex": sex, "total": total * MILLION}
        for sex, line in TOTALS[name].items()
        for label, total in zip(labels(name), line, strict=True)
    ]
    sexes = list(TOTALS[name])
    weight = {
        "base": "w",
        "by": [
            {"column": "age", "bins": EDGES[name], "missing": labels(name)[1]},
            {"column": "sex", "missing": sexes[0]},
        ],
        "totals": totals,
    }
    bar = {"epsilon": "1", "interval": {"epsilon": "0.25"}}
    where = {"where": CONDITION[name], "weight": "poststratified"}
    asks = [
        {"name": "count", "query": {"count": "*", **where}, **bar},
        {"name": "share", "query": {"proportion": CONDITION[name], "weight": "poststratified"}, **bar},
    ]
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "real"},
        "expect": {"rows": 20_000},
        "protect": {"change": "one respondent added or removed", "epsilon": "5"},
        "weight": weight,
        "statistic": asks,
    }
    return plan_from(data, {"survey": {"name": name, "unit": "row"}, "columns": COLUMNS[name]})


def by_pandas(name: str, *, base: bool = True) -> tuple[float, float]:
    """The weighted count and share, with weights rounded to the codebook's grid by the library's rule."""
    import pandas as pd

    rows = pd.read_parquet(DATA / f"{name}.parquet")
    source = {key: column.get("source", key) for key, column in COLUMNS[name].items()}
    grid = 1.0 if name == "nhanes" else 0.001
    w = np.floor(rows[source["w"]].to_numpy(dtype=float) / grid + 0.5)
    w = w if base else np.ones_like(w)
    age = rows[source["age"]].astype("Float64").fillna(EDGES[name][1]).to_numpy(dtype=float)
    band = np.searchsorted(EDGES[name][1:-1], age, side="right")
    sex = (rows[source["sex"]].astype(str) == list(TOTALS[name])[1]).to_numpy(dtype=int)
    total = np.array(list(TOTALS[name].values())).T[band, sex] * MILLION
    weight = w * total / pd.Series(w).groupby([band, sex]).transform("sum").to_numpy()
    if name == "nhanes":
        value = rows["Poverty"].to_numpy(dtype=float)
        known, true = ~np.isnan(value), value < 0.995  # below 1 on a grid of hundredths
    else:
        known, true = rows["happy"].notna().to_numpy(), (rows["happy"] == "Very Happy").to_numpy()
    return float(weight[true].sum()), float(weight[true].sum() / weight[known].sum())


@pytest.mark.parametrize("name", ["nhanes", "gss2016"])
def test_without_noise_weights_equal_pandas(name):
    """The naive twin weighs everybody alike, and is off by more than one part in a hundred."""
    plan = plan_for(name)
    engine = DuckDBEngine(open_path(str(DATA / f"{name}.parquet")))
    try:
        tallies = engine.tally(plan.schema, wants_of(plan))
    finally:
        engine.close()
    exact = evaluate(plan, tallies, ZeroNoise())
    count, share = by_pandas(name)
    assert float(exact["count"].estimates[0].value) == pytest.approx(count, rel=1e-6)
    assert float(exact["share"].estimates[0].value) == pytest.approx(share, abs=1e-5)
    naive, _ = by_pandas(name, base=False)
    assert abs(naive / count - 1) > 0.01
