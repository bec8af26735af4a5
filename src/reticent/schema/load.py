"""Read a codebook from TOML. Messages name the field and the way out; nothing here has seen a row."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import Field

from reticent.decimals import read_decimal
from reticent.errors import PlanError, SchemaError
from reticent.former import check_format
from reticent.predicate.parse import parse
from reticent.predicate.tree import Predicate
from reticent.predicate.words import is_column_name
from reticent.schema.codebook import Schema
from reticent.schema.columns import Column, Identifier, Levels, Number
from reticent.tomlfile import Section, fill, read_toml
from reticent.words import is_printable, nearest

FORMAT = 2
KINDS = ("categorical", "ordinal", "integer", "decimal", "identifier")
Numeric = str | int | Decimal


class SurveyPart(Section):
    name: str = Field(min_length=1, max_length=100)
    title: str = ""
    unit: str = ""
    at_most: int = 1
    sample_size: int | None = None
    unfinished: bool = False


class ColumnPart(Section):
    kind: str
    label: str = ""
    unit: str = ""
    source: str = ""
    role: str = ""
    levels: list[str | int] = Field(default=[])
    positions: list[Numeric] = Field(default=[])
    bounds: list[Numeric] = Field(default=[])
    grid: Numeric = 1
    missing_codes: list[Numeric] = Field(default=[])
    universe: str = ""
    text: bool = False


class CodebookPart(Section):
    format: int = FORMAT
    survey: SurveyPart
    columns: dict[str, dict[str, Any]]


def read_schema(path: Path) -> Schema:
    """The codebook in the file at `path`."""
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
    if part.role not in ("", "weight", "stratum"):
        raise SchemaError("is 'weight' or 'stratum', where given", field=f"{at}.role")
    for text in (part.label, part.unit, part.source, *map(str, part.levels), *map(str, part.missing_codes)):
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
    return Levels(**common, levels=levels, positions=positions, ordered=ordered, literal=part.text)


def _number(part: ColumnPart, common: dict[str, Any], at: str) -> Number:
    _refuse(part, at, "levels", "positions", "text")
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
