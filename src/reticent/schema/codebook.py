"""A codebook: the columns, who is protected, and whether the sample size is public; and how it is read from TOML.

Messages name the field and the way out; nothing here has seen a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field

from reticent.errors import PlanError, SchemaError, nearest
from reticent.exact import read_decimal
from reticent.files import Section, fill, is_printable, read_toml
from reticent.former import check_format
from reticent.schema.bind import Bound, bind
from reticent.schema.columns import Column, Identifier, Levels, Number
from reticent.schema.parse import parse
from reticent.schema.predicate import Predicate, columns_used, is_column_name

ROW = "row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A codebook: public facts only. `unit` is "row" or the identifier of the protected respondent.

    **Parameters**

    - `name`: the public name of the data set, by which a ledger knows it.
    - `columns`: the columns by name.
    - `unit`: who is protected: `"row"`, or the identifier of the respondent.
    - `at_most`: how many rows one respondent may own.
    - `sample_size`: the number of respondents, where it is public.
    - `title`: for readers.
    - `finished`: false for a draft that nobody has read through.
    """

    name: str
    columns: Mapping[str, Column]
    unit: str
    at_most: int = 1
    sample_size: int | None = None
    title: str = ""
    finished: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        self._check_unit()
        self._check_sources()
        self._check_roles()
        for column in self.columns.values():
            if column.universe is not None:
                bind(column.universe, self.coded, field=f"columns.{column.name}.universe")
        _ = self.in_universe_order

    @property
    def coded(self) -> Mapping[str, Levels | Number]:
        """The columns that can be asked about: all but identifiers."""
        return {n: c for n, c in self.columns.items() if isinstance(c, Levels | Number)}

    @property
    def in_universe_order(self) -> tuple[str, ...]:
        """Columns sorted so that each comes after those its universe speaks of."""
        needs = {
            name: columns_used(column.universe) if column.universe is not None else frozenset()
            for name, column in self.coded.items()
        }
        try:
            return tuple(TopologicalSorter(needs).static_order())
        except CycleError:
            raise SchemaError("universes refer to each other in a circle", field="columns") from None

    def universe(self, name: str) -> Bound | None:
        """The bound universe of a column, or None where everybody is asked."""
        predicate = self.columns[name].universe
        return None if predicate is None else bind(predicate, self.coded, field=f"columns.{name}.universe")

    def number(self, name: str, *, field: str) -> Number:
        """The numeric column `name`, which is not the base weight; `field` is where it was asked for."""
        column = self.column(name, field=field)
        if not isinstance(column, Number):
            raise PlanError(f"{name} is not a number; ask for a table or a proportion instead", field=field)
        if column.role == "weight":
            raise PlanError(f"{name} is the base weight; write weight = {name!r} instead", field=field)
        return column

    def weight(self, name: str, *, field: str) -> Number:
        """The base weight `name`."""
        column = self.column(name, field=field)
        if not isinstance(column, Number) or column.role != "weight":
            raise PlanError(f"{name} is not declared with role = 'weight' in the codebook", field=field)
        return column

    def column(self, name: str, *, field: str) -> Levels | Number:
        """The column `name`, if it may be asked about."""
        if name in self.coded:
            return self.coded[name]
        if name in self.columns:
            raise PlanError(f"{name} identifies respondents; it cannot be asked about", field=field)
        raise PlanError(f"no column {name!r} in the codebook{nearest(name, self.coded)}", field=field)

    def _check_unit(self) -> None:
        if self.unit != ROW and not isinstance(self.columns.get(self.unit), Identifier):
            raise SchemaError(
                "is either 'row' (one record, one respondent) or the name of an identifier column",
                field="survey.unit",
            )
        if self.unit == ROW and self.at_most != 1:
            raise SchemaError("goes with an identifier as unit", field="survey.at_most")
        if not 1 <= self.at_most <= 10_000:
            raise SchemaError("is a whole number from 1 to 10000", field="survey.at_most")
        if self.sample_size is not None and not 1 <= self.sample_size <= 2**40:
            raise SchemaError("is a whole number from 1 to 2^40", field="survey.sample_size")
        identifiers = [name for name, column in self.columns.items() if isinstance(column, Identifier)]
        if self.unit == ROW and identifiers:
            raise SchemaError(
                f"is 'row', but {identifiers[0]} identifies respondents who may own several records; "
                f"write unit = {identifiers[0]!r} and at_most, or drop the column",
                field="survey.unit",
            )

    def _check_sources(self) -> None:
        if not self.coded:
            raise SchemaError("has no column to ask about", field="columns")
        sources = [column.source for column in self.columns.values()]
        twice = next((s for s in sources if sources.count(s) > 1), None)
        if twice is not None:
            raise SchemaError(f"two columns have the source {twice!r}", field="columns")

    def _check_roles(self) -> None:
        for name, column in self.columns.items():
            if column.role == "weight" and (not isinstance(column, Number) or column.lower < 0):
                raise SchemaError("is a weight: a number with bounds from 0 up", field=f"columns.{name}")
            if column.role in ("stratum", "psu") and not isinstance(column, Levels):
                raise SchemaError(
                    f"is a {column.role}: categorical or ordinal, with every one that was drawn among its levels",
                    field=f"columns.{name}",
                )
            if isinstance(column, Levels) and (column.strata or column.drawn):
                self._check_psu(column)

    def _check_psu(self, column: Levels) -> None:
        """Strata of units, or units drawn in strata: of a primary sampling unit, and one of the two."""
        if column.role != "psu" or (column.strata and column.drawn):
            raise SchemaError(
                "gives strata or drawn, one of them, with role = 'psu'", field=f"columns.{column.name}"
            )


