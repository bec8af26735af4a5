"""CONFIDENTIAL: what the rows hold, for the curator who runs `check`. Nothing here is ever published.

Findings by column, patterns of missing answers, and what was answered by those who were silent elsewhere: tables over
declared cells, and moments by pattern.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.dialect import NO_NUMBER
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values
from reticent.engine.sql.clean import Clean, code, needed
from reticent.engine.sql.codes import folded_text, level_code, number_code
from reticent.engine.sql.reading import canonical_text, double_of, quantity_of, trimmed
from reticent.engine.sql.tallies import cell_of
from reticent.engine.wants import Key, Rows, Sum
from reticent.schema import Levels, Number, Schema
from reticent.schema.bind import Is
from reticent.schema.columns import LAST_WHOLE, Identifier, canonical, read_quantity

EXAMPLES = 3
UNFIT, CLAMPED = "unfit_", "clamped_"


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


def inspect(engine: CuratorEngine, schema: Schema) -> list[Finding]:
    """Missingness and misfits of every column that can be asked about."""
    everyone = Sum(rows=Rows())
    states = {
        name: [Sum(rows=Rows(where=Is(name, kind))) for kind in ("answered", "missing", "structural")]
        for name in schema.coded
        if name not in schema.computed
    }
    wants = [everyone, *(want for three in states.values() for want in three)]
    sums = engine.tally(schema, wants).statistics
    return [
        _finding(engine, column, sums[everyone], [sums[want] for want in states[name]])
        for name, column in schema.coded.items()
        if name in states
    ]


def _finding(engine: CuratorEngine, column: Levels | Number, rows: int, states: Sequence[int]) -> Finding:
    answered, missing, not_asked = states
    values = Values()
    base, names = engine.base([column.source], values)
    raw, kind = sql.column(names[column.source]), engine.types[column.source]
    unfit = _unfit(engine.dialect, column, raw, kind, values)
    flags = base.select(
        sql.alias(unfit, UNFIT), sql.alias(_clamped(engine.dialect, column, raw, kind), CLAMPED)
    )
    found = sql.select([_how_many(sql.column(name)) for name in (UNFIT, CLAMPED)], flags)
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


def _examples(engine: CuratorEngine, column: Levels | Number) -> tuple[str, ...]:
    values = Values()
    base, names = engine.base([column.source], values)
    raw, kind = sql.column(names[column.source]), engine.types[column.source]
    text = engine.dialect.text_of(raw, kind)
    query = base.select(exp.alias_(text, "cell", quoted=True)).where(
        _unfit(engine.dialect, column, raw, kind, values)
    )
    query = query.distinct().order_by(sql.column("cell")).limit(EXAMPLES)
    mark = NO_NUMBER if isinstance(column, Number) else ""  # it says what the text beside it says
    return tuple(str(cell).removeprefix(mark)[:40] for (cell,) in engine.fetch(query, values))


def _unfit(dialect: Dialect, column: Levels | Number, raw: Sql, kind: str, values: Values) -> Sql:
    """There is something, it is not a missing code, and yet it has no code."""
    code = (
        level_code(dialect, column, raw, kind, values)
        if isinstance(column, Levels)
        else number_code(dialect, column, raw, kind)
    )
    return sql.both(
        [sql.not_null(raw), sql.is_null(exp.Paren(this=code)), _told(dialect, column, raw, kind, values)]
    )


def _told(dialect: Dialect, column: Levels | Number, raw: Sql, kind: str, values: Values) -> Sql:
    """The cell is neither blank nor, as it is read, a missing code."""
    literal = isinstance(column, Levels) and column.literal
    if isinstance(column, Levels):
        raw = folded_text(dialect, column, raw, values) if kind == "text" else raw
        words = [column.meaning(word) for word in column.missing]
    else:
        words = [canonical(word) for word in column.missing]
    text = canonical_text(dialect, raw, kind, literal=literal)
    told: Sql = exp.Not(this=sql.among(text, [values.put(word) for word in ("", *words)]))
    numbers = [number for word in column.missing if (number := read_quantity(word)) is not None]
    if isinstance(column, Number) and numbers:
        same = sql.among(quantity_of(dialect, raw, kind), [values.put(number) for number in numbers])
        told = exp.and_(told, exp.Not(this=exp.Coalesce(this=same, expressions=[exp.false()])))
    if kind == "text":
        told = exp.and_(told, exp.NEQ(this=trimmed(dialect, raw.copy()), expression=exp.Literal.string("")))
    nothing = dialect.is_nan(raw.copy()) if kind == "float" else exp.false()
    return exp.and_(told, exp.Not(this=nothing))


def _clamped(dialect: Dialect, column: Levels | Number, raw: Sql, kind: str) -> Sql:
    if isinstance(column, Levels):
        return exp.false()
    value = quantity_of(dialect, raw, kind)
    low, high = (exp.Literal.number(repr(float(edge))) for edge in (abs(column.lower), abs(column.upper)))
    below = exp.LT(this=value, expression=exp.Neg(this=low) if column.lower < 0 else low)
    above = exp.GT(this=value.copy(), expression=exp.Neg(this=high) if column.upper < 0 else high)
    coded = sql.not_null(exp.Paren(this=number_code(dialect, column, raw, kind)))
    return sql.both([coded, exp.Paren(this=exp.or_(below, above))])


def coarse_identifiers(engine: CuratorEngine, schema: Schema) -> int:
    """Rows that name their respondent by a number from 2^53 on: in floating point several of these are one and the same.

    A text is not read as a number where the codebook says `text = true`.
    """
    column = schema.columns.get(schema.unit)
    if not isinstance(column, Identifier):
        return 0
    kind = engine.types[column.source]
    if kind in ("boolean", "date") or (kind == "text" and column.literal):
        return 0
    values = Values()
    base, names = engine.base([column.source], values)
    raw = sql.column(names[column.source])
    number = double_of(engine.dialect, trimmed(engine.dialect, raw) if kind == "text" else raw, kind)
    is_coarse = exp.GTE(this=sql.call("abs", number), expression=sql.number(LAST_WHOLE))
    ((found,),) = engine.fetch(base.select(_how_many(is_coarse)), values)
    return int(found)


def _how_many(condition: Sql) -> Sql:
    return exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=condition))


MOST_COLUMNS = 40
MASK = "mask_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """How often each set of columns is missing together, most frequent first. Nothing here is ever published."""

    columns: tuple[str, ...]
    counts: tuple[tuple[frozenset[str], int], ...] = field(repr=False)

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.counts)

    def share(self, *names: str) -> float:
        """The share of rows on which all of `names` are missing."""
        hit = sum(count for missing, count in self.counts if missing.issuperset(names))
        return hit / self.rows if self.rows else 0.0

    def correlation(self, one: str, other: str) -> float:
        """The correlation of two missingness flags; 0 where either never varies."""
        a, b, both = self.share(one), self.share(other), self.share(one, other)
        spread = sqrt(a * (1 - a) * b * (1 - b))
        return (both - a * b) / spread if spread else 0.0

    @property
    def together(self) -> list[tuple[str, str, float]]:
        """Pairs of columns with the correlation of their flags, strongest first; none that is zero to two decimals."""
        pairs = [(a, b) for place, a in enumerate(self.columns) for b in self.columns[place + 1 :]]
        found = [(a, b, self.correlation(a, b)) for a, b in pairs]
        return sorted((each for each in found if abs(each[2]) >= 0.005), key=lambda each: -abs(each[2]))


def patterns(engine: CuratorEngine, schema: Schema, columns: Sequence[str]) -> Patterns:
    """The patterns over `columns` (at most forty), by one pass over the rows."""
    chosen = tuple(columns)[:MOST_COLUMNS]

    def counted(clean: Clean, rows: exp.Select) -> exp.Select:
        query = sql.select([sql.alias(mask_of(clean, chosen), MASK)], rows)
        query = sql.select([sql.column(MASK), exp.Count(this=exp.Star())], query)
        return query.group_by(sql.column(MASK))

    found = sorted(read(engine, schema, chosen, counted), key=lambda row: (-row[1], row[0]))
    return Patterns(columns=chosen, counts=tuple((_names(chosen, mask), count) for mask, count in found))


def read(
    engine: CuratorEngine,
    schema: Schema,
    columns: Sequence[str],
    build: Callable[[Clean, exp.Select], exp.Select],
) -> list[tuple[Any, ...]]:
    """What a statement over the clean rows of `columns` gives, read as a tally would read them."""
    return engine.read_clean(schema, needed(schema, [Sum(rows=Rows(known=tuple(columns)))]), build)


def mask_of(clean: Clean, columns: Sequence[str]) -> Sql:
    """The pattern of a row as a number: bit i where column i is missing."""
    mask: Sql = clean.dialect.cast(sql.number(0), "BIGINT")
    for place, column in enumerate(columns):
        bit = sql.case([(clean.missing(column), sql.number(2**place))], sql.number(0))
        mask = sql.plus(mask, bit)
    return mask


def _names(columns: Sequence[str], mask: int) -> frozenset[str]:
    return frozenset(column for place, column in enumerate(columns) if mask >> place & 1)


Counted = NDArray[np.int64]
Line = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A table of those who answered `given`: lines by how many of `among` are missing (`most` or more together),
    columns by the public groups of `given`. Everything here is public."""

    given: Key
    among: tuple[str, ...]
    most: int = 1

    def shape(self, schema: Schema) -> tuple[int, int]:
        return self.most + 1, self.given.answers(schema)


