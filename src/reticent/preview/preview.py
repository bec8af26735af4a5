"""What can be said of a plan before a row is read: its guarantee, its cost, and the error to expect.

The noises of an ask's measurements add up to the error of its answer, at sizes and values that the plan expects. The other
way round, `epsilon_for` finds the least epsilon at which the noise alone has a wanted coefficient of variation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, inf

from reticent.answer.copies import PAGE as BOUGHT
from reticent.answer.parts import AnyMeasurement, Measurement
from reticent.answer.quantile import rank_bound, slack
from reticent.answer.ratio import centre_code
from reticent.answer.shares import Asked
from reticent.errors import PlanError
from reticent.plan.asks import Statistic
from reticent.plan.plan import Plan
from reticent.plan.words import ask_words
from reticent.preview.parts import HUBS, AssumedNoise, foreseen_parts, parts_of
from reticent.preview.weights import weighted_error
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
from reticent.release.document import weighted_words

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """The noise of an ask if the busiest donor served `hub` recipients, in the answer's own unit."""

    hub: int
    sd: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One ask as it will be: its cost, its parts, and the half-width of its error bar with the reason for it.

    `assumed` is told of noise whose scale is confidential: the floor first, then for busier donors.
    """

    name: str
    words: str
    epsilon: Fraction
    parts: tuple[AnyMeasurement, ...]
    margin: Fraction | None
    how: str
    assumed: tuple[Assumed, ...] = ()


EXACT, AT_SIZE, IN_RANKS, DERIVED, UNKNOWN = "exact", "at size", "in ranks", "derived", "unknown"
AT_LEAST, OPEN, AS_TOTALS = "at least", "open", "as totals"
LEGEND = {
    EXACT: "the noise is public, so this is its own quantile",
    AT_SIZE: "at the expected size; without an expected value, with the answer at its farthest from the centre",
    AT_LEAST: "the floor, with nobody missing; how busy donors are is confidential, and so is the noise",
    AS_TOTALS: "if the expected rows had equal base weights and were spread as the totals are; how they are is "
    "confidential, and so is the noise",
    IN_RANKS: "respondents between the answer and the exact one",
    DERIVED: "follows from the statistics it uses",
    OPEN: "depends on the spread of both columns, which is not known beforehand",
    UNKNOWN: "give [expect] rows, or expect = { value, size } on the statistic",
}


def expectations(plan: Plan) -> list[Expectation]:
    """What each ask will cost and how noisy it will be."""
    return [_expect(ask, plan) for ask in plan.asks]


def _expect(ask: Statistic, plan: Plan) -> Expectation:
    parts = parts_of(ask, plan)
    made = Expectation(
        name=ask.name,
        words=ask_words(ask.query, plan.schema, plan.repair, plan.models) + weighted_words(ask, plan),
        epsilon=sum((part.epsilon for part in parts), Fraction(0)),
        parts=parts,
        margin=None,
        how=OPEN,
    )
    if isinstance(ask.query, Correlation):
        return made
    if ask.weighted:
        noise = weighted_error(ask, plan) if plan.rows else None
        return (
            replace(made, margin=Fraction(noise[1]), how=AS_TOTALS) if noise else replace(made, how=UNKNOWN)
        )
    if is_smooth(ask, plan):
        assumed = tuple(found for hub in HUBS if (found := _assume(ask, plan, hub)) is not None)
        floor = Fraction(assumed[0].margin) if assumed else None
        return replace(made, margin=floor, how=AT_LEAST if assumed else UNKNOWN, assumed=assumed)
    own = [part for part in parts if isinstance(part, Measurement) and part.proof != BOUGHT]
    margin, how = _margin(ask, plan, own)
    if (
        margin is not None
        and plan.partition is not None
        and isinstance(ask.query, Count | Total | CrossTabulation)
    ):
        margin *= plan.partition.scale
    return replace(made, margin=margin, how=how)


def _assume(ask: Statistic, plan: Plan, hub: int) -> Assumed | None:
    """The error under an assumption; None where a quotient's size is not known."""
    parts = foreseen(ask, plan, hub)
    if not isinstance(ask.query, Mean | Proportion | Variance):
        return Assumed(hub=hub, sd=parts[-1].sd, margin=float(parts[-1].half_width(ask.level)))
    size = size_of(ask, plan)
    if not size:
        return None
    return Assumed(
        hub=hub, sd=error_of(ask, plan, parts) / size, margin=float(quotient(ask, plan, parts, size))
    )


