"""Sums of residuals by primary sampling unit: what is asked of the engine, what residuals are taken about, and their noise.

A share or mean that was released before is what residuals are taken about; a count or total is taken about nothing. One number
leaves: the sum of absolute differences between paired units, with noise. THEORY 13.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.answer.parts import NoisyInteger, measure
from reticent.engine.wants import Bins, Key, Sum, Tallies
from reticent.noise.source import Noise
from reticent.prepare.units import SamplingUnits
from reticent.query.base import CodedMean, CodedSum
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.design import Residual, bound_paired, paired_total

FINE = 1 << 10
"""A share is counted in steps of 2^-10 where residuals are taken about it."""
HALVES = 2
"""A mean in half steps of its column."""
DIFFERENCES = "paired differences"

Measured = CodedSum | CodedMean
"""What sampling errors are bought for: one sum, or a mean or share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedValue:
    """What was released of a statistic before its residuals are formed: its value, and the size it was divided by."""

    value: Fraction
    size: Fraction | None = None


def weight_in(shape: Measured) -> str | None:
    """The base weight that its sums use."""
    return shape.sum.weight if isinstance(shape, CodedSum) else shape.total.weight


def _bins(wanted: Sum, units: SamplingUnits) -> Bins:
    """The same sum for every unit; a cell for whoever has no unit is not looked at."""
    keys = tuple(Key(column=column, silent=True) for column in units.columns)
    value = wanted.value if wanted.power else None
    return Bins(rows=wanted.rows, keys=keys, silent=(0,) * len(keys), value=value, weight=wanted.weight)


def unit_wants(shape: Measured, units: SamplingUnits) -> tuple[Bins, Bins]:
    """What a statistic needs by unit: the sums of weight x value, and of the weight of those whom it is about."""
    if isinstance(shape, CodedSum):
        return _bins(shape.sum, units), _bins(shape.sum, units)
    return _bins(shape.total, units), _bins(shape.count, units)


def residual_of(shape: Measured, schema: Schema, value: Fraction) -> Residual:
    """A record's residual about a released value: of a share or mean; one sum is taken about nothing.

    `value` is cut to the limits of its column, so that the reach is that of answers there.
    """
    weight = weight_in(shape)
    heaviest = schema.weight(weight, field="weight").high if weight else 1
    low, high = (shape.number.low, shape.number.high) if shape.number else (0, 1)
    if isinstance(shape, CodedSum):
        return Residual(low=low, high=high, heaviest=heaviest)
    fine, grid = (HALVES, shape.number.grid) if shape.number else (FINE, Fraction(1))
    about = min(max(round(fine * value / grid), fine * low), fine * high)
    return Residual(low=low, high=high, about=about, fine=fine, heaviest=heaviest)


def step_of(shape: Measured, schema: Schema, released: ReleasedValue) -> float:
    """What one step of a residual's sum is worth in the answer's own unit: over the size, which is at least one record's."""
    named = weight_in(shape)
    weight = schema.weight(named, field="weight") if named else None
    step = (weight.grid if weight else Fraction(1)) * (shape.number.grid if shape.number else Fraction(1))
    if isinstance(shape, CodedSum):
        return float(step)
    size = max(released.size or Fraction(0), weight.upper if weight else Fraction(1))
    return float(step / (HALVES if shape.number else FINE) / size)


def _sums(tallies: Tallies, want: Bins, units: SamplingUnits, schema: Schema) -> list[int]:
    """The sums of the declared units, in their order."""
    cells, last = tallies.bins[want].matching, want.keys[-1]
    answers, size = last.answers(schema), last.size(schema)
    places = (divmod(cell, answers) for cell in units.cells)
    return [int(cells[outer * size + inner]) for outer, inner in places]


def tallies_in_domain(tallies: Tallies, bins: Mapping[Bins, Bins], place: int, schema: Schema) -> Tallies:
    """What a purchase for everybody would be told if the survey were one domain: number `place` of those that stand in front.

    `bins` has, for each want of the purchase, the same by domain.
    """
    held = {}
    for want, by_domain in bins.items():
        size, found = want.size(schema), tallies.bins[by_domain]
        part = slice(place * size, (place + 1) * size)
        held[want] = replace(
            found,
            want=want,
            count=found.count[part],
            total=found.total[part],
            matching=found.matching[part],
            largest=found.largest[part],
        )
    return replace(tallies, bins=held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealing:
    """Whose residuals are paired and how: the units, the number of groups, and who is protected."""

    schema: Schema
    neighbours: Neighbours
    units: SamplingUnits
    groups: int


def measure_paired(
    items: Sequence[Residual],
    shapes: Sequence[Measured],
    dealing: Dealing,
    tallies: Tallies,
    *,
    epsilon: Fraction,
    noise: Noise,
) -> NoisyInteger:
    """The noisy sum of absolute paired differences.

    Guarantee   epsilon-DP for one call.
    Adjacency   dealing.neighbours.
    Theorem     THEORY 13.2 and 13.3: `bound_paired` and `measure`.
    Proof       proofs/answer/design.md
    Assumes     tallies of `unit_wants`; what residuals are taken about was released before; exact arithmetic.
    Keeps back  the sums of units and groups, and the exact total.
    """
    schema, units = dealing.schema, dealing.units
    sums = []
    for item, shape in zip(items, shapes, strict=True):
        totals, sizes = (_sums(tallies, want, units, schema) for want in unit_wants(shape, units))
        sums.append(item.of(totals, sizes))
    group, sign = units.dealt(dealing.groups)
    exact = paired_total(items, sums, group=group, sign=sign)
    bound = bound_paired(items, neighbours=dealing.neighbours)
    return measure(exact, DIFFERENCES, bound=bound, grid=Fraction(1), epsilon=epsilon, noise=noise)
