"""The parts an ask will be made of, from public numbers alone."""

from fractions import Fraction

from reticent.answer.bought import bar_parts
from reticent.answer.context import weight_of
from reticent.answer.count import count_bound, total_bound
from reticent.answer.linear import Copiable
from reticent.answer.margin import margin_bound
from reticent.answer.parts import AnyMeasurement, Measurement, plan_part, plan_table
from reticent.answer.quantile import quantile_parts, rank_bound
from reticent.answer.ratio import mean_bound, share_bound, split
from reticent.answer.shares import Asked, planned_parts
from reticent.answer.sheets import Asked as Weightable
from reticent.answer.sheets import weighted_parts
from reticent.answer.variance import SQUARES_SHARE, squares_bound
from reticent.query.imputed import uses_smooth
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
from reticent.release.model_repair import ModelRepair
from reticent.release.plan import Plan, Statistic


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
