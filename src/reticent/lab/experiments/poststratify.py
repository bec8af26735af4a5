"""Counts of the poor from a tenth of a small state, in which people under 25 answer half as often, or as often as others.

As in the thesis, only one-way totals of five attributes are known (`poststratify`): a noisy table is raked to them, the bins of
age, schooling and race are chosen one after the other, and counts are weighted. Where the joint table is known
(`poststratify-joint`) one of eight strategies is chosen.

    reticent     our price of a choice, Lomax noise for a smooth bound, and an error bar
    thesis       the same as published: twice the price for a choice, generalised Cauchy noise, no bar
    naive-samp   the sample's count times ten, the inverse of the sampling rate; Laplace noise
    naive-pop    the share of the poor among those asked about, in the sample, times how many they are; Laplace noise

Each query is a release of its own at epsilon. Sampling errors are told from what was released, so that intervals speak of
the truth; `thesis` tells none.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from math import log, sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.answer.choose_bins import choose_each
from reticent.answer.poststrata import Law, Weighted
from reticent.answer.weighting import STEPS, Selection, fit_totals
from reticent.lab.noise import QuickNoise
from reticent.lab.run.experiment import OURS, Experiment, Outcome, Row
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import groups
from reticent.lab.world.poverty import QUERIES, OneWay, State, one_way_state, small_state
from reticent.prepare.strata import EQUAL, Crossing, Strategy
from reticent.refine.pivot import pivot
from reticent.report.marks import Spec
from reticent.sensitivity.bounds import Neighbours, Smooth
from reticent.sensitivity.poststrata import Tally, tally_rows

EPSILONS = ("5", "1")
HALF, EVEN = "under 25 at half rate", "all alike"
THESIS, SAMP, POP = "thesis", "naive-samp", "naive-pop"
TABLE, CHOICE, BAR = Fraction(1, 10), Fraction(1, 20), Fraction(1, 10)
"""Of epsilon, to the noisy table where one is raked, to the choice of bins and, with ours, to the error bar."""
PRICES = {"age": Fraction(2, 5), "schooling": Fraction(2, 5), "race": Fraction(1, 5)}
"""Of the choice's share: more for age and schooling than for race."""
LEVEL, Z = Fraction(95, 100), 1.959963984540054
SHARE = 10


ADDED = Neighbours()


def run(index: int, seed: int, *, size: int, joint: bool = False, small_bin: bool = False) -> list[Outcome]:
    """Two samples, one for each way to answer; every method on both, at every epsilon."""
    state, rng = small_state(size, small_bin) if joint else one_way_state(size), np.random.default_rng(seed)
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
            (POP, _share(state, drawn, tallies, epsilon, noise)),
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
    return tally_rows(cells, np.ones_like(cells), values, size=state.size_of_table, base=EQUAL)


def _ours(state: State, tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise) -> Found:
    for_bar = epsilon * BAR
    strategy, left = _weighed(state, tallies[QUERIES[0]], epsilon, noise)
    each = left - for_bar
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
    strategy, each = _weighed(state, tallies[QUERIES[0]], epsilon, noise, twice=True)
    made = Weighted(strategy=strategy, epsilon=each, law=Law.CAUCHY, beta=each / 6)
    smooth, found = made.bound(tallies[QUERIES[0]]), Found()
    for query, tally in tallies.items():
        value = _published(made.exact(tally), smooth, each, noise)
        found[query] = float(value), None
    return found


def _published(exact: int, smooth: Smooth, epsilon: Fraction, noise: QuickNoise) -> int:
    return noise.cauchy(Fraction(exact), sensitivity=smooth, epsilon=epsilon, grid=Fraction(1))


def _weighed(
    state: State, tally: Tally, epsilon: Fraction, noise: QuickNoise, *, twice: bool = False
) -> tuple[Strategy, Fraction]:
    """Bins with their totals, and what is left of epsilon. `twice`: a choice has half the rate for its price."""
    worth = epsilon * CHOICE / (2 if twice else 1)
    if isinstance(state.known, OneWay):
        return _raked(state.known, tally, epsilon, worth, noise), epsilon * (1 - TABLE - CHOICE)
    choice = Selection(candidates=state.known, epsilon=worth)
    scores = choice.scores(tally)
    chosen = noise.select(scores, sensitivity=STEPS, epsilon=worth, monotone=True)
    return state.known.strategies[chosen], epsilon * (1 - CHOICE)


def _raked(known: OneWay, tally: Tally, epsilon: Fraction, worth: Fraction, noise: QuickNoise) -> Strategy:
    """A noisy table raked to the one-way totals, then one choice after the other."""
    totals = fit_totals(
        known.fitting(epsilon * TABLE), tally, base=EQUAL, neighbours=ADDED, noise=noise
    ).totals
    prices = {name: share * worth for name, share in PRICES.items()}
    crossing = Crossing(attributes=known.attributes(prices), totals=totals)
    return crossing.strategy(choose_each(crossing, tally, base=EQUAL, steps=1, noise=noise))


