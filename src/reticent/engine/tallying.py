"""From what was fetched to tallies: one fetch for each kind of want."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from reticent.engine import statements
from reticent.engine.cells import Cells
from reticent.engine.points import point_tables, points
from reticent.engine.results import ContingencyTable, RingTable, SufficientStatistics, Tallies
from reticent.engine.wants import Points, Ring, Sum, Table, Want
from reticent.schema import Schema

Alike = Sequence[Sum] | Sequence[Table] | Sequence[Points]
"""Wants of one kind: they are answered by one statement."""


def statement(cells: Cells, rows: exp.Select, wants: Alike) -> exp.Select:
    """The one statement over `rows` that answers `wants`."""
    built: Any = {Sum: statements.sums, Table: statements.tables, Points: points}[type(wants[0])]
    select: exp.Select = built(cells, rows, wants)
    return select


def tallied(
    schema: Schema, wants: Sequence[Want], fetch: Callable[[Alike], Any], rings: Mapping[Ring, RingTable]
) -> Tallies:
    """All of the wants. `fetch` is called once for each kind that is wanted."""
    once = list(dict.fromkeys(wants))
    sums = [want for want in once if isinstance(want, Sum)]
    tables = [want for want in once if isinstance(want, Table)]
    clouds = [want for want in once if isinstance(want, Points)]
    numbers = [int(value) for value in fetch(sums)[0]] if sums else []
    statistics = SufficientStatistics(sums=dict(zip(sums, numbers, strict=True)))
    filled = _fill(schema, tables, fetch(tables)) if tables else {}
    held = point_tables(schema, clouds, fetch(clouds)) if clouds else {}
    return Tallies(statistics=statistics, tables=filled, rings=rings, points=held)


def _fill(
    schema: Schema, wants: Sequence[Table], rows: Sequence[tuple[Any, ...]]
) -> dict[Table, ContingencyTable]:
    cells = [[0] * want.size(schema) for want in wants]
    totals = statements.totals(wants)
    places = [len(wants) + totals.index(want.weight) for want in wants]
    for row in rows:
        for cell, table, place in zip(row, cells, places, strict=False):
            if cell is not None:
                table[cell] = int(row[place])
    return {
        want: ContingencyTable(want=want, cells=tuple(table))
        for want, table in zip(wants, cells, strict=True)
    }
