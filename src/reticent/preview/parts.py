"""The measurements an ask will be made of, from public numbers alone.

How many recipients a donor serves is read off the rows, so a preview cannot know the scale of smooth noise. It can say
what follows from an assumed number, and the floor: what is left when nobody is missing.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, floor, inf, sqrt

from reticent.answer.context import weight_of
from reticent.answer.copies import Copiable, bar_parts
from reticent.answer.count import count_bound, margin_bound, total_bound
from reticent.answer.parts import AnyMeasurement, Measurement, plan_part, plan_table
from reticent.answer.quantile import quantile_parts, rank_bound
from reticent.answer.ratio import SQUARES_SHARE, mean_bound, share_bound, split, squares_bound
from reticent.answer.shares import Asked, SumSpec, is_published, planned, planned_parts
from reticent.answer.weighted import Asked as Weightable
from reticent.answer.weighted import weighted_parts
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Lomax
from reticent.plan.asks import Statistic
from reticent.plan.models import ModelRepair
from reticent.plan.plan import Plan
from reticent.prepare.repair import Repair
from reticent.query.filled import uses_smooth
from reticent.query.kinds import (
    Correlation,
    Count,
    CrossTabulation,
    Derived,
    Mean,
    Proportion,
    Quantile,
    Total,
    Variance,
)
from reticent.refine.pivot import Pivot, pivot
from reticent.refine.quantiles import half_width
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.donors import Moves
from reticent.sensitivity.hubs import published_beta


def parts_of(ask: Statistic, plan: Plan) -> tuple[AnyMeasurement, ...]:
    """The parts an ask will be made of, in the order they are measured."""
    if ask.weighted and plan.weight is not None and isinstance(ask.query, Weightable):
        return weighted_parts(
            ask.query, ask.epsilon, ask.bar, plan.weight, schema=plan.schema, neighbours=plan.neighbours
        )
    if isinstance(ask.query, Asked) and (
        isinstance(ask.query, Correlation) or uses_smooth(ask.query, plan.schema, plan.repair)
    ):
        return planned_parts(
            ask.query,
            ask.epsilon,
            ask.bar,
            schema=plan.schema,
            neighbours=plan.neighbours,
            repair=plan.repair,
        )
    return (*_public_parts(ask, plan), *_bar_parts(ask, plan))


def _bar_parts(ask: Statistic, plan: Plan) -> tuple[Measurement, ...]:
    """What is bought to know how copies differ; nothing for other asks."""
    if not ask.bar or not isinstance(ask.query, Copiable):
        return ()
    directions = sum(len(model.features) + 1 for model in plan.models if isinstance(model, ModelRepair))
    return bar_parts(
        ask.query, ask.bar, directions=directions, schema=plan.schema, neighbours=plan.neighbours
    )


def _public_parts(ask: Statistic, plan: Plan) -> tuple[Measurement, ...]:
    schema, neighbours, epsilon = plan.schema, plan.neighbours, ask.epsilon
    match ask.query:
        case Count() as q:
            bound, grid = count_bound(q.among, schema, neighbours)
            return (plan_part("count", bound=bound, grid=grid, epsilon=epsilon),)
        case Total() as q:
            bound, grid = total_bound(q, schema, neighbours)
            return (plan_part("total", bound=bound, grid=grid, epsilon=epsilon),)
        case CrossTabulation() as q:
            bound, grid = margin_bound(q.among, schema, neighbours)
            return (plan_table("table", bound=bound, grid=grid, epsilon=epsilon),)
        case Mean() | Proportion() as q:
            return _ratio_parts(q, epsilon, plan)
        case Variance() as q:
            return _variance_parts(q, epsilon, plan)
        case Quantile() as q:
            return quantile_parts(q, epsilon, ask.bar, rank_bound(q, schema, neighbours))
        case Correlation() | Derived():
            return ()


def _ratio_parts(query: Mean | Proportion, epsilon: Fraction, plan: Plan) -> tuple[Measurement, ...]:
    for_count, for_sum = split(epsilon, query.size)
    size: tuple[Measurement, ...] = ()
    if for_count:
        bound, grid = count_bound(query.among, plan.schema, plan.neighbours)
        size = (plan_part("count", bound=bound, grid=grid, epsilon=for_count),)
    if isinstance(query, Mean):
        bound, grid = mean_bound(query, plan.schema, plan.neighbours)
    else:
        bound, grid = share_bound(query, plan.schema, plan.neighbours)
    return (*size, plan_part("centred sum", bound=bound, grid=grid, epsilon=for_sum))


def _variance_parts(query: Variance, epsilon: Fraction, plan: Plan) -> tuple[Measurement, ...]:
    """The squares' bound depends on the released mean; here at its largest, for a mean at one end."""
    mean = Mean(column=query.column, among=query.among, centre=query.centre, size=query.size)
    column, weight = query.number(plan.schema), weight_of(query.among, plan.schema)
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    bound = squares_bound(column, column.low, top, plan.neighbours)
    for_squares = epsilon * SQUARES_SHARE
    squares = plan_part(
        "squares about the mean", bound=bound, grid=grid * column.grid**2, epsilon=for_squares
    )
    return (*_ratio_parts(mean, epsilon - for_squares, plan), squares)


