"""One question asked of a whole sample, and of one of ten pieces of it: ten analysts, each with the full budget.

The share of adults among the males of a sample. A piece has a tenth of the people and the same epsilon; the other
way to serve ten analysts is a tenth of the epsilon for each, on everybody.
"""

from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.results import SufficientStatistics, Tallies
from reticent.lab.noise import QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import groups
from reticent.lab.world.state import people
from reticent.plan.plan import Plan, plan_from
from reticent.release.asks import evaluate
from reticent.report.marks import Spec

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
PIECES = 10
FULL, PIECE, SHARED = "full sample", "one of ten pieces", "full sample, a tenth of epsilon"
QUERY = "adults among males"
STATE_SEED = 7


@cache
def males(size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Of every male of the state, whether he is an adult."""
    state = people(size, seed=STATE_SEED)
    male = state["sex"].cast(pa.string()).to_numpy(zero_copy_only=False) == "m"
    return np.asarray(state["age"].to_numpy()[male] >= 18)


@cache
def plan(epsilon: str) -> Plan:
    """A proportion under replacement, at this epsilon."""
    columns = {"age": {"kind": "integer", "bounds": [0, 99]}}
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "partition"},
        "protect": {"change": "one respondent's answers replaced", "epsilon": "20"},
        "statistic": [{"name": QUERY, "query": {"proportion": "age >= 18"}, "epsilon": epsilon}],
    }
    return plan_from(data, {"survey": {"name": "males", "unit": "row"}, "columns": columns})


def run(index: int, seed: int, *, size: int, rows: int) -> list[Outcome]:
    """One sample, one piece of it, one stream of noise for each way and epsilon."""
    rng = np.random.default_rng(seed)
    known = males(size)
    sample = rng.choice(known, rows, replace=False)
    piece = rng.choice(sample, rows // PIECES, replace=False)
    truth = float(np.mean(known))
    ways = ((FULL, sample, 1), (PIECE, piece, 1), (SHARED, sample, PIECES))
    return [
        _outcome(method, asked, epsilon, shared, truth, rng)
        for epsilon in EPSILONS
        for method, asked, shared in ways
    ]


def _outcome(
    method: str,
    asked: np.ndarray[Any, np.dtype[np.bool_]],
    epsilon: str,
    shared: int,
    truth: float,
    rng: np.random.Generator,
) -> Outcome:
    made = plan(epsilon if shared == 1 else str(float(epsilon) / shared))
    decided, true = made.asks[0].query.wants(made.schema)
    sums = {decided: len(asked), true: int(asked.sum())}
    tallies = Tallies(statistics=SufficientStatistics(sums=sums), tables={})  # type: ignore[arg-type]
    estimate = evaluate(made, tallies, QuickNoise(rng))[QUERY].estimates[0]
    return Outcome(
        method=method, query=QUERY, epsilon=float(epsilon), truth=truth, estimate=float(estimate.value)
    )


def figures(outcomes: pa.Table, *, size: int, rows: int) -> dict[str, Spec]:
    """Boxes around the truth, by epsilon."""
    lines = [
        box(
            100 * (values["estimate"] / values["truth"] - 1),
            panel=f"epsilon {key['epsilon']:g}",
            label=key["method"],
            noisy=key["method"] == PIECE,
        )
        for key, values in groups(outcomes)
    ]
    runs = len(outcomes["run"].unique())
    said = (
        f"A simple sample of {rows:,} males of a simulated state of {size:,}; a piece has {rows // PIECES:,}."
    )
    return {
        "partition": titled(boxes(lines), "Ten analysts, one sample", said, f"{runs:,} runs. {BOX_WORDS}")
    }


def experiment(*, size: int = 200_000, rows: int = 10_000) -> Experiment:
    return Experiment(
        name="partition",
        title="A question to a whole sample, to one of ten pieces, and at a tenth of epsilon",
        source="Privacy in complex sample based surveys, Figure 5.1",
        run=partial(run, size=size, rows=rows),
        params={"size": size, "rows": rows, "epsilons": EPSILONS, "pieces": PIECES},
        runs=1000,
        batch=50,
        figures=partial(figures, size=size, rows=rows),
    )
