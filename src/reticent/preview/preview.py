"""What can be said of a plan before a row is read: its guarantee, its cost, and the error to expect.

Each route says what to expect of its statistic, at sizes and values that the plan expects; the other way round, it finds the
least epsilon at which the noise alone has a wanted coefficient of variation.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.expect import (
    AS_TOTALS,
    AT_LEAST,
    AT_SIZE,
    DERIVED,
    EXACT,
    IN_RANKS,
    OPEN,
    UNKNOWN,
    Assumed,
)
from reticent.answer.parts import AnyMeasurement
from reticent.answer.route import Route
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.plan.words import ask_words
from reticent.privacy.claim import Unit
from reticent.query.base import CodedMean
from reticent.release.document import weighted_words
from reticent.schema import Schema


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
    warning: str = ""
    unit: Unit = "epsilon"


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
    return [_expect(route, plan) for route in plan.routes]


def _expect(route: Route, plan: Plan) -> Expectation:
    ask, parts, expected = route.statistic, route.parts, route.expect()
    return Expectation(
        name=ask.name,
        words=ask_words(ask.query, plan.schema, plan.repair, plan.models) + weighted_words(ask, plan),
        epsilon=sum((part.amount for part in parts), Fraction(0)),
        unit="rho" if ask.in_rho else "epsilon",
        parts=parts,
        margin=expected.margin,
        how=expected.how,
        assumed=expected.assumed,
        warning=_warning(route, plan.setting.schema, expected.margin),
    )


def _warning(route: Route, schema: Schema, margin: Fraction | None) -> str:
    """That the noise would say nothing: an interval wider than all that the answer can be."""
    shape = route.query.shape(schema)
    if margin is None or not isinstance(shape, CodedMean) or 2 * margin < shape.high - shape.low:
        return ""
    return (
        f"{route.statistic.name}: the interval would be as wide as the column's own range, {show(shape.low)} to "
        f"{show(shape.high)}; give it more epsilon, ask of more respondents, or declare closer bounds"
    )
