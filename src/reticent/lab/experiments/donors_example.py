"""The drawings and constants of *Differentially private k-nearest neighbor missing data imputation*, number by number.

Drawings print no coordinates: the points here are ours, laid so that they show what the drawing shows. All changes of
donors are counted by brute force. Nothing is drawn by chance.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import erfc, exp, log, sqrt

import numpy as np

from reticent.lab.papers.items import printed
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.lab.world import workers as wages
from reticent.sensitivity import donors
from reticent.sensitivity.hubs import LN2

Point = tuple[int, int]
DOCUMENT, EXAMPLE = "donors", "Figure 3 and Example 4.7"
SQUARES: tuple[Point, ...] = tuple((x, 0) for x in (-3, -2, -1, 0, 1, 2, 3))
LONE: tuple[Point, ...] = ((0, 1), (20, 0))
"""Figure 1: seven recipients about one donor, and another donor far away."""

RECIPIENTS: tuple[Point, ...] = tuple((x, 0) for x in (0, 6, 8, 10, 14, 18))
ABOVE: tuple[Point, ...] = tuple((x, 5) for x, _ in RECIPIENTS)
"""Figure 3: each recipient has a donor of its own. Who comes to the middle is the nearest of four; but one who comes to
each side is the nearest of three, and the two together of all six."""
PAIRS: tuple[Point, ...] = ((0, 0),) * 3 + ((10, 0),) * 3
AMONG: tuple[Point, ...] = ((0, 0), (10, 0), (40, 0))
"""Two sets of three recipients with a donor in each, and a donor far away."""
NEWCOMERS: tuple[Point, ...] = tuple((x, y) for x in range(-6, 25) for y in range(-2, 3))
DELTA = 10**-6
EACH = 50
LOSSES = {"0.25": "0.93777", "0.5": "0.90112", "0.75": "0.87394", "0.85": "0.86504"}
"""THEORY 3.6: what the published noise loses, by the epsilon it is to cost."""


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters. `query` says what differs."""
    return [
        *_one_donor(),
        *_rotation(),
        *_two_steps(),
        *_constants(),
        *_losses(),
        *_gaussian(),
        *_silence(),
    ]


def nearest(recipients: Sequence[Point], givers: Sequence[Point]) -> list[Point]:
    """The nearest donor of each recipient; of two equally near, the first in order."""
    return [min(givers, key=lambda d: (d[0] - r[0]) ** 2 + (d[1] - r[1]) ** 2) for r in recipients]


def changed(recipients: Sequence[Point], before: Sequence[Point], after: Sequence[Point]) -> int:
    """How many recipients have another donor."""
    pairs = zip(nearest(recipients, before), nearest(recipients, after), strict=True)
    return sum(a != b for a, b in pairs)


def moves(givers: Sequence[Point]) -> Iterator[tuple[Point, ...]]:
    """One donor fewer, as long as one is left, or one more at any of the places allowed."""
    if len(givers) > 1:
        yield from (tuple(d for d in givers if d != gone) for gone in givers)
    yield from ((*givers, new) for new in NEWCOMERS if new not in givers)


def largest_change(recipients: Sequence[Point], givers: Sequence[Point]) -> int:
    """L_1: the most recipients who have another donor after one donor has come or gone."""
    return max(changed(recipients, givers, after) for after in moves(givers))


def after_largest(recipients: Sequence[Point], givers: Sequence[Point]) -> int:
    """L_1 after the move that changes most, without the recipients whose donor it changed."""
    after = max(moves(givers), key=lambda each: changed(recipients, givers, each))
    old, new = nearest(recipients, givers), nearest(recipients, after)
    left = [r for r, a, b in zip(recipients, old, new, strict=True) if a == b]
    return largest_change(left, after)


def _one_donor() -> Iterator[Outcome]:
    found = changed(SQUARES, LONE, LONE[1:])
    yield Outcome(
        item="Figure 1 (6.1 in the thesis), recipients whose answer goes with one donor",
        value=float(found),
        query=OUR_POINTS,
    )


def _rotation() -> Iterator[Outcome]:
    """Figure 2: donors take turns, so a newcomer shifts everybody's turn; with the nearest donor few are moved."""
    recipients, turns = 8, ("a", "b", "c")
    before = [turns[r % 3] for r in range(recipients)]
    after = [("new", *turns)[r % 4] for r in range(recipients)]
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    item = "Figure 2 (6.2 in the thesis), of 8 recipients of a rotating hot deck, moved by one newcomer"
    yield Outcome(item=item, value=float(moved), query=OUR_POINTS)


