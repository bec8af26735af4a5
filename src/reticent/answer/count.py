"""Counts, totals and cross-tabulations: one sum and one noise, or noise of its own for every declared cell, empty or not."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from reticent.answer.context import (
    Context,
    completions,
    count_bound,
    imputed,
    rests_on_caps,
    rings_of,
    times,
    total_bound,
    weight_of,
    with_donees,
)
from reticent.answer.parts import (
    EXACT_WORDS,
    GAPS_WORDS,
    Answer,
    CellBasis,
    Estimate,
    Measurement,
    NoisyInteger,
    Sampling,
    measure_table,
    plan_table,
)
from reticent.answer.statistic import CAPPED, GAUSS, LAPLACE, LINEAR, Ground, PublicRoute, answered
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.query.base import Query, RowQuery, Subpopulation
from reticent.query.filled import roles
from reticent.query.kinds import Count, CrossTabulation, Total
from reticent.query.sides import Sides, may_hold
from reticent.refine.total import SampleSize, share_variance
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global, Neighbours, bound_table, length_table


def answer_count(query: Count, epsilon: Fraction, context: Context) -> Answer:
    """The noisy size of a subpopulation.

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
    Adjacency   context.neighbours.
    Theorem     `bound_sum` and `measure`.
    Proof       proofs/answer/count.md
    Assumes     tallies of `query.wants`; exact arithmetic.
    Keeps back  the exact count.
    """
    bound, grid = count_bound(query.among, context.schema, context.neighbours)
    exact = context.tallies.statistics[query.count(context.schema)]
    measured = context.measure(exact, "count", bound=bound, grid=grid, epsilon=epsilon)
    sampling = binomial(measured.estimate, context.rows, query.among.weight)
    counted = CellBasis(weight=query.among.weight, rows=context.rows)
    return replace(_answer(measured, sampling, limits=(Fraction(0), None)), counted=counted)


def answer_total(
    query: Total, epsilon: Fraction, context: Context, *, variance: Estimate | None = None
) -> Answer:
    """The noisy sum of a column; with a `variance` that another ask released, its sampling error is told.

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
    Adjacency   context.neighbours.
    Theorem     `bound_sum` and `measure`.
    Proof       proofs/answer/count.md
    Assumes     tallies of `query.wants`; exact arithmetic.
    Keeps back  the exact total.
    """
    column = query.number(context.schema)
    bound, grid = total_bound(column, query.among, context.schema, context.neighbours)
    exact = context.tallies.statistics[query.power(context.schema, 1)]
    measured = context.measure(exact, "total", bound=bound, grid=grid, epsilon=epsilon)
    return _answer(measured, spread_of_total(measured.estimate, variance, context.rows, query.among.weight))


def spread_of_total(
    total: Fraction, variance: Estimate | None, rows: int | None, weight: str | None = None
) -> Sampling | None:
    """Sampling variance of a total T: W^2/n ((m/W)(s^2 + (T/m)^2) - (T/W)^2), s^2 the released variance and m what it was
    divided by, among n respondents of W in all; without weights W is n. None where no variance was released."""
    if variance is None or variance.size is None:
        return None
    among, spread = float(variance.size), float(variance.value)

    def sampled(size: SampleSize | None) -> float | None:
        held = size or (SampleSize(respondents=rows) if rows is not None else None)
        whole = None if held is None else held.whole(weight)
        if held is None or not whole:
            return None
        part, mean = min(1.0, among / whole), float(total) / whole
        about = float(total) / among
        return whole**2 / held.effective(weight) * max(0.0, part * (spread + about**2) - mean**2)

    return sampled


def binomial(count: Fraction, rows: int | None, weight: str | None = None) -> Sampling:
    """Sampling variance of a count among all respondents, or of their weight; `rows` are those that are expected.

    A partial, as `covering` is: a table has one for each cell, and a function of its own would be six objects.
    """
    return partial(_binomial_variance, count, rows, weight)


def _binomial_variance(
    count: Fraction, rows: int | None, weight: str | None, size: SampleSize | None
) -> float | None:
    """n p(1 - p), or that of their weight; None where the size of the sample is not known."""
    held = size or (SampleSize(respondents=rows) if rows is not None else None)
    whole = None if held is None else held.whole(weight)
    if held is None or not whole:
        return None
    return whole**2 * share_variance(float(count) / whole, held.effective(weight))


def widening(query: Query, schema: Schema, repair: Repair) -> float | None:
    """By how much missing answers widen the sampling variance, filled from r donors: (1 + f/r) / (1 - f), f the expected
    share (THEORY 13.5a); 1 where capped donors fill nothing of it, None where the plan expects nothing of some column."""
    if not rests_on_caps(query, schema, repair):
        return 1.0
    groups = [repair.group(role.column) for role in roles(query, schema, repair)]
    shares = [group.expected for group in groups if group is not None]
    if not shares or any(share is None for share in shares):
        return None
    f = float(max(share for share in shares if share is not None))
    return (1 + f / repair.rings) / (1 - f)


def widened(sampling: Sampling | None, factor: float | None) -> Sampling | None:
    """A sampling variance so many times as large; None where one of the two is not known."""
    if sampling is None or factor is None or factor == 1:
        return None if factor is None else sampling

    def wider(size: SampleSize | None) -> float | None:
        found = sampling(size)
        return None if found is None else found * factor

    return wider


def covering(measured: NoisyInteger) -> Callable[[Fraction], tuple[Fraction, Fraction]]:
    """The interval around a measured integer: its noise, and the coarser step where one was used."""
    return partial(_covered, measured)


def _covered(measured: NoisyInteger, level: Fraction) -> tuple[Fraction, Fraction]:
    width = measured.part.half_width(level) + (measured.part.blur if measured.part.is_coarse else 0)
    return measured.estimate - width, measured.estimate + width


def _answer(
    measured: NoisyInteger,
    sampling: Sampling | None,
    limits: tuple[Fraction | None, Fraction | None] = (None, None),
) -> Answer:
    estimate = Estimate(
        value=measured.estimate,
        interval=covering(measured),
        noise_sd=measured.part.sd,
        sampling=sampling,
        limits=limits,
    )
    return Answer(estimates=(estimate,), parts=(measured.part,), meaning=EXACT_WORDS)


def table_over(sides: Sides, among: Subpopulation) -> RowQuery:
    """The table of a subpopulation over some sides."""
    return CrossTabulation(columns=sides.columns, among=among, bins=sides.bins)


def table_bound(
    query: RowQuery, schema: Schema, neighbours: Neighbours, repair: Repair, *, in_rho: bool = False
) -> Global:
    """The L1 bound of the table in steps, or where `in_rho` the Euclidean one, with what capped donees add."""
    weight = weight_of(query.among, schema)
    top, filled = weight.high if weight else 1, imputed(query, schema, repair)
    own = (length_table if in_rho else bound_table)(top, neighbours=neighbours)
    whole = with_donees(own, filled.table(), neighbours, repair)
    if not in_rho or not rests_on_caps(query, schema, repair):
        return whole
    return Global(bound=min(whole.bound, neighbours.steps * filled.table_length()))


def margin_bound(
    query: CrossTabulation,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair = NO_REPAIR,
    *,
    in_rho: bool = False,
) -> tuple[Global, Fraction]:
    """The bound of the table and its step; over all rings, both of them finer."""
    weight, rings = weight_of(query.among, schema), rings_of(query, schema, repair)
    bound = table_bound(query, schema, neighbours, repair, in_rho=in_rho)
    return times(bound, rings), (weight.grid if weight else Fraction(1)) / rings


def answer_margin(query: CrossTabulation, epsilon: Fraction, context: Context) -> Answer:
    """The noisy table.

    Guarantee   epsilon-DP for the whole table; `epsilon`-zCDP where context.in_rho.
    Adjacency   context.neighbours.
    Theorem     `bound_table` or `length_table`, and `measure_table`; THEORY 11.3 (b) for capped donors.
    Proof       proofs/answer/margin.md
    Assumes     tallies of `query.wants`; cells come from the codebook and the plan; exact arithmetic.
    Keeps back  the exact table.
    """
    schema = context.schema
    bound, grid = margin_bound(query, schema, context.neighbours, context.repair, in_rho=context.in_rho)
    exact = completions(query, context).tallies.tables[query.table(schema)].cells
    wider, filled, limits = (
        widening(query, schema, context.repair),
        context.repair.filled(),
        (Fraction(0), None),
    )
    table = measure_table(
        exact, "table", bound=bound, grid=grid, epsilon=epsilon, noise=context.noise, in_rho=context.in_rho
    )
    named = zip(table, query.sides.cells(schema), strict=True)
    estimates = tuple(
        Estimate(
            value=cell.estimate,
            interval=covering(cell),
            noise_sd=cell.part.sd,
            sampling=widened(binomial(cell.estimate, context.rows, query.among.weight), wider),
            limits=limits,
            cell=name,
        )
        for cell, name in named
        if may_hold(name, filled)
    )
    gaps = GAPS_WORDS if rests_on_caps(query, schema, context.repair) else ""
    said = f"{EXACT_WORDS}; for each cell by itself{gaps}"
    counted = CellBasis(weight=query.among.weight, rows=context.rows, wider=wider)
    return Answer(estimates=estimates, parts=(table[0].part,), meaning=said, counted=counted)


class CountRoute(PublicRoute[Count]):
    """A count, by one noisy sum."""

    __slots__ = ()
    PAGES = ("count",)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        schema, neighbours = self.setting.schema, self.setting.neighbours
        bound, grid = count_bound(self.query.among, schema, neighbours)
        return (self.planned("count", bound, grid, self.statistic.epsilon),)

    def measured(self, context: Context) -> Answer:
        return answer_count(self.query, self.statistic.epsilon, context)


class TotalRoute(PublicRoute[Total]):
    """A total, by one noisy sum."""

    __slots__ = ()
    PAGES = ("count",)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        schema, neighbours = self.setting.schema, self.setting.neighbours
        bound, grid = total_bound(self.query.number(schema), self.query.among, schema, neighbours)
        return (self.planned("total", bound, grid, self.statistic.epsilon),)

    def measured(self, context: Context) -> Answer:
        """With the sampling error that a released variance implies, where the plan names one."""
        variance = context.released(self.statistic.variance)
        return answer_total(self.query, self.statistic.epsilon, context, variance=variance)


class TableRoute(PublicRoute[CrossTabulation]):
    """A cross-tabulation, by one noisy table."""

    __slots__ = ()
    PAGES = ("margin",)

    @property
    def parts(self) -> tuple[Measurement, ...]:
        here, ask = self.setting, self.statistic
        bound, grid = margin_bound(self.query, here.schema, here.neighbours, here.repair, in_rho=ask.in_rho)
        return (plan_table("table", bound=bound, grid=grid, epsilon=ask.epsilon, in_rho=ask.in_rho),)

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        is_capped = rests_on_caps(self.query, self.setting.schema, self.setting.repair)
        noise = GAUSS if self.statistic.in_rho else LAPLACE
        return (answered("margin"), LINEAR, noise, *(CAPPED if is_capped else ()))

    def measured(self, context: Context) -> Answer:
        return answer_margin(self.query, self.statistic.epsilon, context)