def _scaled(state: State, tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise) -> Found:
    """Naive [Samp]: a tenth was to be sampled, so everybody in the sample stands for ten."""
    found = Found()
    for query, tally in tallies.items():
        value = SHARE * float(noise.laplace(int(tally.matching.sum()), sensitivity=1, epsilon=epsilon))
        found[query] = value, _total(SHARE * -log(0.05) / float(epsilon), value, state)
    return found


def _share(
    state: State, drawn: NDArray[np.int64], tallies: dict[str, Tally], epsilon: Fraction, noise: QuickNoise
) -> Found:
    """Naive [Pop]: the poor among those asked about, as a share of them in the sample, times how many there are."""
    found = Found()
    for query, tally in tallies.items():
        weight = int(state.asked[query].sum()) / max(1, int(state.asked[query][drawn].sum()))
        value = weight * noise.laplace(int(tally.matching.sum()), sensitivity=1, epsilon=epsilon)
        found[query] = value, _total(weight * -log(0.05) / float(epsilon), value, state)
    return found


def _total(half: float, value: float, state: State) -> float:
    """With the sampling error of a count that is a share of everybody, in a sample of a tenth."""
    share = min(1.0, max(0.0, value / state.size))
    variance = state.size * SHARE * share * (1 - share) * (1 - 1 / SHARE)
    return sqrt(half * half + Z * Z * variance)


def figures(outcomes: pa.Table, *, size: int, name: str) -> dict[str, Spec]:
    """Boxes around the truth: a panel for each query and way, a line for each method and epsilon."""
    lines = [
        box(
            100 * (values["estimate"] / values["truth"] - 1),
            panel=str(key["query"]),
            label=f"{key['method']}, epsilon {key['epsilon']:g}",
            noisy=key["method"] == OURS,
        )
        for key, values in groups(outcomes)
    ]
    runs = len(outcomes["run"].unique())
    said = f"A tenth of a simulated state of {size:,}. Poor: a household's pay per head is below a line."
    title = "The poor of a small state, weighted to known totals"
    return {name: titled(boxes(lines), title, said, f"{runs:,} runs. {BOX_WORDS}")}


FIGURES = {
    f"{QUERIES[0]}, {EVEN}": "7.7 left",
    f"{QUERIES[1]}, {EVEN}": "7.7 right",
    f"{QUERIES[0]}, {HALF}": "7.8 left",
    f"{QUERIES[1]}, {HALF}": "7.8 right",
    f"{QUERIES[2]}, {HALF}": "7.9",
}
"""Which figure of the thesis asks what, where only one-way totals are known. With a joint table it is nobody's figure."""


def findings(outcomes: pa.Table) -> list[Row]:
    """For each figure, spread and error of both weighted methods over those of both naive ones, at its epsilon of 5."""
    errors = {
        (key["query"], key["method"]): lines["estimate"] - lines["truth"]
        for key, lines in groups(outcomes)
        if key["epsilon"] == float(EPSILONS[0])
    }
    rows: list[Row] = []
    for (query, figure), method, naive in product(FIGURES.items(), (OURS, THESIS), (SAMP, POP)):
        mine, theirs = errors[query, method], errors[query, naive]
        found = {"rmse": sqrt((mine**2).mean() / (theirs**2).mean())}
        if theirs.std() > 0:  # one run has no spread
            found = {"sd": float(mine.std() / theirs.std()), **found}
        for what, over in found.items():
            item = f"Figure {figure}, {what} of {method} over that of {naive}"
            rows.append({"item": item, "query": query, "epsilon": float(EPSILONS[0]), "value": float(over)})
    return rows


def _made(name: str, title: str, source: str, size: int, **known: bool) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        source=source,
        run=partial(run, size=size, **known),
        params={"size": size, "epsilons": EPSILONS, "share": SHARE, **known},
        runs=200,
        figures=partial(figures, size=size, name=name),
        more=None if known else findings,
    )


def small_bin(*, size: int = 200_000) -> Experiment:
    """The joint table known, and one strategy more, which has a bin of a few people."""
    title = "The same choice of bins when one strategy has a bin of a few people"
    source = "Privacy in complex sample based surveys, section 7.1; THEORY 6.4"
    return _made("poststratify-small-bin", title, source, size, joint=True, small_bin=True)


def joint(*, size: int = 200_000) -> Experiment:
    """The joint table of all attributes known."""
    title = "The same counts where the joint table is known and one of eight strategies is chosen"
    return _made("poststratify-joint", title, "our own question; THEORY 6.4", size, joint=True)


def experiment(*, size: int = 200_000) -> Experiment:
    """As in the thesis: one-way totals are known."""
    title = "Counts weighted to one-way totals, beside the published method and two naive ones"
    source = "Privacy in complex sample based surveys, Figures 7.7 to 7.9"
    return _made("poststratify", title, source, size)