FORMAT = 2
KINDS = ("categorical", "ordinal", "integer", "decimal", "identifier")
Numeric = str | int | Decimal


class SurveyPart(Section):
    """The `[survey]` section of a codebook.

    **Keys**

    - `name`: the public name of the data set.
    - `title`: for readers.
    - `unit`: who is protected: `"row"`, or an identifier.
    - `at_most`: how many rows one respondent may own.
    - `sample_size`: the number of respondents, where it is public.
    - `unfinished`: true in a draft.
    """

    name: str = Field(min_length=1, max_length=100)
    title: str = ""
    unit: str = ""
    at_most: int = 1
    sample_size: int | None = None
    unfinished: bool = False


class ColumnPart(Section):
    """One column of a codebook.

    **Keys**

    - `kind`: `categorical`, `ordinal`, `integer`, `decimal` or `identifier`.
    - `label`: for readers.
    - `unit`: of measurement.
    - `source`: the header in the file, the column's name where not said.
    - `role`: what it is to the design: `"weight"`, `"stratum"` or `"psu"`.
    - `strata`: for a psu, the stratum of each level; without it units are numbered within strata.
    - `drawn`: for a psu numbered within strata, how many were drawn in each stratum, where not all levels.
    - `levels`: the answers, in order for an ordinal column.
    - `positions`: places of ordinal levels on a scale.
    - `bounds`: lowest and highest; what lies outside is clamped.
    - `grid`: the step that values are rounded to.
    - `missing_codes`: numbers that stand for no answer.
    - `universe`: a filter expression: who was asked.
    - `text`: read levels or identifiers letter by letter.
    """

    kind: str
    label: str = ""
    unit: str = ""
    source: str = ""
    role: str = ""
    strata: list[str | int] = Field(default=[])
    drawn: list[int] = Field(default=[])
    levels: list[str | int] = Field(default=[])
    positions: list[Numeric] = Field(default=[])
    bounds: list[Numeric] = Field(default=[])
    grid: Numeric = 1
    missing_codes: list[Numeric] = Field(default=[])
    universe: str = ""
    text: bool = False


class CodebookPart(Section):
    """All of a codebook file.

    **Keys**

    - `format`: the number of the format, 2.
    - `survey`: the survey.
    - `columns`: the columns by name.
    """

    format: int = FORMAT
    survey: SurveyPart
    columns: dict[str, dict[str, Any]]


def read_schema(path: Path) -> Schema:
    """The codebook in the file at `path`.

    **Parameters**

    - `path`: a TOML file.
    """
    return schema_from(read_toml(path, error=SchemaError))


