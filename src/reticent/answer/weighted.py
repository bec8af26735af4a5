"""Post-stratified counts, totals, proportions and means: noise scaled by the largest weight, now and nearby.

A count or total is one weighted sum. A mean or proportion is centre + (noisy centred sum) / (noisy count), both weighted.
Which sums these are, and their shares of epsilon, is public. The scale of the noise is confidential; an error bar is
bought.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.choose_bins import Weighed, tally_of
from reticent.answer.context import Context, split
from reticent.answer.parts import (
    UNBOUNDED,
    Answer,
    AnyMeasurement,
    Estimate,
    HiddenScale,
    Interval,
    Measurement,
)
from reticent.answer.poststrata import Law, Weighted
from reticent.answer.readings import Quotient, Reading
from reticent.answer.weighting import Weighting
from reticent.engine.wants import Bins, Sum
from reticent.noise.source import Noise
from reticent.prepare.strata import Strategy
from reticent.query.base import CodedMean, CodedSum, Query, Shape
from reticent.refine.pivot import HiddenNoise, LogScale, Pivot, pivot
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours, Smooth
from reticent.sensitivity.donors import Moves
from reticent.sensitivity.poststrata import Tally, numeric_reach

SCALE = "noise scale"
FINE = 50
"""A step of the grid is at most this part of the least weight that the rounding of all bins could be compared with."""
LAWS = {Law.LOMAX: "double Lomax", Law.STUDENT: "Student", Law.CAUCHY: "generalised Cauchy"}
ANY_LEVEL = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum:
    """A weighted sum to be measured: sum over `terms` of factor x matching weight, in steps of `unit`.

    What one record adds lies between `low` and `high`. `share` is its part of the ask's epsilon.
    """

    what: str
    terms: tuple[tuple[Sum, int], ...]
    low: Fraction
    high: Fraction
    unit: Fraction
    share: Fraction

    def grid(self, weighting: Weighting) -> Fraction:
        """The public step: a power of ten so small that rounding every bin matters little."""
        strategies = weighting.candidates.strategies
        least = min(each.largest for each in strategies) / (weighting.rows + 1)
        bins = max(len(each.totals) for each in strategies)
        return power_of_ten(numeric_reach(self.low, self.high) * least / (FINE * bins))

    def weighted(self, strategy: Strategy, epsilon: Fraction, weighting: Weighting) -> Weighted:
        return Weighted(
            strategy=strategy,
            epsilon=epsilon,
            base=weighting.base,
            grid=self.grid(weighting),
            low=self.low,
            high=self.high,
            unit=self.unit,
            law=weighting.law,
            beta=epsilon / weighting.smoothness,
        )


def power_of_ten(most: Fraction) -> Fraction:
    """The largest power of ten that is at most `most`."""
    step = Fraction(1)
    while step > most:
        step /= 10
    while 10 * step <= most:
        step *= 10
    return step


Weightable = CodedSum | CodedMean
NOT_WEIGHTED = (
    "counts, totals, means and proportions are weighted to known totals as they are; for the others write "
    "factors = { epsilon = '0.2' } under [weight], which releases the factors of its bins"
)


def weightable(query: Query, schema: Schema) -> Weightable | None:
    """The sums of a query that can be weighted to known totals; None for others."""
    shape: Shape | None = query.shape(schema)
    return shape if isinstance(shape, Weightable) else None


def sheets(shape: Weightable) -> tuple[WeightedSum, ...]:
    """What an ask measures, in order."""
    whole = Fraction(1)
    if isinstance(shape, CodedSum):
        return (
            WeightedSum(
                what=shape.what,
                terms=((shape.sum, 1),),
                low=shape.low,
                high=shape.high,
                unit=shape.grid,
                share=whole,
            ),
        )
    for_count, for_sum = split(whole, shape.size)
    centred = WeightedSum(
        what="centred sum",
        terms=((shape.total, 2), (shape.count, -shape.twice)),
        low=shape.low - shape.centre,
        high=shape.high - shape.centre,
        unit=shape.half,
        share=for_sum,
    )
    if not for_count:
        return (centred,)
    heads = WeightedSum(
        what="count",
        terms=((shape.count, 1),),
        low=Fraction(0),
        high=Fraction(1),
        unit=Fraction(1),
        share=for_count,
    )
    return heads, centred


def weighted_wants(shape: Weightable, weighting: Weighting) -> tuple[Bins, ...]:
    """All that an ask needs of the base cells."""
    sums = [sum_ for sheet in sheets(shape) for sum_, _ in sheet.terms]
    return tuple(dict.fromkeys(weighting.want(sum_) for sum_ in sums))


def weighted_parts(
    shape: Weightable,
    epsilon: Fraction,
    bar: Fraction,
    weighting: Weighting,
    *,
    neighbours: Neighbours,
) -> tuple[AnyMeasurement, ...]:
    """The parts an ask will be made of, from public numbers alone."""
    found: list[AnyMeasurement] = []
    for sheet in sheets(shape):
        found += parts_of_sheet(sheet, epsilon * sheet.share, bar * sheet.share, weighting, neighbours)
    return tuple(found)


def parts_of_sheet(
    sheet: WeightedSum, epsilon: Fraction, bar: Fraction, weighting: Weighting, neighbours: Neighbours
) -> tuple[AnyMeasurement, ...]:
    """The noisy measurements of one weighted sum: its value and, with `bar`, the logarithm of its scale."""
    each = epsilon / neighbours.steps
    hidden = HiddenScale(
        what=sheet.what,
        epsilon=epsilon,
        unit=sheet.grid(weighting),
        beta=each / weighting.smoothness,
        mechanism=LAWS[weighting.law],
        proof="proofs/answer/weighted.md",
        source="weights",
    )
    if not bar:
        return (hidden,)
    law = pivot_of(each, bar, weighting, neighbours)
    scale = Measurement(
        what=SCALE,
        epsilon=bar,
        bound=law.sensitivity.bound * law.grid,
        unit=law.grid,
        scale=law.scale,
        theorem="Laplace mechanism on the logarithm of a smooth bound",
        proof="proofs/refine/pivot.md",
    )
    return (hidden, scale)


def pivot_of(each: Fraction, bar: Fraction, weighting: Weighting, neighbours: Neighbours) -> Pivot:
    """The law of a weighted sum's noise over its released scale, for confidence intervals."""
    return pivot(
        epsilon=each,
        beta=each / weighting.smoothness,
        epsilon_scale=bar,
        level=ANY_LEVEL,
        steps=neighbours.steps,
    )


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
    shape: Weightable,
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
        for place, sheet in enumerate(sheets(shape))
    ]
    if isinstance(shape, CodedSum):
        return _single(read[0])
    found = _quotient(shape, read)
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


def _quotient(shape: CodedMean, read: list[Reading]) -> Quotient:
    bottom = read[0] if shape.size is None else None
    return Quotient(
        top=read[-1],
        bottom=bottom,
        size=shape.size,
        centre=shape.centre,
        low=shape.low,
        high=shape.high,
    )


def _answer(
    value: Fraction,
    interval: Callable[[Fraction], Interval],
    is_told: bool,
    parts: tuple[AnyMeasurement, ...],
) -> Answer:
    estimate = Estimate(value=value, interval=interval, noise_sd=None, has_interval=is_told)
    words = WEIGHTED_WORDS if is_told else HIDDEN_WORDS
    return Answer(estimates=(estimate,), parts=parts, meaning=words)
