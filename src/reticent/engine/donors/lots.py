"""Capped rings of an engine elsewhere: records stay there, and come here a lot at a time, where donors serve in arrays.

A lot is a run of whole first cells with at most LOT records: packed words and cell numbers, and nothing else. It is served
as local records are (`GroupFill`), and only those who lack something go back, with ids and gifts. Levels whose cells have more
than a lot read all lots again, and keep what stands near somebody who asks. So what is held here is bounded, whatever the
number of rows. Where it would not be, since a first cell or those whom the finer levels leave are beyond a lot, donors serve by
windows on the engine. Both ways the same recipients are served by the same donors.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from reticent.engine.donors.capped import ORDERED, CappedStaging, capped_domains, fill_name
from reticent.engine.donors.circle import LOT, Whole
from reticent.engine.donors.filling import EVERY_CELL, PACKED, PEOPLE, quietly
from reticent.engine.donors.levels import Gifts, GroupFill, Left, Members
from reticent.engine.donors.records import ID, OWNER, SPOT, Packing, spotted
from reticent.engine.protocol import LotTables
from reticent.engine.sql.build import Sql
from reticent.prepare.repair import Repair
from reticent.schema import Schema
from reticent.schema.schema import ROW

MOST = 2**27  # records: coarse levels keep a flag for each arc, of five records or more
MOST_LEFT = 2**18  # recipients whom no level inside of lots has served, in all rings

Records = dict[str, Whole]


class LotStaging(CappedStaging):
    """Capped donors of an engine whose records come a lot at a time.

    Guarantee   as `CappedStaging`: the same recipients are served by the same donors.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/capped.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    tables: LotTables
    windows: ClassVar[type[CappedStaging]]
    """How donors serve on this engine where no lot will do; its `records` are the statement that it reads."""

    def __init__(self, tables: LotTables, schema: Schema, packing: Packing, repair: Repair) -> None:
        super().__init__(tables, schema, packing, repair)
        self._there: CappedStaging | None = None
        self._source, self._runs = PACKED, [EVERY_CELL]
        self.filling = partial(LotFill, lots=self._lots)

    def put_in_order(self, records: int) -> bool:
        self.in_order = records > LOT
        return self.in_order

    def place(self) -> None:
        """PEOPLE: the records that lack something, with ids in the order of all records' labels."""
        if not self._fits():
            self._serve_there()
            return
        if self._runs != [EVERY_CELL]:
            self._seek()
        for part, people in enumerate(self._lots()):
            self._ids.append((int(people[ID].min(initial=0)), int(people[ID].max(initial=0))))
            if self._runs == [EVERY_CELL]:
                self._held = people
            else:
                self._count(people)
            self.tables.give(PEOPLE, quietly(self._lacking, people), more=part > 0)

    def fill(self) -> None:
        """Fill every group of columns, in every ring; by windows after all, where too many recipients are left."""
        if self._there is None:
            try:
                super().fill()
            except TooManyLeft:
                self._drop_here()
                self._serve_there()
        if self._there is not None:
            self._there.fill()

    def unfilled(self, *more: Sql) -> exp.Select:
        if self._there is not None:
            return self._there.unfilled(*more)
        columns = [*self.packing.unpack(self.cells, {}), *(each.copy() for each in more)]
        found = exp.select(*columns, copy=False).from_(exp.to_table(self._source), copy=False)
        return self._lined(found.where(exp.not_(exp.or_(*self._asks())), copy=False), more)

    def completed(self, ring: int, *more: Sql) -> exp.Select:
        return super().completed(ring, *more) if self._there is None else self._there.completed(ring, *more)

    def unserved(self, column: str) -> int:
        return super().unserved(column) if self._there is None else self._there.unserved(column)

    def drop(self) -> None:
        if self._there is not None:
            self._there.drop()
        self._drop_here()
        self.tables.drop(ORDERED)
        self.tables.drop(PACKED)

    def _drop_here(self) -> None:
        fills = [fill_name(g, r) for g in range(len(self.repair.capped)) for r in range(self.repair.rings)]
        for name in (PEOPLE, *fills):
            self.tables.drop(name)

    def _fits(self) -> bool:
        """Whether lots hold the records: whole first cells together, of a number that is not too large."""
        self._runs, self._together = self._runs_of_cells()
        if self._runs == [EVERY_CELL]:
            return True
        sizes = f"SELECT cell0, count(*) AS n FROM {PACKED} GROUP BY cell0"
        found = self.tables.ask(f"SELECT max(n) AS most, CAST(sum(n) AS BIGINT) AS n FROM ({sizes}) s")
        whole = all(self._whole_levels(group) for group in self.repair.capped)
        return whole and int(found["most"][0]) <= LOT and int(found["n"][0]) <= MOST

    def _seek(self) -> None:
        """The records in the order of their first cells, so that a lot is found without a look at all of them."""
        if not self.in_order:
            self._source = ORDERED
            self.tables.make(ORDERED, f"SELECT * FROM {PACKED} ORDER BY cell0")
            self.tables.drop(PACKED)
        self.tables.seek(self._source, "cell0")

    def _lots(self) -> Iterator[Records]:
        """All records, whole first cells together, with spots, ids and the digits that donors give; the same each time."""
        cells = [f"cell{i}" for i in range(len(self.partitions))]
        names = [*self.packing.words, *cells, *[OWNER] * (self.schema.unit != ROW)]
        first = 0
        for low, high in self._runs:
            every = (low, high) == EVERY_CELL
            where = "" if every else f" WHERE cell0 BETWEEN {low} AND {high}"
            people = quietly(self._labelled, self.tables.lot(names, f"{self._source}{where}"), first)
            first += len(people[ID])
            yield people

    def _labelled(self, found: Records, first: int) -> Records:
        people = spotted(found, self.packing.words, self.repair.key)
        people[ID] += first
        for i, name in enumerate(self.columns):
            digit = self.packing.digits[name]
            people[f"y{i}"] = people[digit.word] // digit.below % digit.size
        return people

    def _lacking(self, people: Mapping[str, Whole]) -> pa.Table:
        """The records that lack something, as completed rows are made of them."""
        digits = [(people[f"y{i}"], self.packing.digits[name].answers) for i, name in enumerate(self.columns)]
        which = np.flatnonzero(np.logical_or.reduce([y == answers for y, answers in digits]))
        kept = [name for name in people if name != SPOT and not name.startswith("cell")]
        return pa.table({name: people[name][which] for name in kept})

    def _serve_there(self) -> None:
        """Windows on the engine, over the same records with their cells in every partition."""
        there = self.windows(self.tables, self.schema, self.packing, self.repair)
        there.records = self._every_cell()
        there.place()
        self._there = there

    def _every_cell(self) -> str:
        """The records with their cells in every partition, as windows know them."""
        sign, cells = self.packing.dialect.int_div_sign, []
        for i, keys in enumerate(capped_domains(self.repair)):
            cell = self._cell(keys)
            cells.append(f"{cell.name}{f' {sign} {cell.width}' if cell.width > 1 else ''} AS cell{i}")
        owner = [OWNER] * (self.schema.unit != ROW)
        digits = [f"y{i}" for i in range(len(self.columns))]
        return f"(SELECT {', '.join([*self.packing.words, *owner, *cells, *digits])} FROM {self._source})"


class TooManyLeft(Exception):
    """More recipients are left by the finer levels than are held. Nobody but `LotStaging` hears of it."""


class LotFill(GroupFill):
    """A group of columns filled from records that come a lot at a time, or from all of them where they are held."""

    def __init__(self, *given: Any, lots: Callable[[], Iterator[Records]], **named: Any) -> None:
        super().__init__(*given, **named)
        self._lots, self._waiting = lots, list[Left]()

    def _serve_all(self, members: Members, ring: int, gifts: Gifts) -> Left:
        self._waiting.append(super()._serve_all(members, ring, gifts))
        return self._waiting[-1]

    def _first(self) -> Iterator[Members]:
        if self.held is not None:
            yield from super()._first()
            return
        for people in self._lots():
            yield self._of(people)
            if sum(len(each.label) for each in self._waiting) > MOST_LEFT:
                raise TooManyLeft

    def _portions(self, level: int) -> Iterator[Members]:
        return map(self._of, self._lots())
