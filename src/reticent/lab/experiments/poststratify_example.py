"""The running example of post-stratification, number by number: five age blocks, five strategies, two samples.

Two samples of 5,000 out of 500,000, with equal base weights. The strategy is chosen by the exponential
mechanism and a count is then noised for the largest weight. A row has what the document prints, the same
computed by its own formula, and what our price and our noise make of it. Nothing is drawn.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from reticent.answer.weighting import Selection, score
from reticent.exact import ball
from reticent.lab.cutoffs import collapse_by_cutoffs
from reticent.lab.papers.items import printed, several
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Lomax
from reticent.prepare.strata import ACS, BaseWeights, Candidates, Order, Strategy, separate
from reticent.refine.collapse import least_members
from reticent.sensitivity.bounds import Ladder, smooth_bound
from reticent.sensitivity.poststrata import Tally, weight_ladder

BLOCK = Fraction(100_000)
SAMPLES = {"A": (1300, 100, 1200, 1200, 1200), "B": (1600, 100, 1600, 1600, 100)}
BASE = BaseWeights(unit=Fraction(100))
SEPARATE = separate([BLOCK] * 5)
MINORS, ADULTS = (0, 1), (2, 3, 4)
CANDIDATES = Candidates(
    strategies=(
        SEPARATE,
        SEPARATE.joined([MINORS], name="minors"),
        SEPARATE.joined([ADULTS], name="adults"),
        SEPARATE.joined([MINORS, ADULTS], name="minors-adults"),
        SEPARATE.joined([range(5)], name="all"),
    )
)
ORDER = Order(merges=((0, 1), (2, 3), (3, 4), (1, 2)))
PRINTED_ALPHA, OUR_ALPHA = (
    100,
    200,
)  # at epsilon 0.01: the published price is 2 alpha Delta, the true one alpha Delta
ONE = Fraction(1)
THESIS, SECTION, TABLES = "thesis", "Section 7.4", "Figures 7.5 and 7.6"

UNIONS = ((0,), (1,), (2,), (3,), (4,), MINORS, ADULTS, tuple(range(5)))
"""The bins of Figures 7.5 and 7.6, in their order."""
BLOCKS = ("0-12", "13-18", "19-39", "40-64", "65+", "0-18", "19+", "0+")
ROUNDED = "from the rounded figures printed beside it"
NOT_PRIVATE = "not private: exact counts decide"


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters. `query` says why numbers differ."""
    return [*_prices(), *_population(), *(line for name in SAMPLES for line in _sample(name)), *_rungs()]


def _prices() -> Iterator[Outcome]:
    delta = float(CANDIDATES.delta)
    yield Outcome(item="Delta", printed=printed(THESIS, SECTION, "Delta"), as_printed=delta, value=delta)
    yield Outcome(
        item="epsilon of a choice at alpha 100",
        as_printed=2 * PRINTED_ALPHA * delta,
        value=PRINTED_ALPHA * delta,
        query="scores rise together, so there is no factor of 2",
    )
    for below in (6, 8):
        least = float(least_members(Fraction(1, below)))
        yield Outcome(item=f"least members of a bin at beta 1/{below}", value=least)
    for what, value in (("records", Fraction(ACS.records)), ("least factor", 1 / ACS.factor)):
        of = "Cut-offs of the American Community Survey"
        yield Outcome(
            item=f"cut-off, {what}", printed=printed(THESIS, of, what), value=float(value), query=NOT_PRIVATE
        )


def _population() -> Iterator[Outcome]:
    """The first line of Figures 7.5 and 7.6."""
    for block, members, people in zip(BLOCKS, UNIONS, several(THESIS, TABLES, "population"), strict=True):
        yield Outcome(item=f"population, {block}", printed=people, value=float(len(members) * BLOCK))


def _sample(name: str) -> Iterator[Outcome]:
    tally, all_ = _tally(name), CANDIDATES.strategies
    weights: list[Number] = [_ladder(each, tally).rung(0) for each in all_]
    scores: list[Number] = [score(each, tally, base=BASE) for each in all_]
    theirs, ours = _chances(tally, PRINTED_ALPHA), _chances(tally, OUR_ALPHA)
    yield from _figure("7.1", name, f"score, {name}", scores, scores)
    yield from _figure("7.2", name, f"chance at epsilon 0.01, {name}", theirs, ours)
    yield from _figure("7.3", name, f"largest weight, {name}", weights, weights)
    yield from _figure("7.4", name, f"sd at epsilon 1, {name}", _published_sds(tally), _our_sds(tally))
    yield from _blocks(name)
    yield from _sums(name, tally)


Number = arb | Fraction | float


def _figure(
    figure: str, name: str, what: str, theirs: Sequence[Number], ours: Sequence[Number]
) -> Iterator[Outcome]:
    """A number for each strategy, as printed, by the same formula, and ours."""
    texts = several(THESIS, f"Figure {figure}", name)
    for each, text, own, made in zip(CANDIDATES.strategies, texts, theirs, ours, strict=True):
        yield Outcome(item=f"{what}, {each.name}", printed=text, as_printed=float(own), value=float(made))


