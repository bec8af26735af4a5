"""Variance about a released mean: three parts, count, centred sum and squares (THEORY 3.3)."""

from collections.abc import Callable
from fractions import Fraction
from math import floor, hypot

from reticent.answer.base import RATIO_WORDS, Answer, Estimate
from reticent.answer.context import Context, weight_of
from reticent.answer.parts import NoisyInteger, measure
from reticent.answer.ratio import Ratio, mean_ratio, noisy
from reticent.query.kinds import Mean, Variance
from reticent.refine.ratio import NoisyValue, quotient_interval
from reticent.schema import Number
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.linear import bound_sum
from reticent.sensitivity.neighbours import Neighbours

SQUARES_SHARE = Fraction(1, 2)
"""Of a variance's epsilon, to the squares; the rest goes to the mean they are taken about."""


def squares_bound(column: Number, about: int, top: int, neighbours: Neighbours) -> Global:
    """The bound of sum w (y - about)^2 in squared grid steps: contributions in [0, m w]."""
    largest = max((column.low - about) ** 2, (column.high - about) ** 2)
    return bound_sum(0, top * largest, neighbours=neighbours)


def answer_variance(query: Variance, epsilon: Fraction, context: Context) -> Answer:
    """The noisy sample variance.

    Guarantee   epsilon-DP for one call.
    Adjacency   context.neighbours.
    Theorem     `mean_ratio`, then `bound_sum` and `measure` for squares about the released mean; budgets add.
    Proof       proofs/answer/variance.md
    Assumes     tallies of `query.wants`; `about` depends on released numbers only; exact arithmetic.
    Keeps back  the exact moments.
    """
    schema, statistics = context.schema, context.tallies.statistics
    column, weight = query.number(schema), weight_of(query.among, schema)
    for_squares = epsilon * SQUARES_SHARE
    mean_query = Mean(column=query.column, among=query.among, centre=query.centre, size=query.size)
    mean = mean_ratio(mean_query, epsilon - for_squares, context)
    about = floor(mean.value / column.grid + Fraction(1, 2))
    n, s1, s2 = (statistics[query.power(schema, power)] for power in (0, 1, 2))
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    squares = measure(
        s2 - 2 * about * s1 + about * about * n,
        "squares about the mean",
        bound=squares_bound(column, about, top, context.neighbours),
        grid=grid * column.grid**2,
        epsilon=for_squares,
        noise=context.noise,
    )
    return _answer(mean, squares, less=Fraction(0 if weight else 1), rounding=column.grid / 2)


def _answer(mean: Ratio, squares: NoisyInteger, *, less: Fraction, rounding: Fraction) -> Answer:
    """`less` is what the denominator is short of the count: 1 for a sample variance, 0 with weights.

    `rounding` is how far the point the squares were taken about can lie from the released mean.
    """
    highest = (mean.high - mean.low) ** 2 / 2  # (b-a)^2/4 times n/(n-1), n >= 2
    divisor = max(Fraction(1), mean.count - less)
    value = min(highest, max(Fraction(0), squares.estimate / divisor))
    drift = float(value) * (mean.bottom.part.sd if mean.bottom else 0.0)
    sd = hypot(squares.part.sd, drift) / float(divisor)
    interval = _interval(mean, squares, less, highest, rounding)
    parts = (*((mean.bottom.part,) if mean.bottom else ()), mean.top.part, squares.part)
    return Answer(
        estimates=(Estimate(value=value, interval=interval, noise_sd=sd),), parts=parts, meaning=RATIO_WORDS
    )


def _interval(
    mean: Ratio, squares: NoisyInteger, less: Fraction, highest: Fraction, rounding: Fraction
) -> Callable[[Fraction], tuple[Fraction, Fraction]]:
    """Squares were taken about the released mean, not the exact one: that adds n (mean - about)^2, taken off below."""

    def interval(level: Fraction) -> tuple[Fraction, Fraction]:
        each = 1 - (1 - level) / 2
        count = noisy(mean.bottom) if mean.bottom else NoisyValue(value=float(mean.count))
        bottom = NoisyValue(value=count.value - float(less), scale=count.scale, blur=count.blur)
        # Squares about any point of [a, b], over n - 1, are at most 2(b - a)^2: four times `highest`.
        widest = float(4 * highest)
        low, high = quotient_interval(noisy(squares), bottom, level=float(each), low=0.0, high=widest)
        left, right = mean.interval(each)
        off = max(right - mean.value, mean.value - left) + rounding
        # n/(n-1) <= 2 for n >= 2.
        return max(Fraction(0), min(highest, Fraction(low)) - 2 * off * off), min(highest, Fraction(high))

    return interval
