"""Capped donors in local arrays, however many records there are: each is read once, sorted once, and filled where it lies.

What the survey gives is put aside in blocks by first cell, in `Shelf`s. Runs of whole cells are taken up one after the other,
at most a few million records each unless one cell has more: labelled, put in the order of labels, and served at all levels
whose cells are whole within a run. For coarser levels, and for groups that match on something else first, spots and digits of
all records are kept and read again. At last the engine has two tables: PEOPLE, whose records lack nothing that donors give,
and LACKING, the others with what every ring gives them.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import pyarrow as pa
from sqlglot import exp

from reticent.engine.donors.capped import CappedStaging, capped_domains
from reticent.engine.donors.circle import LOT, Whole, lots
from reticent.engine.donors.filling import EVERY_CELL, PEOPLE, quietly
from reticent.engine.donors.levels import CellColumn, Gifts, GroupFill
from reticent.engine.donors.records import ID, LINE, SPOT, Packing, spotted
from reticent.engine.donors.shelf import Room, Shelf
from reticent.engine.protocol import LocalTables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql, Values
from reticent.engine.wants import Key, level_keys
from reticent.prepare.repair import CappedDonors, Repair
from reticent.schema import Schema

LACKING, FIRST, APART = "lacking_", "cell0", "apart_"


class LocalCapped(CappedStaging):
    """Capped donors of an engine on this side.

    Guarantee   as `CappedStaging`, whatever the blocks and runs.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/capped.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    def __init__(self, tables: LocalTables, schema: Schema, packing: Packing, repair: Repair) -> None:
        super().__init__(tables, schema, packing, repair)
        self.local, self.room = tables, Room(tables.folder)
        self._packed, self._labelled = Shelf(self.room, FIRST), Shelf(self.room)
        self._sizes, self._together = dict[str, Whole](), 1
        self._fills = list[GroupFill]()

    @property
    def partitions(self) -> list[tuple[Key, ...]]:
        """Those whose cells are kept of every record; cells of the first, side by side, make those of some others."""
        domains = capped_domains(self.repair)
        return [each for place, each in enumerate(domains) if not place or self._width(each) is None]

    def pack(self, statement: str, values: Values) -> None:
        """The records of a statement, put aside by first cell."""
        self._packed.close()
        self._sizes = {}
        for block in self.local.in_blocks(statement, values):
            self._count(block)
            self._packed.add(block)

    def place(self) -> None:
        """Label the records and serve whom the finer levels serve, some cells at a time."""
        quietly(self._place)

    def fill(self) -> None:
        """Serve the others, and give the engine all records."""
        quietly(self._finish)

    def completed(self, ring: int, *more: Sql) -> exp.Select:
        given = self._given(lambda number, item: sql.column(_column(number, ring, item)))
        return self._lined(self._people(given, more, LACKING), more)

    def unfilled(self, *more: Sql) -> exp.Select:
        return self._lined(self._people({}, more), more)

    def unserved(self, column: str) -> int:
        number, group = next((i, each) for i, each in enumerate(self.repair.capped) if column in each.columns)
        counts = ", ".join(
            f"count(*) FILTER (WHERE {_column(number, ring, 0)} IS NULL) AS n{ring}"
            for ring in range(self.repair.rings)
        )
        found = self.tables.ask(f"SELECT {counts} FROM {LACKING} WHERE {self._status(group, gives=False)}")
        return sum(int(each[0]) for each in found.values())

    def drop(self) -> None:
        self._clear()
        for name in (PEOPLE, LACKING):
            self.tables.drop(name)

    def _clear(self) -> None:
        """Nothing is put aside any more."""
        gifts = [given.shelf for fill in self._fills for given in fill.gifts]
        for shelf in (self._packed, self._labelled, *gifts):
            shelf.close()

    def _place(self) -> bool:
        runs = self._runs()
        self._fills = [self._group(group, len(runs) == 1) for group in self.repair.capped]
        near = [each for each in self._fills if each.whole]
        later = {name for each in self._fills for name in each.later}
        first = 0
        for low, high in runs:
            people = spotted(self._packed.between(low, high), self.packing.words, self.repair.key)
            people[ID] += first
            first += len(people[ID])
            for fill in near:
                fill.take(people)
            self._labelled.add({name: people[name] for name in people if _is_asked(name) or name in later})
        self._packed.close()
        return True

    def _finish(self) -> bool:
        for fill in self._fills:
            if not fill.whole:
                self._take_apart(fill)
            fill.finish(self._portions, self._sizes)
        asked = [name for name in self._labelled.names if _is_asked(name)]
        for place, people in enumerate(self._portions(asked)):
            self._hand_over(people, more=place > 0)
        self._clear()
        return True

    def _take_apart(self, fill: GroupFill) -> None:
        """Whole cells of a first level that runs cut through, all records in the order of its cells instead."""
        fill.whole = 1
        names = [SPOT, *dict.fromkeys(each.name for each in fill.cells), *fill.digits]
        apart, sizes = Shelf(self.room, APART), fill.cells[0].sizes(self._sizes)
        try:
            for people in self._portions(names):
                apart.add({**people, APART: fill.cells[0].of(people)})
            for low, high in lots(np.arange(len(sizes)), sizes):
                fill.take(apart.between(low, high, [ID, APART, *names]))
        finally:
            apart.close()

    def _portions(self, names: Sequence[str]) -> Iterator[dict[str, Whole]]:
        """Columns of all records with their ids, some at a time."""
        first = 0
        for place, size in enumerate(self._labelled.sizes):
            yield {**self._labelled.block(place, names), ID: np.arange(first, first + size)}
            first += size

    def _hand_over(self, people: dict[str, Whole], *, more: bool) -> None:
        """Give the engine records with ids that follow each other, and what they are given."""
        ids, answers = people.pop(ID), [self.packing.digits[name].answers for name in self.columns]
        lacks = np.logical_or.reduce([people[f"y{item}"] == most for item, most in enumerate(answers)])
        kept = [name for name in people if name[0] != "y" or LINE in people]  # `marked` tells who lacks what
        some = {name: pa.array(each[lacks]) for name, each in people.items()}
        for number, fill in enumerate(self._fills):
            for ring, given in enumerate(fill.gifts):
                digits = given.of(ids[lacks])
                some |= {_column(number, ring, item): each for item, each in enumerate(digits)}
        self.tables.give(PEOPLE, pa.table({name: people[name][~lacks] for name in kept}), more=more)
        self.tables.give(LACKING, pa.table(some), more=more)

    def _runs(self) -> list[tuple[int, int]]:
        """Runs of first cells that hold few enough records, neighbours that make one coarser cell together where that can be.

        Where coarser levels only give up the last attributes, their cells are neighbouring first cells.
        """
        if sum(self._packed.sizes) <= LOT:
            return [EVERY_CELL]
        widths = {self._width(each) for each in capped_domains(self.repair)}
        small = [each for each in widths if each and (each == 1 or self._first(each).max() <= LOT)]
        self._together = width = max(small)
        sizes = self._first(width)
        runs = lots(np.arange(len(sizes)), sizes)
        return [(low * width, (high + 1) * width - 1) for low, high in runs]

    def _first(self, width: int) -> Whole:
        """How many records so many neighbouring first cells have."""
        return CellColumn(FIRST, width).sizes(self._sizes)

    def _width(self, keys: tuple[Key, ...]) -> int | None:
        """How many first cells make up a cell of a partition, side by side; None where they are not side by side."""
        first = capped_domains(self.repair)[0]
        if first[: len(keys)] != keys:
            return None
        return prod(key.size(self.schema) for key in first[len(keys) :])

    def _count(self, people: Mapping[str, Whole]) -> None:
        """How many records each cell has, by the name of its partition."""
        for name in (each for each in people if each.startswith("cell")):
            more, known = np.bincount(people[name]), self._sizes.get(name, np.zeros(0, np.int64))
            longer = max(len(more), len(known))
            self._sizes[name] = np.pad(more, (0, longer - len(more))) + np.pad(
                known, (0, longer - len(known))
            )

    def _group(self, group: CappedDonors, at_once: bool) -> GroupFill:
        """A group's levels and gifts. Levels from the first have whole cells within every run; all have where there is one."""
        names = "|".join(group.columns)
        widths = [self._width(level_keys(level)) for level in group.levels]
        within = [at_once or (width is not None and width <= self._together) for width in widths]
        return GroupFill(
            group,
            cells=[self._cell(level_keys(level)) for level in group.levels],
            digits={
                f"y{self.columns.index(name)}": self.packing.digits[name].answers for name in group.columns
            },
            keys=lambda level, ring: f"{self.repair.key}|{names}|level {level}|ring {ring}",
            whole=within.index(False) if False in within else len(within),
            gifts=[Gifts(Shelf(self.room, ID), len(group.columns)) for _ in range(self.repair.rings)],
        )

    def _cell(self, keys: tuple[Key, ...]) -> CellColumn:
        """Where the cells of a partition are: in a column of their own, or neighbouring first cells."""
        if (width := self._width(keys)) is not None:
            return CellColumn(FIRST, width)
        return CellColumn(f"cell{self.partitions.index(keys)}")


def _is_asked(name: str) -> bool:
    """Whether completed rows are made of a column: not of cells, spots and ids."""
    return name not in (SPOT, ID) and not name.startswith("cell")


def _column(group: int, ring: int, item: int) -> str:
    return f"g{group}_{ring}_{item}"
