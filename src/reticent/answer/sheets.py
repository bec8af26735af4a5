"""The sums an ask weighted to known totals is made of, with their shares of its epsilon: public, all of it."""

from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.parts import AnyMeasurement, HiddenScale, Measurement
from reticent.answer.poststrata import Law, Weighted
from reticent.answer.ratio import centre_code, split
from reticent.answer.weighting import Weighting
from reticent.engine.wants import Bins, Sum
from reticent.prepare.strategies import Strategy
from reticent.query.kinds import Count, Mean, Proportion, Query, Total
from reticent.refine.pivot import Pivot, pivot
from reticent.schema import Schema
from reticent.sensitivity.neighbours import Neighbours
from reticent.sensitivity.poststrata import numeric_reach

Asked = Count | Total | Mean | Proportion
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


def sheets(query: Asked, schema: Schema) -> tuple[WeightedSum, ...]:
    """What an ask measures, in order."""
    whole, none, one = Fraction(1), Fraction(0), Fraction(1)
    match query:
        case Count():
            terms = ((query.count(schema), 1),)
            return (WeightedSum(what="count", terms=terms, low=none, high=one, unit=one, share=whole),)
        case Total():
            column = query.number(schema)
            terms = ((query.power(schema, 1), 1),)
            return (
                WeightedSum(
                    what="total",
                    terms=terms,
                    low=column.lower,
                    high=column.upper,
                    unit=column.grid,
                    share=whole,
                ),
            )
        case Mean():
            column = query.number(schema)
            twice, step = centre_code(column, query.centre), column.grid / 2
            count, total = query.power(schema, 0), query.power(schema, 1)
            low, high = column.lower - twice * step, column.upper - twice * step
            return _ratio(count, ((total, 2), (count, -twice)), low, high, step, query.size)
        case Proportion():
            half = Fraction(1, 2)
            decided, true = query.decided(schema), query.true(schema)
            return _ratio(decided, ((true, 2), (decided, -1)), -half, half, half, query.size)


def _ratio(
    count: Sum,
    top: tuple[tuple[Sum, int], ...],
    low: Fraction,
    high: Fraction,
    unit: Fraction,
    size: int | None,
) -> tuple[WeightedSum, ...]:
    for_count, for_sum = split(Fraction(1), size)
    none, one = Fraction(0), Fraction(1)
    centred = WeightedSum(what="centred sum", terms=top, low=low, high=high, unit=unit, share=for_sum)
    if not for_count:
        return (centred,)
    heads = WeightedSum(what="count", terms=((count, 1),), low=none, high=one, unit=one, share=for_count)
    return heads, centred


def weighted_wants(query: Query, schema: Schema, weighting: Weighting) -> tuple[Bins, ...]:
    """All that an ask needs of the base cells."""
    if not isinstance(query, Asked):
        raise TypeError("only counts, totals, means and proportions are weighted to known totals")
    sums = [sum_ for sheet in sheets(query, schema) for sum_, _ in sheet.terms]
    return tuple(dict.fromkeys(weighting.want(sum_) for sum_ in sums))


def weighted_parts(
    query: Asked,
    epsilon: Fraction,
    bar: Fraction,
    weighting: Weighting,
    *,
    schema: Schema,
    neighbours: Neighbours,
) -> tuple[AnyMeasurement, ...]:
    """The parts an ask will be made of, from public numbers alone."""
    found: list[AnyMeasurement] = []
    for sheet in sheets(query, schema):
        found += parts_of_sheet(sheet, epsilon * sheet.share, bar * sheet.share, weighting, neighbours)
    return tuple(found)


def parts_of_sheet(
    sheet: WeightedSum, epsilon: Fraction, bar: Fraction, weighting: Weighting, neighbours: Neighbours
) -> tuple[AnyMeasurement, ...]:
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
    return pivot(
        epsilon=each,
        beta=each / weighting.smoothness,
        epsilon_scale=bar,
        level=ANY_LEVEL,
        steps=neighbours.steps,
    )
