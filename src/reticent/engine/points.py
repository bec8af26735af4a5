"""The points of declared cells, in one pass: each row that counts leaves as one whole number, sorted here.

A point of cell g at (x, y) is the number (g (X + 1) + x) (Y + 1) + y, where x and y count grid steps from their
lower bounds up to X and Y. Sorting the numbers sorts cells, then x, then y, so the order of the file, chunks and
threads are forgotten.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView, code
from reticent.engine.results import PointTable
from reticent.engine.sql import Sql
from reticent.engine.wants import MOST_PLACES, PointsByCell
from reticent.errors import EngineError
from reticent.schema import Schema

NOWHERE = -1


def points(clean: RowView, rows: exp.Select, wants: Sequence[PointsByCell]) -> exp.Select:
    """One line for every row that counts for any of the wants: its number in each, or `NOWHERE`.

    What could not be numbered is refused from public numbers, whatever the rows hold.
    """
    if any(want.size(clean.schema) > MOST_PLACES for want in wants):
        raise EngineError("has too many places to number; declare coarser grids", field="cells")
    places = [exp.alias_(_place(clean, want), f"p{i}", quoted=True) for i, want in enumerate(wants)]
    columns = [sql.column(f"p{i}") for i in range(len(wants))]
    counts = [exp.NEQ(this=column.copy(), expression=sql.number(NOWHERE)) for column in columns]
    return sql.select(columns, sql.select(places, rows), exp.or_(*counts))


def _place(clean: RowView, want: PointsByCell) -> Sql:
    schema = clean.schema
    place = _steps(schema, want.cell)
    for column in want.axes:
        size = sql.number(want.steps(schema, column) + 1)
        place = sql.plus(sql.times(place, size), _steps(schema, column))
    settled = [*want.rows.answered, want.cell, *want.axes]
    known = [sql.not_null(code(column)) for column in dict.fromkeys(settled)]
    chosen = sql.both([clean.chosen(want.rows), *known])
    return sql.case([(chosen, place)], sql.number(NOWHERE))


def _steps(schema: Schema, column: str) -> Sql:
    """Grid steps from the lower bound, in 64 bits."""
    return sql.minus(sql.cast(code(column), "BIGINT"), sql.number(schema.coded[column].low))


def point_tables(
    schema: Schema, wants: Sequence[PointsByCell], found: Mapping[str, NDArray[np.int64]]
) -> dict[PointsByCell, PointTable]:
    """The tables, from the columns `p0`, `p1`, ... of numbers."""
    return {want: _table(schema, want, found[f"p{i}"]) for i, want in enumerate(wants)}


def _table(schema: Schema, want: PointsByCell, numbers: NDArray[np.int64]) -> PointTable:
    held = np.sort(numbers[numbers != NOWHERE] if len(numbers) else numbers)
    wide = [want.steps(schema, column) + 1 for column in want.axes]
    first = np.arange(want.cells(schema) + 1, dtype=np.int64) * int(np.prod(wide, dtype=object))
    starts = np.searchsorted(held, first).astype(np.int64)
    held, y = np.divmod(held, wide[-1])
    x = np.zeros_like(y) if want.x is None else np.mod(held, wide[0], out=held)
    return PointTable(want=want, starts=starts, x=x, y=y)
