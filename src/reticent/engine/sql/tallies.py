"""Aggregates in SQL: the two statements a plan costs, one for all its sums and one for all its tables, and what was fetched.

**Base cells of a weighted survey**: records, base weights, and the largest of them. A record without a base weight, or of
weight 0, is in no cell. Sums of base weights must fit 62 bits and are refused from public numbers if they could not; what
is multiplied by a value is summed in 128 bits.

**Replicate weights** are summed as a record's own deviations from its base weight, scaled down where they are too long.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import TURN, Dialect, Sql
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.deviations import with_deviations
from reticent.engine.wants import (
    ALWAYS,
    Aggregate,
    Bins,
    BinTable,
    Coding,
    ContingencyTable,
    Key,
    PointsByCell,
    Ring,
    RingTable,
    Rows,
    SufficientStatistics,
    Sum,
    Table,
    Tallies,
    has_universe,
    is_replicate,
)
from reticent.errors import PlanError
from reticent.schema import Schema
from reticent.schema.replicates import WHOLE_LENGTH

LARGEST_PRODUCT = 2**63 - 1  # past this a product of codes is formed in 128 bits


def sums(clean: RowView, rows: exp.Select, wants: Sequence[Sum]) -> exp.Select:
    """One row: the value of every sum, in order.

    Where all want the same columns answered and known, rows that lack them are left out first, once for all.
    """
    if any(is_replicate(clean.schema, factor) for want in wants for factor in factors_of(want)):
        rows = with_deviations(clean, rows)
    alike = {Rows(known=want.rows.known, answered=want.rows.answered) for want in wants}
    if len(alike) > 1:
        conditions = [clean.chosen(want.rows, summed=factors_of(want)) for want in wants]
        return sql.select(list(map(partial(_sum, clean), wants, conditions)), rows)
    left = [None if want.rows.where == ALWAYS else clean.condition(want.rows.where) for want in wants]
    return sql.select(list(map(partial(_sum, clean), wants, left)), rows, clean.chosen(alike.pop()))


def factors_of(want: Sum | Table) -> list[str]:
    """The columns whose codes are multiplied, as often as they are."""
    both = [want.weight, want.other, *[want.value] * want.power]
    return [factor for factor in both if factor is not None]


def _sum(clean: RowView, want: Sum, chosen: Sql | None) -> Sql:
    factors = factors_of(want)
    total: Sql = _summed(clean, factors) if factors else exp.Count(this=exp.Star())
    if chosen is not None:
        total = exp.Filter(this=total, expression=exp.Where(this=chosen))
    return exp.Coalesce(this=total, expressions=[sql.number(0)]) if factors else total


def total_of(clean: RowView, factors: Sequence[str]) -> Sql:
    """What a cell adds up: rows without a code add nothing, and a cell of such rows alone holds 0."""
    if not factors:
        return exp.Count(this=exp.Star())
    return exp.Coalesce(this=_summed(clean, factors), expressions=[sql.number(0)])


def _summed(clean: RowView, factors: Sequence[str]) -> Sql:
    """The exact sum of the products."""
    dialect, largest = clean.dialect, largest_product(clean.schema, factors)
    width = "BIGINT" if largest <= LARGEST_PRODUCT else dialect.wide_int()
    codes = [factor_code(clean.schema, factor) for factor in factors]
    product, *rest = (dialect.cast(each, width) if len(codes) > 1 else each for each in codes)
    for next_factor in rest:
        product = sql.times(product, next_factor)
    return dialect.total(product, largest)


def factor_code(schema: Schema, column: str) -> Sql:
    """What is multiplied and summed: the code, or the deviation of a replicate weight."""
    return sql.column(f"d_{column}") if is_replicate(schema, column) else code(column)


def largest_product(schema: Schema, factors: Sequence[str]) -> int:
    """A bound on the product of a row's codes in `factors`, from the codebook."""
    largest = 1
    for factor in factors:
        reach = 2 * WHOLE_LENGTH if is_replicate(schema, factor) else 1
        largest *= reach * max(abs(schema.coded[factor].low), abs(schema.coded[factor].high))
    return largest


