"""Mean wage by schooling of real workers, their missing wages left out or filled from a private line.

The silence is the workers' own: the Census Bureau's allocation flags, with its own fillings taken as the truth. Every method
has the same epsilon for all five answers; a line gets half of it.

    available    those who answered
    line         a private line on age, hours, sex and schooling, each gap on it
    draws        the same line, each gap drawn about it

Intervals are the error bars of the asks. They cover the noise of the ask and nothing else: coverage below 95 % is what
silence and filling add.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.decimals import show
from reticent.lab import wages
from reticent.lab.experiment import Experiment, Outcome
from reticent.lab.experiments.model_workers_figures import figures
from reticent.lab.quickmodels import QuickModelNoise
from reticent.lab.seeded import SeededBits
from reticent.lab.state import codebook
from reticent.privacy.claim import amount
from reticent.release.evaluate import evaluate, wants_of
from reticent.release.model_fit import fit_models
from reticent.release.plan import Plan, plan_from
from reticent.release.survey import Survey

LEVELS = ("some-high", "high-school", "some-college", "bachelor", "graduate")
PREDICTORS = ["age", "hours", "sex", "schooling"]
EPSILONS = ("1", "4")
METHODS = {"available": None, "line": "predicted", "draws": "drawn"}


def plan(epsilon: str, fill: str | None) -> Plan:
    """Five asks at a tenth of epsilon each and a line at half of it, or at a fifth each and no line."""
    whole = amount(epsilon)
    repair: list[dict[str, Any]] = []
    if fill is not None:
        line = {"method": "regression", "column": "wage", "from": PREDICTORS, "fill": fill}
        repair = [{**line, "epsilon": show(whole / 2)}]
    asks = [
        {
            "name": level,
            "query": {"mean": "wage", "where": f"schooling = '{level}'", "centre": "50000"},
            "epsilon": show(whole / (10 if fill else 5)),
        }
        for level in LEVELS
    ]
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "model-workers"},
        "protect": {"change": "one respondent added or removed", "epsilon": epsilon},
        "impute": repair,
        "statistic": asks,
    }
    return plan_from(data, tomllib.loads(codebook()))


@cache
def truth() -> dict[str, float]:
    """Mean wage by schooling, everybody's wage known or as the Bureau filled it."""
    table = wages.complete(wages.WORKERS, seed=0)
    wage, schooling = table["wage"].to_numpy(), np.array(table["schooling"].to_pylist())
    return {level: float(wage[schooling == level].mean()) for level in LEVELS}


@cache
def flagged() -> pa.Table:
    return wages.flagged().combine_chunks()


def run(index: int, seed: int) -> list[Outcome]:
    """Every method at every epsilon, noise and draws anew."""
    rng = np.random.default_rng(seed)
    return [line for epsilon in EPSILONS for method in METHODS for line in _answers(method, epsilon, rng)]


def _answers(method: str, epsilon: str, rng: np.random.Generator) -> Iterator[Outcome]:
    made, noise = plan(epsilon, METHODS[method]), QuickModelNoise(rng)
    start = process_time()
    engine = Survey(flagged(), codebook={}, threads=1).open()
    try:
        modelled = fit_models(made, engine, None, noise=noise, bits=SeededBits(rng))
        tallies = engine.tally(made.schema, wants_of(made), modelled.repair)
    finally:
        engine.close()
    found = evaluate(made, tallies, noise)
    spent = process_time() - start
    for ask in made.asks:
        estimate = found[ask.name].estimates[0]
        low, high = estimate.interval(ask.level)
        yield Outcome(
            method=method,
            query=ask.name,
            epsilon=float(epsilon),
            truth=truth()[ask.name],
            estimate=float(estimate.value),
            low=float(low),
            high=float(high),
            seconds=spent,
        )


def experiment() -> Experiment:
    """On 22,241 real workers, when their records are at hand."""
    return Experiment(
        name="model-workers",
        title="Real workers' wages by schooling, gaps filled from a private line",
        source="Imputation under differential privacy, on data; THEORY 7.1",
        run=run,
        params={"epsilons": EPSILONS, "methods": list(METHODS), "predictors": PREDICTORS},
        runs=200,
        batch=10,
        figures=figures,
    )
