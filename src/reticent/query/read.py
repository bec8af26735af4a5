"""Read the `query` of a statistic into a query value, naming what does not fit."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from reticent.engine.wants import MOST_CELLS
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.query.kinds import (
    AVAILABLE,
    COMPLETE,
    Correlation,
    Count,
    CrossTabulation,
    Derived,
    Mean,
    Proportion,
    Quantile,
    Query,
    Subpopulation,
    Total,
    Variance,
)
from reticent.schema import Number, Schema
from reticent.schema.bind import bind
from reticent.schema.parse import parse
from reticent.schema.predicate import Everyone, Predicate

COMMON = {"where", "weight"}
ALLOWED = {
    "count": COMMON,
    "total": COMMON,
    "proportion": COMMON,
    "mean": COMMON | {"centre"},
    "variance": COMMON | {"centre"},
    "correlation": COMMON | {"centres"},
    "median": COMMON | {"step"},
    "quantile": COMMON | {"step", "at"},
    "table": COMMON | {"bins"},
    "difference": set(),
    "ratio": set(),
}


def read_query(
    raw: Mapping[str, Any], schema: Schema, *, missing: str, size: int | None, field: str
) -> Query:
    """The query that `raw` writes down."""
    verbs = [key for key in raw if key in ALLOWED]
    if len(verbs) != 1:
        listed = ", ".join(ALLOWED)
        raise PlanError(f"holds exactly one of {listed}{_hint(raw)}", field=field)
    verb = verbs[0]
    for key in raw:
        if key != verb and key not in ALLOWED[verb]:
            raise PlanError(f"{key!r} does not go with {verb}{nearest(key, ALLOWED[verb])}", field=field)
    if size is not None and verb not in ("mean", "variance", "correlation", "proportion"):
        raise PlanError(f"a public size does not go with {verb}", field=field.replace("query", "size"))
    build = _BUILD[verb]
    return build(raw, schema, _among(raw, schema, missing, field), size, f"{field}.{verb}")


def _hint(raw: Mapping[str, Any]) -> str:
    return next((h for key in raw if key not in COMMON and (h := nearest(key, ALLOWED))), "")


def _among(raw: Mapping[str, Any], schema: Schema, missing: str, field: str) -> Subpopulation:
    if missing not in (AVAILABLE, COMPLETE):
        raise PlanError("is 'available' or 'complete'", field=field.replace("query", "missing"))
    where: Predicate = Everyone()
    if "where" in raw:
        where = _predicate(raw["where"], schema, f"{field}.where")
    weight = raw.get("weight")
    if weight is not None:
        schema.weight(_text(weight, f"{field}.weight"), field=f"{field}.weight")
    return Subpopulation(where=where, weight=weight, missing=missing)


def _predicate(raw: Any, schema: Schema, field: str) -> Predicate:
    predicate = parse(_text(raw, field), field=field)
    bind(predicate, schema.coded, field=field)
    return predicate


def _text(raw: Any, field: str) -> str:
    if not isinstance(raw, str):
        raise PlanError("is text in quotes", field=field)
    return raw


def _count(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    if raw["count"] != "*":
        raise PlanError('counts respondents: write count = "*" and put the condition into where', field=field)
    return Count(among=among)


def _total(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    return Total(column=_number(raw["total"], schema, field).name, among=among)


def _mean(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    column = _number(raw["mean"], schema, field)
    return Mean(column=column.name, among=among, centre=_centre(raw, column, field), size=size)


def _variance(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    column = _number(raw["variance"], schema, field)
    return Variance(column=column.name, among=among, centre=_centre(raw, column, field), size=size)


def _correlation(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    named = raw["correlation"]
    if not isinstance(named, list) or len(named) != 2 or named[0] == named[1]:
        raise PlanError('names two columns: correlation = ["income", "age"]', field=field)
    y, z = (_number(name, schema, field) for name in named)
    centres = raw.get("centres", [None, None])
    if not isinstance(centres, list) or len(centres) != 2:
        raise PlanError("gives one centre for each column", field=f"{field}.centres")
    near, far = (
        None if text is None else _centre({"centre": text}, column, field)
        for text, column in zip(centres, (y, z), strict=True)
    )
    return Correlation(columns=(y.name, z.name), among=among, centres=(near, far), size=size)


def _proportion(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    return Proportion(of=_predicate(raw["proportion"], schema, field), among=among, size=size)


def _median(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    column = _number(raw["median"], schema, field)
    return Quantile(column=column.name, at=Fraction(1, 2), step=_step(raw, column, field), among=among)


def _quantile(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    column = _number(raw["quantile"], schema, field)
    at = read_decimal(raw.get("at"))
    if at is None or not 0 < at < 1:
        raise PlanError('needs at = "0.25", a decimal strictly between 0 and 1', field=field)
    return Quantile(column=column.name, at=at, step=_step(raw, column, field), among=among)


def _table(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    columns = raw["table"]
    if not isinstance(columns, list) or not columns or len(set(map(str, columns))) < len(columns):
        raise PlanError('lists columns, each once: table = ["sex", "region"]', field=field)
    found = {str(name): schema.column(str(name), field=field) for name in columns}
    bins = raw.get("bins", {})
    if not isinstance(bins, Mapping):
        raise PlanError("is a table: bins = { age = [0, 18, 65, 99] }", field=f"{field}.bins")
    for name in bins:
        if not isinstance(found.get(name), Number):
            raise PlanError(f"{name} is not a number of this table", field=f"{field}.bins")
    edges = tuple((n, _edges(bins.get(n), c, field)) for n, c in found.items() if isinstance(c, Number))
    query = CrossTabulation(columns=tuple(found), among=among, bins=edges)
    if query.table(schema).size(schema) > MOST_CELLS:
        raise PlanError(f"has more than {MOST_CELLS} cells; drop a column or use wider bins", field=field)
    return query


def _derived(
    raw: Mapping[str, Any], schema: Schema, among: Subpopulation, size: int | None, field: str
) -> Query:
    verb = "difference" if "difference" in raw else "ratio"
    names = raw[verb]
    if not isinstance(names, list) or len(names) != 2 or not all(isinstance(n, str) for n in names):
        raise PlanError("names two statistics of this plan", field=field)
    return Derived(kind=verb, of=(names[0], names[1]))


def _number(raw: Any, schema: Schema, field: str) -> Number:
    return schema.number(_text(raw, field), field=field)


def _centre(raw: Mapping[str, Any], column: Number, field: str) -> Fraction | None:
    if "centre" not in raw:
        return None
    centre = read_decimal(raw["centre"])
    if centre is None or not column.lower <= centre <= column.upper:
        raise PlanError("is a decimal within the column's bounds", field=f"{field}.centre")
    if (2 * centre / column.grid).denominator != 1:
        raise PlanError(f"is a multiple of half the grid, {show(column.grid / 2)}", field=f"{field}.centre")
    return centre


def _step(raw: Mapping[str, Any], column: Number, field: str) -> Fraction:
    step = read_decimal(raw.get("step"))
    if step is None or step <= 0 or (step / column.grid).denominator != 1:
        raise PlanError(
            f'needs step = "...", a multiple of the grid {show(column.grid)}: candidates stand that far apart',
            field=field,
        )
    if (column.upper - column.lower) / step > 100_000:
        raise PlanError("has more than 100000 candidates; use a larger step", field=field)
    return step


def _edges(raw: Any, column: Number, field: str) -> tuple[Fraction, ...]:
    at = f"{field}.bins.{column.name}"
    if raw is None:
        raise PlanError(
            f"{column.name} is a number; say bins = {{ {column.name} = [0, 18, 65, 99] }}", field=at
        )
    if not isinstance(raw, list) or not 2 <= len(raw) <= 10_000:
        raise PlanError("lists at least two edges", field=at)
    edges = [read_decimal(edge) for edge in raw]
    if any(e is None or (e / column.grid).denominator != 1 for e in edges):
        raise PlanError(f"has edges on the grid {show(column.grid)}", field=at)
    exact = tuple(e for e in edges if e is not None)
    if any(b <= a for a, b in pairwise(exact)):
        raise PlanError("has increasing edges", field=at)
    if exact[0] != column.lower or exact[-1] < column.upper or exact[-2] > column.upper:
        raise PlanError(
            f"runs from {show(column.lower)} to at least {show(column.upper)}, the column's bounds", field=at
        )
    return exact


_BUILD: dict[str, Callable[[Mapping[str, Any], Schema, Subpopulation, int | None, str], Query]] = {
    "count": _count,
    "total": _total,
    "mean": _mean,
    "variance": _variance,
    "correlation": _correlation,
    "proportion": _proportion,
    "median": _median,
    "quantile": _quantile,
    "table": _table,
    "difference": _derived,
    "ratio": _derived,
}
