"""Counts, totals, means, proportions and variances of data in which donors have answered for the silent.

Each is made of the same sums as without donors. Those that no donor's answer enters keep their noise; the
others have noise scaled by a smooth bound, which is confidential, and an error bar only where one was bought.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor

from reticent.answer.context import Context
from reticent.answer.parts import UNBOUNDED, Answer, AnyMeasurement, Estimate, Interval
from reticent.answer.ratio import centre_code
from reticent.answer.readings import Quotient, Reading, purse, told_count
from reticent.answer.shares import Shares, Tasks, planned
from reticent.engine.wants import Sum
from reticent.query.kinds import Count, Mean, Proportion, Total, Variance
from reticent.refine.ratio import quotient_interval

Asked = Count | Total | Mean | Proportion | Variance

HIDDEN_WORDS = "none: the scale of the noise is confidential; give interval an epsilon for an interval"
PIVOT_WORDS = (
    "covers the value that the same respondents, their gaps filled, would give without privacy noise, with at least "
    "the stated probability; the scale of the noise is confidential, and the uncertainty about it is included"
)


def answer_imputed(query: Asked, epsilon: Fraction, bar: Fraction, context: Context) -> Answer:
    """The noisy answer to an ask that rests on filled columns.

    Guarantee   (epsilon + bar)-DP for one call.
    Adjacency   context.neighbours.
    Theorem     `read_plain` and `read_smooth` for each of its sums; budgets add.
    Proof       proofs/answer/imputed.md
    Assumes     tallies of `reticent.query.filled.wants`; a public size is a constant of the plan; exact arithmetic.
    Keeps back  the exact sums, and every smooth bound.
    """
    shares = planned(query, context.schema, context.neighbours, context.repair)
    match query:
        case Count() | Total():
            return _single(query, shares, epsilon, bar, context)
        case Mean() | Proportion():
            found = _quotient(query, shares, epsilon, bar, context)
            return answer_of(found.value, found.interval, found.has_interval, found.parts)
        case Variance():
            return _variance(query, shares, epsilon, bar, context)


def answer_of(
    value: Fraction, interval: Callable[[Fraction], Interval], is_told: bool, parts: Sequence[AnyMeasurement]
) -> Answer:
    """One number whose noise has a confidential scale."""
    estimate = Estimate(value=value, interval=interval, noise_sd=None, has_interval=is_told)
    return Answer(estimates=(estimate,), parts=tuple(parts), meaning=PIVOT_WORDS if is_told else HIDDEN_WORDS)


def _single(
    query: Count | Total, shares: Shares, epsilon: Fraction, bar: Fraction, context: Context
) -> Answer:
    (task, share), schema = shares[0], context.schema
    want: Sum = query.count(schema) if isinstance(query, Count) else query.power(schema, 1)
    exact = context.tallies.statistics[want]
    reading = purse(epsilon, bar, shares).read(task, share, exact, context)

    def interval(level: Fraction) -> Interval:
        if reading.told is None:
            return -UNBOUNDED, UNBOUNDED
        width = Fraction(reading.told.width(float(level)) + reading.told.blur)
        return reading.estimate - width, reading.estimate + width

    return answer_of(reading.estimate, interval, reading.told is not None, reading.parts)


def _quotient(
    query: Mean | Proportion | Variance, shares: Shares, epsilon: Fraction, bar: Fraction, context: Context
) -> Quotient:
    """Count and centred sum, the first of the shares, measured in this order; no count where the size is public."""
    schema, statistics, budget = context.schema, context.tallies.statistics, purse(epsilon, bar, shares)
    if isinstance(query, Proportion):
        count, true = statistics[query.decided(schema)], statistics[query.true(schema)]
        centred, centre, low, high = 2 * true - count, Fraction(1, 2), Fraction(0), Fraction(1)
    else:
        column = query.number(schema)
        twice = centre_code(column, query.centre)
        count = statistics[query.power(schema, 0)]
        centred = 2 * statistics[query.power(schema, 1)] - twice * count
        centre, low, high = twice * column.grid / 2, column.lower, column.upper
    bottom = budget.read(*shares[0], count, context) if query.size is None else None
    top = budget.read(*shares[1 if bottom else 0], centred, context)
    return Quotient(top=top, bottom=bottom, size=query.size, centre=centre, low=low, high=high)


def _variance(query: Variance, shares: Shares, epsilon: Fraction, bar: Fraction, context: Context) -> Answer:
    """Squares about the released mean, which is measured first."""
    schema, statistics = context.schema, context.tallies.statistics
    column, tasks = query.number(schema), Tasks(query, schema, context.neighbours, context.repair)
    mean = _quotient(query, shares, epsilon, bar, context)
    about = floor(mean.value / column.grid + Fraction(1, 2))
    n, s1, s2 = (statistics[query.power(schema, power)] for power in (0, 1, 2))
    exact = s2 - 2 * about * s1 + about * about * n
    share = shares[-1][1]
    squares = purse(epsilon, bar, shares).read(tasks.squares(column, about), share, exact, context)
    less = Fraction(0 if query.among.weight else 1)
    highest = (column.upper - column.lower) ** 2 / 2
    value = min(highest, max(Fraction(0), squares.estimate / max(Fraction(1), mean.count - less)))
    interval = _variance_interval(mean, squares, less, highest, column.grid / 2)
    is_told = mean.has_interval and squares.told is not None
    return answer_of(value, interval, is_told, (*mean.parts, *squares.parts))


def _variance_interval(
    mean: Quotient, squares: Reading, less: Fraction, highest: Fraction, rounding: Fraction
) -> Callable[[Fraction], Interval]:
    """As without donors (see `reticent.answer.ratio`), from whatever is told of the three noises."""
    count = told_count(mean.bottom, mean.count)

    def interval(level: Fraction) -> Interval:
        if count is None or squares.told is None or not mean.has_interval:
            return Fraction(0), highest
        each = 1 - (1 - level) / 2
        bottom = replace(count, value=count.value - float(less))
        widest = float(4 * highest)
        low, high = quotient_interval(squares.told, bottom, level=float(each), low=0.0, high=widest)
        off = mean.off(each) + rounding
        return max(Fraction(0), min(highest, Fraction(low)) - 2 * off * off), min(highest, Fraction(high))

    return interval
