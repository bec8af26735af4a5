"""Sampling error bought from the rows: one design factor for a survey, or the standard error of one statistic.

Both are made of one noisy sum of paired differences, or of roots of replicate variances (`answer/unit_sums.py`); standard
errors, design factor and degrees of freedom are post-processing. THEORY 13.1 to 13.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any, NamedTuple

from reticent.answer.parts import Measurement, measure, plan_part
from reticent.answer.unit_sums import (
    Measured,
    PairedUnits,
    ReleasedValue,
    SamplingBasis,
    measure_error,
    plan_error,
    residual_of,
    step_of,
    weight_in,
)
from reticent.engine.wants import Aggregate, Rows, Sum, Tallies
from reticent.noise.source import Noise
from reticent.query.base import CodedMean
from reticent.refine.total import DesignFactor, SampleSize
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global, Neighbours, bound_sum
from reticent.sensitivity.design import Residual

WHOLE = 1 << 12
"""Factors of items in a pooled sum are counted in 2^-12 of the largest."""
LEAST_SHARE = Fraction(1, 20)
"""Shares are cut to this and one less this where items are made comparable."""
SIZE_SHARE = Fraction(1, 10)
"""Of a design factor's epsilon, to the number of respondents; as much again to their weight, where one is used."""
RESPONDENTS, WEIGHT = "respondents", "weight of respondents"
PAGE = "proofs/answer/design.md"
GROUNDS = (
    ("answer: sampling error", PAGE),
    ("what one respondent moves paired differences", "proofs/sensitivity/design.md"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingError:
    """The standard error of one statistic, bought for it: its own unit, its degrees of freedom, and what was measured."""

    se: float
    df: float
    parts: tuple[Measurement, ...]

    @property
    def factor(self) -> DesignFactor:
        """To be used with the variance `se` squared."""
        return DesignFactor(deft=1.0, df=self.df, source="bought")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnError:
    """The purchase of one statistic's standard error."""

    shape: Measured
    basis: SamplingBasis
    epsilon: Fraction

    def wants(self, schema: Schema) -> tuple[Aggregate, ...]:
        """What the engine must sum."""
        return tuple(dict.fromkeys(self.basis.wants(self.shape)))

    def parts(self, schema: Schema, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """What will be measured, from public numbers: residuals about one end, where they reach farthest."""
        farthest = residual_of(self.shape, schema, self.shape.low)
        return (plan_error([farthest], self.basis, neighbours, self.epsilon),)

    def run(
        self,
        tallies: Tallies,
        released: ReleasedValue,
        *,
        schema: Schema,
        neighbours: Neighbours,
        noise: Noise,
    ) -> SamplingError:
        """Buy it.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 13.1 and 13.2: `measure_error`.
        Proof       proofs/answer/design.md
        Assumes     tallies of `wants`; `released` was released before; units or replicates are declared; exact arithmetic.
        Keeps back  the sums of units, groups and replicates, and the exact total.
        """
        item = residual_of(self.shape, schema, released.value)
        given: Any = {"schema": schema, "neighbours": neighbours, "epsilon": self.epsilon, "noise": noise}
        total = measure_error([item], [self.shape], self.basis, tallies, **given)
        step = step_of(self.shape, schema, released) / self.basis.fine
        se, df = self.basis.error(
            float(total.estimate) * step, scale=float(total.part.scale * total.part.unit) * step
        )
        return SamplingError(se=se, df=df, parts=(total.part,))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoughtDesign:
    """A design factor, how many respondents (and weight) the sample has, and what was measured. All of it is released.

    `basis` says what it was made of, in public words.
    """

    factor: DesignFactor
    size: SampleSize
    parts: tuple[Measurement, ...]
    items: tuple[str, ...] = ()
    basis: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epsilon(self) -> Fraction:
        return sum((part.epsilon for part in self.parts), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDesign:
    """The purchase of one design factor from several shares.

    `items` are the shares by the names of their statistics. `weight` is the base weight that statistics of the plan use;
    `respondents` the public number of respondents, if there is one.
    """

    items: Mapping[str, CodedMean]
    basis: SamplingBasis
    epsilon: Fraction
    weight: str | None = None
    respondents: int | None = None
    cautions: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> Rows:
        """Everybody, or those with a base weight."""
        return Rows(answered=(self.weight,) if self.weight else ())

    def wants(self, schema: Schema) -> tuple[Aggregate, ...]:
        """What the engine must sum."""
        by_unit = [want for item in self.items.values() for want in self.basis.wants(item)]
        return tuple(dict.fromkeys([*by_unit, *(each.want for each in self._sizes(schema, Neighbours()))]))

    def shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of epsilon: to the number of respondents, to their weight, and to paired differences."""
        heads = Fraction(0) if self.respondents is not None else self.epsilon * SIZE_SHARE
        weight = self.epsilon * SIZE_SHARE if self.weight else Fraction(0)
        return heads, weight, self.epsilon - heads - weight

    def parts(self, schema: Schema, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """What will be measured, as far as public numbers say: items at one end, and all alike."""
        items = [residual_of(item, schema, Fraction(0)) for item in self.items.values()]
        sizes = (
            plan_part(each.what, bound=each.bound, grid=each.grid, epsilon=each.epsilon)
            for each in self._sizes(schema, neighbours)
        )
        return (*sizes, plan_error(items, self.basis, neighbours, self.shares()[2]))

    def _sizes(self, schema: Schema, neighbours: Neighbours) -> "list[_Size]":
        """The sizes that are measured: respondents, unless their number is public, and their weight if one is used."""
        heads, for_weight, _ = self.shares()
        found = []
        if heads:
            bound = bound_sum(0, 1, neighbours=neighbours)
            found.append(_Size(RESPONDENTS, Sum(rows=self.rows), bound, Fraction(1), heads))
        if self.weight:
            column = schema.weight(self.weight, field="weight")
            bound = bound_sum(0, column.high, neighbours=neighbours)
            want = Sum(rows=self.rows, weight=self.weight)
            found.append(_Size(WEIGHT, want, bound, column.grid, for_weight))
        return found

    def run(
        self,
        tallies: Tallies,
        released: Mapping[str, ReleasedValue],
        *,
        schema: Schema,
        neighbours: Neighbours,
        noise: Noise,
    ) -> BoughtDesign:
        """Buy it.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 13.3: `measure_error`; sizes by `bound_sum` and `measure`; budgets add.
        Proof       proofs/answer/design.md
        Assumes     tallies of `wants`; `released` was released before; units or replicates are declared; exact arithmetic.
        Keeps back  the sums of units, groups and replicates, the exact total and the exact sizes.
        """
        size, parts = self._sized(tallies, schema, neighbours, noise)
        shapes = list(self.items.values())
        shares = [released[name] for name in self.items]
        worth = [
            step_of(shape, schema, each) / _error(each, size, weight_in(shape))
            for shape, each in zip(shapes, shares, strict=True)
        ]
        items = [
            _times(residual_of(shape, schema, each.value), one, max(worth))
            for shape, each, one in zip(shapes, shares, worth, strict=True)
        ]
        given: Any = {"schema": schema, "neighbours": neighbours, "epsilon": self.shares()[2], "noise": noise}
        total = measure_error(items, shapes, self.basis, tallies, **given)
        step = max(worth) / WHOLE / len(items) / self.basis.fine
        se, df = self.basis.error(
            float(total.estimate) * step, scale=float(total.part.scale * total.part.unit) * step
        )
        cautions = (*self.basis.cautions, *self.cautions)
        return BoughtDesign(
            factor=DesignFactor(deft=max(1.0, se), df=df, source="bought", cautions=cautions),
            size=size,
            parts=(*parts, total.part),
            items=tuple(self.items),
            basis=basis_section(self.basis),
        )

    def _sized(
        self, tallies: Tallies, schema: Schema, neighbours: Neighbours, noise: Noise
    ) -> tuple[SampleSize, tuple[Measurement, ...]]:
        """How many respondents there are, and their weight: public, or measured."""
        found = {
            each.what: measure(
                tallies.statistics[each.want],
                each.what,
                bound=each.bound,
                grid=each.grid,
                epsilon=each.epsilon,
                noise=noise,
            )
            for each in self._sizes(schema, neighbours)
        }
        heads = found[RESPONDENTS].estimate if RESPONDENTS in found else Fraction(self.respondents or 1)
        weights = {}
        if self.weight:
            column = schema.weight(self.weight, field="weight")
            weights[self.weight] = float(max(column.grid, found[WEIGHT].estimate))
        size = SampleSize(respondents=max(1.0, float(heads)), weights=weights)
        return size, tuple(each.part for each in found.values())


class _Size(NamedTuple):
    """One size to be measured."""

    what: str
    want: Sum
    bound: Global
    grid: Fraction
    epsilon: Fraction


def basis_section(basis: SamplingBasis) -> dict[str, Any]:
    """What a sampling error is made of, for a release."""
    counts = (
        {"units": len(basis.units.cells), "groups": basis.groups} if isinstance(basis, PairedUnits) else {}
    )
    return {"basis": basis.words, **counts}


def _error(share: ReleasedValue, size: SampleSize, weight: str | None) -> float:
    """The standard error that a simple random sample would give a share, cut away from 0 and 1."""
    held = float(min(max(share.value, LEAST_SHARE), 1 - LEAST_SHARE))
    among = float(share.size or 0)
    return sqrt(held * (1 - held) / max(1.0, size.heads(among, weight) or 1.0))


def _times(item: Residual, worth: float, largest: float) -> Residual:
    return replace(item, times=max(1, int(WHOLE * worth / largest)))
