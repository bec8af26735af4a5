"""The two statements a plan costs: one for all its sums, one for all its tables."""

from collections.abc import Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.relation import Clean, code
from reticent.engine.sql import Sql
from reticent.engine.wants import Key, Sum, Table, has_universe
from reticent.schema import Schema

LARGEST_PRODUCT = 2**63 - 1  # past this a product of codes is formed in 128 bits


def sums(clean: Clean, rows: exp.Select, wants: Sequence[Sum]) -> exp.Select:
    """One row: the value of every sum, in order."""
    return sql.select([_sum(clean, want) for want in wants], rows)


def _sum(clean: Clean, want: Sum) -> Sql:
    chosen = exp.Where(this=clean.chosen(want.rows))
    factors = [want.weight] * (want.weight is not None) + [want.value] * want.power
    if not factors:
        return exp.Filter(this=exp.Count(this=exp.Star()), expression=chosen)
    product = _product(clean.schema, [factor for factor in factors if factor is not None])
    total = exp.Filter(this=exp.Sum(this=product), expression=chosen)
    return exp.Coalesce(this=total, expressions=[sql.number(0)])


def _product(schema: Schema, factors: Sequence[str]) -> Sql:
    largest = 1
    for factor in factors:
        largest *= max(abs(schema.coded[factor].low), abs(schema.coded[factor].high))
    width = "BIGINT" if largest <= LARGEST_PRODUCT else "HUGEINT"
    first, *rest = (sql.cast(code(factor), width) if len(factors) > 1 else code(factor) for factor in factors)
    for factor in rest:
        first = sql.times(first, factor)
    return first


def tables(clean: Clean, rows: exp.Select, wants: Sequence[Table]) -> exp.Select:
    """One row for every non-empty cell of every table: which table, which cell, count, weight."""
    cells = [exp.alias_(_cell(clean, want), f"k{i}", quoted=True) for i, want in enumerate(wants)]
    weights = [
        exp.alias_(code(w.weight) if w.weight else sql.number(1), f"w{i}", quoted=True)
        for i, w in enumerate(wants)
    ]
    inner = sql.select([*cells, *weights], rows)
    keys = [sql.column(f"k{i}") for i in range(len(wants))]
    totals = [exp.Sum(this=sql.column(f"w{i}")) for i in range(len(wants))]
    query = sql.select([*keys, *totals], inner)
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[key.copy()]) for key in keys])
    query.set("group", exp.Group(grouping_sets=[sets]))
    return query


def _cell(clean: Clean, want: Table) -> Sql:
    """The number of the row's cell in the table, NULL where the row does not count."""
    index = sql.number(0)
    for key in want.keys:
        index = sql.plus(sql.times(index, sql.number(key.size(clean.schema))), _place(clean, key))
    return sql.case([(clean.chosen(want.rows), sql.cast(index, "BIGINT"))])


def _place(clean: Clean, key: Key) -> Sql:
    column = clean.schema.coded[key.column]
    value, last = code(key.column), key.answers(clean.schema)
    if key.step is not None:
        twice = sql.times(sql.minus(sql.cast(value, "BIGINT"), sql.number(column.low)), sql.number(2))
        place = sql.whole_part(sql.plus(twice, sql.number(key.step)), 2 * key.step)
    elif key.starts:
        later = list(enumerate(key.starts))[:0:-1]
        branches = [(exp.GTE(this=value.copy(), expression=sql.number(s)), sql.number(i)) for i, s in later]
        place = sql.case(branches, sql.number(0))
    else:
        place = value
    branches = [(sql.not_null(code(key.column)), place)]
    if not key.silent:
        return sql.case(branches)
    if has_universe(clean.schema, key.column):
        branches.append((clean.structural(key.column), sql.number(last + 1)))
    return sql.case(branches, sql.number(last))
