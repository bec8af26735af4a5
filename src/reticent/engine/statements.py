"""The two statements a plan costs: one for all its sums, one for all its tables."""

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView, code
from reticent.engine.sql import Sql
from reticent.engine.wants import ALWAYS, Key, Rows, Sum, Table, has_universe
from reticent.schema import Schema

LARGEST_PRODUCT = 2**63 - 1  # past this a product of codes is formed in 128 bits


def sums(clean: RowView, rows: exp.Select, wants: Sequence[Sum]) -> exp.Select:
    """One row: the value of every sum, in order.

    Where all want the same columns answered and known, rows that lack them are left out first, once for all.
    """
    alike = {Rows(known=want.rows.known, answered=want.rows.answered) for want in wants}
    if len(alike) > 1:
        conditions = [clean.chosen(want.rows, summed=_factors(want)) for want in wants]
        return sql.select(list(map(partial(_sum, clean), wants, conditions)), rows)
    left = [None if want.rows.where == ALWAYS else clean.condition(want.rows.where) for want in wants]
    return sql.select(list(map(partial(_sum, clean), wants, left)), rows, clean.chosen(alike.pop()))


def _factors(want: Sum) -> list[str]:
    both = [want.weight, want.other, *[want.value] * want.power]
    return [factor for factor in both if factor is not None]


def _sum(clean: RowView, want: Sum, chosen: Sql | None) -> Sql:
    factors = _factors(want)
    total: Sql = exp.Sum(this=_product(clean.schema, factors)) if factors else exp.Count(this=exp.Star())
    if chosen is not None:
        total = exp.Filter(this=total, expression=exp.Where(this=chosen))
    return exp.Coalesce(this=total, expressions=[sql.number(0)]) if factors else total


def _product(schema: Schema, factors: Sequence[str]) -> Sql:
    largest = 1
    for factor in factors:
        largest *= max(abs(schema.coded[factor].low), abs(schema.coded[factor].high))
    width = "BIGINT" if largest <= LARGEST_PRODUCT else "HUGEINT"
    product, *rest = (sql.cast(code(f), width) if len(factors) > 1 else code(f) for f in factors)
    for next_factor in rest:
        product = sql.times(product, next_factor)
    return product


def tables(clean: RowView, rows: exp.Select, wants: Sequence[Table]) -> exp.Select:
    """One row for every non-empty cell of every table: the cell in the place of its table, then `totals`."""
    cells = [sql.alias(_cell(clean, want), f"k{i}") for i, want in enumerate(wants)]
    weights = [weight for weight in totals(wants) if weight is not None]
    inner = sql.select([*cells, *(code(weight) for weight in weights)], rows)
    keys = [sql.column(f"k{i}") for i in range(len(wants))]
    sums = [exp.Count(this=exp.Star()) if w is None else exp.Sum(this=code(w)) for w in totals(wants)]
    query = sql.select([*keys, *sums], inner)
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[key.copy()]) for key in keys])
    query.set("group", exp.Group(grouping_sets=[sets]))
    return query


def totals(wants: Sequence[Table]) -> list[str | None]:
    """What is added up in every cell: each weight once, and None for a plain count."""
    return list(dict.fromkeys(want.weight for want in wants))


def _cell(clean: RowView, want: Table) -> Sql:
    """The number of the row's cell in the table, NULL where the row does not count."""
    return sql.case([(clean.chosen(want.rows), cell_of(clean, want.keys))])


def cell_of(clean: RowView, keys: Sequence[Key]) -> Sql:
    """The number of a row's cell among those of the keys, the last key fastest."""
    index: Sql | None = None
    for key in keys:
        place = sql.cast(_place(clean, key), "BIGINT")
        size = sql.number(key.size(clean.schema))
        index = place if index is None else sql.plus(sql.times(index, size), place)
    return index or sql.cast(sql.number(0), "BIGINT")


def _place(clean: RowView, key: Key) -> Sql:
    column = clean.schema.coded[key.column]
    value, last = code(key.column), key.answers(clean.schema)
    if key.step is not None:
        twice = sql.times(sql.minus(sql.cast(value, "BIGINT"), sql.number(column.low)), sql.number(2))
        place = sql.whole_part(sql.plus(twice, sql.number(key.step)), 2 * key.step)
    elif key.starts:
        later = list(enumerate(key.starts))[:0:-1]
        bins = [(exp.GTE(this=value.copy(), expression=sql.number(s)), sql.number(i)) for i, s in later]
        place = sql.case(bins, sql.number(0))
    else:
        place = sql.minus(sql.cast(value, "BIGINT"), sql.number(column.low)) if column.low else value
    branches = [(sql.not_null(code(key.column)), place)]
    if not key.silent:
        return sql.case(branches)
    if has_universe(clean.schema, key.column):
        branches.append((clean.structural(key.column), sql.number(last + 1)))
    return sql.case(branches, sql.number(last))
