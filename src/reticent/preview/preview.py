"""What can be said of a plan before a row is read: its guarantee, its cost, and the error to expect.

Each route says what to expect of its statistic, at sizes and values that the plan expects; the other way round, it finds the
least epsilon at which the noise alone has a wanted coefficient of variation.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from reticent.answer.capped import CappedRoute
from reticent.answer.domains import DomainRoute
from reticent.answer.expect import (
    AS_TOTALS,
    AT_LEAST,
    AT_SIZE,
    BY_ROWS,
    DERIVED,
    EVEN,
    EXACT,
    FACTORED,
    IN_RANKS,
    IN_WEIGHT,
    LEAST_RANKS,
    LEAST_STEPS,
    OPEN,
    UNKNOWN,
    Assumed,
    Expected,
)
from reticent.answer.parts import AnyMeasurement
from reticent.answer.quantile import QuantileRoute
from reticent.answer.route import Route
from reticent.answer.statistic import BaseRoute, QuotientRoute
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.privacy.claim import Unit
from reticent.query.base import CodedMean, Query, RowQuery, SquaresAboutMean
from reticent.query.domains import ByDomain
from reticent.release.document import asked_words
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
    weighing: "Weighing | None" = None
    unit: Unit = "epsilon"
    level: Fraction = Fraction(95, 100)


LEGEND = {
    EXACT: "the noise is public, so this is its own quantile",
    AT_SIZE: "at the expected size; without an expected value, with the answer at its farthest from the centre",
    AT_LEAST: "the floor, with nobody missing; how busy donors are is confidential, and so is the noise",
    AS_TOTALS: "if the expected rows had equal base weights and were spread as the totals are; how they are is "
    "confidential, and so is the noise",
    EVEN: "in a domain that holds an even share of the expected rows; a smaller one has as many times more noise, and "
    "expect = { value, size } says the size of one",
    BY_ROWS: "if every expected row were one of them; there are fewer, with as many times more noise, and "
    "expect = { value, size } says how many",
    FACTORED: "if every bin held its share of the expected rows; the factors that are released first decide",
    IN_RANKS: "respondents between the answer and the exact one",
    LEAST_RANKS: "respondents between the answer and the exact one, or what they weigh, with nobody missing; how busy donors are is "
    "confidential, and so is how many more it is",
    LEAST_STEPS: "the floor, with nobody missing, of a value ladder; how many recipients donors serve is confidential, and so is the "
    "noise. Below, at most what it would be if no donor served more; recipients of cells without donors come on top, all of them",
    IN_WEIGHT: "what the respondents between the answer and the exact one weigh",
    DERIVED: "follows from the statistics it uses",
    OPEN: "depends on the spread of both columns, which is not known beforehand",
    UNKNOWN: "give [expect] rows, and for weighted statistics mean_weight, or expect = { value, size } on the statistic",
}


def expectations(plan: Plan) -> list[Expectation]:
    """What each ask will cost and how noisy it will be."""
    return [_expect(route, plan) for route in plan.routes]


def _expect(route: Route, plan: Plan) -> Expectation:
    ask, parts, expected = route.statistic, route.parts, route.expect()
    return Expectation(
        name=ask.name,
        words=asked_words(ask, plan),
        epsilon=sum((part.amount for part in parts), Fraction(0)),
        unit="rho" if ask.in_rho else "epsilon",
        parts=parts,
        level=ask.level,
        margin=expected.margin,
        how=_how(route, expected) if isinstance(route, BaseRoute) else expected.how,
        assumed=expected.assumed,
        warning=_warning(route, plan.setting.schema, expected.margin),
        weighing=_weighing(route) if isinstance(route, BaseRoute) else None,
    )


def _how(route: BaseRoute[Query], expected: Expected) -> str:
    if route.setting.is_factored(route.query.weight) and expected.how in (EXACT, AT_SIZE, EVEN):
        return FACTORED
    query, said = _asked_in_each(route), route.statistic.expected
    is_said = said is not None and (said.size or said.weight) is not None
    per = isinstance(query, RowQuery) and query.among.per
    return BY_ROWS if per and not is_said and expected.how in (AT_SIZE, EVEN) else expected.how


def _asked_in_each(route: Route) -> Query:
    return route.query.of if isinstance(route.query, ByDomain) else route.query


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """What base weights do to a margin of noise: at the expected mean weight, and if everybody weighed as much as the bound."""

    weight: str
    bound: Fraction
    mean: Fraction | None
    at_mean: Fraction | None
    at_bound: Fraction

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "weight": self.weight,
            "mean_weight": None if self.mean is None else show(self.mean),
            "margin_at_mean_weight": None if self.at_mean is None else float(self.at_mean),
            "weight_bound": show(self.bound),
            "margin_at_weight_bound": float(self.at_bound),
        }


def _weighing(route: BaseRoute[Query]) -> Weighing | None:
    weight, setting = route.query.weight, route.setting
    made = setting.weighting if setting.is_factored(weight) else None
    name = made.column if made is not None else weight
    if name is None or name not in setting.schema.coded:
        return None
    bound = setting.schema.weight(name, field="weight").upper
    heavy = _if_all_weighed(route, bound)
    at_bound = None if heavy is None else heavy.expect().margin
    if at_bound is None:
        return None
    is_said = setting.mean_weight is not None
    at_mean = route.expect().margin if is_said else None
    return Weighing(weight=name, bound=bound, mean=setting.mean_weight, at_mean=at_mean, at_bound=at_bound)


def _if_all_weighed(route: BaseRoute[Query], bound: Fraction) -> BaseRoute[Query] | None:
    """The route of a quotient as it would be if everybody weighed so much; None for other kinds, whose margins stay the same."""
    if isinstance(route, DomainRoute):
        inside = _if_all_weighed(route.inside, bound)
        return None if inside is None else replace(route, inside=inside)
    setting = replace(route.setting, mean_weight=bound)
    if setting.weighting is not None and setting.is_factored(route.query.weight):
        setting = replace(setting, schema=replace(setting.weighting, mean=None).told(setting.schema))
    if isinstance(route, CappedRoute) and isinstance(route.plain, QuotientRoute):
        return replace(route, setting=setting, plain=replace(route.plain, setting=setting))
    return replace(route, setting=setting) if isinstance(route, QuotientRoute) else None


def _warning(route: Route, schema: Schema, margin: Fraction | None) -> str:
    """That the noise would say nothing: an interval wider than all that the answer can be."""
    found = _range(_asked_in_each(route), schema)
    if margin is not None and found is not None and 2 * margin >= found[1] - found[0]:
        low, high, whose = found
        return (
            f"{route.statistic.name}: the interval would be as wide as {whose} own range, {show(low)} to {show(high)}; give it "
            "more epsilon, ask of more respondents, or declare closer bounds"
        )
    inside = route.inside if isinstance(route, DomainRoute) else route
    if not isinstance(inside, QuantileRoute) or not _is_endless(inside):
        return ""
    return (
        f"{route.statistic.name}: noise moves the ends of the interval by more ranks than there are, so it would reach from "
        "the lowest to the highest candidate; give interval more epsilon, take a larger step, or leave it out"
    )


def _range(query: Query, schema: Schema) -> tuple[Fraction, Fraction, str] | None:
    """What a mean, share or variance can be at all, and whose range that is; None for other kinds."""
    shape = query.shape(schema)
    if isinstance(shape, CodedMean):
        return shape.low, shape.high, "the column's"
    if not isinstance(shape, SquaresAboutMean):
        return None
    # Half of the answers at either end: more than that they cannot vary.
    return Fraction(0), (shape.mean.high - shape.mean.low) ** 2 / 4, "the variance's"


def _is_endless(route: QuantileRoute) -> bool:
    """Whether, at the expected size, one end of a quantile's interval is sure to be the last candidate."""
    reach, setting, weight = route.interval_reach, route.setting, route.query.weight
    size = setting.weighing(route.statistic.expected, weight) or setting.whole(weight)
    at = route.query.at
    return reach is not None and size is not None and reach >= size * max(at, 1 - at)
