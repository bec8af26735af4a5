"""The running example of post-stratification, number by number: five age blocks, five strategies, two samples.

Two samples of 5,000 out of 500,000, with equal base weights. The strategy is chosen by the exponential
mechanism and a count is then noised for the largest weight. `printed` is what THEORY 6.6 prints for the
figures, with more digits than they have; where it quotes the document's own number and that differs, the item
says why. Nothing is drawn.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from flint import arb

from reticent.answer.weighting import Selection, score
from reticent.exact import ball
from reticent.lab.cutoffs import collapse_by_cutoffs
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Lomax
from reticent.prepare.strata import BaseWeights, Candidates, Order, Strategy, separate
from reticent.refine.collapse import least_members
from reticent.sensitivity.ladder import Ladder, smooth_bound
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

# Sample and quantity: one number for each strategy.
PRINTED = {
    ("A", "bins"): "5 4 3 2 1",
    ("A", "largest weight"): "1000 142.857143 1000 142.857143 100",
    ("A", "score"): "0.005 0.028 0.003 0.014 0.01",
    ("A", "chance"): "0.062888187 0.627258249 0.051488493 0.154679980 0.103685091",
    ("A", "sd"): "6000 857.142857 6000 857.142857 600",
    ("B", "bins"): "5 4 3 2 1",
    ("B", "largest weight"): "1000 1000 1000 117.647059 100",
    ("B", "score"): "0.005 0.004 0.003 0.017 0.01",
    ("B", "chance"): "0.129998332 0.117627355 0.106433633 0.431609664 0.214331016",
    ("B", "sd"): "6000 6000 6000 705.882353 600",
}
# Sample: chances at alpha 200; then expected sd at alpha 100 as the document states it, root mean square sd,
# expected sd at alpha 200, chance of the best at alpha 1000.
PRINTED_200 = {
    "A": "0.009097313 0.905039977 0.006098111 0.055035538 0.024729061",
    "B": "0.061612362 0.050443936 0.041300001 0.679163936 0.167479765",
}
SUMS = {
    "A": (1000, 2174.712008, 928.931854, 0.999999153),
    "B": (2563, 3610.865936, 1500.035492, 0.999079730),
}
REASONS = {
    "A": "1000 is printed, but the rounded figures printed beside it add up to 1423.356",
    "B": "what is printed is the sum over rounded figures",
}


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters."""
    lines = [*_prices(), *(line for name in SAMPLES for line in _sample(name)), *_rungs()]
    return [Outcome(item=item, value=float(value), printed=printed) for item, value, printed in lines]


Line = tuple[str, arb | Fraction | float, float | None]


def _prices() -> Iterator[Line]:
    yield "Delta", CANDIDATES.delta, 5e-5
    price = "epsilon of a choice at alpha 100 (scores rise together, so there is no factor of 2)"
    yield price, PRINTED_ALPHA * CANDIDATES.delta, 0.01
    yield "least members of a bin at beta 1/6", float(least_members(Fraction(1, 6))), None
    yield "least members of a bin at beta 1/8", float(least_members(Fraction(1, 8))), None


def _sample(name: str) -> Iterator[Line]:
    tally = _tally(name)
    chances, sd = _chances(tally, PRINTED_ALPHA), _published_sds(tally)
    quantities: dict[str, list[arb | Fraction | float]] = {
        "bins": [float(each.size) for each in CANDIDATES.strategies],
        "largest weight": [_ladder(each, tally).rung(0) for each in CANDIDATES.strategies],
        "score": [score(each, tally, base=BASE) for each in CANDIDATES.strategies],
        "chance": [*chances],
        "sd": [*sd],
    }
    for what, values in quantities.items():
        texts = PRINTED[name, what].split()
        for each, value, text in zip(CANDIDATES.strategies, values, texts, strict=True):
            yield f"{what}, {name}, {each.name}", value, float(text)
    yield from _sums(name, tally)


def _sums(name: str, tally: Tally) -> Iterator[Line]:
    """What a choice and a count cost on average, as published and as we do it."""
    sd, before, after = _published_sds(tally), _chances(tally, PRINTED_ALPHA), _chances(tally, OUR_ALPHA)
    stated, square, halved, sure = SUMS[name]
    for each, chance, text in zip(CANDIDATES.strategies, after, PRINTED_200[name].split(), strict=True):
        yield f"chance, {name}, {each.name}, alpha 200", chance, float(text)
    yield f"expected sd, {name}, alpha 100 ({REASONS[name]})", _mean(before, sd), stated
    yield f"root mean square sd, {name}, alpha 100", _mean(before, [x * x for x in sd]).sqrt(), square
    yield f"expected sd, {name}, alpha 200", _mean(after, sd), halved
    yield f"chance of the best, {name}, alpha 1000", max(_chances(tally, 1000), key=float), sure
    yield f"expected sd, {name}, alpha 200, Lomax noise", _mean(after, _our_sds(tally)), None
    for each, text in zip(CANDIDATES.strategies, PRINTED[name, "largest weight"].split(), strict=True):
        yield f"smooth bound, {name}, {each.name}, beta 1/6", _bound(each, tally, ONE / 6), float(text)
    collapsed = collapse_by_cutoffs(SEPARATE, ORDER, tally, base=BASE)
    yield f"bins after the ACS cut-offs, {name} (not private)", float(collapsed.size), None


def _rungs() -> Iterator[Line]:
    ladder = _ladder(SEPARATE, _tally("A"))
    for k in (0, 1, 50, 99, 100, 1000):
        yield f"largest weight within {k} steps, A, separate", ladder.rung(k), float(BLOCK / max(100 - k, 1))


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
    return Experiment(
        name="poststratify-example",
        title="Private post-stratification of five age blocks, beside what is printed for it",
        source="Privacy in complex sample based surveys, Figures 7.1 to 7.6; THEORY 6.6",
        run=run,
        exact=True,
    )
