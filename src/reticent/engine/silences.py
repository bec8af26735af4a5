"""CONFIDENTIAL: what was answered by those who were silent elsewhere: tables over declared cells, and moments by pattern."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import code
from reticent.engine.duckdb import DuckDBEngine
from reticent.engine.patterns import MASK, mask_of, read
from reticent.engine.relation import Clean
from reticent.engine.sql import Sql
from reticent.engine.statements import cell_of
from reticent.engine.wants import Key
from reticent.schema import Schema

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


def look_tables(engine: DuckDBEngine, schema: Schema, looks: Sequence[Look]) -> list[Counted]:
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


def pattern_lines(engine: DuckDBEngine, schema: Schema, columns: Sequence[str]) -> list[Line]:
    """For each pattern over `columns` (bit i where column i is missing): rows, sums, and sums of products i <= j.

    Codes are counted from each column's lower bound; a missing one adds nothing.
    """
    pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]

    def summed(clean: Clean, rows: exp.Select) -> exp.Select:
        lows = [schema.coded[name].low for name in columns]
        each = [
            sql.minus(_wide(code(name)), sql.number(low)) for name, low in zip(columns, lows, strict=True)
        ]
        query = sql.select(
            [sql.alias(mask_of(clean, columns), MASK), *(sql.alias(x, f"x{i}") for i, x in enumerate(each))],
            rows,
        )
        x = [sql.column(f"x{i}") for i in range(len(columns))]
        totals = [_total(value.copy()) for value in x]
        totals += [_total(sql.times(x[i].copy(), x[j].copy())) for i, j in pairs]
        query = sql.select([sql.column(MASK), exp.Count(this=exp.Star()), *totals], query)
        return query.group_by(sql.column(MASK))

    found = read(engine, schema, columns, summed)
    size = len(columns)
    return [(mask, n, tuple(map(int, rest[:size])), tuple(map(int, rest[size:]))) for mask, n, *rest in found]


def _wide(value: Sql) -> Sql:
    return sql.cast(value, "HUGEINT")


def _total(value: Sql) -> Sql:
    return exp.Coalesce(this=exp.Sum(this=value), expressions=[sql.number(0)])
