"""Do the intervals of statistics by domain cover, and what would separate statistics at the same total budget cost?

Every run draws a simple random sample of a made-up country of five unequal regions, and answers its plan with noise. The
interval for privacy noise is held against what the same respondents say without noise, and the total interval against the
country, under a declared design effect of 1. A case's `apart` twin asks for each region by itself, each at a fifth of the
budget: what one has to do without domains. Coverage is over runs and regions; the width is that of the median interval over
2 x 1.96 root mean squared errors of what it is about; none is told where a choice never erred.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.noise import NoNoise, QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import Floats, groups
from reticent.plan.plan import Plan, plan_from
from reticent.release.document import document
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey

LEVEL, EPSILON = 0.95, "0.5"
Z = 1.959963984540054
REGIONS = {"north": 0.40, "east": 0.25, "south": 0.20, "west": 0.10, "isles": 0.05}
RATES = {"north": 0.08, "east": 0.12, "south": 0.20, "west": 0.30, "isles": 0.15}
SIZES = (5_000, 20_000)
QUERIES: dict[str, Row] = {
    "count": {"count": "*"},
    "share": {"proportion": "poor = 'yes'"},
    "mean": {"mean": "hours"},
    "median": {"median": "hours", "step": "1"},
    "rate": {"table": ["region", "poor"]},
}
LEADING = ("count", "share", "mean")
APART = ", apart"
CODEBOOK: dict[str, Any] = {
    "survey": {"name": "country", "unit": "row"},
    "columns": {
        "region": {"kind": "categorical", "levels": list(REGIONS)},
        "poor": {"kind": "categorical", "levels": ["no", "yes"]},
        "hours": {"kind": "integer", "bounds": [0, 99]},
    },
}


def _names() -> list[str]:
    plain = [f"{size}, {name}" for size in SIZES for name in QUERIES]
    return plain + [f"{size}, {name}{APART}" for size in SIZES for name in LEADING]


CASES = tuple(_names())


def _told(case: str) -> tuple[int, str, bool]:
    size, _, name = case.partition(", ")
    return int(size), name.removesuffix(APART), name.endswith(APART)


@cache
def plan_of(case: str) -> Plan:
    """The case's plan: one statistic by region, or one for each region at a fifth of the budget."""
    size, name, apart = _told(case)
    query, bar = QUERIES[name], ({"interval": {"epsilon": EPSILON}} if name == "median" else {})
    if apart:
        each = str(float(EPSILON) / len(REGIONS))
        asks = [
            {"name": region, "query": {**query, "where": f"region = '{region}'"}, "epsilon": each}
            for region in REGIONS
        ]
    elif name == "rate":
        rate = {"share": "table", "of": {"poor": "yes"}}
        asks = [{"name": "table", "query": query, "epsilon": EPSILON}, {"name": "by", "query": rate}]
    else:
        asks = [{"name": "by", "query": {**query, "by": ["region"]}, "epsilon": EPSILON, **bar}]
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "domains"},
        "protect": {"change": "one respondent added or removed", "epsilon": "10"},
        "expect": {"rows": size},
        "design": {"design_effect": "1"},
        "statistic": asks,
    }
    return plan_from(data, CODEBOOK)


def draw(size: int, rng: np.random.Generator) -> pa.Table:
    """A simple random sample of the country."""
    region = rng.choice(len(REGIONS), size=size, p=list(REGIONS.values()))
    poor = rng.random(size) < np.array(list(RATES.values()))[region]
    hours = np.clip(np.round(rng.normal(36 - 2 * region, 9)), 0, 99).astype(int)
    return pa.table(
        {
            "region": np.array(list(REGIONS))[region],
            "poor": np.where(poor, "yes", "no"),
            "hours": hours,
        }
    )


def truth(size: int, name: str, region: str) -> float:
    """Of the country: what a sample of this size is expected to say."""
    place = list(REGIONS).index(region)
    return {
        "count": size * REGIONS[region],
        "share": RATES[region],
        "rate": RATES[region],
        "mean": 36.0 - 2 * place,
        "median": 36.0 - 2 * place,
    }[name]


def run(index: int, seed: int) -> list[Outcome]:
    """One sample of one case."""
    case = CASES[index % len(CASES)]
    size, name, _ = _told(case)
    sample, loud = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    plan = plan_of(case)
    engine = Survey(draw(size, sample), codebook={}, threads=1).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    noisy, exact = (_estimates(plan, tallies, noise) for noise in (QuickNoise(loud), NoNoise()))
    outcomes = []
    for region, one in noisy.items():
        at: Row = {"query": f"{case}|{region}", "estimate": one["value"]}
        ends = {"low": one["privacy_low"], "high": one["privacy_high"]}
        outcomes.append(Outcome(method="privacy", truth=exact[region]["value"], **ends, **at))
        if one["total_low"] is not None:
            ends = {"low": one["total_low"], "high": one["total_high"]}
            outcomes.append(Outcome(method="total", truth=truth(size, name, region), **ends, **at))
    return outcomes


def _estimates(plan: Plan, tallies: Any, noise: Any) -> dict[str, Mapping[str, Any]]:
    """By region, as a release tells them."""
    made = evaluate_sampled(plan, tallies, noise)
    result = StatisticsResult(plan=plan, answers=made.answers, sampled=made.sampled)
    told = document(plan, [result], receipt=None, engine="lab")
    found: dict[str, Mapping[str, Any]] = {}
    for answer in told["statistics"]:
        for estimate in answer["estimates"] if answer["name"] != "table" else ():
            region = estimate["cell"].get("region", answer["name"])
            if region in REGIONS:
                found[region] = estimate
    return found


def told(outcomes: pa.Table) -> list[Row]:
    """A row for each case and interval: coverage over runs and regions, and the width beside the ideal one."""
    found: dict[tuple[str, str], list[tuple[Floats, float]]] = {}
    for key, lines in groups(outcomes):
        case = str(key["query"]).split("|")[0]
        held = (lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"])
        error = float(np.sqrt(np.mean((lines["estimate"] - lines["truth"]) ** 2)))
        width = float(np.median(lines["high"] - lines["low"])) / (2 * Z * error) if error else np.nan
        found.setdefault((case, str(key["method"])), []).append((np.asarray(held, dtype=float), width))
    return [row(case, method, each, _is_leading(case)) for (case, method), each in found.items()]


def _is_leading(case: str) -> bool:
    _, name, apart = _told(case)
    return name in LEADING and not apart


def row(case: str, method: str, found: list[tuple[Floats, float]], leading: bool) -> Row:
    """One case and interval."""
    runs = min(len(held) for held, _ in found)
    widths = [width for _, width in found if np.isfinite(width)]
    by_run = np.mean([held[:runs] for held, _ in found], axis=0)
    return {
        "case": case,
        "leading": leading,
        "interval": method,
        "level": LEVEL,
        "coverage": round(float(np.mean(by_run)), 4),
        "coverage_se": round(float(np.std(by_run) / np.sqrt(runs)), 4),
        "width_ratio": round(float(np.median(widths)), 3) if widths else None,
        "estimates": len(found),
        "runs": runs,
    }


def experiment() -> Experiment:
    """The experiment of the list."""
    return Experiment(
        name="domains",
        title="Do the intervals of statistics by domain cover?",
        source="the library's own domains, THEORY 14",
        run=run,
        params={"cases": list(CASES), "epsilon": EPSILON, "level": LEVEL},
        runs=400,
        batch=5,
        cases=tuple(CASES),
        pieces=tuple(name.replace(", ", "/") for name in CASES),
        told=told,
    )
