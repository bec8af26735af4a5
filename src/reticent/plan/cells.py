"""Small area tables in a plan: the `[[cells]]` sections, read key by key and then checked together.

What does not fit is named by its key. No row has been read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from reticent.engine.wants import MOST_PLACES, PointsByCell
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.files import Amount, Section, fill, is_printable
from reticent.plan.budgets import Given, Product
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.claim import Claim, amount
from reticent.query.base import AVAILABLE, COMPLETE, Subpopulation
from reticent.schema import Levels, Schema
from reticent.schema.bind import bind
from reticent.schema.parse import parse
from reticent.schema.predicate import Everyone, Predicate, columns_used
from reticent.sensitivity.donors import stability
from reticent.smallcells.cells import (
    CHANGES,
    DEFAULT_LEVEL,
    ENVELOPES,
    MOST_CELLS,
    CellStatistic,
    Groups,
    GroupsSection,
    Method,
    SmallCells,
    read_groups,
)
from reticent.smallcells.observed import LABEL

if TYPE_CHECKING:
    from reticent.plan.plan import Plan

LEAST_EPSILON = Fraction(1, 10**6)
MOST_EPSILON = 1000
MOST_DELTA = Fraction(1, 1000)
Numeric = str | int | Decimal


class EstimateSection(Section):
    """The `estimate` of a `[[cells]]` section: one of three.

    **Keys**

    - `predict`: the value of x at which the line is read.
    - `slope`: the slope of the line.
    - `mean`: the mean of y.
    """

    predict: Numeric | None = None
    slope: bool = False
    mean: bool = False


class CellsSection(Section):
    """A `[[cells]]` section: one estimate for each of many small cells.

    **Keys**

    - `name`: its name in the release.
    - `cell`: the column whose levels are the cells.
    - `y`: the response.
    - `x`: the predictor, for a line.
    - `estimate`: what is estimated.
    - `method`: `"smooth"`, `"pooled"`, `"theil-sen"` or `"observed"`.
    - `epsilon`: for the estimates of the whole table.
    - `count_epsilon`: for noisy counts.
    - `noise_epsilon`: for the noise level, so that readers can do inference.
    - `error_epsilon`: for standard errors that add sampling.
    - `delta`: for the pooled method.
    - `range`: between which values estimates are published.
    - `least`: cells with a noisy count below it are withheld.
    - `level`: the level of intervals.
    - `where`: a filter expression.
    - `missing`: `"available"` or `"complete"`.
    - `groups`: groups of cells.
    - `changes`: where the observed method looks for people added or removed.
    - `envelope`: which cells share an envelope.
    - `accept_observed`: go on although the method is observed, not differentially private.
    - `smoothness`: m of beta = epsilon / m.
    - `matchings`: how many random matchings Theil-Sen uses.
    """

    name: str = Field(min_length=1, max_length=200)
    cell: str
    y: str
    x: str | None = None
    estimate: EstimateSection
    method: str
    epsilon: Amount
    count_epsilon: Amount | None = None
    noise_epsilon: Amount | None = None
    error_epsilon: Amount | None = None
    delta: Amount | None = None
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
    """The statistic of every cell: a prediction, a slope or a mean; refused where it is none or several."""
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
    """The filter expression of a table, bound to the codebook; everyone without one."""
    if section.where is None:
        return Everyone()
    predicate = parse(section.where, field=f"{at}.where")
    bind(predicate, schema.coded, field=f"{at}.where")
    return predicate


def read_missing(section: CellsSection, at: str) -> str:
    """What is done about missing values: available or complete cases."""
    if section.missing not in (AVAILABLE, COMPLETE):
        raise PlanError("is 'available' or 'complete'", field=f"{at}.missing")
    return section.missing


def read_choice(text: str | None, words: tuple[str, ...], field: str) -> str:
    """The word that was chosen; the first is the default."""
    if text is not None and text not in words:
        raise PlanError(f"is one of {', '.join(map(repr, words))}", field=field)
    return text or words[0]


def read_amount(text: str, field: str) -> Fraction:
    """An epsilon between the least and the largest that means anything."""
    epsilon = amount(text, field=field)
    if epsilon < LEAST_EPSILON:
        raise PlanError("is smaller than 0.000001; the answer would be noise alone", field=field)
    if epsilon > MOST_EPSILON:
        raise PlanError(f"is above {MOST_EPSILON}, which guarantees nothing at all", field=field)
    return epsilon


def read_budget(text: str | None, field: str) -> Fraction:
    """An epsilon that may be left out; nothing is spent then."""
    return Fraction(0) if text is None else read_amount(text, field)


def read_delta(text: str | None, field: str) -> Fraction:
    """A delta that may be left out; refused where it protects nobody."""
    if text is None:
        return Fraction(0)
    delta = amount(text, field=field)
    if delta > MOST_DELTA:
        raise PlanError("is above 0.001; every thousandth respondent could be laid open", field=field)
    return delta


def read_level(raw: Numeric | None, field: str) -> Fraction:
    """A confidence level as an exact decimal."""
    level = DEFAULT_LEVEL if raw is None else read_decimal(raw)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=field)
    return level


MOST_LEVEL_NOISE = (
    2  # scale of the noise on ln S: intervals are then some hundred times as wide as they could be
)
WHY_NOT_SUPPRESS = (
    "suppression publishes exact numbers, for which no epsilon stands and no ledger can be charged; "
    "reticent.lab.papers.suppress shows what it does, from Python"
)
ONLY: Mapping[str, tuple[Method, ...]] = {
    "noise_epsilon": (Method.SMOOTH, Method.POOLED),
    "delta": (Method.POOLED,),
    "error_epsilon": (Method.OBSERVED,),
    "least": (Method.POOLED, Method.OBSERVED),
    "groups": (Method.OBSERVED,),
    "changes": (Method.OBSERVED,),
    "envelope": (Method.OBSERVED,),
    "accept_observed": (Method.OBSERVED,),
    "smoothness": (Method.SMOOTH, Method.POOLED),
    "matchings": (Method.THEIL_SEN,),
}


def method_of(section: CellsSection, at: str) -> Method:
    """The mechanism by its name; refused with the nearest one, or with the reason why there is none of that name."""
    if section.method == "suppress":
        raise PlanError(WHY_NOT_SUPPRESS, field=f"{at}.method")
    try:
        method = Method(section.method)
    except ValueError:
        listed = ", ".join(Method)
        hint = nearest(section.method[:80], [each.value for each in Method])
        raise PlanError(f"is one of {listed}{hint}", field=f"{at}.method") from None
    for key, methods in ONLY.items():
        if getattr(section, key) is not None and method not in methods:
            raise PlanError(f"does not go with method = {method.value!r}; remove it", field=f"{at}.{key}")
    if method is Method.OBSERVED and section.accept_observed is not True:
        raise PlanError(
            f"the method is {LABEL}; write accept_observed = true to go on, or use method = 'smooth'",
            field=f"{at}.accept_observed",
        )
    if method is Method.THEIL_SEN and section.estimate.mean:
        raise PlanError("a mean has no line through two points; use another method", field=f"{at}.estimate")
    return method


def check_size(want: PointsByCell, schema: Schema, at: str) -> None:
    """Refuse more cells or grid steps than an engine can sort."""
    cells = want.cells(schema)
    if cells > MOST_CELLS:
        raise PlanError(f"has more than {MOST_CELLS} cells; declare fewer", field=f"{at}.cell")
    if want.size(schema) > MOST_PLACES:
        raise PlanError("has too many grid steps for 64 bits; declare coarser grids for x and y", field=at)


def check_given(cells: SmallCells, at: str) -> None:
    """The pooled envelope is three releases and a delta, the observed method two."""
    needed = {
        Method.POOLED: ("count_epsilon", "noise_epsilon", "delta", "least"),
        Method.OBSERVED: ("count_epsilon",),
    }
    for key in needed.get(cells.method, ()):
        if not getattr(cells, key):
            raise PlanError(
                f"is missing; method = {cells.method.value!r} cannot do without it", field=f"{at}.{key}"
            )


def check_level(cells: SmallCells, at: str) -> None:
    """A noise level with so much noise of its own that it would say nothing is not sold."""
    least = cells.epsilon / (cells.m * MOST_LEVEL_NOISE)
    if cells.method is Method.SMOOTH and 0 < cells.noise_epsilon < least:
        raise PlanError(
            f"is too small to say anything of noise at epsilon {show(cells.epsilon)} and smoothness {cells.m}; "
            f"give it at least {show(least)}, or nothing",
            field=f"{at}.noise_epsilon",
        )


def check_repair(cells: SmallCells, repair: Repair, at: str) -> None:
    """Nearest donors have no bound here; the recipients of capped ones are paid for as if they were the respondent's."""
    touched = sorted(_seen(cells, repair))
    if touched and not repair.capped:
        raise PlanError(
            f"{touched[0]} is filled by the nearest donors, and nothing bounds a small cell of donated answers; "
            "use a column that no donor fills, or leave bound = 'hubs' out, so that donors are capped",
            field=at,
        )