def _blocks(name: str) -> Iterator[Outcome]:
    """Figures 7.5 and 7.6: people of each bin in the sample, and the weight of each of them."""
    counts, weights = (several(THESIS, TABLES, f"{what} {name}") for what in ("in sample", "weights,"))
    for block, members, count, weight in zip(BLOCKS, UNIONS, counts, weights, strict=True):
        people, held = len(members) * BLOCK, sum(SAMPLES[name][each] for each in members)
        yield Outcome(item=f"in sample {name}, {block}", printed=count, value=float(held))
        exact = float(people / held)
        yield Outcome(item=f"weight, {name}, {block}", printed=weight, as_printed=exact, value=exact)


def _sums(name: str, tally: Tally) -> Iterator[Outcome]:
    """What a choice and a count cost on average, as published and as we do it."""
    sd, before, after = _published_sds(tally), _chances(tally, PRINTED_ALPHA), _chances(tally, OUR_ALPHA)
    stated = printed(THESIS, SECTION, f"expected sd, {name}")
    yield Outcome(
        item=f"expected sd, {name}",
        printed=stated,
        as_printed=float(_mean(before, sd)),
        value=float(_mean(after, _our_sds(tally))),
        query="published choice and noise; ours: choice at alpha 200, Lomax noise",
    )
    rounded = [a * b for a, b in zip(*(several(THESIS, f"Figure 7.{n}", name) for n in (2, 4)), strict=True)]
    yield Outcome(
        item=f"expected sd, {name}, rounded", printed=stated, as_printed=sum(rounded), query=ROUNDED
    )
    yield Outcome(
        item=f"expected sd, {name}, published noise",
        value=float(_mean(after, sd)),
        query="choice at alpha 200",
    )
    square = _mean(before, [x * x for x in sd]).sqrt()
    yield Outcome(item=f"root mean square sd, {name}", as_printed=float(square))
    best = "chance of the best at epsilon 0.1"
    yield Outcome(
        item=f"{best}, {name}",
        printed=printed(THESIS, SECTION, f"{best}, at least"),
        as_printed=max(map(float, _chances(tally, 10 * PRINTED_ALPHA))),
        value=max(map(float, _chances(tally, 10 * OUR_ALPHA))),
        query="more than this is printed",
    )
    for each in CANDIDATES.strategies:
        own = float(_bound(each, tally, ONE / 6))
        yield Outcome(item=f"smooth bound, {name}, {each.name}, beta 1/6", value=own)
    collapsed = collapse_by_cutoffs(SEPARATE, ORDER, tally, base=BASE)
    yield Outcome(item=f"bins after the ACS cut-offs, {name}", value=float(collapsed.size), query=NOT_PRIVATE)


def _rungs() -> Iterator[Outcome]:
    """Example 7.2.2."""
    ladder = _ladder(SEPARATE, _tally("A"))
    for k in (0, 1, 50, 99, 100, 1000):
        formula = float(BLOCK / (100 - k) if k < 100 else BLOCK)
        yield Outcome(
            item=f"Example 7.2.2, largest weight within {k} steps, A, separate",
            as_printed=formula,
            value=float(ladder.rung(k)),
        )


def _tally(name: str) -> Tally:
    n = np.array(SAMPLES[name], np.int64)
    return Tally(count=n, total=n, matching=n, largest=np.zeros((len(n), 0), np.int64))


def _ladder(strategy: Strategy, tally: Tally) -> Ladder:
    return weight_ladder(strategy, tally.merged(strategy), base=BASE)


def _bound(strategy: Strategy, tally: Tally, beta: Fraction) -> Fraction:
    return smooth_bound(_ladder(strategy, tally), beta).bound


def _chances(tally: Tally, alpha: int) -> list[arb]:
    return Selection(candidates=CANDIDATES, epsilon=alpha * CANDIDATES.delta, base=BASE).chances(tally)


def _published_sds(tally: Tally) -> list[arb]:
    """Generalised Cauchy noise as published, epsilon 1, beta 1/6, on the largest weight; its variance is 1."""
    a = calibrate.cauchy_as_published(epsilon=ONE, beta=ONE / 6, gamma=Fraction(4))
    spread = Cauchy().variance().sqrt() / ball(a)
    return [spread * ball(_ladder(each, tally).rung(0)) for each in CANDIDATES.strategies]


def _our_sds(tally: Tally) -> list[arb]:
    """Lomax noise, epsilon 1, beta 1/8, on the smooth bound."""
    spread = Lomax(8).variance().sqrt() / ball(calibrate.lomax(epsilon=ONE, beta=ONE / 8))
    return [spread * ball(_bound(each, tally, ONE / 8)) for each in CANDIDATES.strategies]


def _mean(chances: list[arb], values: list[arb]) -> arb:
    return sum((chance * value for chance, value in zip(chances, values, strict=True)), arb(0))


def experiment() -> Experiment:
    """The worked example of private post-stratification."""
    return Experiment(
        name="poststratify-example",
        title="Private post-stratification of five age blocks, beside what is printed for it",
        source="Privacy in complex sample based surveys, Figures 7.1 to 7.6; THEORY 6.6",
        run=run,
        exact=True,
    )
