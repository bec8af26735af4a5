"""Means and proportions: centre + (noisy centred sum) / (noisy count), as THEORY 3.3 says."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import hypot

from reticent.answer.base import RATIO_WORDS, Answer, Estimate
from reticent.answer.context import Context, weight_of
from reticent.answer.count import count_bound
from reticent.answer.parts import NoisyInteger
from reticent.query.kinds import Mean, Proportion
from reticent.refine.ratio import NoisyValue, quotient_interval
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.linear import bound_sum
from reticent.sensitivity.neighbours import Neighbours

COUNT_SHARE = Fraction(1, 4)
"""Of a mean's epsilon, to its count. Its error enters times |mean - centre|, which is mostly a small part of
the range; a quarter is the best share when that part is a fifth of the half-range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A quotient with public limits: value = centre + top / bottom."""

    top: NoisyInteger
    bottom: NoisyInteger | None
    size: int | None
    centre: Fraction
    low: Fraction
    high: Fraction

    @property
    def count(self) -> Fraction:
        """The size used as denominator: public, or measured and at least 1."""
        return Fraction(self.size) if self.size is not None else max(Fraction(1), self._measured.estimate)

    @property
    def _measured(self) -> NoisyInteger:
        if self.bottom is None:
            raise ValueError("a quotient has a public size or a measured count")
        return self.bottom

    @property
    def value(self) -> Fraction:
        return min(self.high, max(self.low, self.centre + self.top.estimate / self.count))

    @property
    def sd(self) -> float:
        """First-order standard deviation of the noise: the count's error enters times |value - centre|."""
        drift = float(abs(self.value - self.centre)) * (self.bottom.part.sd if self.bottom else 0.0)
        return hypot(self.top.part.sd, drift) / float(self.count)

    def interval(self, level: Fraction) -> tuple[Fraction, Fraction]:
        bottom = noisy(self.bottom) if self.bottom else NoisyValue(value=float(self.count))
        low, high = float(self.low - self.centre), float(self.high - self.centre)
        left, right = quotient_interval(noisy(self.top), bottom, level=float(level), low=low, high=high)
        return self.centre + Fraction(left), self.centre + Fraction(right)

    def answer(self, sampling: Callable[[float], float] | None) -> Answer:
        estimate = Estimate(value=self.value, interval=self.interval, noise_sd=self.sd, sampling=sampling)
        parts = (self.bottom.part, self.top.part) if self.bottom else (self.top.part,)
        return Answer(estimates=(estimate,), parts=parts, meaning=RATIO_WORDS)


def noisy(measured: NoisyInteger) -> NoisyValue:
    part = measured.part
    blur = part.blur * (2 if part.is_coarse else 1)
    return NoisyValue(value=float(measured.estimate), scale=float(part.scale * part.unit), blur=float(blur))


def split(epsilon: Fraction, size: int | None) -> tuple[Fraction, Fraction]:
    """Budget for the count and for the sum; a public size needs none."""
    return (
        (Fraction(0), epsilon) if size is not None else (epsilon * COUNT_SHARE, epsilon * (1 - COUNT_SHARE))
    )


def centre_code(column: Number, centre: Fraction | None) -> int:
    """Twice the centre in grid steps: the midpoint of the bounds, or the plan's own public guess."""
    return column.low + column.high if centre is None else int(2 * centre / column.grid)


def mean_bound(query: Mean, schema: Schema, neighbours: Neighbours) -> tuple[Global, Fraction]:
    """The bound of sum w(2y - 2c) in half steps of the column's grid (times the weight's)."""
    column, weight = query.number(schema), weight_of(query.among, schema)
    twice = centre_code(column, query.centre)
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    low, high = top * (2 * column.low - twice), top * (2 * column.high - twice)
    return bound_sum(low, high, neighbours=neighbours), grid * column.grid / 2


def share_bound(query: Proportion, schema: Schema, neighbours: Neighbours) -> tuple[Global, Fraction]:
    """The bound of sum w(2 [true] - 1), in halves."""
    weight = weight_of(query.among, schema)
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    return bound_sum(-top, top, neighbours=neighbours), grid / 2


def _measured_count(
    query: Mean | Proportion, exact: int, epsilon: Fraction, context: Context
) -> NoisyInteger | None:
    if query.size is not None:
        return None
    bound, grid = count_bound(query.among, context.schema, context.neighbours)
    return context.measure(exact, "count", bound=bound, grid=grid, epsilon=epsilon)


def mean_ratio(query: Mean, epsilon: Fraction, context: Context) -> Ratio:
    """The measured parts of a mean.

    Guarantee   epsilon-DP for one call.
    Adjacency   context.neighbours.
    Theorem     `bound_sum` and `measure`, twice; budgets add.
    Proof       proofs/answer/ratio.md
    Assumes     tallies of `query.wants`; a public size is a constant of the plan; exact arithmetic.
    Keeps back  the exact count and sum.
    """
    schema, statistics = context.schema, context.tallies.statistics
    column = query.number(schema)
    twice = centre_code(column, query.centre)
    count, total = statistics[query.power(schema, 0)], statistics[query.power(schema, 1)]
    for_count, for_sum = split(epsilon, query.size)
    bottom = _measured_count(query, count, for_count, context)
    bound, grid = mean_bound(query, schema, context.neighbours)
    exact = 2 * total - twice * count
    top = context.measure(exact, "centred sum", bound=bound, grid=grid, epsilon=for_sum)
    centre = twice * column.grid / 2
    return Ratio(top=top, bottom=bottom, size=query.size, centre=centre, low=column.lower, high=column.upper)


def answer_mean(
    query: Mean, epsilon: Fraction, context: Context, *, variance: Fraction | None = None
) -> Answer:
    """The noisy mean. With a `variance` that another ask released, its sampling error is told:
    effect * variance / (the public size, or the noisy count of this very subpopulation)."""
    ratio = mean_ratio(query, epsilon, context)
    if variance is None or query.among.weight:
        return ratio.answer(None)
    each = float(variance / ratio.count)
    return ratio.answer(lambda effect: effect * each)


def share_ratio(query: Proportion, epsilon: Fraction, context: Context) -> Ratio:
    """The measured parts of a share: a mean of a 0/1 answer, centred at one half.

    Guarantee   epsilon-DP for one call.
    Adjacency   context.neighbours.
    Theorem     `bound_sum` and `measure`, twice; budgets add.
    Proof       proofs/answer/ratio.md
    Assumes     tallies of `query.wants`; a public size is a constant of the plan; exact arithmetic.
    Keeps back  the exact counts.
    """
    schema, statistics = context.schema, context.tallies.statistics
    decided, true = statistics[query.decided(schema)], statistics[query.true(schema)]
    for_count, for_sum = split(epsilon, query.size)
    bottom = _measured_count(query, decided, for_count, context)
    bound, grid = share_bound(query, schema, context.neighbours)
    exact = 2 * true - decided
    top = context.measure(exact, "centred sum", bound=bound, grid=grid, epsilon=for_sum)
    return Ratio(
        top=top, bottom=bottom, size=query.size, centre=Fraction(1, 2), low=Fraction(0), high=Fraction(1)
    )


def answer_proportion(query: Proportion, epsilon: Fraction, context: Context) -> Answer:
    """The noisy share, with the sampling error of so many."""
    ratio = share_ratio(query, epsilon, context)
    share, count = float(ratio.value), float(ratio.count)
    return ratio.answer(None if query.among.weight else lambda effect: effect * share * (1 - share) / count)