def tables(clean: RowView, rows: exp.Select, wants: Sequence[Table]) -> exp.Select:
    """One row for every non-empty cell of every table: the cell in the place of its table, then `totals`.

    Tables of the same rows over the same cells, which differ in what they sum, have one place.
    """
    over = cells_over(wants)
    cells = [sql.alias(_cell(clean, want), f"k{i}") for i, want in enumerate(over.values())]
    summed = totals_statement(wants)
    columns = dict.fromkeys(factor for factors in summed for factor in factors)
    if any(is_replicate(clean.schema, column) for column in columns):
        rows = with_deviations(clean, rows)
    inner = sql.select([*cells, *(factor_code(clean.schema, column) for column in columns)], rows)
    keys = [sql.column(f"k{i}") for i in range(len(over))]
    sums = [total_of(clean, factors) for factors in summed]
    query = sql.select([*keys, *sums], inner)
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[key.copy()]) for key in keys])
    query.set("group", exp.Group(grouping_sets=[sets]))
    return query


def cells_over(wants: Sequence[Table]) -> dict[tuple[Rows, tuple[Key, ...]], Table]:
    """The first table of each set of rows and cells, in order."""
    found: dict[tuple[Rows, tuple[Key, ...]], Table] = {}
    for want in wants:
        found.setdefault((want.rows, want.keys), want)
    return found


def totals_statement(wants: Sequence[Table]) -> list[tuple[str, ...]]:
    """What is added up in every cell: each product of columns once, and nothing for a plain count."""
    return list(dict.fromkeys(tuple(factors_of(want)) for want in wants))


def _cell(clean: RowView, want: Table) -> Sql:
    """The number of the row's cell in the table, NULL where the row does not count."""
    return sql.case([(clean.chosen(want.rows), cell_of(clean, want.keys))])


def cell_of(clean: RowView, keys: Sequence[Key]) -> Sql:
    """The number of a row's cell among those of the keys, the last key fastest."""
    index: Sql | None = None
    for key in keys:
        place = clean.dialect.cast(_place(clean, key), "BIGINT")
        size = sql.number(key.size(clean.schema))
        index = place if index is None else sql.plus(sql.times(index, size), place)
    return index or clean.dialect.cast(sql.number(0), "BIGINT")


def _place(clean: RowView, key: Key) -> Sql:
    column = clean.schema.coded[key.column]
    dialect, value, last = clean.dialect, code(key.column), key.answers(clean.schema)
    if key.step is not None:
        twice = sql.times(sql.minus(dialect.cast(value, "BIGINT"), sql.number(column.low)), sql.number(2))
        place = dialect.whole_part(sql.plus(twice, sql.number(key.step)), 2 * key.step)
    elif key.starts:
        later = list(enumerate(key.starts))[:0:-1]
        bins = [(exp.GTE(this=value.copy(), expression=sql.number(s)), sql.number(i)) for i, s in later]
        place = sql.case(bins, sql.number(0))
    else:
        place = sql.minus(dialect.cast(value, "BIGINT"), sql.number(column.low)) if column.low else value
    branches = [(sql.not_null(code(key.column)), place)]
    if not key.silent:
        return sql.case(branches)
    if has_universe(clean.schema, key.column):
        branches.append((clean.structural(key.column), sql.number(last + 1)))
    return sql.case(branches, sql.number(last))


MOST_ROWS = 2**40
LARGEST_SUM = 2**62
LARGEST_VALUE = 2**126
MOST_KEPT = 2**26
"""Of the largest weights so many are handed over at most, in all cells together."""


