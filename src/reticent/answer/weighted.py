"""Counts, totals, proportions and means with weights to known totals: noise scaled by the largest weight, now and nearby.

A count or total is one weighted sum. A mean or proportion is centre + (noisy centred sum) / (noisy count), both
weighted. The scale of the noise is confidential; an error bar is bought.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.base import UNBOUNDED, Answer, Estimate, Interval
from reticent.answer.context import Context
from reticent.answer.parts import AnyMeasurement
from reticent.answer.poststrata import Law
from reticent.answer.quotient import Quotient
from reticent.answer.ratio import centre_code
from reticent.answer.readings import Reading
from reticent.answer.sheets import Asked, WeightedSum, parts_of_sheet, pivot_of, sheets
from reticent.answer.weighing import Weighed, tally_of
from reticent.answer.weighting import Weighting
from reticent.noise.source import Noise
from reticent.query.kinds import Count, Mean, Proportion, Total
from reticent.refine.veil import HiddenNoise, LogScale
from reticent.schema import Schema
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.moves import Moves
from reticent.sensitivity.poststrata import Tally

HIDDEN_WORDS = "none: the scale of the noise is confidential; give interval an epsilon for an interval"
WEIGHTED_WORDS = (
    "covers the value that the same respondents, weighted to the same totals, would give without privacy noise, with "
    "at least the stated probability; the scale of the noise is confidential, and the uncertainty about it is included"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binned(HiddenNoise):
    """A published weighted sum, of which every bin's share was rounded to a step."""

    bins: int

    @property
    def blur(self) -> float:
        return float(self.unit) * (self.bins + 1) / 2


def answer_weighted(
    query: Asked,
    epsilon: Fraction,
    bar: Fraction,
    context: Context,
    *,
    weighting: Weighting,
    weighed: Weighed,
) -> Answer:
    """The noisy answer with weights to known totals.

    Guarantee   (epsilon + bar)-DP for one call.
    Adjacency   context.neighbours.
    Theorem     THEORY 6.1, 6.2 and 6.5a; 2.1 to 2.4 for the noise and 3.5a for the bar; group privacy over the
                records of a respondent; budgets add.
    Proof       proofs/answer/weighted.md
    Assumes     tallies of `weighted_wants`; bins that are public or were released; a public size is a constant of the
                plan; exact arithmetic.
    Keeps back  the exact sums, every smooth bound and its logarithm.
    """
    read = [
        _read(sheet, epsilon, bar, context, weighting=weighting, weighed=weighed, number=place)
        for place, sheet in enumerate(sheets(query, context.schema))
    ]
    if isinstance(query, Count | Total):
        return _single(read[0])
    found = _quotient(query, read, context.schema)
    return _answer(found.value, found.interval, found.has_interval, found.parts)


def _read(
    sheet: WeightedSum,
    epsilon: Fraction,
    bar: Fraction,
    context: Context,
    *,
    weighting: Weighting,
    weighed: Weighed,
    number: int,
) -> Reading:
    """One weighted sum with its noise; with a bar, the log scale too."""
    steps = context.neighbours.steps
    each = epsilon * sheet.share / steps  # neighbours are `steps` records apart
    asked = sheet.weighted(weighed.strategy, each, weighting)
    tally = _tally(sheet, context, weighting)
    smooth = asked.bound(tally)
    exact = asked.exact(tally) * asked.grid
    value = _add(context.noise, weighting.law, exact, smooth, each, asked.grid) * asked.grid
    parts = parts_of_sheet(sheet, epsilon * sheet.share, bar * sheet.share, weighting, context.neighbours)
    if not bar:
        return Reading(estimate=value, parts=parts, told=None)
    law = pivot_of(each, bar * sheet.share, weighting, context.neighbours)
    released = context.noise.laplace(
        law.height(smooth), sensitivity=int(law.sensitivity.bound), epsilon=bar * sheet.share
    )
    height = LogScale(number=number, pivot=law, moves=Moves(c0=Fraction(1)), released=released)
    told = Binned(
        value=float(value),
        pivot=law,
        height=height,
        times=1 / asked.grid,  # the bound is in the answer's own unit, `unit` a step
        unit=asked.grid,
        bins=weighed.strategy.size,
    )
    return Reading(estimate=value, parts=parts, told=told)


def _tally(sheet: WeightedSum, context: Context, weighting: Weighting) -> Tally:
    """The base cells with the sheet's own matching weight."""
    tables = [(context.tallies.bins[weighting.want(sum_)], factor) for sum_, factor in sheet.terms]
    first = tally_of(tables[0][0])
    matching = sum(
        (table.matching * factor for table, factor in tables[1:]), tables[0][0].matching * tables[0][1]
    )
    return Tally(count=first.count, total=first.total, matching=matching, largest=first.largest)


def _add(noise: Noise, law: Law, exact: Fraction, smooth: Smooth, epsilon: Fraction, grid: Fraction) -> int:
    match law:
        case Law.LOMAX:
            return noise.lomax(exact, sensitivity=smooth, epsilon=epsilon, grid=grid)
        case Law.STUDENT:
            return noise.student(exact, sensitivity=smooth, epsilon=epsilon, grid=grid)
        case Law.CAUCHY:
            return noise.cauchy4(exact, sensitivity=smooth, epsilon=epsilon, grid=grid)


def _single(reading: Reading) -> Answer:
    def interval(level: Fraction) -> Interval:
        if reading.told is None:
            return -UNBOUNDED, UNBOUNDED
        width = Fraction(reading.told.width(float(level)) + reading.told.blur)
        return reading.estimate - width, reading.estimate + width

    return _answer(reading.estimate, interval, reading.told is not None, reading.parts)


def _quotient(query: Mean | Proportion, read: list[Reading], schema: Schema) -> Quotient:
    bottom = read[0] if query.size is None else None
    if isinstance(query, Proportion):
        centre, low, high = Fraction(1, 2), Fraction(0), Fraction(1)
    else:
        column = query.number(schema)
        centre, low, high = centre_code(column, query.centre) * column.grid / 2, column.lower, column.upper
    return Quotient(top=read[-1], bottom=bottom, size=query.size, centre=centre, low=low, high=high)


def _answer(
    value: Fraction,
    interval: Callable[[Fraction], Interval],
    is_told: bool,
    parts: tuple[AnyMeasurement, ...],
) -> Answer:
    estimate = Estimate(value=value, interval=interval, noise_sd=None, has_interval=is_told)
    words = WEIGHTED_WORDS if is_told else HIDDEN_WORDS
    return Answer(estimates=(estimate,), parts=parts, meaning=words)
