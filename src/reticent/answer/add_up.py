"""Tables that add up: margins of one table of respondents, measured once, made to agree, and written in whole numbers.

What is measured, and at what share of epsilon, follows from public lengths. All that comes after the noise is free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.answer.context import rests_on_caps, rings_of, times, weight_of
from reticent.answer.count import table_bound, table_over, widening
from reticent.answer.parts import Measurement, measure_table, plan_table
from reticent.answer.statistic import CAPPED, GAUSS, LAPLACE, LINEAR, answered
from reticent.engine.wants import Table, Tallies
from reticent.noise.source import Noise
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.claim import Change, Claim
from reticent.query.base import RowQuery, Subpopulation
from reticent.query.sides import Sides
from reticent.refine.allocation import (
    choose_tables,
    largest,
    mean_variance,
    measured_apart,
    measured_residuals,
    residual_shares,
    shares_of,
    told_by,
)
from reticent.refine.combination import NoiseLaw
from reticent.refine.residuals import Agreement, Axes, Floats, ResidualAgreement, subsets
from reticent.refine.whole import SETTLED, Margins, whole_tables
from reticent.schema import Schema
from reticent.schema.predicate import columns_compared
from reticent.sensitivity.bounds import Global, Neighbours, length_residual

ALL = "(all)"
"""The cell of a total."""
STEP = Fraction(1)
"""One respondent."""
AGREED = (
    "covers the count of the same respondents without privacy noise, with at least the stated probability, computed from the "
    "public law of what agreement leaves of the noise; for each cell by itself"
)
APART = "covers the count of the same respondents without privacy noise, with at least the stated probability; for each cell by itself"
FILLED = "; of the same respondents with missing answers filled from donors, and how far filled answers are from true ones is not in it"
MOST_RESIDUALS = 200
"""Of so many residuals margins are told at most where each is measured by itself."""
SLACK = 1e-9
"""Whole numbers this near an end of an interval are inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginTables:
    """Margins that are asked for together, over columns of `sides`.

    With `add_up` they are made to agree; `whole` besides that in whole numbers, none negative. Where `in_rho`, `epsilon` is an
    amount of rho, and the noise is Gaussian. `repair` may have capped donors for some of the columns. Where `among` has a base
    weight, or one made of released factors, they are of weight.
    """

    name: str
    sides: Sides
    margins: tuple[Axes, ...]
    among: Subpopulation
    epsilon: Fraction
    level: Fraction
    add_up: bool = True
    whole: bool = True
    in_rho: bool = False
    repair: Repair = NO_REPAIR

    def shape(self, schema: Schema) -> tuple[int, ...]:
        return tuple(key.size(schema) for key in self.sides.keys(schema))

    def columns(self, axes: Axes) -> tuple[str, ...]:
        return tuple(self.sides.columns[axis] for axis in axes)

    def query(self, axes: Axes) -> RowQuery:
        """A margin as a table that could be asked for by itself."""
        columns = self.columns(axes)
        bins = tuple(each for each in self.sides.bins if each[0] in columns)
        return table_over(Sides(columns=columns, bins=bins), self.among)

    @property
    def _joint(self) -> RowQuery:
        return self.query(tuple(range(len(self.sides.columns))))

    def is_filled(self, schema: Schema) -> bool:
        """Whether capped donors fill a column of some margin, or of the condition."""
        return rests_on_caps(self._joint, schema, self.repair)

    def wider(self, cell: Sequence[tuple[str, str]], schema: Schema) -> float | None:
        """By how much filling widens the sampling variance of a line; 1 where nothing that decides it is filled, None where
        the plan expects no share of missing answers."""
        named = tuple(column for column, level in cell if level != ALL)
        bins = tuple(each for each in self.sides.bins if each[0] in named)
        return widening(table_over(Sides(columns=named, bins=bins), self.among), schema, self.repair)

    def rings(self, schema: Schema) -> int:
        """In how many completions respondents are counted, each for a fraction."""
        return rings_of(self._joint, schema, self.repair)

    def step(self, schema: Schema) -> Fraction:
        """What is counted: respondents or steps of their weight, or the fraction that each completion counts for."""
        weight = weight_of(self.among, schema)
        return (weight.grid if weight else Fraction(1)) / self.rings(schema)

    def bound(self, axes: Axes, schema: Schema, neighbours: Neighbours) -> Global:
        """How far one respondent moves a table, in all completions: the sum over its cells, or where `in_rho` the Euclidean
        length."""
        one = table_bound(self.query(axes), schema, neighbours, self.repair, in_rho=self.in_rho)
        return times(one, self.rings(schema))

    def _part(
        self, axes: Axes, share: Fraction, what: str, schema: Schema, neighbours: Neighbours
    ) -> Measurement:
        bound, grid = self.bound(axes, schema, neighbours), self.step(schema)
        return plan_table(what, bound=bound, grid=grid, epsilon=self.epsilon * share, in_rho=self.in_rho)

    @property
    def law(self) -> NoiseLaw:
        return NoiseLaw.GAUSSIAN if self.in_rho else NoiseLaw.LAPLACE

    def agreement(self, schema: Schema, neighbours: Neighbours) -> Agreement:
        """What is measured: the joint table or margins, whichever tells more; each margin by itself without `add_up`.

        In the steps that are counted. Weights multiply all bounds alike, so what is measured is chosen as without them: a weight
        whose bound is released changes nothing of it.
        """
        if self.among.weight is not None:
            return self._weighted(schema, neighbours)

        shape, found = self.shape(schema), self._by_tables(schema, neighbours)
        is_plain = self.add_up and self.in_rho and not self.is_filled(schema)
        if not is_plain or len(told_by(self.margins)) > MOST_RESIDUALS:
            return found

        def residual_scale(axes: Axes, share: Fraction) -> float:
            part = self._residual(axes, share, schema, neighbours)
            return float(part.scale * part.unit)

        apart = measured_residuals(shape, self.margins, scale=residual_scale)
        return min((found, apart), key=lambda way: mean_variance(way, self.margins))

    def _weighted(self, schema: Schema, neighbours: Neighbours) -> Agreement:
        plain = replace(self, among=replace(self.among, weight=None))
        found = plain._by_tables(schema, neighbours)
        shares = shares_of([found.cells(table.axes) for table in found.measured], self.law)
        held = zip(found.measured, shares, strict=True)
        scaled = (
            replace(each, scale=self._scale(each.axes, share, schema, neighbours)) for each, share in held
        )
        return Agreement(found.shape, tuple(scaled))

    def _scale(self, axes: Axes, share: Fraction, schema: Schema, neighbours: Neighbours) -> float:
        return float(self._part(axes, share, "table", schema, neighbours).scale)

    def _by_tables(self, schema: Schema, neighbours: Neighbours) -> Agreement:
        """Tables, whichever tell more; not residuals one by one."""

        def scale(axes: Axes, share: Fraction) -> float:
            return self._scale(axes, share, schema, neighbours)

        ways = choose_tables if self.add_up else measured_apart
        return ways(self.shape(schema), self.margins, scale=scale, law=self.law)

    def _residual(self, axes: Axes, share: Fraction, schema: Schema, neighbours: Neighbours) -> Measurement:
        """The part that a residual will be: counted in parts of 1/N, N the cells of its table."""
        lengths = [self.shape(schema)[axis] for axis in axes]
        name = " by ".join(self.columns(axes)) or "everybody"
        return plan_table(
            f"residual of {name}",
            bound=length_residual(lengths, neighbours=neighbours),
            grid=Fraction(1, prod(lengths)),
            epsilon=self.epsilon * share,
            in_rho=True,
        )

    def parts(self, schema: Schema, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """Every table that is measured, with its share of the budget."""
        found = self.agreement(schema, neighbours)
        if isinstance(found, ResidualAgreement):
            shape = self.shape(schema)
            divided = zip(found.measured, residual_shares(shape, self.margins), strict=True)
            return tuple(self._residual(each.axes, share, schema, neighbours) for each, share in divided)
        shares = shares_of([found.cells(table.axes) for table in found.measured], self.law)
        return tuple(
            self._part(
                table.axes, share, f"table of {' by '.join(self.columns(table.axes))}", schema, neighbours
            )
            for table, share in zip(found.measured, shares, strict=True)
        )

    def wants(self, schema: Schema, neighbours: Neighbours) -> tuple[Table, ...]:
        """The tables that are measured, over the same rows, silent cells among them."""
        keys, rows = self.sides.keys(schema), self.among.rows(schema)
        found = self.agreement(schema, neighbours)
        tables = [table.axes for table in found.measured]
        if isinstance(found, ResidualAgreement):
            tables = list(largest(self.margins))
        weight = self.among.weight
        return tuple(
            Table(rows=rows, keys=tuple(keys[axis] for axis in axes), weight=weight) for axes in tables
        )

    def claim(self, change: Change, schema: Schema) -> Claim:
        noise, filled = GAUSS if self.in_rho else LAPLACE, CAPPED if self.is_filled(schema) else ()
        rests_on = (answered("tables"), answered("margin"), LINEAR, noise, *filled)
        if self.in_rho:
            return Claim(measure="zcdp", rho=self.epsilon, change=change, rests_on=rests_on)
        return Claim(measure="pure", epsilon=self.epsilon, change=change, rests_on=rests_on)

    def words(self) -> str:
        listed = "; ".join(" by ".join(self.columns(axes)) for axes in self.margins)
        kind = (
            "whole numbers that add up"
            if self.whole
            else "made to add up"
            if self.add_up
            else "each by itself"
        )
        used = {*self.sides.columns, *columns_compared(self.among.where)}
        filled = " and ".join(sorted(used & self.repair.filled()))
        donated = f", missing values of {filled} filled from donors" if filled else ""
        return f"tables of {listed} over {self.among.words()}, {kind}{donated}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """A cell of a margin, or a total: the names of its cells, its value, interval, and the spread of its noise.

    `linear` is what least squares says, and `width` how far its interval reaches on either side, before both are made whole.
    """

    cell: tuple[tuple[str, str], ...]
    value: float
    low: float
    high: float
    noise_sd: float
    linear: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginAnswer:
    """The lines of every margin asked for, cells first and then its totals, and what was measured for them."""

    margins: tuple[tuple[TableLine, ...], ...] = field(repr=False)
    parts: tuple[Measurement, ...]
    meaning: str

    @property
    def epsilon(self) -> Fraction:
        """What was spent, of epsilon or of rho."""
        return sum((part.amount for part in self.parts), Fraction(0))

    @property
    def amount(self) -> Fraction:
        """What was spent: epsilon, or rho."""
        return sum((part.amount for part in self.parts), Fraction(0))


def answer_tables(
    asked: MarginTables, tallies: Tallies, noise: Noise, *, schema: Schema, neighbours: Neighbours
) -> MarginAnswer:
    """Every margin with its totals.

    Guarantee   epsilon-DP for all margins together; `epsilon`-zCDP where asked.in_rho.
    Adjacency   `neighbours`.
    Theorem     `table_bound` and `measure_table`, once for each table measured; budgets add; THEORY 11.3 (b) and 11.8 where
                capped donors fill a column. The rest is post-processing.
    Proof       proofs/answer/tables.md
    Assumes     tallies of `asked.wants`; cells come from the codebook and the plan; exact arithmetic before the noise.
    Keeps back  the exact tables.
    """
    agreement, parts = asked.agreement(schema, neighbours), asked.parts(schema, neighbours)
    step, noisy = asked.step(schema), list[Floats]()
    held = tallies.fractions or tallies if asked.is_filled(schema) else tallies
    if isinstance(agreement, ResidualAgreement):
        noisy = _noisy_residuals(asked, agreement, parts, tallies, noise, schema, neighbours)
        told = _together(asked, agreement, noisy, step)
        margins = tuple(_lines(asked, axes, told, schema) for axes in asked.margins)
        return MarginAnswer(margins=margins, parts=parts, meaning=AGREED)
    for table, part, want in zip(agreement.measured, parts, asked.wants(schema, neighbours), strict=True):
        cells = measure_table(
            held.tables[want].cells,
            part.what,
            bound=asked.bound(table.axes, schema, neighbours),
            grid=step,
            epsilon=part.amount,
            noise=noise,
            in_rho=asked.in_rho,
        )
        lengths = [agreement.shape[axis] for axis in table.axes]
        noisy.append(np.array([cell.steps for cell in cells], dtype=np.float64).reshape(lengths))
    if asked.add_up:
        told = _together(asked, agreement, noisy, step)
        margins = tuple(_lines(asked, axes, told, schema) for axes in asked.margins)
    else:
        alone = [Agreement(agreement.shape, (table,)) for table in agreement.measured]
        margins = tuple(
            _lines(asked, axes, _told(each, [table], subsets(axes), step), schema)
            for axes, each, table in zip(asked.margins, alone, noisy, strict=True)
        )
    meaning = AGREED if asked.add_up else APART
    meaning = meaning.replace("the count", "the weight") if asked.among.weight else meaning
    return MarginAnswer(
        margins=margins, parts=parts, meaning=meaning + (FILLED if asked.is_filled(schema) else "")
    )


def residual_of(table: NDArray[np.object_]) -> NDArray[np.object_]:
    """A residual in whole numbers: along each axis, n times the table less its sum. Over N cells it is N times the residual."""
    for axis in range(table.ndim):
        table = table.shape[axis] * table - table.sum(axis=axis, keepdims=True)
    return table


def _noisy_residuals(
    asked: MarginTables,
    agreement: Agreement,
    parts: Sequence[Measurement],
    tallies: Tallies,
    noise: Noise,
    schema: Schema,
    neighbours: Neighbours,
) -> list[Floats]:
    """Every residual with Gaussian noise, as a table of counts over its axes.

    Guarantee   `asked.epsilon`-zCDP for one call.
    Adjacency   `neighbours`.
    Theorem     THEORY 15.3: `length_residual` and `measure_table`, once for each residual; rho adds.
    Proof       proofs/answer/tables.md
    Assumes     tallies of `asked.wants`; exact arithmetic before the noise.
    Keeps back  the exact tables and residuals.
    """
    shape, wants = agreement.shape, asked.wants(schema, neighbours)
    tables = {
        axes: np.array(tallies.tables[want].cells, dtype=object).reshape([shape[axis] for axis in axes])
        for axes, want in zip(largest(asked.margins), wants, strict=True)
    }
    found = []
    for each, part in zip(agreement.measured, parts, strict=True):
        whole = next(axes for axes in tables if set(each.axes) <= set(axes))
        gone = tuple(at for at, axis in enumerate(whole) if axis not in each.axes)
        lengths = [shape[axis] for axis in each.axes]
        exact = residual_of(np.asarray(tables[whole].sum(axis=gone), dtype=object))
        cells = measure_table(
            [int(cell) for cell in np.ravel(exact)],
            part.what,
            bound=length_residual(lengths, neighbours=neighbours),
            grid=part.unit,
            epsilon=part.amount,
            noise=noise,
            in_rho=True,
        )
        found.append(np.array([float(cell.estimate) for cell in cells]).reshape(lengths))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldMargin:
    """A margin as it is told: what least squares says, what is published, and the law of what is left of the noise."""

    linear: Floats
    published: NDArray[np.generic]
    agreement: Agreement
    axes: Axes
    step: Fraction = Fraction(1)

    @property
    def sd(self) -> float:
        """In respondents, or in weight; the agreement counts in steps."""
        return sqrt(self.agreement.variance(self.axes)) * float(self.step)

    def half_width(self, level: float) -> float:
        return self.agreement.half_width(self.axes, level) * float(self.step)


def _told(
    agreement: Agreement, noisy: Sequence[Floats], margins: Sequence[Axes], step: Fraction
) -> dict[Axes, ToldMargin]:
    residuals = agreement.estimate(noisy)
    linear = {axes: np.asarray(agreement.margin(residuals, axes)) * float(step) for axes in margins}
    return {
        axes: ToldMargin(linear=table, published=table, agreement=agreement, axes=axes, step=step)
        for axes, table in linear.items()
    }


def _together(
    asked: MarginTables, agreement: Agreement, noisy: Sequence[Floats], step: Fraction
) -> dict[Axes, ToldMargin]:
    """All margins and their totals from one table."""
    wanted = list(dict.fromkeys(s for axes in asked.margins for s in subsets(axes)))
    told = _told(agreement, noisy, wanted, step)
    if not asked.whole:
        return told
    tables = {axes: (each.linear, each.sd**2) for axes, each in told.items()}
    # Weights may count in millions: margins are settled when they move little beside their noise.
    settled = SETTLED * max(1.0, min(each.sd for each in told.values())) if asked.among.weight else SETTLED
    whole = whole_tables(Margins(agreement.shape, tables, settled))
    return {axes: replace(each, published=whole[axes]) for axes, each in told.items()}


def _lines(
    asked: MarginTables, axes: Axes, told: Mapping[Axes, ToldMargin], schema: Schema
) -> tuple[TableLine, ...]:
    """The cells of a margin, then its totals, the grand total last."""
    found: list[TableLine] = []
    for s in reversed(subsets(axes)):
        each = told[s]
        width, sd = each.half_width(float(asked.level)), each.sd
        sides = (
            asked.sides.labels(schema, asked.sides.columns[axis]) if axis in s else (ALL,) for axis in axes
        )
        values = zip(np.ravel(each.linear).tolist(), np.ravel(each.published).tolist(), strict=True)
        for names, (linear, value) in zip(product(*sides), values, strict=True):
            low, high = _ends(linear, width, value, whole=asked.whole, step=each.step)
            cell = tuple(zip(asked.columns(axes), names, strict=True))
            found.append(
                TableLine(cell=cell, value=value, low=low, high=high, noise_sd=sd, linear=linear, width=width)
            )
    return tuple(found)


def _ends(
    linear: float, width: float, value: float, *, whole: bool, step: Fraction = STEP
) -> tuple[float, float]:
    """The interval of least squares. Counts are whole and not negative, so it loses nothing by being cut to such numbers;
    it is widened to hold what is published. Where steps are fractions, ends are rounded away."""
    if not whole:
        return linear - width, linear + width
    low, high = (
        (ceil(linear - width - SLACK), floor(linear + width + SLACK))
        if step.denominator == 1
        else (floor(linear - width), ceil(linear + width))
    )
    return min(max(0, low), value), max(max(0, high), value)