def check_bins(want: Bins, schema: Schema) -> None:
    """Refuse, from public numbers, sums that could be too large and lists that could be too long."""
    heaviest = 1 if want.weight is None else schema.coded[want.weight].high
    if heaviest * (MOST_ROWS + 1) >= LARGEST_SUM:
        raise PlanError("the base weight has too many steps; declare a coarser grid for it", field="weight")
    reach = 1 if want.value is None else max(abs(schema.coded[want.value].low), schema.coded[want.value].high)
    if heaviest * MOST_ROWS * reach >= LARGEST_VALUE:
        raise PlanError(
            "could overflow a 128-bit sum; declare a coarser grid or closer bounds", field="statistic"
        )
    if want.kept * want.size(schema) > MOST_KEPT:
        raise PlanError(
            "has too many base cells for weights that differ; use fewer, or a larger epsilon", field="weight"
        )


def bins(clean: RowView, rows: exp.Select, wants: Sequence[Bins]) -> exp.Select:
    """One line for every cell that somebody is in: cell, records, weight, each want's weight, the largest weights."""
    first = wants[0]
    for want in wants:
        check_bins(want, clean.schema)
    matching = [sql.alias(_matching(clean, want), f"m{i}") for i, want in enumerate(wants)]
    columns = [
        sql.alias(_bin_cell(clean, first), "cell"),
        sql.alias(_weight(clean.dialect, first), "w"),
        *matching,
    ]
    there = exp.GT(this=sql.column("w"), expression=sql.number(0))
    dialect, held = clean.dialect, sql.select(columns, rows)
    if first.kept and (turn := dialect.turn("w", "cell")) is not None:
        held = sql.select([exp.Star(), sql.alias(turn, TURN)], held)
    heaviest = [_heaviest(clean.schema, first), *(_reach(clean.schema, want) for want in wants)]
    names = ("w", *(f"m{i}" for i in range(len(wants))))
    sums = [dialect.total(sql.column(name), most) for name, most in zip(names, heaviest, strict=True)]
    largest = [dialect.top_k(sql.column("w"), first.kept)] if first.kept else []
    found = [sql.column("cell"), exp.Count(this=exp.Star()), *sums, *largest]
    return sql.select(found, held, there).group_by(sql.column("cell"), copy=False)


def _heaviest(schema: Schema, want: Bins) -> int:
    return 1 if want.weight is None else schema.coded[want.weight].high


def _reach(schema: Schema, want: Bins) -> int:
    """A bound on a record's weight times its value."""
    return _heaviest(schema, want) * largest_product(schema, [] if want.value is None else [want.value])


def _bin_cell(clean: RowView, want: Bins) -> Sql:
    """The number of the record's base cell, the last key fastest; whoever did not say is where the plan puts them."""
    index: Sql = clean.dialect.cast(sql.number(0), "BIGINT")
    for key, silent in zip(want.keys, want.silent, strict=True):
        place = exp.Coalesce(this=cell_of(clean, (key,)), expressions=[sql.number(silent)])
        index = sql.plus(sql.times(index, sql.number(key.size(clean.schema))), place)
    return index


def _weight(dialect: Dialect, want: Bins) -> Sql:
    if want.weight is None:
        return dialect.cast(sql.number(1), "BIGINT")
    known = exp.Coalesce(this=code(want.weight), expressions=[sql.number(0)])
    return dialect.cast(known, "BIGINT")


def _matching(clean: RowView, want: Bins) -> Sql:
    """The weight of the record where it is among the rows, times its value; else 0."""
    dialect = clean.dialect
    worth = dialect.cast(_weight(dialect, want), dialect.wide_int())
    chosen = clean.chosen(want.rows)
    if want.value is not None:
        worth = sql.times(worth, dialect.cast(code(want.value), dialect.wide_int()))
        chosen = sql.both([chosen, sql.not_null(code(want.value))])
    return sql.case([(chosen, worth)], dialect.cast(sql.number(0), dialect.wide_int()))


