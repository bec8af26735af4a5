"""Capped rings: every donor serves the few recipients nearest in front of it, level by level from fine to coarse.

A level divides records into cells and puts those of a cell on a circle, by places of its own. d(x) is the first donor
clockwise from recipient x. It serves x if fewer recipients than the level's cap stand between the two. All recipients stand
on the rings of all levels, served before or not, and x takes what it is given at the first level where it is served. So a
respondent who comes or goes changes a public number of other rows (THEORY 11.2).

PEOPLE holds the records by label: an `id` is larger where the label is, so ids settle ties of places. FILL has, for each group
of columns and each ring, the digits that recipients are given; who is not served has no line there.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from reticent.engine.donors.circle import LOT, Whole, lots
from reticent.engine.donors.filling import EVERY_CELL, FILL, PACKED, PEOPLE, is_recipient, quietly
from reticent.engine.donors.levels import CellColumn, Gifts, GroupFill, RecordRuns
from reticent.engine.donors.records import ID, LINE, SPOT, Packing, spotted, unpacked
from reticent.engine.protocol import Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.predict import predicted
from reticent.engine.wants import Key, level_keys
from reticent.prepare.repair import CappedDonors, Default, Repair
from reticent.schema import Schema

ORDERED = "ordered_"
MANY = 12  # runs


class CappedStaging:
    """Records in PEOPLE and what their donors give them, each group of columns from original answers.

    Guarantee   in each ring a donor who comes or goes changes the filled cells of at most `serve` recipients, a recipient
                those of at most one other for each level, anybody else nobody's; filled rows, as a set, are a function of
                the set of records.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/capped.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    nested: ClassVar[bool] = True
    """Whether cells that are made of neighbouring first cells are left to be computed from these."""
    records = PACKED
    """What records are read from; a statement in brackets does as well."""

    def __init__(self, tables: Tables, schema: Schema, packing: Packing, repair: Repair) -> None:
        self.tables, self.schema, self.packing, self.repair = tables, schema, packing, repair
        self.cells: RowView = unpacked(schema, packing)
        self.columns = [name for group in repair.capped for name in group.columns]
        self._ids, self._sizes, self._together = list[tuple[int, int]](), dict[str, Whole](), 1
        self._held: dict[str, Whole] | None = None  # all records, where one run has them
        self.in_order = False
        self.filling: Callable[..., GroupFill] = GroupFill

    @property
    def partitions(self) -> list[tuple[Key, ...]]:
        """Those whose cells are kept of every record; cells of the first, side by side, make those of some others."""
        domains = capped_domains(self.repair)
        if not self.nested:
            return domains
        return [each for place, each in enumerate(domains) if not place or self._width(each) is None]

    def put_in_order(self, records: int) -> bool:
        """Whether so many records are to be packed in the order of their first cells."""
        self.in_order = self.nested and records > MANY * LOT
        return self.in_order

    def place(self) -> None:
        """PEOPLE: the records in PACKED, which is dropped, with ids in the order of their labels."""
        runs, self._together = self._runs_of_cells()
        source = PACKED
        if len(runs) > MANY and not self.in_order:
            source = ORDERED  # it is quicker to put them in order once than to look for each run
            self.tables.make(source, f"SELECT * FROM {PACKED} ORDER BY cell0")
            self.tables.drop(PACKED)
        for part, (low, high) in enumerate(runs):
            found = self.tables.ask(f"SELECT * FROM {source} WHERE cell0 BETWEEN {low} AND {high}")
            people = quietly(spotted, found, self.packing.words, self.repair.key)
            first = self._ids[-1][1] + 1 if self._ids else 0
            self._ids.append((first, first + len(people[ID]) - 1))
            people[ID] += first
            if len(runs) > 1:
                self._count(people)
            else:  # all of them are held; of PEOPLE only completed rows are made
                self._held, people = people, {name: people[name] for name in people if _is_asked(name)}
            self.tables.give(PEOPLE, pa.table(people), more=part > 0)
        self.tables.drop(source)

    def fill(self) -> None:
        """Fill every group of columns, in every ring."""
        for number, group in enumerate(self.repair.capped):
            quietly(self._fill, number, group)
        self._held = None

    def unfilled(self, *more: Sql) -> exp.Select:
        """The records that lack nothing donors give, under the names that `cells` knows."""
        found = self._people({}, more).where(exp.not_(exp.or_(*self._asks())), copy=False)
        return self._lined(found, more)

    def completed(self, ring: int, *more: Sql) -> exp.Select:
        """The other records, as one ring fills them."""
        given: dict[str, Sql] = {}
        for number, group in enumerate(self.repair.capped):
            for item, (name, default) in enumerate(zip(group.columns, group.defaults, strict=True)):
                taken: Sql = exp.column(f"g{item}", table=fill_name(number, ring), quoted=True)
                if not default.looks:  # else it stays missing, for a line to fill
                    taken = exp.Coalesce(this=taken, expressions=[self._default(name, default)])
                given[name] = sql.case([(self._lacks(name), taken)])
        query = self._people(given, more)
        for number in range(len(self.repair.capped)):
            table = fill_name(number, ring)
            on = exp.EQ(this=exp.column(ID, table=table), expression=exp.column(ID, table=PEOPLE))
            query = query.join(exp.to_table(table), on=on, join_type="left", copy=False)
        return self._lined(query.where(exp.or_(*self._asks()), copy=False), more)

    def rows(self, ring: int = 0, *more: Sql) -> exp.Select:
        """All rows as one ring completes them."""
        return together([self.unfilled(*more), self.completed(ring, *(each.copy() for each in more))])

    def unserved(self, column: str) -> int:
        """How many recipients of a column's group nobody served, all rings together."""
        number, group = next((i, each) for i, each in enumerate(self.repair.capped) if column in each.columns)
        counts = [
            self.tables.ask(f"SELECT count(*) AS n FROM {table}")
            for table in (
                f"{PEOPLE} WHERE {self._status(group, gives=False)}",
                *(fill_name(number, ring) for ring in range(self.repair.rings)),
            )
        ]
        recipients, *served = (int(each["n"][0]) for each in counts)
        return self.repair.rings * recipients - sum(served)

    def marked(self) -> exp.Select:
        """The rows of the first ring under the columns' own names, a mark for each filled cell, as lines were numbered."""
        marks = [sql.alias(self._lacks(name), f"{name}_filled") for name in self.columns]
        names = [sql.alias(code(name), name) for name in self.schema.coded]
        flags = [sql.column(f"{name}_filled") for name in self.columns]
        query = sql.select([*names, *flags], self.rows(0, *marks, sql.column(LINE)))
        return query.order_by(sql.column(LINE))

    def drop(self) -> None:
        fills = [fill_name(g, r) for g in range(len(self.repair.capped)) for r in range(self.repair.rings)]
        for name in (PACKED, ORDERED, PEOPLE, *fills):
            self.tables.drop(name)

    def _people(self, given: Mapping[str, Sql], more: Sequence[Sql]) -> exp.Select:
        columns = [*self.packing.unpack(self.cells, given), *(each.copy() for each in more)]
        return exp.select(*columns, copy=False).from_(exp.to_table(PEOPLE), copy=False)

    def _lined(self, rows: exp.Select, more: Sequence[Sql]) -> exp.Select:
        """The rows with what is still missing filled from released lines, in their order."""
        if not self.repair.lines:
            return rows
        keep = [each.alias_or_name for each in more]
        return predicted(self.cells, rows, self.repair.lines, self.schema.in_universe_order, keep=keep)

    def _asks(self) -> list[Sql]:
        return [self._lacks(name) for name in self.columns]

    def _lacks(self, name: str) -> Sql:
        return is_recipient(self.packing.digits[name], self.columns.index(name))

    def _default(self, name: str, default: Default) -> Sql:
        """The digit of the public stand-in: a function of the record's own answers, none of them filled."""
        low = self.packing.digits[name].low
        if default.by is None:
            return sql.number(default.code - low)
        digit = self.packing.digits[default.by]
        branches = [
            (exp.EQ(this=exp.Paren(this=digit.value()), expression=sql.number(level)), sql.number(each - low))
            for level, each in enumerate(default.codes)
        ]
        return sql.case(branches, sql.number(default.code - low))

    def _runs_of_cells(self) -> tuple[list[tuple[int, int]], int]:
        """Runs of first cells that hold few enough records, and how many neighbouring cells always stand together in one.

        Where coarser levels only give up the last attributes, their cells are neighbouring first cells.
        """
        (records,) = self.tables.ask(f"SELECT count(*) AS n FROM {PACKED}")["n"]
        if records <= LOT:
            return [EVERY_CELL], 1
        found = self.tables.ask(f"SELECT cell0 AS cell, count(*) AS n FROM {PACKED} GROUP BY cell0")
        widths = {self._width(each) for each in capped_domains(self.repair)}
        for width in sorted((each for each in widths if each), reverse=True):
            sizes = np.bincount(found["cell"] // width, weights=found["n"]).astype(np.int64)
            if width == 1 or sizes.max() <= LOT:
                runs = lots(np.arange(len(sizes)), sizes)
                return [(low * width, (high + 1) * width - 1) for low, high in runs], width
        return lots(found["cell"], found["n"]), 1

    def _width(self, keys: tuple[Key, ...]) -> int | None:
        """How many first cells make up a cell of a partition, side by side; None where they are not side by side."""
        first = capped_domains(self.repair)[0]
        if first[: len(keys)] != keys:
            return None
        return prod(key.size(self.schema) for key in first[len(keys) :])

    def _whole_levels(self, group: CappedDonors) -> int:
        """How many of the group's levels, from the first, have every cell within one run."""
        widths = [self._width(level_keys(level)) for level in group.levels]
        within = [width is not None and width <= self._together for width in widths]
        return within.index(False) if False in within else len(within)

    def _count(self, people: Mapping[str, Whole]) -> None:
        """How many records each cell has, by the name of its partition."""
        for name in (each for each in people if each.startswith("cell")):
            more, known = np.bincount(people[name]), self._sizes.get(name, np.zeros(0, np.int64))
            longer = max(len(more), len(known))
            self._sizes[name] = np.pad(more, (0, longer - len(more))) + np.pad(
                known, (0, longer - len(known))
            )

    def _fill(self, number: int, group: CappedDonors) -> bool:
        """For each ring, who was served and with which digits: the tables of `fill_name`."""
        names = "|".join(group.columns)
        self.filling(
            self.tables,
            group,
            cells=[self._cell(level_keys(level)) for level in group.levels],
            digits={
                f"y{self.columns.index(name)}": self.packing.digits[name].answers for name in group.columns
            },
            keys=lambda level, ring: f"{self.repair.key}|{names}|level {level}|ring {ring}",
            held=self._held,
            runs=RecordRuns(self._ids, self._whole_levels(group), self._sizes),
        ).run(
            [Gifts(self.tables, fill_name(number, r), len(group.columns)) for r in range(self.repair.rings)]
        )
        return True

    def _cell(self, keys: tuple[Key, ...]) -> CellColumn:
        """Where the cells of a partition are: in a column of their own, or neighbouring first cells."""
        if (width := self._width(keys)) is not None:
            return CellColumn("cell0", width)
        return CellColumn(f"cell{self.partitions.index(keys)}")

    def _status(self, group: CappedDonors, *, gives: bool) -> str:
        """Who answered everything in the group, or who lacks some of it."""
        digits = [(self.columns.index(name), self.packing.digits[name].answers) for name in group.columns]
        if gives:
            return "(" + " AND ".join(f"y{i} < {answers}" for i, answers in digits) + ")"
        return "(" + " OR ".join(f"y{i} = {answers}" for i, answers in digits) + ")"


def together(parts: Sequence[exp.Select]) -> exp.Select:
    """The rows of all parts, which have the same columns."""
    both: exp.Select | exp.Union = parts[0]
    for part in parts[1:]:
        both = exp.Union(this=both, expression=part, distinct=False)
    return exp.select(exp.Star()).from_(both.subquery("t", copy=False), copy=False)


def capped_domains(repair: Repair) -> list[tuple[Key, ...]]:
    """The partitions that levels make, each once."""
    return list(dict.fromkeys(level_keys(level) for group in repair.capped for level in group.levels))


def _is_asked(name: str) -> bool:
    """Whether completed rows are made of a column of PEOPLE: not of cells and spots."""
    return name != SPOT and not name.startswith("cell")


def fill_name(group: int, ring: int) -> str:
    """The table of what a ring gives to a group of columns."""
    return f"{FILL}{group}_{ring}"