def look_tables(engine: CuratorEngine, schema: Schema, looks: Sequence[Look]) -> list[Counted]:
    """The tables of `looks`, by one pass over the rows. A row is in one cell of a table, or in none."""
    columns = tuple(dict.fromkeys(name for look in looks for name in (look.given.column, *look.among)))

    def counted(clean: Clean, rows: exp.Select) -> exp.Select:
        cells = [sql.alias(_cell(clean, look), f"k{i}") for i, look in enumerate(looks)]
        keys = [sql.column(f"k{i}") for i in range(len(looks))]
        query = sql.select([*keys, exp.Count(this=exp.Star())], sql.select(cells, rows))
        sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[key.copy()]) for key in keys])
        query.set("group", exp.Group(grouping_sets=[sets]))
        return query

    tables = [np.zeros(look.shape(schema), dtype=np.int64) for look in looks]
    for *cells, count in read(engine, schema, columns, counted):
        for table, cell in zip(tables, cells, strict=True):
            if cell is not None:
                table.flat[cell] = count
    return tables


def _cell(clean: Clean, look: Look) -> Sql:
    """The number of the row's cell, NULL where `given` has no answer."""
    flags = [sql.case([(clean.missing(name), sql.number(1))], sql.number(0)) for name in look.among]
    silent = sql.call("least", reduce(sql.plus, flags), sql.number(look.most))
    group = cell_of(clean, [look.given])
    cell = sql.plus(sql.times(silent, sql.number(look.given.answers(clean.schema))), group)
    return sql.case([(sql.not_null(code(look.given.column)), cell)])


