"""Means, proportions and variances as quotients of noisy sums (THEORY 3.3).

A mean or proportion is centre + (noisy centred sum) / (noisy count). A variance about a released mean has three parts:
count, centred sum and squares.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor, hypot

from reticent.answer.context import Context, count_bound, noisy, split, weight_of
from reticent.answer.expect import Noises
from reticent.answer.parts import (
    RATIO_WORDS,
    Answer,
    Estimate,
    Measurement,
    NoisyInteger,
    Sampling,
    measure,
    plan_part,
)
from reticent.answer.statistic import Q_co, QuotientRoute, Setting
from reticent.query.base import Subpopulation, centre_code
from reticent.query.kinds import Mean, Proportion, Variance
from reticent.refine.pivot import NoisyValue, quotient_interval
from reticent.refine.total import SampleSize, mean_variance, share_variance
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Global, Neighbours, bound_sum


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

    def answer(self, sampling: Sampling | None) -> Answer:
        estimate = Estimate(
            value=self.value,
            interval=lru_cache(maxsize=8)(self.interval),
            noise_sd=self.sd,
            sampling=sampling,
            size=self.count,
            limits=(self.low, self.high),
        )
        parts = (self.bottom.part, self.top.part) if self.bottom else (self.top.part,)
        return Answer(estimates=(estimate,), parts=parts, meaning=RATIO_WORDS)


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

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
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
    variance / (the public size, or the noisy count of this very subpopulation)."""
    ratio = mean_ratio(query, epsilon, context)
    if variance is None:
        return ratio.answer(None)
    spread = float(variance)
    return ratio.answer(_sampled(query, ratio, lambda size: mean_variance(spread, size)))


def _sampled(query: Mean | Proportion, ratio: Ratio, variance: Callable[[float], float]) -> Sampling:
    """The variance among as many respondents as the quotient was divided by, heads or weight."""

    def sampling(size: SampleSize | None) -> float | None:
        held = size or SampleSize(respondents=float(ratio.count))
        heads = held.heads(float(ratio.count), query.among.weight)
        return None if heads is None else variance(heads)

    return sampling


def share_ratio(query: Proportion, epsilon: Fraction, context: Context) -> Ratio:
    """The measured parts of a share: a mean of a 0/1 answer, centred at one half.

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
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
    share = float(ratio.value)
    return ratio.answer(_sampled(query, ratio, lambda size: share_variance(share, size)))


SQUARES_SHARE = Fraction(1, 2)
"""Of a variance's epsilon, to the squares; the rest goes to the mean they are taken about."""


def squares_bound(column: Number, about: int, top: int, neighbours: Neighbours) -> Global:
    """The bound of sum w (y - about)^2 in squared grid steps: contributions in [0, m w]."""
    largest = max((column.low - about) ** 2, (column.high - about) ** 2)
    return bound_sum(0, top * largest, neighbours=neighbours)


def answer_variance(query: Variance, epsilon: Fraction, context: Context) -> Answer:
    """The noisy sample variance.

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
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
        in_rho=context.in_rho,
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
    estimate = Estimate(value=value, interval=interval, noise_sd=sd, size=mean.count)
    return Answer(estimates=(estimate,), parts=parts, meaning=RATIO_WORDS)


def _interval(
    mean: Ratio, squares: NoisyInteger, less: Fraction, highest: Fraction, rounding: Fraction
) -> Callable[[Fraction], tuple[Fraction, Fraction]]:
    """Squares were taken about the released mean, not the exact one: that adds n (mean - about)^2, taken off below."""

    def interval(level: Fraction) -> tuple[Fraction, Fraction]:
        each = 1 - (1 - level) / 2
        count = noisy(mean.bottom) if mean.bottom else NoisyValue(value=float(mean.count))
        bottom = replace(count, value=count.value - float(less))
        # Squares about any point of [a, b], over n - 1, are at most 2(b - a)^2: four times `highest`.
        widest = float(4 * highest)
        low, high = quotient_interval(noisy(squares), bottom, level=float(each), low=0.0, high=widest)
        left, right = mean.interval(each)
        off = max(right - mean.value, mean.value - left) + rounding
        # n/(n-1) <= 2 for n >= 2.
        return max(Fraction(0), min(highest, Fraction(low)) - 2 * off * off), min(highest, Fraction(high))

    return interval


def quotient_parts(
    among: Subpopulation,
    size: int | None,
    epsilon: Fraction,
    top: tuple[Global, Fraction],
    setting: Setting,
    *,
    in_rho: bool = False,
) -> tuple[Measurement, ...]:
    """What a quotient is made of, known before a row is read: a count where the size is not public, and a centred sum."""
    for_count, for_sum = split(epsilon, size)
    counted: tuple[Measurement, ...] = ()
    if for_count:
        bound, grid = count_bound(among, setting.schema, setting.neighbours)
        counted = (plan_part("count", bound=bound, grid=grid, epsilon=for_count, in_rho=in_rho),)
    bound, grid = top
    return (*counted, plan_part("centred sum", bound=bound, grid=grid, epsilon=for_sum, in_rho=in_rho))


class _QuotientOfSums(QuotientRoute[Q_co]):
    """A route whose parts begin with those of a quotient."""

    __slots__ = ()

    def quotient(
        self, among: Subpopulation, amount: Fraction, top: tuple[Global, Fraction]
    ) -> tuple[Measurement, ...]:
        """A count where the size is not public, and a centred sum, for an amount of the statistic's unit."""
        return quotient_parts(among, self.size, amount, top, self.setting, in_rho=self.statistic.in_rho)


