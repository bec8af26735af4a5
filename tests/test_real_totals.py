"""A real survey in clusters, where the data folder is there: totals of NHANES stand beside its design-based confidence intervals.

Six shares of adults, the sample's own weights and its 62 primary sampling units in 29 strata. What the design says is computed
from the rows by Taylor linearisation with pandas; ours never sees it.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.engine.wants import Tallies
from reticent.lab.noise import QuickNoise
from reticent.plan.plan import Plan, plan_from
from reticent.refine.total import student_half_width
from reticent.release.document import document
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from tests.test_real_data import DATA

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not (DATA / "nhanes.parquet").is_file(), reason="the data folder is not here"),
]
STRATA = range(75, 104)
THREE = (86, 90, 91, 92)
"""Strata of three units; all others have two."""
YES = ["No", "Yes"]
CODEBOOK: dict[str, Any] = {
    "survey": {"name": "nhanes-2009-2012", "unit": "row"},
    "columns": {
        "age": {"kind": "integer", "source": "Age", "bounds": [0, 80]},
        "bmi": {"kind": "decimal", "source": "BMI", "bounds": ["12", "70"], "grid": "0.01"},
        "diabetes": {"kind": "categorical", "source": "Diabetes", "levels": YES},
        "smoked": {"kind": "categorical", "source": "Smoke100", "levels": YES},
        "sleep": {"kind": "categorical", "source": "SleepTrouble", "levels": YES},
        "active": {"kind": "categorical", "source": "PhysActive", "levels": YES},
        "health": {
            "kind": "ordinal",
            "source": "HealthGen",
            "levels": ["Poor", "Fair", "Good", "Vgood", "Excellent"],
        },
        "w": {"kind": "decimal", "source": "WTMEC2YR", "bounds": [0, 225000], "grid": 1, "role": "weight"},
        "stratum": {
            "kind": "categorical",
            "source": "SDMVSTRA",
            "role": "stratum",
            "levels": [str(each) for each in STRATA],
        },
        "psu": {
            "kind": "categorical",
            "source": "SDMVPSU",
            "role": "psu",
            "levels": ["1", "2", "3"],
            "drawn": [3 if each in THREE else 2 for each in STRATA],
        },
    },
}
SHARES = {
    "obese": "bmi >= 30",
    "diabetes": "diabetes = 'Yes'",
    "ever smoked": "smoked = 'Yes'",
    "trouble sleeping": "sleep = 'Yes'",
    "active": "active = 'Yes'",
    "poor health": "health <= 'Fair'",
}
RUNS = 200


@cache
def surveyed() -> tuple[Plan, Tallies]:
    """The plan and its tallies: noise is drawn on them again and again."""
    asks = [
        {
            "name": name,
            "query": {"proportion": each, "where": "age >= 20", "weight": "w"},
            "epsilon": "0.2",
        }
        for name, each in SHARES.items()
    ]
    data = {
        "survey": {"source": "n.parquet", "codebook": "n.toml", "ledger": "n.db"},
        "release": {"id": "nhanes-1"},
        "protect": {"change": "one respondent added or removed", "epsilon": "2"},
        "design": {"items": list(SHARES), "epsilon": "0.2"},
        "statistic": asks,
    }
    plan = plan_from(data, CODEBOOK)
    engine = DuckDBEngine(open_path(str(DATA / "nhanes.parquet")))
    engine.check(plan.schema)
    tallies = engine.tally(plan.schema, wants_of(plan))
    engine.close()
    return plan, tallies


def draws(runs: int = RUNS) -> Iterator[dict[str, dict[str, Any]]]:
    """Releases of the same rows, each with noise of its own."""
    plan, tallies = surveyed()
    for seed in range(runs):
        made = evaluate_sampled(plan, tallies, QuickNoise(np.random.default_rng(seed)))
        assert made.sampled is not None
        result = StatisticsResult(plan=plan, answers=made.answers, sampled=made.sampled)
        told = document(plan, [result], receipt=None, engine="test")
        yield {each["name"]: each["estimates"][0] for each in told["statistics"]}


def by_design() -> dict[str, tuple[float, float, float]]:
    """Each share, its margin at 95 % by linearisation over units with 33 degrees of freedom, and its design effect."""
    import pandas as pd

    frame = pd.read_parquet(DATA / "nhanes.parquet")
    frame["BMI"] = frame["BMI"].round(2)
    columns = {
        "obese": "BMI",
        "diabetes": "Diabetes",
        "ever smoked": "Smoke100",
        "trouble sleeping": "SleepTrouble",
    }
    columns |= {"active": "PhysActive", "poor health": "HealthGen"}
    found = {}
    for name, column in columns.items():
        answered = (frame["Age"] >= 20) & frame[column].notna()
        wanted = frame[column] >= 30 if name == "obese" else frame[column].isin(["Yes", "Poor", "Fair"])
        w = frame["WTMEC2YR"].to_numpy() * answered.to_numpy()
        share = float((w * wanted).sum() / w.sum())
        z = pd.DataFrame({"h": frame["SDMVSTRA"], "c": frame["SDMVPSU"], "z": w * (wanted - share) / w.sum()})
        units = z.groupby(["h", "c"])["z"].sum().groupby("h")
        variance = float((units.var() * units.size()).sum())
        effect = variance / (share * (1 - share) / ((w > 0).sum()))
        found[name] = share, student_half_width(33.0, 0.95) * variance**0.5, effect
    return found


def test_totals_of_a_real_survey_are_about_as_wide_as_its_design_says() -> None:
    """Their mean over six shares is; one share alone may be off by the root of how far its design effect is from the mean of
    all. The twin, the interval for privacy noise alone, is a fraction of it."""
    known, made = by_design(), list(draws(40))
    total = {name: np.median([each[name]["total_margin"] for each in made]) for name in known}
    noise = {
        name: np.median([each[name]["privacy_high"] - each[name]["privacy_low"] for each in made]) / 2
        for name in known
    }
    for name, (share, margin, _) in known.items():
        assert abs(np.median([each[name]["value"] for each in made]) - share) < 0.004
        assert 0.65 < total[name] / margin < 2.6
    ratios = [total[name] / margin for name, (_, margin, _) in known.items()]
    assert 0.9 < float(np.exp(np.mean(np.log(ratios)))) < 1.6
    assert min(noise[name] / margin for name, (_, margin, _) in known.items()) < 0.35
