"""From what was fetched to tallies: one fetch for each kind of want."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from reticent.engine import statements
from reticent.engine.bins import bin_tables, bins
from reticent.engine.cells import RowView
from reticent.engine.points import point_tables, points
from reticent.engine.results import BinTable, ContingencyTable, RingTable, SufficientStatistics, Tallies
from reticent.engine.wants import Aggregate, Bins, PointsByCell, Ring, Sum, Table
from reticent.schema import Schema

Alike = Sequence[Sum] | Sequence[Table] | Sequence[PointsByCell] | Sequence[Bins]
"""Wants of one kind, bins of one base: they are answered by one statement."""


def statement(cells: RowView, rows: exp.Select, wants: Alike) -> exp.Select:
    """The one statement over `rows` that answers `wants`."""
    kinds = {Sum: statements.sums, Table: statements.tables, PointsByCell: points, Bins: bins}
    built: Any = kinds[type(wants[0])]
    select: exp.Select = built(cells, rows, wants)
    return select


def tallied(
    schema: Schema, wants: Sequence[Aggregate], fetch: Callable[[Alike], Any], rings: Mapping[Ring, RingTable]
) -> Tallies:
    """All of the wants. `fetch` is called once for each kind that is wanted."""
    once = list(dict.fromkeys(wants))
    sums = [want for want in once if isinstance(want, Sum)]
    tables = [want for want in once if isinstance(want, Table)]
    clouds = [want for want in once if isinstance(want, PointsByCell)]
    numbers = [int(value) for value in fetch(sums)[0]] if sums else []
    statistics = SufficientStatistics(sums=dict(zip(sums, numbers, strict=True)))
    filled = _fill(schema, tables, fetch(tables)) if tables else {}
    held = point_tables(schema, clouds, fetch(clouds)) if clouds else {}
    weighed = [want for want in once if isinstance(want, Bins)]
    binned: dict[Bins, BinTable] = {}
    for base in dict.fromkeys(want.base for want in weighed):
        alike = [want for want in weighed if want.base == base]
        binned |= bin_tables(schema, alike, fetch(alike))
    return Tallies(statistics=statistics, tables=filled, rings=rings, points=held, bins=binned)


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
