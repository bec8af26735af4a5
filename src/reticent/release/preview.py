"""What can be said of a plan before a row is read: claim, cost, and honest expectations of the error."""

from dataclasses import dataclass
from fractions import Fraction
from math import hypot

from reticent.answer.context import weight_of
from reticent.answer.count import count_bound, total_bound
from reticent.answer.margin import margin_bound
from reticent.answer.parts import Part, plan_part, plan_table
from reticent.answer.quantile import quantile_parts, rank_bound, slack
from reticent.answer.ratio import centre_code, mean_bound, share_bound, split
from reticent.answer.variance import SQUARES_SHARE, squares_bound
from reticent.query.kinds import Count, Derived, Margin, Mean, Proportion, Quantile, Total, Variance
from reticent.release.plan import Ask, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One ask as it will be: its cost, its parts, and the half-width of its error bar with the reason for it."""

    name: str
    words: str
    epsilon: Fraction
    parts: tuple[Part, ...]
    margin: Fraction | None
    how: str


EXACT, AT_SIZE, IN_RANKS, DERIVED, UNKNOWN = "exact", "at size", "in ranks", "derived", "unknown"
LEGEND = {
    EXACT: "the noise is public, so this is its own quantile",
    AT_SIZE: "at the expected size; without an expected value, with the answer at its farthest from the centre",
    IN_RANKS: "respondents between the answer and the exact one",
    DERIVED: "follows from the asks it uses",
    UNKNOWN: "give [expect] rows, or expect = { value, size } on the ask",
}


def expectations(plan: Plan) -> list[Expectation]:
    """What each ask will cost and how noisy it will be."""
    return [_expect(ask, plan) for ask in plan.asks]


def _expect(ask: Ask, plan: Plan) -> Expectation:
    parts = parts_of(ask, plan)
    margin, how = _margin(ask, plan, parts)
    total = sum((part.epsilon for part in parts), Fraction(0))
    words = ask.query.words(plan.schema)
    return Expectation(name=ask.name, words=words, epsilon=total, parts=parts, margin=margin, how=how)


def parts_of(ask: Ask, plan: Plan) -> tuple[Part, ...]:
    """The parts an ask will be made of, from public numbers alone."""
    schema, neighbours, epsilon = plan.schema, plan.neighbours, ask.epsilon
    match ask.query:
        case Count() as q:
            bound, grid = count_bound(q.among, schema, neighbours)
            return (plan_part("count", bound=bound, grid=grid, epsilon=epsilon),)
        case Total() as q:
            bound, grid = total_bound(q, schema, neighbours)
            return (plan_part("total", bound=bound, grid=grid, epsilon=epsilon),)
        case Margin() as q:
            bound, grid = margin_bound(q.among, schema, neighbours)
            return (plan_table("table", bound=bound, grid=grid, epsilon=epsilon),)
        case Mean() | Proportion() as q:
            return _ratio_parts(q, epsilon, plan)
        case Variance() as q:
            return _variance_parts(q, epsilon, plan)
        case Quantile() as q:
            return quantile_parts(q, epsilon, ask.bar, rank_bound(q, schema, neighbours))
        case Derived():
            return ()


def _ratio_parts(query: Mean | Proportion, epsilon: Fraction, plan: Plan) -> tuple[Part, ...]:
    for_count, for_sum = split(epsilon, query.size)
    size: tuple[Part, ...] = ()
    if for_count:
        bound, grid = count_bound(query.among, plan.schema, plan.neighbours)
        size = (plan_part("count", bound=bound, grid=grid, epsilon=for_count),)
    if isinstance(query, Mean):
        bound, grid = mean_bound(query, plan.schema, plan.neighbours)
    else:
        bound, grid = share_bound(query, plan.schema, plan.neighbours)
    return (*size, plan_part("centred sum", bound=bound, grid=grid, epsilon=for_sum))


def _variance_parts(query: Variance, epsilon: Fraction, plan: Plan) -> tuple[Part, ...]:
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


def _margin(ask: Ask, plan: Plan, parts: tuple[Part, ...]) -> tuple[Fraction | None, str]:
    """Half the width of the error bar: exact for one noise, at the expected size for a quotient."""
    match ask.query:
        case Count() | Total() | Margin():
            return parts[0].half_width(ask.level), EXACT
        case Mean() | Proportion() | Variance():
            size = _size(ask, plan)
            return (_quotient(ask, plan, parts, size), AT_SIZE) if size else (None, UNKNOWN)
        case Quantile() as query:
            bound = rank_bound(query, plan.schema, plan.neighbours)
            candidates = query.table(plan.schema).size(plan.schema)
            ranks = slack(candidates, bound=bound, epsilon=ask.epsilon, chance=1 - ask.level)
            return Fraction(ranks, query.at.denominator), IN_RANKS
        case Derived():
            return None, DERIVED


def _size(ask: Ask, plan: Plan) -> int | None:
    """How many respondents (how much weight) a quotient divides by, as far as the plan says."""
    if ask.expected is not None and ask.expected[1] is not None:
        return ask.expected[1]
    if not isinstance(ask.query, Mean | Proportion | Variance):
        return None
    return ask.query.size or (None if ask.query.among.weight else plan.rows)


def _quotient(ask: Ask, plan: Plan, parts: tuple[Part, ...], size: int) -> Fraction:
    """The sum's half-width and the count's times the distance from the centre, as variances add."""
    top = float(parts[-1].half_width(ask.level))
    reach = 0.0
    if parts[0].what == "count":
        reach = float(parts[0].half_width(ask.level)) * _distance(ask, plan, parts[-1])
    return Fraction(hypot(top, reach) / size)


def _distance(ask: Ask, plan: Plan, top: Part) -> float:
    """|answer - centre|: expected, or at most. Squares have no centre."""
    query = ask.query
    if ask.expected is None or isinstance(query, Variance):
        return float(ask.expected[0]) if ask.expected else float(top.bound)
    centre = Fraction(1, 2)
    if isinstance(query, Mean):
        column = query.number(plan.schema)
        centre = centre_code(column, query.centre) * column.grid / 2
    return float(abs(ask.expected[0] - centre))


def epsilon_for(expectation: Expectation, ask: Ask, plan: Plan, cv: float) -> Fraction | None:
    """The least epsilon, to three digits, at which the noise alone has the wanted coefficient of variation.

    The expected answer is the ask's own `expect`, or the expected rows for a count. Noise is as good as
    proportional to 1 / epsilon, so one division finds it. None where the plan expects no answer.
    """
    value = _expected_value(ask, plan)
    if not value or not expectation.parts or isinstance(ask.query, Quantile):
        return None
    first, last = expectation.parts[0], expectation.parts[-1]
    error, divisor = last.sd, 1.0
    if isinstance(ask.query, Mean | Proportion | Variance):
        divisor = float(_size(ask, plan) or 0)
        if first.what == "count":
            error = hypot(error, first.sd * _distance(ask, plan, last))
    if not divisor:
        return None
    steps = ask.epsilon * Fraction(error / divisor / abs(float(value)) / cv) * 1000
    return Fraction(-(-steps.numerator // steps.denominator), 1000)


def _expected_value(ask: Ask, plan: Plan) -> Fraction | None:
    if ask.expected is not None:
        return ask.expected[0]
    return Fraction(plan.rows) if plan.rows and isinstance(ask.query, Count) else None
