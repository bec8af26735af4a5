"""Covering blocks: many tables counted as a few, each over several keys, and rolled up here.

An engine that is far away, or that limits how many sets one statement may group by, counts blocks of keys with few
cells in all, and each table is a margin of a block that holds its keys. A row without a cell in one key may have one in another, so every
key of a block has a place for those who have none. What is fetched is bounded by the cells of the blocks: public.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql, Values
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.tallies import cell_of, factors_of, total_of
from reticent.engine.wants import ContingencyTable, Key, Rows, Table
from reticent.schema import Schema

FEW_CELLS = 2**13  # of one block, unless a table alone has more
AT_ONCE = 16  # blocks in one statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Tables over the same rows, and the keys of all of them."""

    rows: Rows
    keys: list[Key]
    wants: list[Table]

    def totals(self) -> list[tuple[str, ...]]:
        """What is added up in every cell, each product of columns once."""
        return list(dict.fromkeys(tuple(factors_of(want)) for want in self.wants))


T = TypeVar("T", bound=Hashable)


def cover(sets: Sequence[Sequence[T]], size: Callable[[T], int]) -> list[tuple[list[T], list[int]]]:
    """Blocks that hold every set, and which sets each holds: one goes where it adds the fewest cells, if they stay few."""

    def cells(members: Iterable[T]) -> int:
        return prod(size(each) for each in dict.fromkeys(members))

    blocks: list[tuple[list[T], list[int]]] = []
    for place in sorted(range(len(sets)), key=lambda at: -cells(sets[at])):
        fits = [
            b for b in blocks if set(sets[place]) <= set(b[0]) or cells((*b[0], *sets[place])) <= FEW_CELLS
        ]
        best = min(fits, key=lambda b: cells((*b[0], *sets[place])) / cells(b[0]), default=None)
        if best is None:
            best = ([], [])
            blocks.append(best)
        best[0].extend(each for each in dict.fromkeys(sets[place]) if each not in best[0])
        best[1].append(place)
    return blocks


def covering(wants: Sequence[Table], schema: Schema) -> list[Block]:
    """Blocks in which every table is a margin, each over the same rows."""
    found = []
    for rows in dict.fromkeys(want.rows for want in wants):
        alike = [want for want in wants if want.rows == rows]
        for keys, places in cover([want.keys for want in alike], lambda key: key.size(schema) + 1):
            found.append(Block(rows=rows, keys=keys, wants=[alike[place] for place in places]))
    return found


def counted(
    fetch: Callable[[exp.Select, Values], Sequence[tuple[Any, ...]]],
    cells: RowView,
    rows: exp.Select,
    wants: Sequence[Table],
    values: Values,
) -> dict[Table, ContingencyTable]:
    """Every table, from statements that count some blocks each."""
    found: dict[Table, ContingencyTable] = {}
    blocks = covering(wants, cells.schema)
    for first in range(0, len(blocks), AT_ONCE):
        some = blocks[first : first + AT_ONCE]
        lines = fetch(statement(cells, rows, some), values)
        for number, block in enumerate(some):
            found |= rolled_up(block, [line[1:] for line in lines if line[0] == number], cells.schema)
    return {want: found[want] for want in wants}


def statement(cells: RowView, rows: exp.Select, blocks: Sequence[Block]) -> exp.Select:
    """One line for every cell of every block that somebody is in: the block's number, the cell, and its totals."""
    most = max(len(block.totals()) for block in blocks)
    parts = [_part(cells, rows.copy(), number, block, most) for number, block in enumerate(blocks)]
    both: exp.Select | exp.Union = parts[0]
    for part in parts[1:]:
        both = exp.Union(this=both, expression=part, distinct=False)
    return exp.select(exp.Star()).from_(both.subquery("t", copy=False), copy=False)


def _part(cells: RowView, rows: exp.Select, number: int, block: Block, most: int) -> exp.Select:
    totals = block.totals()
    columns = dict.fromkeys(factor for factors in totals for factor in factors)
    inner = [sql.alias(_cell(cells, block.keys), "cell"), *(code(column) for column in columns)]
    held = sql.select(inner, rows, cells.chosen(block.rows))
    wide = cells.dialect.wide_int()
    sums = [cells.dialect.cast(total_of(cells, factors), wide) for factors in totals]
    sums += [cells.dialect.cast(sql.number(0), wide)] * (most - len(totals))
    named = [sql.alias(each.copy(), f"s{i}") for i, each in enumerate(sums)]
    mark = sql.alias(cells.dialect.cast(sql.number(number), "BIGINT"), "block")
    return sql.select([mark, sql.column("cell"), *named], held).group_by(sql.column("cell"), copy=False)


def _cell(cells: RowView, keys: Sequence[Key]) -> Sql:
    index: Sql = cells.dialect.cast(sql.number(0), "BIGINT")
    for key in keys:
        size = key.size(cells.schema)
        place = exp.Coalesce(this=cell_of(cells, (key,)), expressions=[sql.number(size)])
        index = sql.plus(sql.times(index, sql.number(size + 1)), place)
    return index


def rolled_up(
    block: Block, lines: Sequence[tuple[Any, ...]], schema: Schema
) -> dict[Table, ContingencyTable]:
    """The tables of a block, from the cells that somebody is in."""
    cell = np.array([line[0] for line in lines], np.int64)
    places: dict[Key, NDArray[np.int64]] = {}
    for key in reversed(block.keys):
        cell, places[key] = np.divmod(cell, key.size(schema) + 1)
    totals = block.totals()
    found = {}
    for want in block.wants:
        at = 1 + totals.index(tuple(factors_of(want)))
        worth = np.array([int(line[at]) for line in lines], object)
        found[want] = ContingencyTable(want=want, cells=_margin(want, places, worth, schema))
    return found


def _margin(
    want: Table, places: dict[Key, NDArray[np.int64]], worth: NDArray[np.object_], schema: Schema
) -> tuple[int, ...]:
    index, there = np.zeros(len(worth), np.int64), np.ones(len(worth), np.bool_)
    for key in want.keys:
        size = key.size(schema)
        index, there = index * size + places[key], there & (places[key] < size)
    table = np.zeros(want.size(schema), object)
    np.add.at(table, index[there], worth[there])
    return tuple(int(each) for each in table)
