"""Gaps filled from released chances: each row from its own cell and its own draw, by whole numbers."""

from collections.abc import Sequence

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView, code
from reticent.engine.sql import Sql
from reticent.engine.statements import cell_of
from reticent.engine.wants import Key
from reticent.errors import PlanError
from reticent.prepare.chances import Chances, PredictorCells


def keys_of(sides: Sequence[PredictorCells]) -> tuple[Key, ...]:
    """The sides as those of a table: cells are numbered alike, and silence has one of its own."""
    return tuple(Key(column=side.column, starts=side.starts, silent=True) for side in sides)


def chosen(cells: RowView, chances: Chances, draw: Sql | None = None) -> Sql:
    """The code, or where it is missing the level that the row's draw reaches in its cell.

    Guarantee   a row's filled code is a function of that row, the chances and the row's own draw; a cell that holds an
                answer, or was not asked for, stays as it is; filled codes lie within the codebook's.
    Adjacency   any: neighbours before are neighbours after, draws given.
    Theorem     THEORY 7.1.
    Proof       proofs/engine/predict.md
    Assumes     chances and draws do not depend on the rows beyond what was released before.
    Keeps back  all of it until noise is added.
    """
    keys = keys_of(chances.sides)
    size = 1
    for key in keys:
        size *= key.size(cells.schema)
    if size != chances.cells:
        raise PlanError("its chances are for other cells.", field=chances.column)
    place = sql.plus(cell_of(cells, keys), sql.number(1))
    number = draw.copy() if draw is not None else sql.number(chances.middle)
    level = sql.cast(sql.number(chances.low), "BIGINT")
    for row in chances.steps:
        step = sql.call(
            "list_extract", exp.Array(expressions=[sql.number(each) for each in row]), place.copy()
        )
        is_past = exp.GTE(this=number.copy(), expression=step)
        level = sql.plus(level, sql.case([(is_past, sql.number(1))], sql.number(0)))
    return sql.case([(cells.missing(chances.column), level)], code(chances.column))
