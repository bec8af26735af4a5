"""Counts of what donors fill at small epsilon: capped donors, and the nearest with smooth noise and with a value ladder.

The demonstration's survey of 20,000 and its wages, matched in three ways: by the demonstration's list, by one whose cells all
have many donors, and by one so fine that some recipients find no donor in their cell. Every run answers all counts once by each
way; the truth is the same way's count without noise, so that errors are those of the noise alone. Intervals of 95 % cost as much
again; those of capped donors are free.
"""

import tomllib
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.wants import Tallies
from reticent.lab.demo import GROUPS, survey
from reticent.lab.noise import NoNoise, QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.world.state import codebook
from reticent.plan.plan import Plan, plan_from
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey

ROWS, SEED, LEVEL = 20_000, 2026, "0.95"
EPSILONS = ("0.05", "0.1", "0.25", "0.5", "1")
AGE, FINE_AGE = {"column": "age", "by": "10"}, {"column": "age", "by": "5"}
MATCHED: dict[str, list[Any]] = {
    "the demonstration's": [AGE, "employment", "sex"],
    "broad": [AGE, "sex", "region"],
    "fine": [FINE_AGE, "sex", "race", "schooling", "employment"],
}
COUNTS = {
    "paid below 15,000": "wage < 15000 and employment = 'employed'",
    "paid 60,000 and more": "wage >= 60000 and employment = 'employed'",
}
CAPPED, SMOOTH, LADDER = "reticent", "reticent-hubs", "reticent-hubs, ladder"
NOT_TOLD = 10.0**9


@cache
def plan_of(matched: str, method: str, epsilon: str, *, bought: bool = False) -> Plan:
    """Both counts at `epsilon`; where it is `bought`, with intervals at as much again."""
    is_bought = bought and method != CAPPED
    bar = {"interval": {"epsilon": epsilon, "level": LEVEL}} if is_bought else {}
    ladder = {"noise": "ladder"} if method == LADDER else {}
    asks = [
        {"name": name, "query": {"count": "*", "where": where}, "epsilon": epsilon, **bar, **ladder}
        for name, where in COUNTS.items()
    ]
    bound = {} if method == CAPPED else {"bound": "hubs"}
    donors = {"method": "donors", "column": "wage", "match": MATCHED[matched], "default": "40000", **bound}
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "ladder"},
        "expect": {"rows": ROWS, "missing": {"wage": "0.2"}},
        "protect": {"change": "one respondent added or removed", "epsilon": "10"},
        "impute": [donors],
        "statistic": asks,
    }
    return plan_from(data, tomllib.loads(codebook() + GROUPS))


@cache
def tallied(matched: str, method: str) -> tuple[Tallies, dict[str, float]]:
    """The survey filled in one way, and its counts without noise."""
    plan = plan_of(matched, method, "1")
    engine = Survey(survey(rows=ROWS, seed=SEED), codebook={}, threads=1).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    exact = evaluate(plan, tallies, NoNoise())
    return tallies, {name: float(answer.estimates[0].value) for name, answer in exact.items()}


def run(index: int, seed: int) -> list[Outcome]:
    """Every count once by each way at each epsilon, however matched."""
    rng = np.random.default_rng(seed)
    return [
        outcome
        for matched in MATCHED
        for method in (CAPPED, SMOOTH, LADDER)
        for epsilon in EPSILONS
        for outcome in _answered(matched, method, epsilon, rng)
    ]


def _answered(matched: str, method: str, epsilon: str, rng: np.random.Generator) -> list[Outcome]:
    """The numbers at `epsilon`, and their intervals."""
    tallies, truth = tallied(matched, method)
    plan = plan_of(matched, method, epsilon, bought=True)
    found = []
    for name, answer in evaluate(plan, tallies, QuickNoise(rng)).items():
        (estimate,) = answer.estimates
        low, high = estimate.interval(Fraction(LEVEL))
        found.append(
            Outcome(
                method=method,
                query=f"{matched}: {name}",
                epsilon=float(epsilon),
                truth=truth[name],
                estimate=float(estimate.value),
                low=float(low),
                high=float(high),
            )
        )
    return found


def widths(outcomes: pa.Table) -> list[Row]:
    """Half the width of the median interval; one without an upper end is wider than any."""
    return [
        {
            "item": f"half width, {key['method']}",
            "query": key["query"],
            "epsilon": key["epsilon"],
            "value": float(np.median(np.minimum(lines["high"], NOT_TOLD) - lines["low"])) / 2,
        }
        for key, lines in groups(outcomes)
    ]


def experiment() -> Experiment:
    """The experiment of the list."""
    return Experiment(
        name="donors-ladder",
        title="Counts at small epsilon: capped donors, smooth noise, a value ladder",
        source="THEORY 12.4",
        run=run,
        params={"rows": ROWS, "survey": SEED, "epsilons": EPSILONS, "level": LEVEL, "matched": MATCHED},
        runs=200,
        batch=20,
        more=widths,
    )