def _two_steps() -> Iterator[Outcome]:
    found = {
        "L1": largest_change(RECIPIENTS, ABOVE),
        "L1 after the largest move, without its donees": after_largest(RECIPIENTS, ABOVE),
        "L2": max(_pairs()),
    }
    for what, value in found.items():
        stated = printed(DOCUMENT, EXAMPLE, what)
        yield Outcome(
            item=f"Figure 3 (6.3 in the thesis), {what}", printed=stated, value=float(value), query=OUR_POINTS
        )


def _pairs() -> Iterator[int]:
    """Two moves on the line of recipients; places off it are nearer to nobody."""
    line = [new for new in NEWCOMERS if new[1] == 0]
    for pair in combinations(line, 2):
        yield changed(RECIPIENTS, ABOVE, (*ABOVE, *pair))
    for gone in ABOVE:
        left = tuple(d for d in ABOVE if d != gone)
        yield from (changed(RECIPIENTS, ABOVE, (*left, new)) for new in line)
        yield from (changed(RECIPIENTS, ABOVE, tuple(d for d in left if d != also)) for also in left)


def _constants() -> Iterator[Outcome]:
    """Epsilon, exponent and the three bounds, at L_1 = 4, answers from 10 to 100, and sizes of 50."""
    low, high, size, l1 = 10, 100, 50, 4
    span = donors.Span(low=Fraction(low), high=Fraction(high), centre=Fraction(0))
    mean = donors.total(span).over(size)
    yield Outcome(
        item="mean, membership known: bound at L1 = 4",
        as_printed=(high + l1 * (high - low)) / size,
        value=float(mean.c0 + mean.c1 * l1),
    )
    both = donors.total(span, donors.FilledPart(membership=True)).over(size)
    yield Outcome(
        item="mean, membership imputed: bound at L1 = 4",
        as_printed=high * (1 + l1) / size,
        value=float(both.c0 + both.c1 * l1),
    )
    about = donors.Span(low=Fraction(low), high=Fraction(high), centre=Fraction(30))
    square = donors.variance(about, size=size)
    yield Outcome(
        item="variance about 30: bound at L1 = 4",
        as_printed=max((low - 30) ** 2, (high - 30) ** 2) * (1 + l1) / (size - 1),
        value=float(square.c0 + square.c1 * l1),
    )
    for epsilon, said in ((Fraction(1), "1"), (2 * LN2, "2 ln 2"), (4 * LN2, "4 ln 2"), (6 * LN2, "6 ln 2")):
        limit = "exponent above which there is a variance"
        yield Outcome(
            item=f"exponent of the noise at epsilon {said}",
            printed=printed(DOCUMENT, "Smooth bound, noise and variance", limit)
            if said == "4 ln 2"
            else None,
            as_printed=float(1 + epsilon / (2 * LN2)),
            query="proved private from 2 on, that is from 2 ln 2; a variance above 3, that is above 4 ln 2",
        )


def cauchy_loss(epsilon: float, *, l1: tuple[int, int], answers: tuple[int, int]) -> float:
    """The largest log ratio of the published noise on two neighbours, over a grid of outputs: no more than is lost."""
    exponent = 1 + epsilon / (2 * log(2))
    away = np.geomspace(1e-3, 1e9, 200_001)
    y = np.concatenate([-away[::-1], away])
    logs = []
    for reach, answer in zip(l1, answers, strict=True):
        scale = (1 + reach) / log(2)
        logs.append(-log(scale) - np.log1p(np.abs((y - answer) / scale) ** exponent))
    return float(np.abs(logs[0] - logs[1]).max())


def _losses() -> Iterator[Outcome]:
    """Theorem 3.8 where its exponent is below 2: fifty recipients at each of two places, and one donor who comes or goes."""
    recipients = ((0, 0),) * EACH + ((10, 0),) * EACH
    more, fewer = ((1, 0), (9, 0), (-1000, 0)), ((1, 0), (-1000, 0))
    l1 = largest_change(recipients, more), largest_change(recipients, fewer)
    for text, vector in LOSSES.items():
        lost = cauchy_loss(float(text), l1=l1, answers=(EACH + 1, 0))
        yield Outcome(
            item=f"Theorem 3.8, loss at epsilon {text}, {EACH} recipients at each of two places",
            as_printed=float(text),
            value=lost,
            vector=float(vector),
            query="ours: at least this is lost where a donor whose answer counts comes or goes",
        )


