"""Read the `[[tables]]` sections of a plan: margins that are measured together, and add up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from reticent.answer.add_up import MarginTables
from reticent.answer.parts import AnyMeasurement
from reticent.engine.wants import MOST_CELLS
from reticent.errors import REQUIRED, PlanError
from reticent.exact import LIMIT, read_decimal, show
from reticent.files import Amount, Section, fill, is_printable
from reticent.plan.budgets import Given, Product
from reticent.prepare.repair import NO_REPAIR
from reticent.privacy.claim import Claim, read_spent
from reticent.query.base import AVAILABLE, EVERYONE, Subpopulation
from reticent.query.sides import Sides
from reticent.query.written import WrittenQuery, predicate_of
from reticent.refine.residuals import Axes
from reticent.refine.whole import MOST_JOINT
from reticent.schema import Schema
from reticent.schema.predicate import Predicate, columns_compared, statuses

if TYPE_CHECKING:
    from reticent.plan.plan import Plan

MOST_MARGINS = 50
MOST_AXES = 6
"""Columns of one margin: it has a total for every set of them."""
MOST_ROWS = 2**40
LIKE = 'margins = [["sex", "age"], ["age", "region"]]'


class TablesSection(Section):
    """A `[[tables]]` section: margins that are measured together.

    **Keys**

    - `name`: its name in the release.
    - `margins`: lists of columns, one for each table.
    - `epsilon`: the privacy budget of all of them together.
    - `rho`: the same in zCDP, in place of epsilon; the noise is then Gaussian.
    - `bins`: the edges of the bins of columns that are numbers.
    - `where`: a condition on the respondents counted.
    - `weight`: a base weight, or that of `[weight]` where its factors are released; then they are of weight.
    - `level`: of the intervals for privacy noise, 0.95 where not said.
    - `add_up`: whether they are made to agree; true where not said.
    - `whole`: whether they are whole numbers, none negative; as `add_up` where not said.
    """

    name: str = Field(min_length=1, max_length=200)
    margins: list[Any] = Field(min_length=1, max_length=MOST_MARGINS)
    epsilon: Amount | None = None
    rho: Amount | None = None
    bins: dict[str, Any] = Field(default={})
    where: str | None = None
    weight: str | None = None
    level: Any = "0.95"
    add_up: bool = True
    whole: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddUpTables(Product):
    """The tables of a plan that add up, in order."""

    section: ClassVar[str] = "tables"
    noun: ClassVar[str] = "a table that adds up"
    plural: ClassVar[str] = "tables that add up"

    tables: tuple[MarginTables, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(table.name for table in self.tables)

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        return tuple(table.claim(plan.change, plan.schema) for table in self.tables)

    def costs(self, plan: "Plan") -> tuple[AnyMeasurement | Claim, ...]:
        schema, neighbours = plan.setting.schema, plan.neighbours
        return tuple(part for table in self.tables for part in table.parts(schema, neighbours))


def read_tables(raw: Sequence[Mapping[str, Any]], given: Given) -> AddUpTables:
    """All `[[tables]]` sections, in order."""
    repair = given.repairs.repair
    nearest_filled = frozenset() if repair.capped else repair.filled()
    filled = nearest_filled | {model.column for model in given.repairs.models if not model.stands_in}
    found = []
    for place, each in enumerate(raw):
        at = f"tables[{place}]"
        found.append(_read(fill(TablesSection, each, error=PlanError, at=at), given, at))
        _check_filled(found[-1], filled, at)
        check_missingness(found[-1].among.where, repair.filled() | filled, f"{at}.where")
    return AddUpTables(tables=tuple(found))


def _read(section: TablesSection, given: Given, at: str) -> MarginTables:
    schema = given.weight.told(given.schema) if given.weight else given.schema
    if section.epsilon is None and section.rho is None and given.unit == "epsilon":
        raise PlanError(REQUIRED, field=f"{at}.epsilon")
    spent, in_rho = read_spent(section.epsilon, section.rho, unit=given.unit, no_rho="", at=at)
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    where = EVERYONE if section.where is None else predicate_of(section.where, schema, f"{at}.where")
    _check_weight(section, given, schema, f"{at}.weight")
    among = Subpopulation(where=where, missing=AVAILABLE, weight=section.weight)
    sides, margins = _margins(section, schema, among, f"{at}.margins")
    whole = section.add_up if section.whole is None else section.whole
    if whole and not section.add_up:
        raise PlanError(
            "whole numbers are those of one table, so they add up; say add_up = true", field=f"{at}.whole"
        )
    made = MarginTables(
        name=section.name,
        sides=sides,
        margins=margins,
        among=among,
        epsilon=spent,
        in_rho=in_rho,
        level=_level(section.level, f"{at}.level"),
        add_up=section.add_up,
        whole=whole,
        repair=given.repairs.repair if given.repairs.repair.capped else NO_REPAIR,
    )
    _check_sizes(made, schema, f"{at}.margins")
    return made


def _check_weight(section: TablesSection, given: Given, schema: Schema, field: str) -> None:
    """Base weights, or weights whose factors are released; sums of them that could overflow are refused."""
    if section.weight is None:
        return
    if given.weight is not None and section.weight == given.weight.name and given.weight.factors is None:
        raise PlanError(
            "is made of who answered, so its bound is confidential; write factors = { epsilon = '0.2' } under [weight]",
            field=field,
        )
    column = schema.weight(section.weight, field=field)
    most = LIMIT // (MOST_ROWS * given.repairs.repair.rings)
    if column.high > most:
        coarser = column.grid
        while column.upper / coarser > most:
            coarser *= 10
        raise PlanError(
            f"has {column.high:,} steps of {show(column.grid)}, more than the {most:,} of a table; declare a coarser grid "
            f"for it, such as {show(coarser)}",
            field=field,
        )


def _in_order(margins: list[list[str]]) -> list[str]:
    """All columns, as they are first named, but so that every margin is told in its own order where one order does for all."""
    left, found = list(dict.fromkeys(name for margin in margins for name in margin)), list[str]()
    while left:
        waits = {name for margin in margins for name in [each for each in margin if each in left][1:]}
        first = next((name for name in left if name not in waits), left[0])
        found.append(first)
        left.remove(first)
    return found


def _margins(
    section: TablesSection, schema: Schema, among: Subpopulation, at: str
) -> tuple[Sides, tuple[Axes, ...]]:
    """All columns as sides, and each margin by their numbers."""
    for margin in section.margins:
        if not isinstance(margin, list) or not margin or len(set(map(str, margin))) < len(margin):
            raise PlanError(f"lists columns, each once in a margin: {LIKE}", field=at)
        if len(margin) > MOST_AXES:
            raise PlanError(f"has a margin of more than {MOST_AXES} columns", field=at)
    columns = _in_order([[str(name) for name in margin] for margin in section.margins])
    written = WrittenQuery(
        raw={"bins": section.bins}, key="margins", schema=schema, among=among, size=None, field=at
    )
    sides = written.sides(columns, like=LIKE)
    margins = [tuple(sorted(columns.index(str(name)) for name in margin)) for margin in section.margins]
    if len(set(margins)) < len(margins):
        raise PlanError("lists a margin twice", field=at)
    return sides, tuple(margins)


def _level(raw: Any, field: str) -> Fraction:
    level = read_decimal(raw)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=field)
    return level


def _check_sizes(made: MarginTables, schema: Schema, at: str) -> None:
    shape = made.shape(schema)
    for axes in made.margins:
        if prod(shape[axis] for axis in axes) > MOST_CELLS:
            raise PlanError(
                f"has a margin of more than {MOST_CELLS} cells; drop a column or use wider bins", field=at
            )
    if made.whole and prod(shape) > MOST_JOINT:
        raise PlanError(
            f"spans a joint table of {prod(shape):,} cells, more than {MOST_JOINT:,}; use wider bins, ask for the margins "
            "in several tables, or say whole = false",
            field=at,
        )


def _check_filled(made: MarginTables, filled: frozenset[str], at: str) -> None:
    """Refuse columns that nearest donors or models filled: nothing bounds the one, and copies of the other differ."""
    used = {*made.sides.columns, *columns_compared(made.among.where)}
    for name in sorted(used & filled):
        raise PlanError(
            f"{name} is filled, and no theorem bounds a table of such answers; leave it out, let capped donors fill it, or "
            "release the table from a plan without this imputation",
            field=f"{at}.margins",
        )


def check_missingness(where: Predicate, filled: frozenset[str], field: str) -> None:
    """Refuse a condition on silence in a column that is filled."""
    for status in statuses(where):
        if status.column in filled and status.kind != "structural":
            raise PlanError(
                f"{status.column} is filled, so nobody's is missing any more and {status} says nothing; ask it in a release "
                "without this imputation",
                field=field,
            )