def _margin(ask: Statistic, plan: Plan, parts: Sequence[Measurement]) -> tuple[Fraction | None, str]:
    """Half the width of the error bar: exact for one noise, at the expected size for a quotient."""
    match ask.query:
        case Count() | Total() | CrossTabulation():
            return parts[0].half_width(ask.level), EXACT
        case Mean() | Proportion() | Variance():
            size = size_of(ask, plan)
            return (quotient(ask, plan, parts, size), AT_SIZE) if size else (None, UNKNOWN)
        case Quantile() as query:
            bound = rank_bound(query, plan.schema, plan.neighbours)
            candidates = query.table(plan.schema).size(plan.schema)
            ranks = slack(candidates, bound=bound, epsilon=ask.epsilon, chance=1 - ask.level)
            return Fraction(ranks, query.at.denominator), IN_RANKS
        case Correlation() | Derived():
            return None, DERIVED


ASSUMED_HUB = 5
MOST_STEPS = 2**20


def epsilon_for(expectation: Expectation, ask: Statistic, plan: Plan, cv: float) -> Fraction | None:
    """The least epsilon, to three digits, at which the noise alone has the wanted coefficient of variation.

    The expected answer is the ask's own `expect`, or the expected rows for a count. None where the plan expects
    no answer. Where the scale is confidential the busiest donor is assumed to serve `ASSUMED_HUB` recipients.
    """
    value, divisor = expected_value(ask, plan), 1
    if ask.weighted:
        return _weighted(ask, plan, cv * abs(float(ask.expected[0]))) if ask.expected else None
    if isinstance(ask.query, Mean | Proportion | Variance):
        divisor = size_of(ask, plan) or 0
    if not value or not divisor or isinstance(ask.query, Quantile | Correlation | Derived):
        return None
    allowed = cv * abs(float(value)) * divisor
    if plan.partition is not None and ask.expected is not None and divisor == 1:
        allowed *= float(plan.partition.share)  # what is expected speaks of the whole survey
    if is_smooth(ask, plan):
        return _least(lambda epsilon: _assumed_error(ask, plan, epsilon) <= allowed)
    # Public noise is as good as proportional to 1 / epsilon, so one division finds it.
    parts = [part for part in expectation.parts if isinstance(part, Measurement)]
    steps = ask.epsilon * Fraction(error_of(ask, plan, parts) / allowed) * 1000
    return Fraction(-(-steps.numerator // steps.denominator), 1000)


def _weighted(ask: Statistic, plan: Plan, allowed: float) -> Fraction | None:
    """With respondents spread as the totals are."""

    def enough(epsilon: Fraction) -> bool:
        noise = weighted_error(ask, plan, epsilon)
        return noise is not None and noise[0] <= allowed

    return _least(enough) if plan.rows and allowed else None


def _assumed_error(ask: Statistic, plan: Plan, epsilon: Fraction) -> float:
    """The error at another epsilon; without end where no noise can run at it."""
    try:
        parts = foreseen(replace(ask, epsilon=epsilon, bar=Fraction(0)), plan, ASSUMED_HUB)
    except PlanError:
        return inf
    return error_of(ask, plan, parts)


def _least(enough: Callable[[Fraction], bool]) -> Fraction | None:
    """The least thousandth at which the noise is small enough; it falls as epsilon grows. None above 1000."""
    low, high = 0, 1
    while not enough(Fraction(high, 1000)):
        low, high = high, 2 * high
        if high > MOST_STEPS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(Fraction(middle, 1000)) else (middle, high)
    return Fraction(high, 1000)
