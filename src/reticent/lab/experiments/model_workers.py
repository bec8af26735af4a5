"""Mean wage by schooling of real workers, their missing wages left out or filled from a private line.

The silence is the workers' own: the Census Bureau's allocation flags, with its own fillings taken as the truth. Every method
has the same epsilon for all five answers; a line gets half of it.

    available    those who answered
    line         a private line on age, hours, sex and schooling, each gap on it
    draws        the same line, each gap drawn about it

Intervals are the error bars of the asks. They cover the noise of the ask and nothing else: coverage below 95 % is what
silence and filling add.

Boxes around the true line for `model-workers`, a panel for every level of schooling.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.exact import show
from reticent.lab.noise import QuickModelNoise, SeededBits
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import groups
from reticent.lab.world import workers
from reticent.lab.world.state import codebook
from reticent.plan.plan import Plan, plan_from
from reticent.privacy.claim import amount
from reticent.release.models import fit_models
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from reticent.report.marks import Spec

WORDS = (
    "22,241 workers of the American Community Survey; who kept the wage back is their own. Epsilon is that of all five "
    "answers; a line gets half of it."
)


def figures(outcomes: pa.Table) -> dict[str, Spec]:
    """One chart: each level, method and epsilon."""
    runs, found = len(outcomes["run"].unique()), list(groups(outcomes))
    rows: list[dict[str, Any]] = []
    for query in dict.fromkeys(key["query"] for key, _ in found):
        for key, lines in found:
            if key["query"] == query:
                error = 100 * (lines["estimate"] / lines["truth"] - 1)
                label = f"{key['method']}, {key['epsilon']:g}"
                rows.append(box(error, panel=query, label=label, noisy=key["method"] != "available"))
    made = titled(boxes(rows), "Mean wage by schooling", WORDS, f"{runs:,} runs. {BOX_WORDS}")
    return {"model-workers": made}


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
    table = workers.complete(workers.WORKERS, seed=0)
    wage, schooling = table["wage"].to_numpy(), np.array(table["schooling"].to_pylist())
    return {level: float(wage[schooling == level].mean()) for level in LEVELS}


@cache
def flagged() -> pa.Table:
    """The workers of the real census files with the flags of what was imputed."""
    return workers.flagged().combine_chunks()


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
