"""The keys of a `[[cells]]` section, and how each is read by itself."""

from decimal import Decimal
from fractions import Fraction

from pydantic import Field

from reticent.decimals import read_decimal, show
from reticent.errors import PlanError
from reticent.predicate.bind import bind
from reticent.predicate.parse import parse
from reticent.predicate.tree import Everyone, Predicate
from reticent.privacy.claim import amount
from reticent.query.rows import AVAILABLE, COMPLETE
from reticent.schema import Levels, Schema
from reticent.smallcells.cells import DEFAULT_LEVEL, CellStatistic
from reticent.smallcells.groups import GroupsSection
from reticent.tomlfile import Section

LEAST_EPSILON = Fraction(1, 10**6)
MOST_EPSILON = 1000
MOST_DELTA = Fraction(1, 1000)
Numeric = str | int | Decimal


class EstimateSection(Section):
    predict: Numeric | None = None
    slope: bool = False
    mean: bool = False


class CellsSection(Section):
    name: str = Field(min_length=1, max_length=200)
    cell: str
    y: str
    x: str | None = None
    estimate: EstimateSection
    method: str
    epsilon: str
    count_epsilon: str | None = None
    noise_epsilon: str | None = None
    error_epsilon: str | None = None
    delta: str | None = None
    range: list[Numeric] = Field(default=[])
    least: int | None = Field(default=None, ge=2, le=2**40)
    level: Numeric | None = None
    where: str | None = None
    missing: str = AVAILABLE
    groups: GroupsSection | None = None
    changes: str | None = None
    envelope: str | None = None
    accept_observed: bool | None = None
    smoothness: int | None = Field(default=None, ge=3, le=64)
    matchings: int | None = Field(default=None, ge=1, le=1000)


def read_estimate(section: CellsSection, schema: Schema, at: str) -> CellStatistic:
    wanted = section.estimate
    chosen = [wanted.predict is not None, wanted.slope, wanted.mean]
    if sum(chosen) != 1:
        raise PlanError(
            'is one of { predict = "0.25" }, { slope = true }, { mean = true }', field=f"{at}.estimate"
        )
    column = schema.column(section.cell, field=f"{at}.cell")
    if not isinstance(column, Levels) and not column.whole:
        raise PlanError("is categorical, ordinal or an integer", field=f"{at}.cell")
    schema.number(section.y, field=f"{at}.y")
    if wanted.mean:
        if section.x is not None:
            raise PlanError("does not go with a mean; remove it", field=f"{at}.x")
        return CellStatistic(kind="mean")
    if section.x is None:
        raise PlanError("is missing; name the column that y is fitted on", field=f"{at}.x")
    x = schema.number(section.x, field=f"{at}.x")
    if wanted.slope:
        return CellStatistic(kind="slope")
    at_x = read_decimal(wanted.predict)
    if at_x is None or not x.lower <= at_x <= x.upper or (at_x / x.grid).denominator != 1:
        raise PlanError(
            f"is a point of {x.name}'s grid from {show(x.lower)} to {show(x.upper)}",
            field=f"{at}.estimate.predict",
        )
    return CellStatistic(kind="predict", at=at_x)


def read_range(
    section: CellsSection, estimate: CellStatistic, schema: Schema, at: str
) -> tuple[Fraction, Fraction]:
    """What is published lies here. Without a word: within y's bounds, and slopes no steeper than corner to corner."""
    y = schema.number(section.y, field=f"{at}.y")
    low, high = y.lower, y.upper
    if estimate.kind == "slope":
        steepest = (y.upper - y.lower) / _width(section, schema, at)
        low, high = -steepest, steepest
    if section.range:
        given = [read_decimal(end) for end in section.range]
        if len(given) != 2 or None in given or not (given[0] or 0) < (given[1] or 0):
            raise PlanError("is two decimals, the lower one first", field=f"{at}.range")
        low, high = given[0] or Fraction(0), given[1] or Fraction(0)
    return low, high


def _width(section: CellsSection, schema: Schema, at: str) -> Fraction:
    x = schema.number(section.x or "", field=f"{at}.x")
    return x.upper - x.lower


def read_where(section: CellsSection, schema: Schema, at: str) -> Predicate:
    if section.where is None:
        return Everyone()
    predicate = parse(section.where, field=f"{at}.where")
    bind(predicate, schema.coded, field=f"{at}.where")
    return predicate


def read_missing(section: CellsSection, at: str) -> str:
    if section.missing not in (AVAILABLE, COMPLETE):
        raise PlanError("is 'available' or 'complete'", field=f"{at}.missing")
    return section.missing


def read_choice(text: str | None, words: tuple[str, ...], field: str) -> str:
    """The word that was chosen; the first is the default."""
    if text is not None and text not in words:
        raise PlanError(f"is one of {', '.join(map(repr, words))}", field=field)
    return text or words[0]


def read_amount(text: str, field: str) -> Fraction:
    epsilon = amount(text, field=field)
    if epsilon < LEAST_EPSILON:
        raise PlanError("is smaller than 0.000001; the answer would be noise alone", field=field)
    if epsilon > MOST_EPSILON:
        raise PlanError(f"is above {MOST_EPSILON}, which promises nothing at all", field=field)
    return epsilon


def read_budget(text: str | None, field: str) -> Fraction:
    return Fraction(0) if text is None else read_amount(text, field)


def read_delta(text: str | None, field: str) -> Fraction:
    if text is None:
        return Fraction(0)
    delta = amount(text, field=field)
    if delta > MOST_DELTA:
        raise PlanError("is above 0.001; every thousandth respondent could be laid open", field=field)
    return delta


def read_level(raw: Numeric | None, field: str) -> Fraction:
    level = DEFAULT_LEVEL if raw is None else read_decimal(raw)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=field)
    return level
