"""Capped rings: every donor serves the few recipients nearest in front of it, level by level from fine to coarse.

A level divides records into cells and puts those of a cell on a circle, by places of its own. d(x) is the first donor
clockwise from recipient x. It serves x if fewer recipients than the level's cap stand between the two. All recipients stand
on the rings of all levels, served before or not, and x takes what it is given at the first level where it is served. So a
respondent who comes or goes changes a public number of other rows (THEORY 11.2).

PEOPLE holds the records by label: an `id` is larger where the label is, so ids settle ties of places. FILL has, for each group
of columns and each ring, the digits that recipients are given; who is not served has no line there.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.donors.circle import LOT, Whole, coefficients, cubic, lots, order_of
from reticent.engine.donors.filling import FILL, ID, PACKED, PEOPLE, is_recipient, quietly, runs_of
from reticent.engine.donors.records import LINE, SPOT, Packing, spotted, unpacked
from reticent.engine.protocol import Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.predict import predicted
from reticent.engine.wants import Key, level_keys
from reticent.prepare.repair import CappedDonors, Default, Repair
from reticent.schema import Schema

NOBODY = -1  # the digit of a recipient who is not served yet


def serve(cell: Whole, place: Whole, label: Whole, gives: NDArray[np.bool_], cap: int) -> tuple[Whole, Whole]:
    """Which recipients are served on the rings of some cells, and by whom: places in the arrays, side by side.

    Everybody is a donor or a recipient, and cells are whole.

    Guarantee   a donor who comes or goes changes who serves at most `cap` recipients of its cell; a recipient who comes
                or goes, at most one other.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2, at one level.
    Proof       proofs/engine/capped.md
    Assumes     `place` and `label` are functions of the record, labels of different records differ.
    Keeps back  all of it.
    """
    order = order_of(cell, place, [label])
    held, donor = cell[order], gives[order]
    at = np.arange(len(order))
    new = np.append(True, held[1:] != held[:-1])[: len(order)]
    firsts = np.flatnonzero(new)
    who = np.flatnonzero(~donor)
    ring = np.searchsorted(firsts, who, side="right") - 1
    start, end = firsts[ring], np.append(firsts[1:], len(order))[ring] if len(firsts) else firsts[ring]
    ahead = np.minimum.accumulate(np.where(donor, at, len(order))[::-1])[::-1]
    onward, front = ahead[who], ahead[start]
    around = onward >= end  # past the start of the circle, to the first donor of the cell
    before = np.where(around, end - who - 1 + front - start, onward - who - 1)
    served = (front < end) & (before < cap)
    return order[who[served]], order[np.where(around, front, onward)[served]]


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

    def __init__(self, tables: Tables, schema: Schema, packing: Packing, repair: Repair) -> None:
        self.tables, self.schema, self.packing, self.repair = tables, schema, packing, repair
        self.cells: RowView = unpacked(schema, packing)
        self.columns = [name for group in repair.capped for name in group.columns]

    def place(self) -> None:
        """PEOPLE: the records in PACKED, which is dropped, in the order of their labels."""
        first = 0
        for part, (low, high) in enumerate(runs_of(self.tables)):
            found = self.tables.ask(f"SELECT * FROM {PACKED} WHERE cell0 BETWEEN {low} AND {high}")
            people = quietly(spotted, found, self.packing.words, self.repair.key)
            ids = np.arange(first, first + len(people), dtype=np.int64)
            self.tables.give(PEOPLE, people.append_column(ID, pa.array(ids)), more=part > 0)
            first += len(people)
        self.tables.drop(PACKED)

    def fill(self) -> None:
        """Fill every group of columns, in every ring."""
        for number, group in enumerate(self.repair.capped):
            for ring, table in enumerate(quietly(self._filled, group)):
                self.tables.give(fill_name(number, ring), table)

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
        for name in (PACKED, PEOPLE, *fills):
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

    def _filled(self, group: CappedDonors) -> list[pa.Table]:
        """For each ring, who was served and with which digits."""
        asks = self._status(group, gives=False)
        ids = self.tables.ask(f"SELECT id FROM {PEOPLE} WHERE {asks} ORDER BY id")["id"]
        given = [
            [np.full(len(ids), NOBODY, np.int64) for _ in group.columns] for _ in range(self.repair.rings)
        ]
        for place, lines in self._lines(group):
            for ring, digits in enumerate(given):
                self._serve(group, place, ring, lines, ids, digits)
        found = []
        for digits in given:
            served = np.flatnonzero(digits[0] != NOBODY)
            found.append(
                pa.table({ID: ids[served], **{f"g{i}": each[served] for i, each in enumerate(digits)}})
            )
        return found

    def _serve(
        self,
        group: CappedDonors,
        level: int,
        ring: int,
        lines: dict[str, Whole],
        ids: Whole,
        digits: list[Whole],
    ) -> None:
        """Give those whom this level serves, and no level before it, their donors' digits."""
        cell, gives = lines["cell"], lines["gives"] == 1
        key = f"{self.repair.key}|{'|'.join(group.columns)}|level {level}|ring {ring}"
        place = cubic(lines[SPOT], coefficients(key, 4))
        taker, donor = serve(cell, place, lines["id"], gives, group.levels[level].serve)
        at = np.searchsorted(ids, lines["id"][taker])
        free = digits[0][at] == NOBODY
        for item, each in enumerate(digits):
            each[at[free]] = lines[f"y{item}"][donor[free]]

    def _lines(self, group: CappedDonors) -> Iterator[tuple[int, dict[str, Whole]]]:
        """Donors and recipients, some cells of a level at a time, with the number of the level."""
        domains = capped_domains(self.repair)
        gives, asks = self._status(group, gives=True), self._status(group, gives=False)
        items = ", ".join(f"y{self.columns.index(name)} AS y{i}" for i, name in enumerate(group.columns))
        for place, level in enumerate(group.levels):
            cell = f"cell{domains.index(level_keys(level))}"
            people = f"FROM {PEOPLE} WHERE ({gives} OR {asks})"
            for low, high in self._lots(cell, people):
                yield (
                    place,
                    self.tables.ask(
                        f"SELECT id, {cell} AS cell, {SPOT}, CAST({gives} AS INTEGER) AS gives, {items} {people} "
                        f"AND {cell} BETWEEN {low} AND {high}"
                    ),
                )

    def _lots(self, cell: str, people: str) -> list[tuple[int, int]]:
        found = self.tables.ask(f"SELECT {cell} AS cell, count(*) AS n {people} GROUP BY {cell}")
        if int(found["n"].sum()) <= LOT:
            return [(0, 2**31 - 1)]
        return lots(found["cell"], found["n"])

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


def fill_name(group: int, ring: int) -> str:
    """The table of what a ring gives to a group of columns."""
    return f"{FILL}{group}_{ring}"
