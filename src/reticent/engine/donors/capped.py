"""Capped rings: every donor serves the few recipients nearest in front of it, level by level from fine to coarse.

A level divides records into cells and puts those of a cell on a circle, by places of its own. d(x) is the first donor
clockwise from recipient x. It serves x if fewer recipients than the level's cap stand between the two. All recipients stand
on the rings of all levels, served before or not, and x takes what it is given at the first level where it is served. So a
respondent who comes or goes changes a public number of other rows (THEORY 11.2).

Where records stand and who serves them is settled by an engine's own kind of staging: `local.py` and `lots.py` in arrays,
others by statements. Here is what all have in common: which cells are wanted, how rows are told, what stands in where nobody serves.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from reticent.engine.donors.filling import FILL, PACKED, PEOPLE, is_recipient
from reticent.engine.donors.records import ID, LINE, Packing, unpacked
from reticent.engine.protocol import Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql, Values
from reticent.engine.sql.clean import RowView, code
from reticent.engine.sql.predict import predicted
from reticent.engine.wants import Key, level_keys
from reticent.prepare.repair import CappedDonors, Default, Repair
from reticent.schema import Schema


class CappedStaging(ABC):
    """Records in PEOPLE and what their donors give them, each group of columns from original answers.

    Where nothing else is said, PEOPLE holds the records by first cell, spot and label: an `id` is larger where these are, so
    ids settle ties of places. FILL has, for each group of columns and each ring, the digits that recipients are given; who is
    not served has no line there.

    Guarantee   in each ring a donor who comes or goes changes the filled cells of at most `serve` recipients, a recipient
                those of at most one other for each level, anybody else nobody's; filled rows, as a set, are a function of
                the set of records.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/capped.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    records = PACKED
    """What statements read records from; a query in brackets does as well."""

    def __init__(self, tables: Tables, schema: Schema, packing: Packing, repair: Repair) -> None:
        self.tables, self.schema, self.packing, self.repair = tables, schema, packing, repair
        self.cells: RowView = unpacked(schema, packing)
        self.columns = [name for group in repair.capped for name in group.columns]

    @property
    def partitions(self) -> list[tuple[Key, ...]]:
        """Those whose cells are kept of every record."""
        return capped_domains(self.repair)

    def pack(self, statement: str, values: Values) -> None:
        """PACKED: the records that a statement gives."""
        self.tables.make(PACKED, statement, values)

    @abstractmethod
    def place(self) -> None:
        """Labels and spots for the records in PACKED, which is dropped."""

    @abstractmethod
    def fill(self) -> None:
        """Fill every group of columns, in every ring."""

    def unfilled(self, *more: Sql) -> exp.Select:
        """The records that lack nothing donors give, under the names that `cells` knows."""
        found = self._people({}, more).where(exp.not_(exp.or_(*self._asks())), copy=False)
        return self._lined(found, more)

    def completed(self, ring: int, *more: Sql) -> exp.Select:
        """The other records, as one ring fills them."""
        given = self._given(
            lambda number, item: exp.column(f"g{item}", table=fill_name(number, ring), quoted=True)
        )
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

    def _given(self, taken: Callable[[int, int], Sql]) -> dict[str, Sql]:
        """The digits of filled columns: where a record lacks them, what `taken` of a group and its item, else the default."""
        given: dict[str, Sql] = {}
        for number, group in enumerate(self.repair.capped):
            for item, (name, default) in enumerate(zip(group.columns, group.defaults, strict=True)):
                digit = taken(number, item)
                if not default.looks:  # else it stays missing, for a line to fill
                    digit = exp.Coalesce(this=digit, expressions=[self._default(name, default)])
                given[name] = sql.case([(self._lacks(name), digit)])
        return given

    def _people(self, given: Mapping[str, Sql], more: Sequence[Sql], table: str = PEOPLE) -> exp.Select:
        columns = [*self.packing.unpack(self.cells, given), *(each.copy() for each in more)]
        return exp.select(*columns, copy=False).from_(exp.to_table(table), copy=False)

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
