"""CONFIDENTIAL: what the rows hold, for the curator who runs `check`. Nothing here is ever published."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.codes import level_code, number_code
from reticent.engine.duckdb import DuckDBEngine
from reticent.engine.reading import canonical_text, quantity_of, trimmed
from reticent.engine.sql import Sql, Values
from reticent.engine.wants import Rows, Sum
from reticent.predicate.bind import Is
from reticent.schema import Levels, Number, Schema
from reticent.schema.reading import canonical, read_quantity

EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One column as it is. `unfit` cells will count as missing, `clamped` ones as the nearest bound."""

    column: str
    rows: int = field(repr=False)
    answered: int = field(repr=False)
    missing: int = field(repr=False)
    not_asked: int = field(repr=False)
    clamped: int = field(repr=False)
    unfit: int = field(repr=False)
    examples: tuple[str, ...] = field(repr=False)


def inspect(engine: DuckDBEngine, schema: Schema) -> list[Finding]:
    """Missingness and misfits of every column that can be asked about."""
    everyone = Sum(rows=Rows())
    states = {
        name: [Sum(rows=Rows(where=Is(name, kind))) for kind in ("answered", "missing", "structural")]
        for name in schema.coded
    }
    wants = [everyone, *(want for three in states.values() for want in three)]
    sums = engine.tally(schema, wants).statistics
    return [
        _finding(engine, column, sums[everyone], [sums[want] for want in states[name]])
        for name, column in schema.coded.items()
    ]


def _finding(engine: DuckDBEngine, column: Levels | Number, rows: int, states: Sequence[int]) -> Finding:
    answered, missing, not_asked = states
    values = Values()
    base, names = engine.base([column.source], values)
    raw, kind = sql.column(names[column.source]), engine.types[column.source]
    unfit = _unfit(column, raw, kind, values)
    found = base.select(_how_many(unfit), _how_many(_clamped(column, raw, kind)))
    ((misfits, clamped),) = engine.fetch(found, values)
    examples = _examples(engine, column) if misfits else ()
    return Finding(
        column=column.name,
        rows=rows,
        answered=answered,
        missing=missing,
        not_asked=not_asked,
        clamped=clamped,
        unfit=misfits,
        examples=examples,
    )


def _examples(engine: DuckDBEngine, column: Levels | Number) -> tuple[str, ...]:
    values = Values()
    base, names = engine.base([column.source], values)
    raw, kind = sql.column(names[column.source]), engine.types[column.source]
    text = sql.try_cast(raw, "VARCHAR")
    query = base.select(exp.alias_(text, "cell", quoted=True)).where(_unfit(column, raw, kind, values))
    query = query.distinct().order_by(sql.column("cell")).limit(EXAMPLES)
    return tuple(str(cell)[:40] for (cell,) in engine.fetch(query, values))


def _unfit(column: Levels | Number, raw: Sql, kind: str, values: Values) -> Sql:
    """There is something, it is not a missing code, and yet it has no code."""
    code = (
        level_code(column, raw, kind, values)
        if isinstance(column, Levels)
        else number_code(column, raw, kind)
    )
    return sql.both([sql.not_null(raw), sql.is_null(exp.Paren(this=code)), _told(column, raw, kind, values)])


def _told(column: Levels | Number, raw: Sql, kind: str, values: Values) -> Sql:
    """The cell is neither blank nor, as it is read, a missing code."""
    literal = isinstance(column, Levels) and column.literal
    words = column.missing if literal else [canonical(word) for word in column.missing]
    text = canonical_text(raw, kind, literal=literal)
    told: Sql = exp.Not(this=sql.among(text, [values.put(word) for word in ("", *words)]))
    numbers = [number for word in column.missing if (number := read_quantity(word)) is not None]
    if isinstance(column, Number) and numbers:
        same = sql.among(quantity_of(raw, kind), [values.put(number) for number in numbers])
        told = exp.and_(told, exp.Not(this=exp.Coalesce(this=same, expressions=[exp.false()])))
    if kind == "text":
        told = exp.and_(told, exp.NEQ(this=trimmed(raw.copy()), expression=exp.Literal.string("")))
    nothing = sql.call("isnan", raw.copy()) if kind == "float" else exp.false()
    return exp.and_(told, exp.Not(this=nothing))


def _clamped(column: Levels | Number, raw: Sql, kind: str) -> Sql:
    if isinstance(column, Levels):
        return exp.false()
    value = quantity_of(raw, kind)
    low, high = (exp.Literal.number(repr(float(edge))) for edge in (abs(column.lower), abs(column.upper)))
    below = exp.LT(this=value, expression=exp.Neg(this=low) if column.lower < 0 else low)
    above = exp.GT(this=value.copy(), expression=exp.Neg(this=high) if column.upper < 0 else high)
    coded = sql.not_null(exp.Paren(this=number_code(column, raw, kind)))
    return sql.both([coded, exp.Paren(this=exp.or_(below, above))])


def _how_many(condition: Sql) -> Sql:
    return exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=condition))
