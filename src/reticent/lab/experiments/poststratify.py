"""Counts of the poor from a tenth of a small state, in which people under 25 answer half as often, or as often as others.

`reticent` chooses bins privately, weights to known totals and adds Lomax noise for a smooth bound. `thesis` does the
same as published: twice the price for the choice, generalised Cauchy noise. `naive-samp` multiplies the sample's
count by people over sample, with Laplace noise for that weight. `naive-pop` adds Laplace noise to the truth, which
no curator of a sample knows. Each query is a release of its own at epsilon. Sampling errors are told from what was released, so that intervals speak of the truth.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import log, sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.answer.poststrata import Law, Weighted
from reticent.answer.weighting import STEPS, Selection
from reticent.lab.noise import QuickNoise
from reticent.lab.run.experiment import OURS, Experiment, Outcome
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import groups
from reticent.lab.world.poverty import CELLS, QUERIES, State, small_state
from reticent.prepare.strata import EQUAL, Strategy
from reticent.refine.pivot import pivot
from reticent.report.marks import Spec
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.poststrata import Tally, tally_rows

EPSILONS = ("5", "1")
HALF, EVEN = "under 25 at half rate", "all alike"
THESIS, SAMP, POP = "thesis", "naive-samp", "naive-pop"
CHOICE, BAR = Fraction(1, 20), Fraction(1, 10)
"""Of epsilon, to the choice of bins and, with ours, to the error bar."""
LEVEL, Z = Fraction(95, 100), 1.959963984540054
SHARE = 10


def run(index: int, seed: int, *, size: int, small_bin: bool = False) -> list[Outcome]:
    """Two samples, one for each way to answer; every method on both, at every epsilon."""
    state, rng = small_state(size, small_bin), np.random.default_rng(seed)
    return [line for way in (HALF, EVEN) for line in _way(way, state, rng)]


def _way(way: str, state: State, rng: np.random.Generator) -> Iterator[Outcome]:
    drawn = _sample(way, state, rng)
    tallies = {query: _tally(drawn, state, query) for query in QUERIES}
    noise = QuickNoise(rng)
    for text in EPSILONS:
        epsilon = Fraction(text)
        for method, found in (
            (OURS, _ours(state, tallies, epsilon, noise)),
            (THESIS, _thesis(state, tallies, epsilon, noise)),
            (SAMP, _scaled(state, tallies, epsilon, noise)),
            (POP, _everybody(state, epsilon, noise)),
        ):
            for query, (value, half) in found.items():
                low, high = (None, None) if half is None else (value - half, value + half)
                yield Outcome(
                    method=method,
                    query=f"{query}, {way}",
                    epsilon=float(epsilon),
                    truth=float(state.counted[query].sum()),
                    estimate=value,
                    low=low,
                    high=high,
                )


Found = dict[str, tuple[float, float | None]]


def _sample(way: str, state: State, rng: np.random.Generator) -> NDArray[np.int64]:
    """A simple tenth; where the young answer half as often, every second of them is lost."""
    drawn = rng.choice(state.size, state.size // SHARE, replace=False)
    if way == EVEN:
        return np.asarray(drawn)
    return np.asarray(drawn[~state.young[drawn] | (rng.random(len(drawn)) < 0.5)])


def _tally(drawn: NDArray[np.int64], state: State, query: str) -> Tally:
    cells, values = state.cells[drawn], state.counted[query][drawn].astype(np.int64)
    return tally_rows(cells, np.ones_like(cells), values, size=CELLS.size, base=EQUAL)


def _ours(state: State, tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise) -> Found:
    for_choice, for_bar = epsilon * CHOICE, epsilon * BAR
    each = epsilon - for_choice - for_bar
    strategy = _chosen(state, tallies, for_choice, noise)
    made = Weighted(strategy=strategy, epsilon=each, bar=for_bar)
    law = pivot(epsilon=each, beta=made.beta, epsilon_scale=for_bar, level=LEVEL)
    smooth, found = made.bound(tallies[QUERIES[0]]), Found()
    for query, tally in tallies.items():
        value = noise.lomax(Fraction(made.exact(tally)), sensitivity=smooth, epsilon=each, grid=Fraction(1))
        bound = int(law.sensitivity.bound)
        height = noise.laplace(law.height(smooth), sensitivity=bound, epsilon=for_bar)
        found[query] = float(value), _total(law.half_width(height), float(value), state)
    return found


def _thesis(state: State, tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise) -> Found:
    """Half the rate for the price of the choice; beta epsilon/6, generalised Cauchy noise of exponent 4 as printed."""
    strategy = _chosen(state, tallies, epsilon * CHOICE / 2, noise)
    each = epsilon * (1 - CHOICE)
    made = Weighted(strategy=strategy, epsilon=each, law=Law.CAUCHY, beta=each / 6)
    smooth, found = made.bound(tallies[QUERIES[0]]), Found()
    for query, tally in tallies.items():
        value = _published(made.exact(tally), smooth, each, noise)
        found[query] = float(value), None
    return found


def _published(exact: int, smooth: Smooth, epsilon: Fraction, noise: QuickNoise) -> int:
    return noise.cauchy(Fraction(exact), sensitivity=smooth, epsilon=epsilon, grid=Fraction(1))


def _chosen(state: State, tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise) -> Strategy:
    choice = Selection(candidates=state.candidates, epsilon=epsilon)
    scores = choice.scores(tallies[QUERIES[0]])
    chosen = noise.select(scores, sensitivity=STEPS, epsilon=epsilon, monotone=True)
    return state.candidates.strategies[chosen]


def _scaled(state: State, tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise) -> Found:
    found = Found()
    for query, tally in tallies.items():
        weight = state.size / int(tally.count.sum())
        noisy = noise.laplace(int(tally.matching.sum()), sensitivity=1, epsilon=epsilon)
        value = weight * noisy
        found[query] = value, _total(weight * -log(0.05) / float(epsilon), value, state)
    return found


def _everybody(state: State, epsilon: Fraction, noise: QuickNoise) -> Found:
    counts = {query: int(counted.sum()) for query, counted in state.counted.items()}
    half = -log(0.05) / float(epsilon)
    return {
        query: (float(noise.laplace(count, sensitivity=1, epsilon=epsilon)), half + 0.5)
        for query, count in counts.items()
    }


def _total(half: float, value: float, state: State) -> float:
    """With the sampling error of a count that is a share of everybody, in a sample of a tenth."""
    share = min(1.0, max(0.0, value / state.size))
    variance = state.size * SHARE * share * (1 - share) * (1 - 1 / SHARE)
    return sqrt(half * half + Z * Z * variance)


def figures(outcomes: pa.Table, *, size: int) -> dict[str, Spec]:
    """Boxes around the truth: a panel for each query and way, a line for each method and epsilon."""
    lines = [
        box(
            100 * (values["estimate"] / values["truth"] - 1),
            panel=str(key["query"]),
            label=f"{key['method']}, epsilon {key['epsilon']:g}",
            noisy=key["method"] == OURS,
        )
        for key, values in groups(outcomes)
        if key["method"] != POP
    ]
    runs = len(outcomes["run"].unique())
    said = f"A tenth of a simulated state of {size:,}. Poor: a household's pay per head is below a line."
    title = "The poor of a small state, weighted to known totals"
    return {"poststratify": titled(boxes(lines), title, said, f"{runs:,} runs. {BOX_WORDS}")}


def small_bin(*, size: int = 200_000) -> Experiment:
    """The same with one strategy more, which has a bin of a few people."""
    return Experiment(
        name="poststratify-small-bin",
        title="The same choice of bins when one strategy has a bin of a few people",
        source="Privacy in complex sample based surveys, section 7.1; THEORY 6.4",
        run=partial(run, size=size, small_bin=True),
        params={"size": size, "epsilons": EPSILONS, "share": SHARE, "small_bin": True},
        runs=200,
        figures=partial(figures, size=size),
    )


def experiment(*, size: int = 200_000) -> Experiment:
    return Experiment(
        name="poststratify",
        title="Counts weighted to known totals, beside the published method and two naive ones",
        source="Privacy in complex sample based surveys, Figures 7.7 to 7.9",
        run=partial(run, size=size),
        params={"size": size, "epsilons": EPSILONS, "share": SHARE},
        runs=200,
        figures=partial(figures, size=size),
    )
