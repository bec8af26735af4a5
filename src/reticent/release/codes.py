"""A value written in a plan as the code of its column: a level by name, a number on its grid."""

from typing import Any

from reticent.decimals import read_decimal, show
from reticent.errors import PlanError
from reticent.schema import Identifier, Levels, Number, Schema
from reticent.words import nearest


def read_code(raw: Any, column: Levels | Number, *, field: str) -> int:
    """The code of `raw`, which lies in the column's declared domain or is refused."""
    return _level(raw, column, field) if isinstance(column, Levels) else _number(raw, column, field)


def repairable(name: str, schema: Schema, *, verb: str, field: str) -> Levels | Number:
    """The column `name`, if a repair may touch it; `verb` says what it would do, as in "imputed"."""
    column = schema.columns.get(name)
    if column is None:
        raise PlanError(f"no column {name!r} in the codebook{nearest(name, schema.coded)}", field=field)
    if isinstance(column, Identifier):
        raise PlanError(f"{name} identifies respondents; it cannot be {verb}", field=field)
    if column.role == "weight":
        raise PlanError(f"{name} is the base weight, a fact of the design; it cannot be {verb}", field=field)
    return schema.column(name, field=field)


def _level(raw: Any, column: Levels, field: str) -> int:
    text = str(raw) if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
    if text not in column.levels:
        raise PlanError(
            f"{text[:80]!r} is not a level of {column.name}{nearest(text, column.levels)}", field=field
        )
    return column.levels.index(text)


def _number(raw: Any, column: Number, field: str) -> int:
    value = read_decimal(raw)
    if value is None:
        raise PlanError(f"{column.name} is a number; write a plain decimal", field=field)
    if not column.lower <= value <= column.upper:
        raise PlanError(
            f"lies outside the bounds of {column.name}, {show(column.lower)} to {show(column.upper)}",
            field=field,
        )
    if (value / column.grid).denominator != 1:
        raise PlanError(f"is off the grid of {column.name}, {show(column.grid)}", field=field)
    return int(value / column.grid)
