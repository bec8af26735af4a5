"""The experiment of *Differentially private k-nearest neighbor missing data imputation*, with the truth in hand.

Half a million people, a quarter of whom keep their wage to themselves. Six answers, each at the whole epsilon:

    ignore          those who answered, Laplace noise
    global          donors, Laplace noise for every gap at once; the number of gaps and the size taken as public
    published       donors, the published bound and its generalised Cauchy noise; the size taken as public
    reticent        capped donors, five for each recipient, Laplace noise; a quarter of epsilon pays the size
    reticent-hubs   the nearest donor, hubs and double Lomax noise; a fifth of epsilon buys the interval, a quarter of
                    the rest the size

`published` is run where it is proved private. Five runs share one draw of silence. `..., noise alone` is held against the same
respondents with their gaps filled the same way and no noise, `..., no noise` is that filling against the truth. The
lines `bar 50`, `bar 80` and `bar 95` hold the intervals of `reticent` against the same filling.

Boxes around the true line for `donors-income`, and how wide its error bars are beside an oracle's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache, partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.answer.parts import Answer
from reticent.engine.protocol import Engine
from reticent.engine.wants import Tallies
from reticent.exact import show
from reticent.lab.noise import NoNoise, QuickNoise
from reticent.lab.run.experiment import OURS, Experiment, Outcome, Row
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import Floats, groups
from reticent.lab.world import workers as wages
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from reticent.report.marks import Spec
from reticent.sensitivity.hubs import LN2, HubCache

HUBS, ALONE, BARE = "reticent-hubs", ", noise alone", ", no noise"
SHOWN = ("ignore", "published", HUBS, OURS)
Found = list[tuple[Row, dict[str, Floats]]]


def figures(outcomes: pa.Table, *, size: int) -> dict[str, Spec]:
    """One chart: a panel for every ask. `global` is left out: its boxes would hide all others."""
    found, runs = list(groups(outcomes)), len(outcomes["run"].unique())
    who = f"{size:,} simulated people" if size else "22,241 workers of the American Community Survey"
    words = (
        f"{who}, a quarter of whom do not say their wage. Epsilon is that of one ask. "
        "Published: where it is proved private."
    )
    made = boxes(_boxes(found))
    return {
        "donors-income" if size else "donors-workers": titled(
            made, "Donors' answers against the truth", words, f"{runs:,} runs. {BOX_WORDS}"
        )
    }


def _boxes(found: Found) -> Iterator[dict[str, Any]]:
    """Panel by panel, the methods in their order and the epsilons falling: more private downwards."""
    for query in dict.fromkeys(key["query"] for key, _ in found):
        mine = [(key, lines) for key, lines in found if key["query"] == query and key["method"] in SHOWN]
        for key, lines in sorted(mine, key=lambda one: (SHOWN.index(one[0]["method"]), -one[0]["epsilon"])):
            yield box(
                100 * (lines["estimate"] / lines["truth"] - 1),
                panel=query,
                label=f"{key['method']}, {key['epsilon']:.3g}",
                noisy=key["method"] == OURS,
            )


def widths(outcomes: pa.Table) -> list[Row]:
    """Median width of an error bar over that of an oracle, who knows the law of the error and needs no bar epsilon.

    The oracle's half-width is the quantile of the errors themselves, over all runs of the same ask and epsilon.
    """
    rows: list[Row] = []
    for key, lines in groups(outcomes):
        method = str(key["method"])
        if method.startswith("bar "):
            level = int(method.removeprefix("bar ")) / 100
            oracle = 2 * float(np.quantile(np.abs(lines["estimate"] - lines["truth"]), level))
            ratio = float(np.median(lines["high"] - lines["low"])) / oracle if oracle else float("nan")
            at = {"query": key["query"], "epsilon": key["epsilon"]}
            rows.append({"item": f"width of {method} over an oracle's", **at, "value": ratio})
    return rows


STATE_SEED, RUNS_A_MASK = 2026, 5
EPSILONS = ("0.25", "0.5", "1", "2", "4.158884")  # the last is 6 ln 2, rounded up
LEVELS = {"bar 50": Fraction(1, 2), "bar 80": Fraction(4, 5), "bar 95": Fraction(19, 20)}
BAR_SHARE = Fraction(1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomeWorld:
    """The state, its true answers, and the public sizes of the three ages."""

    state: pa.Table = field(repr=False)
    truth: Mapping[str, float]
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """One draw of silence on the state: what the engine says of it, and what follows without noise."""

    filled: Tallies = field(repr=False)
    available: Tallies = field(repr=False)
    gaps: Mapping[str, int]
    exact: Mapping[str, float]
    capped: Tallies = field(repr=False)
    capped_exact: Mapping[str, float]
    ours: HubCache = field(repr=False)
    theirs: HubCache = field(repr=False)


@cache
def world(size: int) -> IncomeWorld:
    """Made once in every worker, and the same in all of them."""
    state = wages.complete(size, seed=STATE_SEED)
    age = state["age"].to_numpy()
    held = {name: wages.ages_of(name) for name in wages.asks(size)}
    sizes = {name: int(np.sum((age >= low) & (age <= high))) for name, (low, high) in held.items()}
    return IncomeWorld(state=state, truth=wages.truth_of(state, size), sizes=sizes)


@lru_cache(maxsize=2)
def silent(size: int, mask: int) -> Silent:
    """The state under one mask of silence, tallied with and without donors."""
    shared = world(size)
    rows = wages.silent(shared.state, seed=mask) if size != wages.WORKERS else wages.flagged()
    ours, plain = wages.plan(size, epsilon="1"), wages.plan(size, epsilon="1", donors=False)
    few = wages.plan(size, epsilon="1", capped=True)
    engine: Engine = Survey(wages.declared(rows), codebook={}, threads=1).open()
    try:
        filled = engine.tally(ours.schema, wants_of(ours), ours.repair)
        available = engine.tally(plain.schema, wants_of(plain))
        capped = engine.tally(few.schema, wants_of(few), few.repair)
    finally:
        engine.close()
    exact = evaluate(ours, filled, NoNoise(), book=(book := HubCache(filled, ours.schema, ours.repair)))
    theirs = published_plan(size, "2")
    return Silent(
        filled=filled,
        available=available,
        gaps=_gaps(rows, size),
        exact={name: value_of(answer) for name, answer in exact.items()},
        capped=capped,
        capped_exact={name: value_of(answer) for name, answer in evaluate(few, capped, NoNoise()).items()},
        ours=book,
        theirs=HubCache(filled, theirs.schema, theirs.repair),
    )


def published_plan(size: int, epsilon: str) -> Plan:
    """The published mechanism, which takes the sizes as known."""
    return wages.plan(size, epsilon=epsilon, sizes=dict(world(size).sizes), bound="published")


def _gaps(rows: pa.Table, size: int) -> dict[str, int]:
    age, lost = rows["age"].to_numpy(), rows["wage"].is_null().to_numpy()
    held = {name: wages.ages_of(name) for name in wages.asks(size)}
    return {name: int(np.sum(lost & (age >= low) & (age <= high))) for name, (low, high) in held.items()}


def value_of(answer: Answer) -> float:
    """The estimate of an answer that has one."""
    return float(answer.estimates[0].value)


def run(index: int, seed: int, *, size: int, runs_a_mask: int, epsilons: tuple[str, ...]) -> list[Outcome]:
    """One draw of noise by every method, on one of the masks."""
    shared, rows = world(size), silent(size, index // runs_a_mask)
    rng = np.random.default_rng(seed)
    outcomes: list[Outcome] = []
    for epsilon in epsilons:
        outcomes += _lines("ignore", shared.truth, _ignored(size, rows, epsilon, rng), epsilon)
        outcomes += _lines("global", shared.truth, _global(shared, rows, epsilon, rng), epsilon)
        if Fraction(epsilon) >= 2 * LN2:
            theirs = _published(size, rows, epsilon, rng)
            outcomes += _lines("published", shared.truth, theirs, epsilon)
            outcomes += _lines("published, noise alone", rows.exact, theirs, epsilon)
        outcomes += _hubs(size, shared, rows, epsilon, rng)
        outcomes += _ours(size, shared, rows, epsilon, rng)
        outcomes += _lines(HUBS + BARE, shared.truth, rows.exact, epsilon)
        outcomes += _lines(OURS + BARE, shared.truth, rows.capped_exact, epsilon)
    return outcomes


def _lines(
    method: str,
    truth: Mapping[str, float],
    found: Mapping[str, float],
    epsilon: str,
    seconds: float | None = None,
) -> list[Outcome]:
    return [
        Outcome(
            method=method,
            query=name,
            epsilon=float(epsilon),
            truth=truth[name],
            estimate=value,
            seconds=seconds,
        )
        for name, value in found.items()
    ]


def _ignored(size: int, rows: Silent, epsilon: str, rng: np.random.Generator) -> dict[str, float]:
    plan = wages.plan(size, epsilon=epsilon, donors=False)
    found = evaluate(plan, rows.available, QuickNoise(rng))
    return {name: value_of(answer) for name, answer in found.items()}


def _global(shared: IncomeWorld, rows: Silent, epsilon: str, rng: np.random.Generator) -> dict[str, float]:
    """One respondent may have given every missing answer: (1 + gaps) ranges over the size."""
    found = {}
    for name, exact in rows.exact.items():
        width = 500_000 if name.startswith("mean") else 1
        scale = width * (1 + rows.gaps[name]) / (float(epsilon) * shared.sizes[name])
        found[name] = exact + float(rng.laplace(0, scale))
    return found


def _published(size: int, rows: Silent, epsilon: str, rng: np.random.Generator) -> dict[str, float]:
    found = evaluate(published_plan(size, epsilon), rows.filled, QuickNoise(rng), book=rows.theirs)
    return {name: value_of(answer) for name, answer in found.items()}


def _ours(
    size: int, shared: IncomeWorld, rows: Silent, epsilon: str, rng: np.random.Generator
) -> list[Outcome]:
    plan = wages.plan(size, epsilon=epsilon, capped=True)
    start = process_time()
    found = evaluate(plan, rows.capped, QuickNoise(rng))
    spent = process_time() - start
    values = {name: value_of(answer) for name, answer in found.items()}
    against = _lines(OURS + ALONE, rows.capped_exact, values, epsilon)
    return [*_lines(OURS, shared.truth, values, epsilon, spent), *against, *_bars(found, rows, epsilon)]


def _hubs(
    size: int, shared: IncomeWorld, rows: Silent, epsilon: str, rng: np.random.Generator
) -> list[Outcome]:
    whole = Fraction(epsilon)
    bar = whole * BAR_SHARE
    plan = wages.plan(size, epsilon=show(whole - bar), bar=show(bar))
    start = process_time()
    found = evaluate(plan, rows.filled, QuickNoise(rng), book=rows.ours)
    spent = process_time() - start
    values = {name: value_of(answer) for name, answer in found.items()}
    return [
        *_lines(HUBS, shared.truth, values, epsilon, spent),
        *_lines(HUBS + ALONE, rows.exact, values, epsilon),
    ]


def _bars(found: Mapping[str, Answer], rows: Silent, epsilon: str) -> Iterator[Outcome]:
    for name, answer in found.items():
        estimate = answer.estimates[0]
        for method, level in LEVELS.items():
            low, high = estimate.interval(level)
            yield Outcome(
                method=method,
                query=name,
                epsilon=float(epsilon),
                truth=rows.capped_exact[name],
                estimate=float(estimate.value),
                low=float(low),
                high=float(high),
            )


def experiment(
    *, size: int = 500_000, runs_a_mask: int = RUNS_A_MASK, epsilons: tuple[str, ...] = EPSILONS
) -> Experiment:
    """The experiment at any size; the one in the list has half a million people and a draw of silence for every five runs."""
    real = size == wages.WORKERS
    return Experiment(
        name="donors-workers" if real else "donors-income",
        title="The same on real workers and their own silence"
        if real
        else "Donors for missing wages, with noise that covers the imputation",
        source="Differentially private k-nearest neighbor missing data imputation, the experiment on income",
        run=partial(run, size=size, runs_a_mask=runs_a_mask, epsilons=epsilons),
        params={"size": size, "runs_a_mask": runs_a_mask, "epsilons": epsilons, "near": repr(wages.NEAR)},
        runs=500,
        batch=25,
        figures=partial(figures, size=size),
        more=widths,
    )


def workers() -> Experiment:
    """On 22,241 real workers when their records are at hand; more epsilons, to see where donors begin to win."""
    return experiment(size=wages.WORKERS, runs_a_mask=10**9, epsilons=(*EPSILONS[:4], "4.158884", "8", "16"))
