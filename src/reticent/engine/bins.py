"""What the base cells of a weighted survey hold, in one pass: records, base weights, and the largest of them.

A record without a base weight, or of weight 0, is in no cell. Sums of base weights must fit 62 bits and are
refused from public numbers if they could not; what is multiplied by a value is summed in 128 bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView, code
from reticent.engine.results import BinTable
from reticent.engine.sql import Sql
from reticent.engine.statements import cell_of
from reticent.engine.wants import Bins
from reticent.errors import PlanError
from reticent.schema import Schema

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
    columns = [sql.alias(_cell(clean, first), "cell"), sql.alias(_weight(first), "w"), *matching]
    there = exp.GT(this=sql.column("w"), expression=sql.number(0))
    sums = [exp.Sum(this=sql.column(name)) for name in ("w", *(f"m{i}" for i in range(len(wants))))]
    largest = [sql.call("max", sql.column("w"), sql.number(first.kept))] if first.kept else []
    found = [sql.column("cell"), exp.Count(this=exp.Star()), *sums, *largest]
    return sql.select(found, sql.select(columns, rows), there).group_by(sql.column("cell"), copy=False)


def _cell(clean: RowView, want: Bins) -> Sql:
    """The number of the record's base cell, the last key fastest; whoever did not say is where the plan puts them."""
    index: Sql = sql.cast(sql.number(0), "BIGINT")
    for key, silent in zip(want.keys, want.silent, strict=True):
        place = exp.Coalesce(this=cell_of(clean, (key,)), expressions=[sql.number(silent)])
        index = sql.plus(sql.times(index, sql.number(key.size(clean.schema))), place)
    return index


def _weight(want: Bins) -> Sql:
    if want.weight is None:
        return sql.cast(sql.number(1), "BIGINT")
    known = exp.Coalesce(this=code(want.weight), expressions=[sql.number(0)])
    return sql.cast(known, "BIGINT")


def _matching(clean: RowView, want: Bins) -> Sql:
    """The weight of the record where it is among the rows, times its value; else 0."""
    worth = sql.cast(_weight(want), "HUGEINT")
    chosen = clean.chosen(want.rows)
    if want.value is not None:
        worth = sql.times(worth, sql.cast(code(want.value), "HUGEINT"))
        chosen = sql.both([chosen, sql.not_null(code(want.value))])
    return sql.case([(chosen, worth)], sql.cast(sql.number(0), "HUGEINT"))


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
