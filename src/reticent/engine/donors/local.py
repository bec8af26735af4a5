"""Capped donors in local arrays, however many records there are: each is read once, sorted once, and filled where it lies.

What the survey gives is put aside in blocks by first cell, in `Shelf`s. Runs of whole cells are taken up one after the other,
at most a few million records each unless one cell has more: labelled, put in the order of labels, and served at all levels
whose cells are whole within a run. For coarser levels, and for groups that match on something else first, spots and digits of
all records are kept and read again. At last the engine has two tables: PEOPLE, whose records lack nothing that donors give,
and LACKING, the others with what every ring gives them.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from reticent.engine.donors.circle import Whole, lots
from reticent.engine.donors.filling import PEOPLE, quietly
from reticent.engine.donors.levels import GroupFill, KeptGifts
from reticent.engine.donors.records import ID, LINE, SPOT, Packing, spotted
from reticent.engine.donors.runs import FIRST, RunStaging
from reticent.engine.donors.shelf import Room, Shelf
from reticent.engine.protocol import LocalTables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql, Values
from reticent.prepare.repair import Repair
from reticent.schema import Schema

LACKING, APART = "lacking_", "apart_"


class LocalCapped(RunStaging):
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
        self._kept = dict[tuple[int, int], KeptGifts]()

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
        for shelf in (self._packed, self._labelled, *(given.shelf for given in self._kept.values())):
            shelf.close()

    def _gifts(self, number: int, ring: int) -> KeptGifts:
        items = len(self.repair.capped[number].columns)
        self._kept[number, ring] = KeptGifts(Shelf(self.room, ID), items)
        return self._kept[number, ring]

    def _place(self) -> bool:
        runs = self._runs_of(sum(self._packed.sizes))
        self._fills = self._groups(len(runs))
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
        for (number, ring), given in self._kept.items():
            digits = given.of(ids[lacks])
            some |= {_column(number, ring, item): each for item, each in enumerate(digits)}
        self.tables.give(PEOPLE, pa.table({name: people[name][~lacks] for name in kept}), more=more)
        self.tables.give(LACKING, pa.table(some), more=more)


def _is_asked(name: str) -> bool:
    """Whether completed rows are made of a column: not of cells, spots and ids."""
    return name not in (SPOT, ID) and not name.startswith("cell")


def _column(group: int, ring: int, item: int) -> str:
    return f"g{group}_{ring}_{item}"
