"""Regression imputation carried out in SQL: gaps filled from released lines and chances, in the order of the plan.

Each row is filled from its own answers, its own cell and its own draw, by whole numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.protocol import RowDraws, Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.tallies import cell_of
from reticent.engine.wants import Key
from reticent.errors import PlanError
from reticent.prepare.repair import FARTHEST, SCALE, Chances, PredictorCells, RegressionLine, Term


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
    level = cells.dialect.cast(sql.number(chances.low), "BIGINT")
    for row in chances.steps:
        step = cells.dialect.element_at(sql.numbers(row), place.copy())
        is_past = exp.GTE(this=number.copy(), expression=step)
        level = sql.plus(level, sql.case([(is_past, sql.number(1))], sql.number(0)))
    return sql.case([(cells.missing(chances.column), level)], code(chances.column))


HELD, DRAWS, NUMBER = "held_", "draws_", "n_"
NARROW = 1 << 62  # past this a prediction is summed in 128 bits


def predicted(
    cells: RowView,
    rows: exp.Select,
    lines: Sequence[RegressionLine | Chances],
    columns: Sequence[str],
    *,
    keep: Sequence[str] = (),
    draws: Mapping[int, Sql] | None = None,
) -> exp.Select:
    """`rows` with the gaps of every line's column filled, one line after the other.

    Guarantee   a row's filled codes are a function of that row, the lines and the row's own draws; a cell that
                holds an answer, or was not asked for, stays as it is; filled codes lie within the codebook's.
    Adjacency   any: neighbours before are neighbours after, draws given.
    Theorem     THEORY 7.1.
    Proof       proofs/engine/predict.md
    Assumes     lines and draws do not depend on the rows beyond what was released before.
    Keeps back  all of it until noise is added.
    """
    flags = list(dict.fromkeys(cells.asked.values()))
    for place, line in enumerate(lines):
        draw = (draws or {}).get(place)
        cell = chosen(cells, line, draw) if isinstance(line, Chances) else filled(cells, line, draw)
        kept = [sql.alias(cell if name == line.column else code(name), f"c_{name}") for name in columns]
        beside = [*flags, *map(sql.column, keep), *(draws or {}).values()]
        rows = sql.select([*kept, *(each.copy() for each in beside)], rows)
    return rows


def filled(cells: RowView, line: RegressionLine, draw: Sql | None = None) -> Sql:
    """The code, or where it is missing the prediction, held first so that the division meets nothing negative.

    A draw goes no farther than the nearer bound, on either side: clamping alone would pull the mean away from it.
    """
    dialect = cells.dialect
    wide = "BIGINT" if line.reach < NARROW else dialect.wide_int()
    total = dialect.cast(sql.number(line.base), wide)
    for term in line.terms:
        total = sql.plus(total, _share(dialect, term, wide))
    low, high = (dialect.cast(sql.number(each << SCALE), wide) for each in (line.low, line.high))
    said = _held(total, low, high)
    if draw is not None:
        room = sql.call("least", sql.minus(said.copy(), low.copy()), sql.minus(high.copy(), said.copy()))
        off = sql.times(dialect.cast(draw.copy(), wide), sql.number(line.spread))
        said = sql.plus(said, _held(off, exp.Neg(this=exp.Paren(this=room.copy())), room))
    steps = dialect.whole_part(sql.minus(said, low.copy()), 1 << SCALE, wide=wide != "BIGINT")
    code_of = sql.plus(dialect.cast(steps, "BIGINT"), sql.number(line.low))
    return sql.case([(cells.missing(line.column), code_of)], code(line.column))


def _held(value: Sql, low: Sql, high: Sql) -> Sql:
    return sql.call("greatest", low.copy(), sql.call("least", high.copy(), value))


def _share(dialect: Dialect, term: Term, wide: str) -> Sql:
    """What a predictor adds, from its lowest code on."""
    if term.level is not None:
        is_level = exp.EQ(this=code(term.column), expression=sql.number(term.level))
        return sql.case(
            [(is_level, dialect.cast(sql.number(term.slope), wide))], dialect.cast(sql.number(0), wide)
        )
    value = exp.Coalesce(this=dialect.cast(code(term.column), wide), expressions=[sql.number(term.gap)])
    return sql.times(sql.minus(value, sql.number(term.low)), sql.number(term.slope))


class LocalDraws:
    """One list of numbers for each line that draws, made here and given to the engine beside the rows' numbers."""

    def draw(self, tables: Tables, draws: Mapping[int, Callable[[int], NDArray[Any]]]) -> None:
        """How many rows there are is asked of the table, and goes to `draws` and to nobody else."""
        size = int(tables.ask(f'SELECT count(*) AS "n" FROM "{HELD}"')["n"][0])
        found: dict[str, pa.Array] = {NUMBER: pa.array(np.arange(size, dtype=np.int64))}
        for place, draw in draws.items():
            found[f"z{place}"] = pa.array(np.clip(draw(size), -FARTHEST, FARTHEST).astype(np.int32))
        tables.give(DRAWS, pa.table(found))


class Drawn:
    """The clean rows in a table with a draw for each line that draws: made once, so that every statement sees
    the same. Dropped at the end.

    Guarantee   each row has numbers of its own, which no other row or cell has a part in.
    Adjacency   any: the law of all draws of a set of rows is the product of those of its rows.
    Theorem     THEORY 7.1.
    Proof       proofs/engine/predict.md
    Assumes     `draw` of a line gives independent numbers, whatever it was asked before.
    Keeps back  all of it until noise is added.
    """

    def __init__(self, tables: Tables, lines: Sequence[RegressionLine | Chances], draws: RowDraws) -> None:
        self.tables, self.lines, self.draws = tables, lines, draws
        self.places = [place for place, line in enumerate(lines) if line.draw is not None]

    def draw(self) -> None:
        """One number for each row of HELD and each line that draws."""
        self.draws.draw(
            self.tables,
            {place: draw for place, line in enumerate(self.lines) if (draw := line.draw) is not None},
        )

    def rows(self, cells: RowView, columns: Sequence[str]) -> exp.Select:
        """The filled rows under the names that `cells` knows."""
        draws = {place: sql.column(f"z{place}") for place in self.places}
        names = [*map(code, columns), *dict.fromkeys(cells.asked.values()), *draws.values()]
        both = exp.select(*(each.copy() for each in names)).from_(exp.Table(this=sql.name(HELD)))
        both = both.join(exp.Table(this=sql.name(DRAWS)), using=sql.name(NUMBER))
        return predicted(cells, both, self.lines, columns, draws=draws)

    def drop(self) -> None:
        for name in (HELD, DRAWS):
            self.tables.drop(name)


def numbered(cells: RowView, rows: exp.Select, columns: Sequence[str]) -> exp.Select:
    """Rows with numbers from 0 in the order of all that a statement can see of them: a function of the set of rows.

    Rows that tie agree in all of it, so it does not matter which of them has which number.
    """
    seen = [*map(code, columns), *(each.copy() for each in dict.fromkeys(cells.asked.values()))]
    by = [exp.Ordered(this=each, nulls_first=True) for each in seen or [sql.number(0)]]
    place = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=by))
    return sql.select([exp.Star(), sql.alias(sql.minus(place, sql.number(1)), NUMBER)], rows)
