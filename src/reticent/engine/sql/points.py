"""Points of declared cells: numbered in SQL, put in order, handed over some whole cells at a time, and forgotten.

Each row that counts has one whole number: a point of cell g at (x, y) is the number (g (X + 1) + x) (Y + 1) + y, where x
and y count grid steps from their lower bounds up to X and Y. Sorting the numbers sorts cells, then x, then y, so the order
of the file, chunks and threads are forgotten. An engine gives them as lines in order, a number and how many rows have it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.protocol import PlaceLines
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values
from reticent.engine.sql.clean import RowView, code
from reticent.engine.wants import MOST_PLACES, CellFold, PointsByCell, PointTable
from reticent.errors import EngineError
from reticent.schema import Schema

NOWHERE = -1
RUN = 2**18
"""Points and cells that are handed over together, about; one cell alone may have more points."""

Lines = NDArray[np.int64]


def points(clean: RowView, rows: exp.Select, wants: Sequence[PointsByCell]) -> exp.Select:
    """One line for every row that counts for any of the wants: its number in each, or `NOWHERE`.

    What could not be numbered is refused from public numbers, whatever the rows hold.
    """
    if any(want.size(clean.schema) > MOST_PLACES for want in wants):
        raise EngineError("has too many places to number; declare coarser grids", field="cells")
    places = [exp.alias_(_point_place(clean, want), f"p{i}", quoted=True) for i, want in enumerate(wants)]
    columns = [sql.column(f"p{i}") for i in range(len(wants))]
    counts = [exp.NEQ(this=column.copy(), expression=sql.number(NOWHERE)) for column in columns]
    return sql.select(columns, sql.select(places, rows), exp.or_(*counts))


def _point_place(clean: RowView, want: PointsByCell) -> Sql:
    schema = clean.schema
    place = _steps(clean.dialect, schema, want.cell)
    for column in want.axes:
        size = sql.number(want.steps(schema, column) + 1)
        place = sql.plus(sql.times(place, size), _steps(clean.dialect, schema, column))
    settled = [*want.rows.answered, want.cell, *want.axes]
    known = [sql.not_null(code(column)) for column in dict.fromkeys(settled)]
    chosen = sql.both([clean.chosen(want.rows), *known])
    return sql.case([(chosen, place)], sql.number(NOWHERE))


def _steps(dialect: Dialect, schema: Schema, column: str) -> Sql:
    """Grid steps from the lower bound, in 64 bits."""
    return sql.minus(dialect.cast(code(column), "BIGINT"), sql.number(schema.coded[column].low))


def runs(schema: Schema, want: PointsByCell, blocks: Iterable[Lines]) -> Iterator[PointTable]:
    """The points of all declared cells in order, as many whole cells at a time as have `RUN` points and cells, or one cell.

    `blocks` are lines in order: places that are taken, and how many rows are in each. A run is the same wherever they end.
    Held are one block, the lines of a run that is not full, and those of the cell that goes on in the next block.
    """
    cells, size = want.cells(schema), want.places(schema)
    done, whole, seen, held = 0, 0, NOWHERE, list[Lines]()
    for block in blocks:
        if not block.shape[1]:
            continue
        if (np.diff(block[0], prepend=seen) < 0).any():
            raise EngineError("the engine gave lines out of order", field="source")
        seen = int(block[0, -1])
        held.append(block)
        if (last := seen // size) > whole:  # the cells before `last` are whole
            whole, lines, held = last, np.concatenate(held, axis=1), []
            for run in _full(schema, want, lines, range(done, whole)):
                done += len(run.starts) - 1
                yield run
            held = [lines[:, np.searchsorted(lines[0], done * size) :].copy()]
    lines = np.concatenate([np.zeros((2, 0), np.int64), *held], axis=1)
    yield from _full(schema, want, lines, range(done, cells), to_the_end=True)


def _full(
    schema: Schema, want: PointsByCell, lines: Lines, cells: range, *, to_the_end: bool = False
) -> Iterator[PointTable]:
    """Runs of whole cells that no further cell fits into; `to_the_end` the others, too."""
    size = want.places(schema)
    lines = lines[:, : np.searchsorted(lines[0], (cells.stop - 1) * size + (size - 1), side="right")]
    owner = lines[0] // size - cells.start
    sizes = np.zeros(len(cells), np.int64)
    np.add.at(sizes, owner, lines[1])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    upto, first = starts + np.arange(len(starts)), 0
    while first < len(cells):
        last = max(first + 1, int(np.searchsorted(upto, upto[first] + RUN, side="right")) - 1)
        if last == len(cells) and upto[last] - upto[first] < RUN and not to_the_end:
            return
        here = slice(*np.searchsorted(owner, [first, last]))
        yield _table(schema, want, lines[:, here], starts[first : last + 1] - starts[first])
        first = last


def _table(schema: Schema, want: PointsByCell, lines: Lines, starts: Lines) -> PointTable:
    wide = [want.steps(schema, column) + 1 for column in want.axes]
    held, y = np.divmod(np.repeat(lines[0], lines[1]), wide[-1])
    x = np.zeros_like(y) if want.x is None else np.mod(held, wide[0], out=held)
    return PointTable(want=want, starts=starts, x=x, y=y)


class Tabled:
    """What is made of points where a want says nothing else: one table of them all."""

    def of(self, cells: PointTable) -> PointTable:
        return cells

    def joined(self, parts: Sequence[PointTable]) -> PointTable:
        ends = np.concatenate([np.diff(part.starts) for part in parts])
        return PointTable(
            want=parts[0].want,
            starts=np.concatenate([[0], np.cumsum(ends)]).astype(np.int64),
            x=np.concatenate([part.x for part in parts]),
            y=np.concatenate([part.y for part in parts]),
        )


def together(wants: Sequence[PointsByCell]) -> dict[PointsByCell, list[PointsByCell]]:
    """The wants by the points they are made of, whatever is made of them."""
    found: dict[PointsByCell, list[PointsByCell]] = {}
    for want in wants:
        found.setdefault(replace(want, fold=None), []).append(want)
    return found


def folded(schema: Schema, wants: Sequence[PointsByCell], blocks: Iterable[Lines]) -> dict[PointsByCell, Any]:
    """What each of the wants, which are of the same points, makes of them as they come."""
    folds: list[CellFold] = [want.fold or Tabled() for want in wants]
    parts: list[list[Any]] = [[] for _ in wants]
    for run in runs(schema, replace(wants[0], fold=None), blocks):
        for fold, made in zip(folds, parts, strict=True):
            made.append(fold.of(run))
    return {want: fold.joined(made) for want, fold, made in zip(wants, folds, parts, strict=True)}


class LocalPoints:
    """Points fetched, one number for each row that counts, and sorted here: one pass, whatever is made of them."""

    def tables(
        self, on: PlaceLines, cells: RowView, rows: exp.Select, wants: Sequence[PointsByCell], values: Values
    ) -> dict[PointsByCell, Any]:
        alike = together(wants)
        found = on.fetch_columns(points(cells, rows, list(alike)), values)
        made: dict[PointsByCell, Any] = {}
        for place, some in enumerate(alike.values()):
            held = np.sort(found.pop(f"p{place}"))
            held = held[np.searchsorted(held, NOWHERE, side="right") :]
            made |= folded(cells.schema, some, _ones(held))
        return made


def _ones(held: Lines) -> Iterator[Lines]:
    """Numbers in order, as lines of one row each."""
    for first in range(0, len(held), RUN):
        block = held[first : first + RUN]
        yield np.stack([block, np.ones_like(block)])


class GroupedPoints:
    """Points counted where they are, and streamed: a number for each place that is taken, in order, with its rows."""

    def tables(
        self, on: PlaceLines, cells: RowView, rows: exp.Select, wants: Sequence[PointsByCell], values: Values
    ) -> dict[PointsByCell, Any]:
        made: dict[PointsByCell, Any] = {}
        for want, some in together(wants).items():
            place, there = sql.column("p0"), exp.NEQ(this=sql.column("p0"), expression=sql.number(NOWHERE))
            many = sql.alias(exp.Count(this=exp.Star()), "n")
            lines = sql.select([place, many], points(cells, rows.copy(), [want]), there)
            lines = lines.group_by(place.copy(), copy=False)
            made |= folded(cells.schema, some, on.in_order(lines, values, want.places(cells.schema)))
        return made
