"""Sums of residuals by primary sampling unit: what is asked of the engine, what residuals are taken about, and their noise.

A share or mean that was released before is what residuals are taken about; a count or total is taken about nothing. One number
leaves: the sum of absolute differences between paired units, with noise. THEORY 13.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.parts import NoisyInteger, measure
from reticent.engine.results import Tallies
from reticent.engine.wants import Bins, Key, Rows
from reticent.noise.source import Noise
from reticent.prepare.units import SamplingUnits
from reticent.query.kinds import Count, Mean, Proportion, Total
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.design import Residual, bound_paired, paired_total

FINE = 1 << 10
"""A share is counted in steps of 2^-10 where residuals are taken about it."""
HALVES = 2
"""A mean in half steps of its column."""
DIFFERENCES = "paired differences"

Measured = Count | Total | Mean | Proportion


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedValue:
    """What was released of a statistic before its residuals are formed: its value, and the size it was divided by."""

    value: Fraction
    size: Fraction | None = None


def _keys(units: SamplingUnits) -> tuple[Key, ...]:
    """The sides of the table of units, with a cell for whoever has none, which is not looked at."""
    return tuple(Key(column=column, silent=True) for column in units.columns)


def _bins(rows: Rows, units: SamplingUnits, *, weight: str | None, value: str | None = None) -> Bins:
    keys = _keys(units)
    return Bins(rows=rows, keys=keys, silent=(0,) * len(keys), value=value, weight=weight)


def unit_wants(query: Measured, schema: Schema, units: SamplingUnits) -> tuple[Bins, Bins]:
    """What a statistic needs by unit: the sums of weight x value, and of the weight of those whom it is about."""
    weight = query.among.weight
    match query:
        case Proportion():
            true, decided = query.true(schema).rows, query.decided(schema).rows
            return _bins(true, units, weight=weight), _bins(decided, units, weight=weight)
        case Count():
            held = _bins(query.count(schema).rows, units, weight=weight)
            return held, held
        case Mean() | Total():
            rows = query.power(schema, 1).rows
            return _bins(rows, units, weight=weight, value=query.column), _bins(rows, units, weight=weight)


def residual_of(query: Measured, schema: Schema, value: Fraction) -> Residual:
    """A record's residual about a released value: of a share or mean; a count or total is taken about nothing.

    `value` is cut to the limits of its column, so that the reach is that of answers there.
    """
    heaviest = schema.weight(query.among.weight, field="weight").high if query.among.weight else 1
    match query:
        case Proportion():
            about = min(max(round(value * FINE), 0), FINE)
            return Residual(low=0, high=1, about=about, fine=FINE, heaviest=heaviest)
        case Mean():
            column = query.number(schema)
            twice = min(max(round(HALVES * value / column.grid), HALVES * column.low), HALVES * column.high)
            return Residual(low=column.low, high=column.high, about=twice, fine=HALVES, heaviest=heaviest)
        case Count():
            return Residual(low=0, high=1, heaviest=heaviest)
        case Total():
            column = query.number(schema)
            return Residual(low=column.low, high=column.high, heaviest=heaviest)


def step_of(query: Measured, schema: Schema, released: ReleasedValue) -> float:
    """What one step of a residual's sum is worth in the answer's own unit: over the size, which is at least one record's."""
    weight = schema.weight(query.among.weight, field="weight") if query.among.weight else None
    grid = weight.grid if weight else Fraction(1)
    if isinstance(query, Count):
        return float(grid)
    if isinstance(query, Total):
        return float(grid * query.number(schema).grid)
    size = max(released.size or Fraction(0), weight.upper if weight else Fraction(1))
    worth = Fraction(1, FINE) if isinstance(query, Proportion) else query.number(schema).grid / HALVES
    return float(worth * grid / size)


def _sums(tallies: Tallies, want: Bins, units: SamplingUnits, schema: Schema) -> list[int]:
    """The sums of the declared units, in their order."""
    cells, last = tallies.bins[want].matching, want.keys[-1]
    places = (divmod(cell, last.answers(schema)) for cell in units.cells)
    return [int(cells[outer * last.size(schema) + inner]) for outer, inner in places]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealing:
    """Whose residuals are paired and how: the units, the number of groups, and who is protected."""

    schema: Schema
    neighbours: Neighbours
    units: SamplingUnits
    groups: int


def measure_paired(
    items: Sequence[Residual],
    queries: Sequence[Measured],
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
    for item, query in zip(items, queries, strict=True):
        totals, sizes = (_sums(tallies, want, units, schema) for want in unit_wants(query, schema, units))
        sums.append(item.of(totals, sizes))
    group, sign = units.dealt(dealing.groups)
    exact = paired_total(items, sums, group=group, sign=sign)
    bound = bound_paired(items, neighbours=dealing.neighbours)
    return measure(exact, DIFFERENCES, bound=bound, grid=Fraction(1), epsilon=epsilon, noise=noise)
