"""Multiple imputation: answers about gaps filled several times from uncertain lines, the mean over copies, and its interval.

The answer costs its epsilon, however many copies there are. It is a sum over rows, and what one row adds lies between public
bounds. What is bought beside it, for an error bar's epsilon, says how far the answer would move with the lines, in how
many rows it rests on a draw, and how far rows are apart. From these the interval follows by Rubin's rules: sampling,
filling, and all noise.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from reticent.answer.context import CompletedSums, Context
from reticent.answer.count import answer_count, answer_total
from reticent.answer.expect import Expected
from reticent.answer.parts import (
    COPIES_WORDS,
    Answer,
    Interval,
    Measurement,
    measure_table,
    plan_part,
    plan_table,
)
from reticent.answer.ratio import mean_ratio, share_ratio
from reticent.answer.statistic import COPIED, BaseRoute, Ground, PublicRoute
from reticent.engine.wants import Sum
from reticent.query.base import RowQuery
from reticent.query.kinds import Count, Mean, Proportion, Total
from reticent.refine.rubin import combine
from reticent.schema import Schema
from reticent.schema.predicate import columns_compared
from reticent.sensitivity.bounds import FINE as PART_FINE
from reticent.sensitivity.bounds import Global, Neighbours, bound_sum

Copiable = Count | Total | Mean | Proportion

FINE = 1 << 10
"""A share is counted in steps of 2^-10 where others are measured from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A sum of whole multiples of sums. A row adds a number from `low` to `high`, or nothing; a step is `unit`."""

    terms: tuple[tuple[Sum, int], ...]
    low: int
    high: int
    unit: Fraction

    @property
    def reach(self) -> int:
        """How far two terms of a row can be apart, nothing counting as 0."""
        return max(self.high, 0) - min(self.low, 0)

    @property
    def farthest(self) -> int:
        """The largest term."""
        return max(abs(self.low), abs(self.high))

    def of(self, sums: Mapping[Sum, int]) -> int:
        """The sum, from those it is made of."""
        return sum(times * sums[want] for want, times in self.terms)


def linear(query: Copiable, schema: Schema, value: Fraction | None) -> Linear:
    """The sum whose change, divided by the count of a quotient, is that of the answer near `value`.

    A quotient k = T/s moves by (dT - k ds)/s: the sum of terms less k. Without a value, from one end: then terms are at
    their largest.
    """
    match query:
        case Count():
            return Linear(terms=((query.count(schema), 1),), low=0, high=1, unit=Fraction(1))
        case Total():
            column = query.number(schema)
            total = ((query.power(schema, 1), 1),)
            return Linear(terms=total, low=column.low, high=column.high, unit=column.grid)
        case Mean():
            column = query.number(schema)
            twice = 2 * column.low if value is None else round(2 * value / column.grid)
            twice = min(max(twice, 2 * column.low), 2 * column.high)
            terms = ((query.power(schema, 1), 2), (query.power(schema, 0), -twice))
            low, high = 2 * column.low - twice, 2 * column.high - twice
            return Linear(terms=terms, low=low, high=high, unit=column.grid / 2)
        case Proportion():
            about = min(max(0 if value is None else round(value * FINE), 0), FINE)
            among = ((query.true(schema), FINE), (query.decided(schema), -about))
            return Linear(terms=among, low=-about, high=FINE - about, unit=Fraction(1, FINE))


def squares(query: Total | Mean, schema: Schema, shape: Linear, sums: Mapping[Sum, int]) -> int:
    """The sum of the squares of all terms."""
    count, first, second = (sums[query.power(schema, power)] for power in (0, 1, 2))
    if isinstance(query, Total):
        return second
    about = -shape.terms[1][1]
    return 4 * second - 4 * about * first + about * about * count


GAPS = SQUARES = Fraction(1, 4)
"""Of an error bar's epsilon, for the rows with missing values and for the squares; the steps of the lines get the rest."""