def _seen(cells: SmallCells, repair: Repair) -> set[str]:
    """The filled columns that a table looks at."""
    used = {cells.cell, cells.y, cells.x or cells.y, *columns_used(cells.among.where)}
    return set(repair.filled()) if cells.among.missing == COMPLETE else set(repair.filled()) & used


MOST_SECTIONS = 100


def read_cells(
    raw: Sequence[Mapping[str, Any]], schema: Schema, *, repair: Repair = NO_REPAIR
) -> tuple[SmallCells, ...]:
    """All sections of a plan, in order."""
    if len(raw) > MOST_SECTIONS:
        raise PlanError(f"has more than {MOST_SECTIONS} entries; drop some", field="cells")
    found: list[SmallCells] = []
    for place, each in enumerate(raw):
        at = f"cells[{place}]"
        if "weight" in each:
            raise PlanError(
                "small cells count each respondent once: their bounds know of no weights; for weighted means in as many as "
                "10,000 domains write a statistic, query = { mean = ..., by = [...], weight = ... }",
                field=f"{at}.weight",
            )
        section = fill(CellsSection, each, error=PlanError, at=at)
        found.append(_cells(section, each, schema, repair, at))
        if found[-1].name in [before.name for before in found[:-1]]:
            raise PlanError(f"two sections are called {section.name!r}", field=f"{at}.name")
    return tuple(found)


