"""Privacy noise beside the errors that a survey has anyway: Figures 4.1 to 4.3.

A fixed simulated state is sampled, people do not answer, and ten asks are answered with noise. The sources of
error are switched on one after the other on the same draws, so that their errors add up run by run:

    sampling      est(sample)                - truth
    nonresponse   est(sample, mask)          - est(sample)
    privacy       est(sample, mask, noise)   - est(sample, mask)
    reticent      est(sample, mask, noise)   - truth                  their sum

`noise alone` asks the complete state (Figure 4.1); `sampling and noise` a sample that answered (Figure 4.2).
The interval of `privacy` is the published error bar, that of `reticent` the published total margin. `seconds`
is the processor time of all ten answers with their intervals, after the pass over the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from time import process_time

import numpy as np
import pyarrow as pa

from reticent.engine.results import Tallies
from reticent.lab.demo import RATES
from reticent.lab.design import simple
from reticent.lab.experiment import OURS, Experiment, Outcome, Row
from reticent.lab.experiments.context_figures import figures
from reticent.lab.nonresponse import apply, clustered, self_masking
from reticent.lab.quick import NoNoise, QuickNoise
from reticent.lab.state import people
from reticent.lab.summary import cross_terms
from reticent.lab.tenasks import answers, plan, published, tally, truth_of
from reticent.release.plan import Plan

STATE_SEED = 2026
EPSILONS = ("0.1", "0.3", "1", "3", "10")  # of the whole plan; each ask has a tenth
CORRELATION = 0.5  # of skipped questions
DISCREET, SLOPE = (
    0.08,
    0.25,
)  # share of wages kept back, and how it leans on the wage: a bias of some two per cent


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWorld:
    """What all runs share: the state, its true answers, and the plans for a sample of it and for all of it."""

    state: pa.Table = field(repr=False)
    truth: Mapping[str, float]
    plans: Mapping[str, Plan]
    census_plans: Mapping[str, Plan]
    census: Tallies = field(repr=False)


@cache
def world(size: int, rows: int, epsilons: tuple[str, ...]) -> ContextWorld:
    """Made once in every worker, and the same in all of them."""
    state = people(size, seed=STATE_SEED).combine_chunks()
    census_plans = {epsilon: plan(epsilon, size=size, rows=size) for epsilon in epsilons}
    return ContextWorld(
        state=state,
        truth=truth_of(state),
        plans={epsilon: plan(epsilon, size=size, rows=rows) for epsilon in epsilons},
        census_plans=census_plans,
        census=tally(state, census_plans[epsilons[0]]),
    )


def silence(sample: pa.Table, *, seed: int) -> pa.Table:
    """The sample as it answers: the reluctant skip several questions, the well paid their wage."""
    reluctant = clustered(sample, RATES, correlation=CORRELATION, seed=seed)
    discreet = self_masking(sample, DISCREET, seed=seed, columns=["wage"], slope=SLOPE)
    return apply(sample, reluctant, discreet)


def run(index: int, seed: int, *, size: int, rows: int, epsilons: tuple[str, ...]) -> list[Outcome]:
    """One sample, one silence, one stream of noise: the same stream at every epsilon and on every table."""
    shared = world(size, rows, epsilons)
    draw, hush, loud = (int(s) for s in np.random.SeedSequence(seed).generate_state(3, np.uint64))
    sample = simple(shared.state, size=rows, seed=draw).take(shared.state)
    asked = shared.plans[epsilons[0]]  # without noise, epsilon makes no difference
    complete, silent = tally(sample, asked), tally(silence(sample, seed=hush), asked)
    told, left = answers(asked, complete, NoNoise()), answers(asked, silent, NoNoise())
    outcomes = [*_lines("sampling", shared.truth, told), *_lines("nonresponse", told, left)]
    for epsilon, asked in shared.plans.items():
        alone = answers(shared.census_plans[epsilon], shared.census, _noise(loud))
        outcomes += _lines("noise alone", shared.truth, alone, epsilon)
        outcomes += _lines(
            "sampling and noise", shared.truth, answers(asked, complete, _noise(loud)), epsilon
        )
        start = process_time()
        made = published(asked, silent, _noise(loud))
        outcomes += _released(made, left, shared.truth, epsilon, process_time() - start)
    return outcomes


def _noise(seed: int) -> QuickNoise:
    return QuickNoise(np.random.default_rng(seed))


def _lines(
    method: str, truth: Mapping[str, float], estimate: Mapping[str, float], epsilon: str | None = None
) -> list[Outcome]:
    at = None if epsilon is None else float(epsilon)
    return [
        Outcome(method=method, query=name, epsilon=at, truth=truth[name], estimate=value)
        for name, value in estimate.items()
    ]


def _released(
    made: Mapping[str, Row], left: Mapping[str, float], truth: Mapping[str, float], epsilon: str, spent: float
) -> list[Outcome]:
    """Each ask twice: against the same respondents with its error bar, against the truth with its total margin."""
    outcomes = []
    for name, one in made.items():
        at = {"query": name, "epsilon": float(epsilon), "estimate": one["value"]}
        outcomes.append(
            Outcome(
                method="privacy", truth=left[name], low=one["privacy_low"], high=one["privacy_high"], **at
            )
        )
        margin = one["total_margin"]
        ends = {} if margin is None else {"low": one["value"] - margin, "high": one["value"] + margin}
        outcomes.append(Outcome(method=OURS, truth=truth[name], seconds=spent, **ends, **at))
    return outcomes


def experiment(
    *, size: int = 500_000, rows: int = 50_000, epsilons: tuple[str, ...] = EPSILONS
) -> Experiment:
    """The experiment at any size; the one in the list has half a million people and a tenth of them sampled."""
    return Experiment(
        name="noise-in-context",
        title="Privacy noise beside sampling and nonresponse error",
        source="Privacy in complex sample based surveys, Figures 4.1 to 4.3",
        run=partial(run, size=size, rows=rows, epsilons=epsilons),
        params={"size": size, "rows": rows, "epsilons": epsilons},
        figures=partial(figures, size=size, rows=rows),
        more=partial(cross_terms, whole=OURS),
    )