def schema_from(data: dict[str, Any]) -> Schema:
    """A codebook from the dictionary that its TOML stands for."""
    check_format(data, FORMAT, "codebooks", SchemaError)
    book = fill(CodebookPart, data, error=SchemaError, at="")
    _check_text(book.survey.name, "survey.name")
    _check_text(book.survey.title, "survey.title")
    if not book.survey.unit:
        raise SchemaError("say who is protected: 'row', or the identifier column", field="survey.unit")
    columns = {name: _column(name, raw) for name, raw in book.columns.items()}
    return Schema(
        name=book.survey.name,
        title=book.survey.title,
        columns=columns,
        unit=book.survey.unit,
        at_most=book.survey.at_most,
        sample_size=book.survey.sample_size,
        finished=not book.survey.unfinished,
    )


def _column(name: str, raw: dict[str, Any]) -> Column:
    at = f"columns.{name}"
    if not is_column_name(name):
        rule = "a letter or _, then at most 62 letters, digits or _, and not a reserved word"
        raise SchemaError(
            f"{name[:80]!r} is not a name ({rule}); put the header into 'source'", field="columns"
        )
    part = fill(ColumnPart, raw, error=SchemaError, at=at)
    if part.kind not in KINDS:
        raise SchemaError(f"is one of {', '.join(KINDS)}{nearest(part.kind, KINDS)}", field=f"{at}.kind")
    if part.role not in ("", "weight", "stratum", "psu"):
        raise SchemaError("is 'weight', 'stratum' or 'psu', where given", field=f"{at}.role")
    texts = [*map(str, part.levels), *map(str, part.strata), *map(str, part.missing_codes)]
    for text in (part.label, part.unit, part.source, *texts):
        _check_text(text, at)
    common = {
        "name": name,
        "source": part.source or name,
        "label": part.label,
        "unit": part.unit,
        "role": part.role,
        "missing": tuple(str(code) for code in part.missing_codes),
        "universe": _universe(part.universe, at),
    }
    if part.kind == "identifier":
        return Identifier(**common, literal=part.text)  # type: ignore[arg-type]
    return _levels(part, common, at) if part.kind in ("categorical", "ordinal") else _number(part, common, at)


def _levels(part: ColumnPart, common: dict[str, Any], at: str) -> Levels:
    _refuse(part, at, "bounds", "grid")
    if part.kind == "categorical":
        _refuse(part, at, "positions")
    positions = tuple(_exact(value, f"{at}.positions") for value in part.positions)
    levels = tuple(str(level) for level in part.levels)
    ordered = part.kind == "ordinal"
    return Levels(
        **common,
        levels=levels,
        positions=positions,
        ordered=ordered,
        literal=part.text,
        strata=tuple(str(stratum) for stratum in part.strata),
        drawn=tuple(part.drawn),
    )


def _number(part: ColumnPart, common: dict[str, Any], at: str) -> Number:
    _refuse(part, at, "levels", "positions", "text", "strata", "drawn")
    if len(part.bounds) != 2:
        raise SchemaError("give the lowest and the highest value: bounds = [0, 99]", field=f"{at}.bounds")
    lower, upper = (_exact(value, f"{at}.bounds") for value in part.bounds)
    if part.kind == "decimal" and "grid" not in part.model_fields_set:
        raise SchemaError('a decimal column needs its grid, such as grid = "0.01"', field=f"{at}.grid")
    grid = _exact(part.grid, f"{at}.grid")
    if part.kind == "integer" and grid.denominator != 1:
        raise SchemaError("an integer column has a whole grid; declare it decimal", field=f"{at}.grid")
    return Number(**common, lower=lower, upper=upper, grid=grid, whole=part.kind == "integer")


def _refuse(part: ColumnPart, at: str, *keys: str) -> None:
    for key in keys:
        if key in part.model_fields_set:
            raise SchemaError(f"does not go with kind {part.kind!r}; remove it", field=f"{at}.{key}")


def _universe(text: str, at: str) -> Predicate | None:
    if not text:
        return None
    try:
        return parse(text, field=f"{at}.universe")
    except PlanError as problem:
        raise SchemaError(str(problem.args[0]), field=problem.field) from None


def _exact(value: Numeric, field: str) -> Fraction:
    exact = read_decimal(value)
    if exact is None:
        raise SchemaError("is a plain decimal such as 10 or '0.01'", field=field)
    return exact


def _check_text(text: str, field: str) -> None:
    if not is_printable(text) or len(text) > 300:
        raise SchemaError("holds a control character, or is longer than 300 characters", field=field)