def pattern_lines(engine: CuratorEngine, schema: Schema, columns: Sequence[str]) -> list[Line]:
    """For each pattern over `columns` (bit i where column i is missing): rows, sums, and sums of products i <= j.

    Codes are counted from each column's lower bound; a missing one adds nothing.
    """
    pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]

    def summed(clean: Clean, rows: exp.Select) -> exp.Select:
        dialect, lows = clean.dialect, [schema.coded[name].low for name in columns]
        wide = [schema.coded[name].high - schema.coded[name].low for name in columns]
        each = [
            sql.minus(dialect.cast(code(name), dialect.wide_int()), sql.number(low))
            for name, low in zip(columns, lows, strict=True)
        ]
        query = sql.select(
            [sql.alias(mask_of(clean, columns), MASK), *(sql.alias(x, f"x{i}") for i, x in enumerate(each))],
            rows,
        )
        x = [sql.column(f"x{i}") for i in range(len(columns))]
        totals = [_total(dialect, value.copy(), most) for value, most in zip(x, wide, strict=True)]
        totals += [_total(dialect, sql.times(x[i].copy(), x[j].copy()), wide[i] * wide[j]) for i, j in pairs]
        query = sql.select([sql.column(MASK), exp.Count(this=exp.Star()), *totals], query)
        return query.group_by(sql.column(MASK))

    found = read(engine, schema, columns, summed)
    size = len(columns)
    return [(mask, n, tuple(map(int, rest[:size])), tuple(map(int, rest[size:]))) for mask, n, *rest in found]


def _total(dialect: Dialect, value: Sql, largest: int) -> Sql:
    return exp.Coalesce(this=dialect.total(value, largest), expressions=[sql.number(0)])