def bin_tables(
    schema: Schema, wants: Sequence[Bins], found: Sequence[tuple[Any, ...]]
) -> dict[Bins, BinTable]:
    """The tables, from the lines of `bins`; cells without a line are empty."""
    first = wants[0]
    size = first.size(schema)
    count, total = _column(found, 1, size), _column(found, 2, size)
    largest = np.zeros((size, first.kept), np.int64)
    for line in found if first.kept else ():
        largest[line[0], : len(line[-1])] = line[-1]
    return {
        want: BinTable(
            want=want,
            count=count.astype(np.int64),
            total=total.astype(np.int64),
            matching=_column(found, 3 + place, size),
            largest=largest,
        )
        for place, want in enumerate(wants)
    }


def _column(found: Sequence[tuple[Any, ...]], place: int, size: int) -> NDArray[np.object_]:
    held = np.zeros(size, object)
    for line in found:
        held[line[0]] = int(line[place])
    return held


Alike = Sequence[Sum] | Sequence[Table] | Sequence[PointsByCell] | Sequence[Bins]
"""Wants of one kind, bins of one base: they are answered by one statement."""


def statement(cells: RowView, rows: exp.Select, wants: Alike) -> exp.Select:
    """The one statement over `rows` that answers `wants`, which are not points."""
    kinds = {Sum: sums, Table: tables, Bins: bins}
    built: Any = kinds[type(wants[0])]
    select: exp.Select = built(cells, rows, wants)
    return select


def tallied(
    schema: Schema, wants: Sequence[Aggregate], fetch: Callable[[Alike], Any], rings: Mapping[Ring, RingTable]
) -> Tallies:
    """All of the wants. `fetch` is called once for each kind that is wanted; points it gives as tables."""
    once = list(dict.fromkeys(wants))
    sums = [want for want in once if isinstance(want, Sum)]
    tables = [want for want in once if isinstance(want, Table)]
    clouds = [want for want in once if isinstance(want, PointsByCell)]
    numbers = [int(value) for value in fetch(sums)[0]] if sums else []
    statistics = SufficientStatistics(sums=dict(zip(sums, numbers, strict=True)))
    filled = _fill(schema, tables, fetch(tables)) if tables else {}
    held = fetch(clouds) if clouds else {}
    weighed = [want for want in once if isinstance(want, Bins)]
    binned: dict[Bins, BinTable] = {}
    for base in dict.fromkeys(want.base for want in weighed):
        alike = [want for want in weighed if want.base == base]
        binned |= bin_tables(schema, alike, fetch(alike))
    return Tallies(statistics=statistics, tables=filled, rings=rings, points=held, bins=binned)


def _fill(
    schema: Schema,
    wants: Sequence[Table],
    rows: Sequence[tuple[Any, ...]] | dict[Table, ContingencyTable],
) -> dict[Table, ContingencyTable]:
    """The tables from the lines of `tables`; an engine that counts otherwise gives them as they are."""
    if isinstance(rows, dict):
        return rows
    over, totals = cells_over(wants), totals_statement(wants)
    lines: dict[Any, list[tuple[int, tuple[Any, ...]]]] = {key: [] for key in over}
    for row in rows:
        for cell, held in zip(row, lines.values(), strict=False):
            if cell is not None:
                held.append((cell, row))
    found: dict[Table, ContingencyTable] = {}
    for want in wants:
        cells = [0] * want.size(schema)
        at = len(over) + totals.index(tuple(factors_of(want)))
        for cell, row in lines[want.rows, want.keys]:
            cells[cell] = int(row[at])
        found[want] = ContingencyTable(want=want, cells=tuple(cells))
    return found


def coded_rows(cells: RowView, rows: exp.Select, coding: Coding) -> exp.Select:
    """One row for each row: its cell in every key, never NULL."""
    keys = coding.keys
    widest = max(key.size(cells.schema) for key in keys)
    kind = cells.dialect.small_int(widest)
    found = [
        sql.alias(cells.dialect.cast(cell_of(cells, (key,)), kind), f"k{place}")
        for place, key in enumerate(keys)
    ]
    return sql.select(found, rows)