class MeanRoute(_QuotientOfSums[Mean]):
    """A mean, by a noisy count and a noisy centred sum."""

    __slots__ = ()
    PAGES = ("ratio",)

    @property
    def size(self) -> int | None:
        return self.query.size

    def centre(self) -> Fraction:
        return self.query.mean(self.setting.schema).centre

    @property
    def parts(self) -> tuple[Measurement, ...]:
        query, schema, neighbours = self.query, self.setting.schema, self.setting.neighbours
        top = mean_bound(query, schema, neighbours)
        return self.quotient(query.among, self.statistic.epsilon, top)

    def measured(self, context: Context) -> Answer:
        """With the sampling error that a released variance implies, where the plan names one."""
        found = context.released(self.statistic.variance)
        variance = None if found is None else found.value
        return answer_mean(self.query, self.statistic.epsilon, context, variance=variance)


class ProportionRoute(_QuotientOfSums[Proportion]):
    """A proportion, by a noisy count and a noisy centred sum."""

    __slots__ = ()
    PAGES = ("ratio",)

    @property
    def size(self) -> int | None:
        return self.query.size

    def centre(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        query, schema, neighbours = self.query, self.setting.schema, self.setting.neighbours
        top = share_bound(query, schema, neighbours)
        return self.quotient(query.among, self.statistic.epsilon, top)

    def measured(self, context: Context) -> Answer:
        return answer_proportion(self.query, self.statistic.epsilon, context)


class VarianceRoute(_QuotientOfSums[Variance]):
    """A variance, by a noisy mean and noisy squares about it."""

    __slots__ = ()
    PAGES = ("ratio", "variance")

    @property
    def size(self) -> int | None:
        return self.query.size

    def centre(self) -> Fraction:
        """Squares have none."""
        return Fraction(0)

    def margin(self, parts: Noises) -> Fraction | None:
        """At its widest: with the mean at one end the variance is 0, and squares about it move by h^2; with the mean in the
        middle it is at most h^2/4, and so is what one square moves."""
        size, level = self.divisor, self.statistic.level
        if not size or self.statistic.expected is not None:
            return super().margin(parts)
        column = self.query.number(self.setting.schema)
        squares, most = float(parts[-1].half_width(level)), float(column.upper - column.lower) ** 2 / 4
        counted = float(parts[0].half_width(level)) * most if parts[0].what == "count" else 0.0
        return Fraction(max(squares, hypot(squares / 4, counted))) / size

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """The squares' bound depends on the released mean; here at its largest, for a mean at one end."""
        query, schema, neighbours = self.query, self.setting.schema, self.setting.neighbours
        mean = Mean(column=query.column, among=query.among, centre=query.centre, size=query.size)
        column, weight = query.number(schema), weight_of(query.among, schema)
        top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
        for_squares = self.statistic.epsilon * SQUARES_SHARE
        squares = plan_part(
            "squares about the mean",
            bound=squares_bound(column, column.low, top, neighbours),
            grid=grid * column.grid**2,
            epsilon=for_squares,
            in_rho=self.statistic.in_rho,
        )
        centred, rest = mean_bound(mean, schema, neighbours), self.statistic.epsilon - for_squares
        return (*self.quotient(query.among, rest, centred), squares)

    def measured(self, context: Context) -> Answer:
        return answer_variance(self.query, self.statistic.epsilon, context)