def least_epsilon(*, beta: float, delta: float) -> float:
    """The least epsilon at which Gaussian noise may be scaled to a beta-smooth bound of one number.

    Nissim, Raskhodnikova and Smith (2007): beta <= epsilon/(4 (1 + ln(2/delta))).
    """
    return 4 * beta * (1 + log(2 / delta))


def gaussian_scale(*, bound: float, epsilon: float, delta: float) -> float:
    """The standard deviation that goes with it: 5 sqrt(2 ln(2/delta))/epsilon times the bound."""
    return 5 * sqrt(2 * log(2 / delta)) / epsilon * bound


def wide_delta(*, ratio: float, epsilon: float) -> float:
    """The least delta of Gaussian noise whose standard deviation is `ratio` times as large on one of two neighbours.

    The same mean on both, so the answer itself need not move. P(|Z| > t/ratio) - e^epsilon P(|Z| > t) at the t from where on
    the wider density is more than e^epsilon times the other: t^2 (1 - 1/ratio^2)/2 = epsilon + ln(ratio).
    """
    t = sqrt(2 * (epsilon + log(ratio)) / (1 - ratio**-2))
    return erfc(t / (ratio * sqrt(2))) - exp(epsilon) * erfc(t / sqrt(2))


def _gaussian() -> Iterator[Outcome]:
    """Remark 5.3(b): the bound 1 + L1 is smooth in ln 2, and Gaussian noise wants it much smoother.

    Two sets of three recipients, a donor in each: when one donor goes, L1 and with it the noise grow. The scale of the noise
    tells who was there, whatever multiple of the bound it is.
    """
    least = least_epsilon(beta=float(LN2), delta=DELTA)
    why = "with beta = ln 2, delta 0.000001; a smaller beta needs our ladder"
    yield Outcome(item="Remark 5.3(b), least epsilon", as_printed=least, query=why)
    sd = gaussian_scale(bound=5, epsilon=least, delta=DELTA)
    yield Outcome(item="Remark 5.3(b), sd there of a count at L1 = 4", as_printed=sd, query=why)
    before, after = (largest_change(PAIRS, givers) for givers in (AMONG, AMONG[1:]))
    for said, ratio in (
        (f"bounds of {1 + before} and {1 + after}", (1 + after) / (1 + before)),
        ("a bound twice as large", 2),
    ):
        yield Outcome(
            item=f"Remark 5.3(b), delta at epsilon 6 ln 2, {said}",
            as_printed=DELTA,
            value=wide_delta(ratio=ratio, epsilon=6 * float(LN2)),
            query="ours: at least this, for Gaussian noise of any scale that is a multiple of the bound 1 + L1",
        )


def _silence() -> Iterator[Outcome]:
    """The learned law on a second year: shares that are silent, as seen and as drawn, and how well it tells them apart."""
    for silence in wages.SILENCES:
        found, at = wages.check_law(silence), f"Law of silence, {silence}, second year"
        yield Outcome(item=f"{at}, % silent", value=100 * (1 - found.complete), query="seen")
        yield Outcome(
            item=f"{at}, % silent by the law", value=100 * (1 - found.complete_drawn), query="drawn"
        )
        yield Outcome(
            item=f"{at}, area under the curve", value=found.auc["wage"], query="0.5 is no better than chance"
        )
    learned, asked = wages.LESS_SCHOOLED, wages.MORE_SCHOOLED
    other = wages.check_law(learned, asked=asked).auc["wage"]
    why = f"a law of {learned} on a year in which the {asked} are silent: what a wrong law looks like"
    yield Outcome(
        item="Law of silence, another one, second year, area under the curve", value=other, query=why
    )


OUR_POINTS = "points of our own; the drawing has no coordinates"


def experiment() -> Experiment:
    """The worked examples of nearest-neighbour imputation."""
    return Experiment(
        name="donors-example",
        title="Drawings, constants and the law of silence of the document on donors",
        source="Differentially private k-nearest neighbor missing data imputation, Figures 1 to 3, Remark 5.3",
        run=run,
        exact=True,
    )