NOBODY = 0
HUBS = (NOBODY, 5, 20, 100)
FINITE_VARIANCE = 3  # Cauchy noise has a variance beyond this tail exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedNoise:
    """A part under an assumption: `smooth` is the bound it would have, `bound` the most that one's own row adds."""

    what: str
    bound: Fraction
    smooth: Fraction
    scale: Fraction
    family: Lomax | Cauchy
    pivot: Pivot | None = None

    @property
    def sd(self) -> float:
        """Standard deviation of the noise, in the answer's own unit; infinite where the noise has none."""
        if isinstance(self.family, Cauchy) and self.family.gamma <= FINITE_VARIANCE:
            return inf
        return float(self.scale) * sqrt(float(self.family.variance()))

    def half_width(self, level: Fraction) -> Fraction:
        """Half of the error bar that was bought, at its median; of the noise's own, where none was."""
        if self.pivot is not None:
            return self.smooth * Fraction(replace(self.pivot, level=level).factor())
        return self.scale * Fraction(float(half_width(self.family, level=level)))


def foreseen_parts(
    query: Asked,
    epsilon: Fraction,
    bar: Fraction,
    *,
    hub: int,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair,
) -> tuple[Measurement | AssumedNoise, ...]:
    """One part for each sum of the ask, if each filled column's busiest donor served `hub` recipients."""
    shares = planned(query, schema, neighbours, repair)
    sold = sum((share for task, share in shares if task.is_smooth), Fraction(0))
    found: list[Measurement | AssumedNoise] = []
    for task, share in shares:
        if not task.is_smooth:
            found.append(plan_part(task.what, bound=task.bound, grid=task.grid, epsilon=epsilon * share))
            continue
        each = epsilon * share / neighbours.steps
        base, slope = _line(task.moves, hub, schema)
        if is_published(task, repair):
            found.append(_cauchy(task, base + slope * (hub == NOBODY), each))
        else:
            law = _pivot(each, repair.smoothness, bar * share / sold, neighbours) if bar else None
            found.append(_lomax(task, base, slope, each, repair.smoothness, law))
    return tuple(found)


def _line(moves: Moves, hub: int, schema: Schema) -> tuple[Fraction, Fraction]:
    """Base and slope of U_k = c0 + sum of c1 (hub + k), by weight where recipients are weighed."""
    tops = [(c1, schema.coded[ring.weight].high if ring.weight else 1) for ring, c1 in moves.c1]
    slope = sum((c1 * top for c1, top in tops), Fraction(0))
    return moves.c0 + slope * hub, slope


def _lomax(
    task: SumSpec, base: Fraction, slope: Fraction, each: Fraction, m: int, law: Pivot | None
) -> AssumedNoise:
    smooth = highest(base, slope, each / m) * task.grid
    scale = smooth / calibrate.lomax(epsilon=each, beta=each / m)
    return AssumedNoise(
        what=task.what,
        bound=task.moves.c0 * task.grid,
        smooth=smooth,
        scale=scale,
        family=Lomax(m),
        pivot=law,
    )


def highest(base: Fraction, slope: Fraction, beta: Fraction) -> Fraction:
    """max over k of e^(-beta k)(base + slope k), which rises up to k = 1/beta - base/slope; in floating point."""
    top = max(Fraction(0), 1 / beta - base / slope)
    rungs = (floor(top), floor(top) + 1)
    return Fraction(max(exp(-float(beta) * k) * float(base + slope * k) for k in rungs))


def _cauchy(task: SumSpec, bound: Fraction, each: Fraction) -> AssumedNoise:
    """As published: one donee at least, and no ladder."""
    beta = published_beta(each)
    gamma = 1 + each / (2 * beta)
    smooth = bound * task.grid
    scale = smooth / calibrate.cauchy_as_published(epsilon=each, beta=beta, gamma=gamma)
    own = task.moves.c0 * task.grid
    return AssumedNoise(what=task.what, bound=own, smooth=smooth, scale=scale, family=Cauchy(gamma))


def _pivot(each: Fraction, m: int, bar: Fraction, neighbours: Neighbours) -> Pivot:
    half = Fraction(1, 2)  # any level; `half_width` puts in its own
    return pivot(epsilon=each, beta=each / m, epsilon_scale=bar, level=half, steps=neighbours.steps)