PAGE = COPIED[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarMeasurements:
    """What an error bar bought: the variance that lines give the sum, rows with missing values, squares; all in the sum's unit."""

    parts: tuple[Measurement, ...]
    sampled: float
    heavy: float
    gaps: float
    squares: float


def bar_parts(
    query: Copiable, bar: Fraction, *, directions: int, schema: Schema, neighbours: Neighbours
) -> tuple[Measurement, ...]:
    """What a bar will be made of, from public numbers alone; squares and steps at their largest."""
    shape = linear(query, schema, None)
    bound, shift = _steps_bound([shape.reach] * directions, neighbours)
    made = plan_table(
        "steps of the lines", bound=bound, grid=shape.unit * 2**shift, epsilon=_rest(query) * bar
    )
    one = bound_sum(-1, 1, neighbours=neighbours)
    gaps = plan_part("rows with missing values", bound=one, grid=Fraction(1), epsilon=GAPS * bar)
    parts = [made, gaps]
    if isinstance(query, Total | Mean):
        top = bound_sum(0, shape.farthest**2, neighbours=neighbours)
        parts.append(plan_part("squares", bound=top, grid=shape.unit**2, epsilon=SQUARES * bar))
    return tuple(replace(part, proof=PAGE) for part in parts)


def _rest(query: Copiable) -> Fraction:
    return 1 - GAPS - (SQUARES if isinstance(query, Total | Mean) else 0)


def _steps_bound(reaches: Sequence[int], neighbours: Neighbours) -> tuple[Global, int]:
    """In the L1 norm over all directions, after rounding to steps of 2^shift."""
    exact = max(1, neighbours.steps * sum(reaches))
    shift = max(0, exact.bit_length() - PART_FINE)
    return Global(bound=Fraction(ceil(Fraction(exact, 2**shift)) + (len(reaches) if shift else 0))), shift


def is_straight(query: Copiable, filled: Collection[str]) -> bool:
    """Whether an answer moves with a line as the line does, draws or not: means and totals among rows that are fixed."""
    return isinstance(query, Total | Mean) and not set(columns_compared(query.among.where)) & set(filled)


def _steps(query: Copiable, shape: Linear, copied: CompletedSums) -> tuple[list[int], list[int]]:
    """The sum's difference along each direction, and how far one row can move it."""
    if not isinstance(query, Total | Mean) or not is_straight(query, copied.filled):
        return [shape.of(each) for each in copied.apart], [shape.reach] * len(copied.apart)
    times = shape.terms[0][1]
    reaches = [min(shape.reach, times * reach.get(query.column, 0)) for reach in copied.reaches]
    return [shape.of(each) for each in copied.straight], reaches


def buy(
    query: Copiable, value: Fraction, bar: Fraction, context: Context, copied: CompletedSums
) -> BarMeasurements:
    """The numbers a bar rests on.

    Guarantee   bar-DP for one call, given the lines and the answer.
    Adjacency   context.neighbours.
    Theorem     a row moves each difference of copies by at most the reach of one term, and each other sum by its own.
    Proof       proofs/answer/copied.md
    Assumes     as `answer_copied`.
    Keeps back  the exact sums.
    """
    schema, neighbours, m = context.schema, context.neighbours, copied.copies
    shape = linear(query, schema, value)
    moved, reaches = _steps(query, shape, copied)
    bound, shift = _steps_bound(reaches, neighbours)
    exact = [(each + (1 << shift >> 1)) >> shift for each in moved]
    steps = measure_table(
        exact,
        "steps of the lines",
        bound=bound,
        grid=shape.unit * 2**shift,
        epsilon=_rest(query) * bar,
        noise=context.noise,
    )
    who = query.decided(schema)
    silent = context.measure(
        copied.total[who] - m * copied.unfilled[who],
        "rows with missing values",
        bound=bound_sum(-1, 1, neighbours=neighbours),
        grid=Fraction(1),
        epsilon=GAPS * bar,
    )
    parts, spread = [steps[0].part, silent.part], 0.0
    if isinstance(query, Total | Mean):
        squared = context.measure(
            squares(query, schema, shape, copied.total.sums),
            "squares",
            bound=bound_sum(0, shape.farthest**2, neighbours=neighbours),
            grid=shape.unit**2,
            epsilon=SQUARES * bar,
        )
        parts, spread = [*parts, squared.part], float(squared.estimate)
    sampled, heavy = _of_lines(np.array([float(step.estimate) for step in steps]), copied)
    return BarMeasurements(
        parts=tuple(replace(part, proof=PAGE) for part in parts),
        sampled=sampled,
        heavy=heavy,
        gaps=max(0.0, float(silent.estimate)),
        squares=max(0.0, spread),
    )


def _of_lines(steps: NDArray[np.float64], copied: CompletedSums) -> tuple[float, float]:
    """The variance of the sum from sampling and from the noise of the lines: slope' covariance slope, line by line.

    A step of `width` standard deviations up and one down are twice that apart. Directions in which a line is certain
    have no part.
    """
    sampled, heavy, start = 0.0, 0.0, 0
    for line in copied.lines:
        root = line.root
        end = start + root.shape[1]
        each = steps[start:end] / (2 * np.array(copied.widths[start:end]))
        slope = np.linalg.lstsq(root.T, each, rcond=1e-12)[0]
        sampled += float(slope @ line.sampling @ slope)
        heavy += float(slope @ line.noise @ slope)
        start = end
    return max(0.0, sampled), max(0.0, heavy)


def copied_wants(query: Copiable, schema: Schema) -> tuple[Sum, ...]:
    """All that an ask over copies needs of each."""
    more = (query.power(schema, 0), query.power(schema, 2)) if isinstance(query, Total | Mean) else ()
    return (*query.wants(schema), query.decided(schema), *more)


def answer_copied(
    query: Copiable,
    epsilon: Fraction,
    bar: Fraction,
    context: Context,
    *,
    copied: CompletedSums,
    drawn: float,
    effect: float = 1.0,
) -> Answer:
    """The mean over copies; with a `bar`, an interval about everything that is uncertain.

    `drawn` is the variance of a draw about its line, in the unit of the column; `effect` the design effect.

    Guarantee   (epsilon + bar)-DP for one call, given the lines.
    Adjacency   context.neighbours.
    Theorem     the answer's own, for means over copies; and the Laplace mechanism for what is bought.
    Proof       proofs/answer/copied.md
    Assumes     in each copy a row's cells depend on that row, released lines and its own draws; exact arithmetic.
    Keeps back  the exact sums of every copy, who has gaps, and how many have.
    """
    tallies = replace(context.tallies, statistics=copied.total)
    over = replace(context, tallies=tallies, copies=copied.copies, known=None)
    answer, count = _answer(query, epsilon, over)
    if not bar:
        return answer
    (estimate,) = answer.estimates
    bought = buy(query, estimate.value, bar, over, copied)
    variances = _variances(query, estimate.value, count, bought, over, drawn)
    made = combine(
        float(estimate.value),
        within=max(0.0, effect * variances[0]),
        between=bought.sampled / count**2 + variances[1],
        heavy=bought.heavy / count**2,
        copies=copied.copies,
        noise=(estimate.noise_sd or 0.0) ** 2,
    )

    def interval(level: Fraction) -> Interval:
        low, high = made.interval(float(level))
        return Fraction(low), Fraction(high)

    told = replace(estimate, total=interval, sampling=None)
    return Answer(
        estimates=(told,),
        parts=(*answer.parts, *bought.parts),
        meaning=answer.meaning,
        total_meaning=COPIES_WORDS,
    )


def _answer(query: Copiable, epsilon: Fraction, context: Context) -> tuple[Answer, float]:
    """The answer, and what it was divided by."""
    match query:
        case Count():
            return answer_count(query, epsilon, context), 1.0
        case Total():
            return answer_total(query, epsilon, context), 1.0
        case Mean():
            ratio = mean_ratio(query, epsilon, context)
        case Proportion():
            ratio = share_ratio(query, epsilon, context)
    return ratio.answer(None), float(ratio.count)


def _variances(
    query: Copiable, value: Fraction, count: float, bought: BarMeasurements, context: Context, drawn: float
) -> tuple[float, float]:
    """The variance of sampling, and that of the draws. Statistics, on released numbers alone."""
    answer, gaps, rows = float(value), bought.gaps, context.rows
    if isinstance(query, Mean):
        return bought.squares / count**2, gaps * min(drawn, bought.squares / count) / count**2
    if isinstance(query, Total):
        return bought.squares - (answer**2 / rows if rows else 0.0), gaps * drawn
    share = (
        answer / rows
        if isinstance(query, Count) and rows
        else answer
        if isinstance(query, Proportion)
        else 0.5
    )
    each = min(max(share * (1 - share), 0.0), 0.25)
    if isinstance(query, Proportion):
        return each / count, gaps * each / count**2
    return (rows * each if rows else max(0.0, answer)), gaps * each


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesRoute(BaseRoute[Copiable]):
    """A sum or mean over several copies of the rows, each filled by itself; an interval if it is bought.

    `plain` is the route of the same query over one filling: noise and cost of the number itself are the same.
    """

    plain: PublicRoute[RowQuery]

    @property
    def parts(self) -> tuple[Measurement, ...]:
        ask, own = self.statistic, self.setting
        if not ask.bar:
            return self.plain.parts
        bought = bar_parts(
            self.query, ask.bar, directions=own.directions, schema=own.schema, neighbours=own.neighbours
        )
        return (*self.plain.parts, *bought)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        *pages, linear_, noise = self.plain.rests_on
        return (*pages, COPIED, linear_, noise) if self.statistic.bar else self.plain.rests_on

    @property
    def no_bar(self) -> str:
        return "intervals over copies are for statistics without a base weight" if self.query.weight else ""

    def expect(self) -> Expected:
        return self.plain.expect()

    def epsilon_for(self, cv: float) -> Fraction | None:
        return self.plain.epsilon_for(cv)

    def measured(self, context: Context) -> Answer:
        """The mean over copies; where there are none, as over one filling."""
        completed = context.completed
        if completed is None:
            return self.plain.measured(context)
        return answer_copied(
            self.query,
            self.statistic.epsilon,
            self.statistic.bar,
            context,
            copied=completed,
            drawn=drawn_of(self.query, completed),
            effect=context.effect,
        )


def drawn_of(query: Copiable, completed: CompletedSums) -> float:
    """The variance of a draw of the column that a mean or total is of; that of the most uncertain one otherwise."""
    if not isinstance(query, Total | Mean):
        return 0.0
    return completed.drawn.get(query.column, max(completed.drawn.values(), default=0.0))
