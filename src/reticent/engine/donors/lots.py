"""Capped rings of an engine elsewhere: records stay there, and come here a lot at a time, where donors serve in arrays.

A lot is a run of whole first cells with at most LOT records: packed words and cell numbers, and nothing else. It is served
as local records are (`RunStaging`), and only those who lack something go back, with ids and gifts. Levels whose cells have
more than a lot read all lots again, and keep what stands near somebody who asks. Nothing is written to a file here, and what is
held is bounded, whatever the number of rows. Where it would not be, since a first cell or those whom the finer levels leave are
too many, donors serve by windows on the engine. Both ways the same recipients are served by the same donors.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from reticent.engine.donors.capped import CappedStaging, capped_domains, fill_name
from reticent.engine.donors.circle import LOT, Whole
from reticent.engine.donors.filling import EVERY_CELL, PACKED, PEOPLE, quietly
from reticent.engine.donors.levels import HELD, Gifts
from reticent.engine.donors.records import ID, OWNER, SPOT, Packing, spotted
from reticent.engine.donors.runs import FIRST, RunStaging
from reticent.engine.protocol import LotTables
from reticent.engine.sql.build import Sql, Values
from reticent.prepare.repair import Repair
from reticent.schema import Schema
from reticent.schema.schema import ROW

ORDERED = "ordered_"
MOST = 2**27  # records: coarse levels keep a flag for each arc, of five records or more
MOST_LEFT = 2**18  # recipients whom no level inside of lots has served, in all rings

Records = dict[str, Whole]


class LotStaging(RunStaging):
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
        self._source, self._runs, self._in_order = PACKED, [EVERY_CELL], False

    def pack(self, statement: str, values: Values) -> None:
        """PACKED: the records, in the order of their first cells where they are known to be more than a lot."""
        self._in_order = self.tables.records_at_most() > LOT
        if self._in_order:
            statement = f"SELECT * FROM ({statement}) p ORDER BY {FIRST}"
        self.tables.hold(PACKED, statement, values)

    def place(self) -> None:
        """Label the records and serve whom the levels inside of lots serve, or all of it by windows where lots will not do."""
        done = False
        if self._fits():
            if len(self._runs) > 1:
                self._seek()
            with suppress(TooManyLeft):
                done = quietly(self._place)
        if not done:
            self._fills = []
            self._drop_here()
            self._serve_there()

    def fill(self) -> None:
        """Serve the others, by all lots once more."""
        if self._there is None:
            quietly(self._finish)
        else:
            self._there.fill()

    def unfilled(self, *more: Sql) -> exp.Select:
        if self._there is not None:
            return self._there.unfilled(*more)
        found = self._people({}, more, self._source)
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

    def _gifts(self, number: int, ring: int) -> Gifts:
        return SentGifts(self.tables, fill_name(number, ring), len(self.repair.capped[number].columns))

    def _place(self) -> bool:
        """PEOPLE: the records that lack something, with ids in the order of all records, and gifts of the finer levels."""
        self._sizes = {}
        for part, people in enumerate(self._lots()):
            if len(self._runs) > 1:
                self._count(people)
            for fill in self._fills:
                fill.take(people)
            if sum(fill.left for fill in self._fills) > MOST_LEFT:
                raise TooManyLeft
            self.tables.give(PEOPLE, self._lacking(people), more=part > 0)
            self._send()
        return True

    def _send(self) -> None:
        """Gifts of all groups and rings, as soon as they are many together."""
        gifts = [given for fill in self._fills for given in fill.gifts]
        if sum(given.waiting for given in gifts) > HELD:
            for given in gifts:
                given.give()

    def _finish(self) -> bool:
        for fill in self._fills:
            fill.finish(self._portions, self._sizes)
        return True

    def _portions(self, names: Sequence[str]) -> Iterator[Records]:
        """All records once more: labels are made of every word, so that nothing less than a lot comes."""
        return self._lots()

    def _fits(self) -> bool:
        """Whether lots hold the records: whole first cells together, of a number that is not too large."""
        (records,) = self.tables.ask(f"SELECT count(*) AS n FROM {PACKED}")["n"]
        if records > MOST:
            return False
        if records > LOT:
            found = self.tables.ask(f"SELECT {FIRST} AS cell, count(*) AS n FROM {PACKED} GROUP BY {FIRST}")
            self._sizes = {FIRST: np.bincount(found["cell"], weights=found["n"]).astype(np.int64)}
            if self._sizes[FIRST].max() > LOT:
                return False
        self._runs = self._runs_of(int(records))
        self._fills = self._groups(len(self._runs))
        return all(fill.whole for fill in self._fills)

    def _seek(self) -> None:
        """The records in the order of their first cells, so that a lot is found without a look at all of them."""
        if not self._in_order:
            self._source = ORDERED
            self.tables.make(ORDERED, f"SELECT * FROM {PACKED} ORDER BY {FIRST}")
            self.tables.drop(PACKED)
        self.tables.seek(self._source, FIRST)

    def _lots(self) -> Iterator[Records]:
        """All records, whole first cells together, with spots, ids and the digits that donors give; the same each time."""
        cells = [f"cell{i}" for i in range(len(self.partitions))]
        names = [*self.packing.words, *cells, *[OWNER] * (self.schema.unit != ROW)]
        first = 0
        for low, high in self._runs:
            every = (low, high) == EVERY_CELL
            where = "" if every else f" WHERE {FIRST} BETWEEN {low} AND {high}"
            people = self._labelled(self.tables.lot(names, f"{self._source}{where}"), first)
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


class SentGifts(Gifts):
    """Gifts that go to a table of the engine, where completed rows are made."""

    def __init__(self, tables: LotTables, name: str, items: int) -> None:
        super().__init__(items)
        self.tables, self.name = tables, name
        self._is_begun = False

    def put(self, columns: dict[str, Whole]) -> None:
        self.tables.give(self.name, pa.table(columns), more=self._is_begun)
        self._is_begun = True
