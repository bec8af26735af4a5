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

Figures 4.1 to 4.3 of the document, and bias against spread, from the outcomes of `noise-in-context`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.wants import Tallies
from reticent.lab.demo import RATES
from reticent.lab.noise import NoNoise, QuickNoise
from reticent.lab.papers.items import printed
from reticent.lab.run.experiment import OURS, Experiment, Outcome, Row
from reticent.lab.run.figures import BOX_WORDS, ORANGE, bias_against_spread, box, boxes, titled
from reticent.lab.run.summary import Floats, cross_terms, groups
from reticent.lab.tenasks import UNITS, answers, plan, published, tally, truth_of
from reticent.lab.world.design import simple
from reticent.lab.world.nonresponse import apply, clustered, self_masking
from reticent.lab.world.state import people
from reticent.plan.plan import Plan
from reticent.report.marks import BLUE, GREY, Spec

SAMPLE, SILENT = "sample", "+ nonresponse"
Lines = tuple[tuple[str, str], ...]  # the method, and what a line without noise is called


def figures(outcomes: pa.Table, *, size: int, rows: int) -> dict[str, Spec]:
    """The four charts by the names of their files."""
    found = list(groups(outcomes))
    runs = len(outcomes["run"].unique())
    said = f"{size:,} simulated people"
    drawn = f"A simple sample of {rows:,} of {said}"
    budget = "Epsilon is that of a plan of ten asks, a tenth for each."
    close = f"{runs:,} runs. {BOX_WORDS}"
    noise, inside, against = (
        boxes(_boxes(found, lines))
        for lines in (
            (("noise alone", ""),),
            (("sampling", SAMPLE), ("sampling and noise", "")),
            (("sampling", SAMPLE), ("nonresponse", SILENT), (OURS, "")),
        )
    )
    return {
        "noise-alone": titled(noise, "Noise alone", f"All of {said}, everybody answers. {budget}", close),
        "noise-in-sample": titled(
            inside, "Noise inside the error of a 10 % sample", f"{drawn}, everybody answers. {budget}", close
        ),
        "noise-in-context": titled(
            against,
            "Noise, sampling and nonresponse against the truth",
            f"{drawn}; reluctant people skip several questions, the well paid their wage. {budget}",
            close,
        ),
        "bias-and-spread": _bias(found, runs, drawn),
    }


def _boxes(found: list[tuple[Row, dict[str, Floats]]], lines: Lines) -> Iterator[dict[str, Any]]:
    """Panel by panel, the lines in their order and the epsilons falling: more private downwards."""
    truths = {k["query"]: v["truth"][0] for k, v in found if k["method"] in ("sampling", OURS)}
    for query, truth in truths.items():
        for method, label in lines:
            mine = [(k["epsilon"], v) for k, v in found if (k["method"], k["query"]) == (method, query)]
            for epsilon, values in sorted(mine, key=lambda one: -(one[0] or 0)):
                yield box(
                    100 * (values["estimate"] / truth - 1),
                    panel=f"{query} ({_said(truth, UNITS[query])})",
                    label=label or f"epsilon {epsilon:g}",
                    noisy=not label,
                )


def _said(truth: float, unit: str) -> str:
    return f"{100 * truth:.1f} %" if unit == "share" else f"{truth:,.{1 if truth < 1000 else 0}f} {unit}"


def _bias(found: list[tuple[Row, dict[str, Floats]]], runs: int, drawn: str) -> Spec:
    kinds = {
        "sampling": GREY,
        "nonresponse": ORANGE,
        "privacy at epsilon 1": BLUE,
        "privacy at epsilon 0.1": "#56B4E9",
    }
    truths = {k["query"]: v["truth"][0] for k, v in found if k["method"] == "sampling"}
    rows = []
    for key, lines in found:
        kind = key["method"] + (f" at epsilon {key['epsilon']:g}" if key["epsilon"] else "")
        if kind in kinds:
            error = 100 * (lines["estimate"] - lines["truth"]) / truths[key["query"]]
            one = {"kind": kind, "label": key["query"], "spread": float(np.std(error))}
            rows.append({**one, "bias": float(abs(np.mean(error)))})
    return titled(
        bias_against_spread(rows, kinds=kinds, runs=runs),
        "Bias against spread of each source of error",
        f"{drawn}; one point for each ask and source. {runs:,} runs.",
        "On the solid line bias equals spread; below the dashed one it cannot be told from chance. "
        "Asks are named where the bias is above three times the spread.",
        width=85,
    )


SHARED_BY = 10  # statistics in the plan


def swamped(outcomes: pa.Table) -> list[Row]:
    """Figure 4.2: for each statistic, its own epsilon from which the error of sampling is larger than that of the noise.

    The noise shrinks as epsilon grows, one to one; so its error at the middle one of the epsilons says it for all.
    """
    rmse = {
        (key["method"], key["query"], key["epsilon"]): float(np.sqrt(np.mean(_error(lines) ** 2)))
        for key, lines in groups(outcomes)
    }
    epsilons = sorted({epsilon for _, _, epsilon in rmse if epsilon is not None})
    at, rows = epsilons[len(epsilons) // 2], []
    stated = printed("thesis", "Figure 4.2", "epsilon from which sampling swamps noise")
    for method, query, epsilon in rmse:
        if (method, epsilon) == ("privacy", at):
            ratio = rmse[method, query, at] / rmse["sampling", query, None]
            item = {
                "item": "Figure 4.2, epsilon of a statistic from which sampling swamps noise",
                "query": query,
            }
            rows.append({**item, "printed": stated, "value": at / SHARED_BY * ratio})
    return rows


def _error(lines: dict[str, Floats]) -> Floats:
    return np.asarray(lines["estimate"] - lines["truth"])


def more(outcomes: pa.Table) -> list[Row]:
    """Cross terms of the split, and where sampling begins to swamp the noise."""
    return [*cross_terms(outcomes, whole=OURS), *swamped(outcomes)]


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
        more=more,
    )