def _cells(
    section: CellsSection, written: Mapping[str, Any], schema: Schema, repair: Repair, at: str
) -> SmallCells:
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    method = method_of(section, at)
    estimate = read_estimate(section, schema, at)
    x = None if estimate.kind == "mean" else section.x
    among = Subpopulation(where=read_where(section, schema, at), missing=read_missing(section, at))
    low, high = read_range(section, estimate, schema, at)
    cells = SmallCells(
        name=section.name,
        cell=section.cell,
        y=section.y,
        x=x,
        among=among,
        estimate=estimate,
        method=method,
        epsilon=read_amount(section.epsilon, f"{at}.epsilon"),
        count_epsilon=read_budget(section.count_epsilon, f"{at}.count_epsilon"),
        noise_epsilon=read_budget(section.noise_epsilon, f"{at}.noise_epsilon"),
        error_epsilon=read_budget(section.error_epsilon, f"{at}.error_epsilon"),
        delta=read_delta(section.delta, f"{at}.delta"),
        low=low,
        high=high,
        least=section.least or 0,
        level=read_level(section.level, f"{at}.level"),
        groups=_groups(section, schema, at),
        smoothness=section.smoothness,
        matchings=section.matchings,
        is_bounded=bool(section.range),
        changes=read_choice(section.changes, CHANGES, f"{at}.changes"),
        envelope=read_choice(section.envelope, ENVELOPES, f"{at}.envelope"),
        written=written,
    )
    check_size(cells.want(schema), schema, at)
    check_given(cells, at)
    check_level(cells, at)
    check_repair(cells, repair, at)
    return replace(cells, stability=stability(repair, _seen(cells, repair))) if repair.capped else cells


def _groups(section: CellsSection, schema: Schema, at: str) -> Groups | None:
    if section.groups is None:
        return None
    return read_groups(section.groups, schema.coded[section.cell], field=f"{at}.groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTables(Product):
    """The tables of small cells of a plan, in order."""

    section: ClassVar[str] = "cells"
    plural: ClassVar[str] = "cells"

    tables: tuple[SmallCells, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cells.name for cells in self.tables)

    @property
    def observed(self) -> Mapping[str, Fraction]:
        """An observed table promises nothing and is charged all the same: what its author gave it."""
        return {cells.name: cells.cost for cells in self.tables if cells.is_observed}

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        return tuple(cells.claim(plan.change) for cells in self.tables)


def read_cell_tables(raw: Sequence[Mapping[str, Any]], given: Given) -> CellTables:
    """All `[[cells]]` sections as a product."""
    return CellTables(tables=read_cells(raw, given.schema, repair=given.repairs.repair))
