"""Where a sampling error comes from: sums of residuals by primary sampling unit, or by replicate weight, and their noise.

A share or mean that was released before is what residuals are taken about; a count or total is taken about nothing. One number
leaves. Of units it is the sum of absolute differences between paired units (THEORY 13.2), of replicate weights the root of their
variance (THEORY 13.1); each with noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.answer.parts import Measurement, NoisyInteger, measure, plan_part
from reticent.engine.wants import Bins, Key, SufficientStatistics, Sum, Table, Tallies
from reticent.noise.source import Noise
from reticent.prepare.units import FEW_UNITS, SamplingUnits
from reticent.query.base import CodedMean, CodedSum
from reticent.refine.total import paired_error, replicated_error
from reticent.schema import Schema
from reticent.schema.replicates import WHOLE_LENGTH, Replicates
from reticent.sensitivity.bounds import Global, Neighbours, additive_bound
from reticent.sensitivity.design import Residual, bound_error, bound_paired, paired_total, replicate_error

FINE = 1 << 10
"""A share is counted in steps of 2^-10 where residuals are taken about it."""
HALVES = 2
"""A mean in half steps of its column."""
DIFFERENCES, REPLICATED = "paired differences", "replicate standard error"
SLACK = Fraction(10**9 + 1, 10**9)
"""Deviations are scaled in doubles, which are nearer to the truth than this."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedUnits:
    """Primary sampling units in pairs, dealt into `groups`.

    `what` is the name of the measurement, and `fine` how many steps one step of a residual is counted in.
    """

    units: SamplingUnits
    groups: int
    what: str = DIFFERENCES
    fine: int = 1

    @property
    def cautions(self) -> tuple[str, ...]:
        """What has to be said beside an interval that rests on these units (THEORY 13.5)."""
        found = []
        if len(self.units.cells) < FEW_UNITS:
            found.append(
                f"there are {len(self.units.cells)} primary sampling units; with fewer than {FEW_UNITS} the sampling error "
                "is itself known badly"
            )
        if self.units.single:
            found.append(
                f"{self.units.single} strata have one primary sampling unit, which is compared with one of another stratum; "
                "the sampling error may be too large"
            )
        return tuple(found)

    @property
    def words(self) -> str:
        what = "groups of respondents" if self.units.is_dealt else "primary sampling units"
        return f"{len(self.units.cells):,} {what}, their pairs dealt into {self.groups}"

    def wants(self, shape: Measured) -> tuple[Bins, ...]:
        return unit_wants(shape, self.units)

    def bound(self, items: Sequence[Residual], neighbours: Neighbours) -> Global:
        return bound_paired(items, neighbours=neighbours)

    def total(
        self, items: Sequence[Residual], shapes: Sequence[Measured], tallies: Tallies, schema: Schema
    ) -> int:
        """CONFIDENTIAL: the exact sum of absolute paired differences."""
        sums = []
        for item, shape in zip(items, shapes, strict=True):
            totals, sizes = (_sums(tallies, want, self.units, schema) for want in self.wants(shape))
            sums.append(item.of(totals, sizes))
        group, sign = self.units.dealt(self.groups)
        return paired_total(items, sums, group=group, sign=sign)

    def error(self, total: float, *, scale: float) -> tuple[float, float]:
        return paired_error(total, scale=scale, groups=self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateWeights:
    """Replicate weights of the codebook. Their deviations come from the engine held to the declared reach."""

    replicates: Replicates
    what: str = REPLICATED
    fine: int = WHOLE_LENGTH

    @property
    def cautions(self) -> tuple[str, ...]:
        few = self.replicates.df < FEW_UNITS
        return (f"the design has {self.replicates.df} degrees of freedom",) if few else ()

    @property
    def words(self) -> str:
        return self.replicates.words

    def wants(self, shape: Measured) -> tuple[Sum, ...]:
        """For each replicate the sums of its deviations x value, then of its deviations."""
        total, count = (shape.sum, shape.sum) if isinstance(shape, CodedSum) else (shape.total, shape.count)
        return tuple(
            replace(want, weight=column) for want in (total, count) for column in self.replicates.columns
        )

    def bound(self, items: Sequence[Residual], neighbours: Neighbours) -> Global:
        """Of the sum over items of roots, which a record moves one by one."""
        reach = self.replicates.reach * SLACK * self.fine
        found = sum(
            (bound_error(item, reach=reach, neighbours=neighbours).bound for item in items), Fraction(0)
        )
        whole = Global(bound=found)
        return additive_bound(whole, records=neighbours.records) if neighbours.apart else whole

    def total(
        self, items: Sequence[Residual], shapes: Sequence[Measured], tallies: Tallies, schema: Schema
    ) -> int:
        """CONFIDENTIAL: the exact sum over items of the roots of their variances."""
        found, several = 0, len(self.replicates.columns)
        for item, shape in zip(items, shapes, strict=True):
            held = [tallies.statistics[want] for want in self.wants(shape)]
            sums = item.of(held[:several], held[several:])
            found += replicate_error([item.times * int(each) for each in sums], self.replicates.factors)
        return found

    def error(self, total: float, *, scale: float) -> tuple[float, float]:
        return replicated_error(total, scale=scale, df=self.replicates.df)


SamplingBasis = PairedUnits | ReplicateWeights
"""What a sampling error is made of: how its sums are asked for, bounded and read. All of it is public."""


def tallies_in_domain(
    tallies: Tallies, wanted: Mapping[Bins | Sum, Bins | Table], place: int, schema: Schema
) -> Tallies:
    """What a purchase for everybody would be told if the survey were one domain: number `place` of those that stand in front.

    `wanted` has, for each want of the purchase, the same by domain.
    """
    bins, sums = {}, {}
    for want, by_domain in wanted.items():
        if isinstance(want, Sum) and isinstance(by_domain, Table):
            sums[want] = tallies.tables[by_domain].cells[place]
        elif isinstance(want, Bins) and isinstance(by_domain, Bins):
            size, found = want.size(schema), tallies.bins[by_domain]
            part = slice(place * size, (place + 1) * size)
            bins[want] = replace(
                found,
                want=want,
                count=found.count[part],
                total=found.total[part],
                matching=found.matching[part],
                largest=found.largest[part],
            )
    return replace(tallies, bins=bins, statistics=SufficientStatistics(sums=sums))


def plan_error(
    items: Sequence[Residual], basis: SamplingBasis, neighbours: Neighbours, epsilon: Fraction
) -> Measurement:
    """What will be measured, from public numbers."""
    bound = basis.bound(items, neighbours)
    return plan_part(basis.what, bound=bound, grid=Fraction(1), epsilon=epsilon)


def measure_error(
    items: Sequence[Residual],
    shapes: Sequence[Measured],
    basis: SamplingBasis,
    tallies: Tallies,
    *,
    schema: Schema,
    neighbours: Neighbours,
    epsilon: Fraction,
    noise: Noise,
) -> NoisyInteger:
    """The noisy sum of absolute paired differences, or of roots of replicate variances.

    Guarantee   epsilon-DP for one call.
    Adjacency   `neighbours`.
    Theorem     THEORY 13.1, 13.2 and 13.3: `bound_paired` or `bound_error`, and `measure`.
    Proof       proofs/answer/design.md
    Assumes     tallies of `basis.wants`; what residuals are taken about was released before; exact arithmetic.
    Keeps back  the sums of units, groups and replicates, and the exact total.
    """
    exact = basis.total(items, shapes, tallies, schema)
    bound = basis.bound(items, neighbours)
    return measure(exact, basis.what, bound=bound, grid=Fraction(1), epsilon=epsilon, noise=noise)
