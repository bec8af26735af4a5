"""How the noises of an ask's parts add up to the error of its answer, at sizes and values the plan expects."""

from collections.abc import Sequence
from fractions import Fraction
from math import hypot

from reticent.answer.parts import Measurement
from reticent.answer.ratio import centre_code
from reticent.answer.shares import Asked
from reticent.query.imputed import uses_smooth
from reticent.query.kinds import Count, Mean, Proportion, Variance
from reticent.release.foreseen import AssumedNoise, foreseen_parts
from reticent.release.plan import Plan, Statistic

Parts = Sequence[Measurement | AssumedNoise]


def is_smooth(ask: Statistic, plan: Plan) -> bool:
    """Whether some of the ask's noise has a confidential scale."""
    return uses_smooth(ask.query, plan.schema, plan.repair)


def foreseen(ask: Statistic, plan: Plan, hub: int) -> Parts:
    """The parts of the ask if the busiest donor served `hub` recipients."""
    if not isinstance(ask.query, Asked):
        raise TypeError("quantiles, tables and derived asks have no noise of confidential scale")
    return foreseen_parts(
        ask.query,
        ask.epsilon,
        ask.bar,
        hub=hub,
        schema=plan.schema,
        neighbours=plan.neighbours,
        repair=plan.repair,
    )


def size_of(ask: Statistic, plan: Plan) -> int | None:
    """How many respondents (how much weight) a quotient divides by, as far as the plan says."""
    if ask.expected is not None and ask.expected[1] is not None:
        return ask.expected[1]
    if not isinstance(ask.query, Mean | Proportion | Variance):
        return None
    return ask.query.size or (None if ask.query.among.weight else plan.rows)


def expected_value(ask: Statistic, plan: Plan) -> Fraction | None:
    """The answer the plan expects: the ask's own, or the expected rows for a count."""
    if ask.expected is not None:
        return ask.expected[0]
    return Fraction(plan.rows) if plan.rows and isinstance(ask.query, Count) else None


def error_of(ask: Statistic, plan: Plan, parts: Parts) -> float:
    """Standard deviation of a sum's noise, with the count's times the distance from the centre; not yet divided."""
    error = parts[-1].sd
    if isinstance(ask.query, Mean | Proportion | Variance) and parts[0].what == "count":
        error = hypot(error, parts[0].sd * _distance(ask, plan, parts[-1]))
    return error


def quotient(ask: Statistic, plan: Plan, parts: Parts, size: int) -> Fraction:
    """The sum's half-width and the count's times the distance from the centre, as variances add."""
    top = float(parts[-1].half_width(ask.level))
    reach = 0.0
    if parts[0].what == "count":
        reach = float(parts[0].half_width(ask.level)) * _distance(ask, plan, parts[-1])
    return Fraction(hypot(top, reach) / size)


def _distance(ask: Statistic, plan: Plan, top: Measurement | AssumedNoise) -> float:
    """|answer - centre|: expected, or at most. Squares have no centre."""
    query = ask.query
    if ask.expected is None or isinstance(query, Variance):
        return float(ask.expected[0]) if ask.expected else float(top.bound)
    centre = Fraction(1, 2)
    if isinstance(query, Mean):
        column = query.number(plan.schema)
        centre = centre_code(column, query.centre) * column.grid / 2
    return float(abs(ask.expected[0] - centre))
