"""Sums of ordinal columns by the positions of their levels: counted level by level, and added up before the noise.

An engine sums codes. Where a mean, total or variance is of a column with positions, it is asked for the weight in every
level instead, and the sum is made of these cells: positions are whole numbers of steps of their common grid, so it is the
same whole number that a column of such numbers would give.
"""

from collections.abc import Sequence
from dataclasses import replace

from reticent.engine.wants import (
    MOST_CELLS,
    Aggregate,
    ContingencyTable,
    Key,
    SufficientStatistics,
    Sum,
    Table,
    Tallies,
    is_scored,
)
from reticent.errors import PlanError
from reticent.schema import Levels, Schema


def asked_by_level(want: Aggregate, schema: Schema) -> Aggregate:
    """What the engine is asked in place of a sum of positions: the weight in every level, and in every cell of a table."""
    if not isinstance(want, Sum | Table) or want.value is None or not is_scored(want, schema):
        return want
    if want.other is not None:
        raise PlanError("is not computed for ordinal columns; ask for means", field="query")
    level = Key(column=want.value)
    table = Table(rows=want.rows, keys=(level,), weight=want.weight)
    if isinstance(want, Table):
        table = replace(table, keys=(*want.keys, level))
    if table.size(schema) > MOST_CELLS:
        raise PlanError(
            f"has more than {MOST_CELLS} cells with the levels of {want.value}; use fewer domains",
            field="query",
        )
    return table


def with_positions(wants: Sequence[Aggregate], tallies: Tallies, schema: Schema) -> Tallies:
    """The sums of positions, from the weights of levels; what is not scored stays as it is.

    Guarantee   each sum is that over rows of weight x position^power, in steps.
    Adjacency   none: nothing leaves.
    Theorem     sums over rows are sums over levels of their weight x position^power.
    Proof       proofs/answer/positions.md
    Assumes     tallies of `asked_by_level`; exact arithmetic.
    Keeps back  everything: no noise is added here.
    """
    scored = [want for want in dict.fromkeys(wants) if is_scored(want, schema)]
    if not scored:
        return tallies
    sums, tables = dict(tallies.statistics.sums), dict(tallies.tables)
    for want in scored:
        asked = asked_by_level(want, schema)
        if not isinstance(asked, Table):
            raise TypeError("positions are summed in tables")
        cells = _summed(want, tallies.tables[asked].cells, schema)
        if isinstance(want, Table):
            tables[want] = ContingencyTable(want=want, cells=cells)
        elif isinstance(want, Sum):
            (sums[want],) = cells
    made = replace(tallies, statistics=SufficientStatistics(sums=sums), tables=tables)
    if made.fractions is None:
        return made
    return replace(made, fractions=with_positions(wants, made.fractions, schema))


def _summed(want: Aggregate, cells: Sequence[int], schema: Schema) -> tuple[int, ...]:
    """In every cell of the table, the levels' weights times their positions to the power."""
    column = schema.coded[want.value] if isinstance(want, Sum | Table) and want.value else None
    if not isinstance(column, Levels) or not isinstance(want, Sum | Table):
        raise TypeError("only levels have positions")
    worth = [step**want.power for step in column.steps]
    return tuple(
        sum(each * cells[start + place] for place, each in enumerate(worth))
        for start in range(0, len(cells), len(worth))
    )
