"""Donor imputation carried out: the clean rows in a table of their own, donors' answers filled in, dropped at the end.

Only names of ours and whole numbers stand in the statements. PACKED holds one line for each record, its words and its
cells, and PEOPLE the same with an id and its place on the circle. VISITS says in which other cells a cell's recipients look
for donors. TAKEN, TIED and GAPS are what comes of it: `Matches`. FILL has each recipient's new digit. Donors are matched in
local arrays: records are fetched some cells at a time, placed and matched, and what came of it given back. What is held at
a time has a limit, unless one cell holds more.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.donors.circle import LOT, lots
from reticent.engine.donors.matching import OWN, ClassTable, Counts, MatchPlan, offers, visits
from reticent.engine.donors.records import ID, LINE, Digit, Packing, labelled, order_of, unpacked
from reticent.engine.protocol import DonorMatcher, Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql
from reticent.engine.sql.clean import RowView, code, named
from reticent.engine.sql.tallies import cell_of
from reticent.engine.wants import (
    NOBODY_SERVES,
    NOT_COUNTED,
    Blocks,
    BlockTable,
    Key,
    Ring,
    RingTable,
    keys_of,
)
from reticent.errors import EngineError, PlanError
from reticent.prepare.distance import Distances, distances_of
from reticent.prepare.repair import Donors, Repair, Scheme
from reticent.schema import Schema

PACKED, PEOPLE, VISITS, FILL = "packed_", "people_", "visits_", "fill_"
TAKEN, TIED, GAPS = "taken_", "tied_", "gaps_"


@dataclass(frozen=True, slots=True, kw_only=True)
class DonorSql:
    """One column's donors: its `place` among those filled, its `digit`, the number of its `domain`, and the `order`
    of records on the circle."""

    donors: Donors
    place: int
    digit: Digit
    domain: int
    order: tuple[str, ...]

    def classes(self) -> str:
        """The class table."""
        return f"""
            SELECT cell, count(*) FILTER (WHERE {self._gives}) AS donors,
                count(*) FILTER (WHERE {self._asks}) AS recipients
            FROM ({self._records}) GROUP BY cell"""

    def lines(self, *, far: bool, cells: tuple[int, int]) -> str:
        """Donors and visitors of the `cells`, from the first to the last. `far` says whether some come from others."""
        order = ", ".join(self.order)
        visitor = ", ".join(f"p.{name}" for name in self.order)
        away = f""" UNION ALL SELECT p.id, v.other, p.y, v.visit, {visitor}
            FROM ({self._records}) p JOIN {VISITS} v ON v.cell = p.cell WHERE {self._asks}"""
        return f"""
            SELECT id, cell, y, visit, {order} FROM (
                SELECT id, cell, y, CAST({OWN} AS INTEGER) AS visit, {order}
                FROM ({self._records}) WHERE {self._gives} OR {self._asks}{away if far else ""})
            WHERE cell BETWEEN {cells[0]} AND {cells[1]}"""

    def filled(self, *, missing: int) -> str:
        """Every recipient with the digit its donors give; `missing` donors are public ones.

        Where cells are tied, each offers as many donors as are taken from all; the first on the common ring are
        chosen.
        """
        picked = f"""SELECT id, y FROM {TAKEN} UNION ALL SELECT id, y FROM (
            SELECT id, y, take,
                row_number() OVER (PARTITION BY id, distance ORDER BY around, {", ".join(self.order)}) AS turn
            FROM {TIED}) WHERE turn <= take"""
        if missing:
            stand_in = ", ".join(f"({code - self.digit.low})" for code in self.donors.defaults[:missing])
            picked += f""" UNION ALL SELECT p.id, d.y
                FROM (SELECT id FROM ({self._records}) WHERE {self._asks}) p, (VALUES {stand_in}) d(y)"""
        return _made_of(self.digit.dialect, picked, self.donors, self.digit.answers)

    def gaps(self, rows: str, sums: Sequence[str], by: str = "0") -> str:
        """The `sums` over recipients among `rows`, by cell, by the donor who comes first, -1 where none is, and `by`."""
        named = ", ".join(f"CAST(sum({each}) AS BIGINT) AS s{i}" for i, each in enumerate(sums))
        return f"""
            SELECT p.cell{self.domain} AS cell, coalesce(v.gap, -1) AS gap, {by} AS part, {named}
            FROM ({rows}) p LEFT JOIN {GAPS} v USING (id) GROUP BY 1, 2, 3"""

    @property
    def _records(self) -> str:
        order = ", ".join(self.order)
        return f"SELECT id, cell{self.domain} AS cell, y{self.place} AS y, {order} FROM {PEOPLE}"

    @property
    def _gives(self) -> str:
        return f"y < {self.digit.answers}"

    @property
    def _asks(self) -> str:
        return f"y = {self.digit.answers}"


def is_recipient(digit: Digit, place: int) -> Sql:
    """Whether a record in PEOPLE lacks the column that is filled in that place."""
    return exp.EQ(this=sql.column(f"y{place}"), expression=sql.number(digit.answers))


def _made_of(dialect: Dialect, picked: str, donors: Donors, answers: int) -> str:
    """What the scheme makes of `picked`, a donor's digit a line: itself, the rounded mean, the most frequent."""
    k = donors.k
    if donors.scheme is Scheme.NEAREST:
        return picked
    if donors.scheme is Scheme.MEAN:
        return f"SELECT id, CAST((2 * sum(y) + {k}) {dialect.int_div_sign} {2 * k} AS BIGINT) AS y FROM ({picked}) GROUP BY id"
    # The largest of m A + (A - 1 - y) belongs to the most frequent digit and, of those, to the lowest.
    best = f"max(CAST(m AS {dialect.wide_int()}) * {answers} + {answers - 1} - y)"
    return f"""SELECT id, CAST({answers - 1} - {best} % {answers} AS BIGINT) AS y
        FROM (SELECT id, y, count(*) AS m FROM ({picked}) GROUP BY id, y) GROUP BY id"""


T = TypeVar("T")


def quietly(work: Callable[..., T], *given: object) -> T:
    """What `work` gives. Where memory is short, how much it wanted is not told: that depends on the rows."""
    found = None
    with suppress(MemoryError):
        found = work(*given)
    if found is None:
        raise EngineError("the rows do not fit into memory; free some", field="source")
    return found


MOST_ROWS = 2**40
LARGEST = 2**63


class DonorStaging:
    """Records in PEOPLE and what donors give them, one column after the other, each from original answers.

    Guarantee   every recipient has the answers of the first k donors in its own order, and rings are those of
                that order; filled rows, as a set, are a function of the set of records.
    Adjacency   one record added or removed.
    Theorem     THEORY 3.1a.
    Proof       proofs/engine/rings.md
    Assumes     no column is matched on that donors fill; weights of attributes are above 0.
    Keeps back  all of it until noise is added.
    """

    def __init__(
        self, tables: Tables, schema: Schema, packing: Packing, repair: Repair, matcher: DonorMatcher
    ) -> None:
        self.tables, self.schema, self.packing, self.repair = tables, schema, packing, repair
        self.matcher = matcher
        self.cells: RowView = unpacked(schema, packing)
        self.blocks: dict[Blocks, BlockTable] = {}

    def place(self) -> None:
        """PEOPLE: the records in PACKED, which is dropped, with their places."""
        self.matcher.place(self.tables, self.packing.words, self.repair.key)

    def fill(self, wants: Sequence[Ring], blocks: Sequence[Blocks] = ()) -> dict[Ring, RingTable]:
        """Fill every column that donors fill, and read off the rings and blocks that are wanted."""
        found: dict[Ring, RingTable] = {}
        for place, donors in enumerate(self.repair.donors):
            asked = [want for want in wants if want.column == donors.column]
            mine = [want for want in blocks if want.ring.column == donors.column]
            found |= self._fill(donors, place, asked, mine)
        return found

    def rows(self, *more: Sql) -> exp.Select:
        """The filled rows under the names that `cells` knows. Only those with something filled look it up."""
        tables = [f"{FILL}{place}" for place in range(len(self.repair.donors))]
        asks = [is_recipient(self.packing.digits[d.column], i) for i, d in enumerate(self.repair.donors)]
        given = {
            donors.column: exp.column("y", table=table, quoted=True)
            for donors, table in zip(self.repair.donors, tables, strict=True)
        }
        some, none = self._people(given, more), self._people({}, more)
        for table in tables:
            on = exp.EQ(this=exp.column("id", table=table), expression=exp.column(ID, table=PEOPLE))
            some = some.join(exp.to_table(table), on=on, join_type="left", copy=False)
        some = some.where(exp.or_(*asks), copy=False)
        none = none.where(exp.not_(exp.or_(*asks)), copy=False)
        both = exp.Union(this=some, expression=none, distinct=False)
        return exp.select(exp.Star()).from_(both.subquery("t", copy=False), copy=False)

    def _people(self, given: Mapping[str, Sql], more: Sequence[Sql]) -> exp.Select:
        columns = [*self.packing.unpack(self.cells, given), *(each.copy() for each in more)]
        return exp.select(*columns, copy=False).from_(exp.to_table(PEOPLE), copy=False)

    def marked(self) -> exp.Select:
        """The filled rows under the columns' own names, with a mark for each filled cell, as lines were numbered."""
        marks = [
            sql.alias(is_recipient(self.packing.digits[donors.column], i), f"{donors.column}_filled")
            for i, donors in enumerate(self.repair.donors)
        ]
        names = [sql.alias(code(name), name) for name in self.schema.coded]
        query = sql.select([*names, *marks_of(self.repair)], self.rows(*marks, sql.column(LINE)))
        return query.order_by(sql.column(LINE))

    def drop(self) -> None:
        fills = [f"{FILL}{place}" for place in range(len(self.repair.donors))]
        for name in (PACKED, PEOPLE, VISITS, TAKEN, TIED, GAPS, *fills):
            self.tables.drop(name)

    def _fill(
        self, donors: Donors, place: int, wants: Sequence[Ring], blocks: Sequence[Blocks]
    ) -> dict[Ring, RingTable]:
        ringing = DonorSql(
            donors=donors,
            place=place,
            digit=self.packing.digits[donors.column],
            domain=domains_of(self.repair).index(keys_of(donors)),
            order=tuple(order_of(self.packing)),
        )
        distances = distances_of(donors, self.schema)
        classes = _dense(self.tables.ask(ringing.classes()), distances)
        looked = visits(distances, classes, donors.k)
        self.tables.give(VISITS, looked.table())
        self.matcher.match(self.tables, ringing, looked, classes)
        missing = max(0, donors.k - int(classes.donors.sum()))
        self.tables.make(f"{FILL}{place}", ringing.filled(missing=missing))
        self.blocks |= {want: self._block_table(ringing, want) for want in blocks}
        return self._rings(ringing, classes, wants) if wants else {}

    def _rings(self, ringing: DonorSql, classes: ClassTable, wants: Sequence[Ring]) -> dict[Ring, RingTable]:
        sums = [self.packing.dialect.printed(self._weight(want)) for want in wants]
        kept = [sql.column(f"cell{ringing.domain}"), sql.column(ID)]
        rows = self._people({}, kept).where(is_recipient(ringing.digit, ringing.place), copy=False)
        found = self.tables.ask(ringing.gaps(self.packing.dialect.printed(rows), sums))
        return {want: quietly(_ring_table, want, classes, found, f"s{i}") for i, want in enumerate(wants)}

    def _block_table(self, ringing: DonorSql, want: Blocks) -> BlockTable:
        """Recipients as this column's donors fill them, by the donor who serves them at home and by cell."""
        table = f"{FILL}{ringing.place}"
        given: dict[str, Sql] = {ringing.donors.column: exp.column("y", table=table, quoted=True)}
        own = exp.column(ID, table=PEOPLE)
        rows = self._people(given, [sql.column(f"cell{ringing.domain}"), own])
        on = exp.EQ(this=exp.column("id", table=table), expression=own.copy())
        rows = rows.join(exp.to_table(table), on=on, copy=False)
        rows = rows.where(is_recipient(ringing.digit, ringing.place), copy=False)
        place = sql.case([(self.cells.chosen(want.rows), cell_of(self.cells, want.keys))])
        part = exp.Coalesce(this=place, expressions=[sql.number(NOT_COUNTED)])
        printed = self.packing.dialect.printed
        found = self.tables.ask(
            ringing.gaps(printed(rows), [printed(self._weight(want.ring))], printed(part))
        )
        return quietly(_block_table, want, found)

    def _weight(self, want: Ring) -> Sql:
        """What a recipient counts: its head or its weight where it is among the rows, else nothing."""
        weight: Sql = sql.number(1)
        if want.weight is not None:
            if self.schema.coded[want.weight].high * MOST_ROWS >= LARGEST:
                raise PlanError(
                    "a ring needs a weight of fewer steps; declare a coarser grid.", field="weight"
                )
            weight = exp.Coalesce(this=code(want.weight), expressions=[sql.number(0)])
        return sql.case([(self.cells.chosen(want.rows), weight)], sql.number(0))


def marks_of(repair: Repair) -> list[Sql]:
    """The columns that say which cells donors filled."""
    return [sql.column(f"{donors.column}_filled") for donors in repair.donors]


def check_rings(wants: Sequence[Ring], repair: Repair) -> None:
    """Rings are of columns that donors fill, over rows chosen by columns that they do not."""
    for want in wants:
        if want.column not in repair.filled():
            raise PlanError(f"no donors fill {want.column}; it has no rings.", field="impute")
        chosen = {*named(want.rows.where), *want.rows.known, *want.rows.answered, want.weight}
        if chosen & repair.filled():
            raise PlanError("recipients are chosen by a column that donors fill.", field="where")


def domains_of(repair: Repair) -> list[tuple[Key, ...]]:
    """The domains that donors are matched on, each once."""
    return list(dict.fromkeys(keys_of(donors) for donors in repair.donors))


def _dense(found: dict[str, NDArray[np.int64]], distances: Distances) -> ClassTable:
    donors, recipients = (np.zeros(distances.cells, np.int64) for _ in range(2))
    donors[found["cell"]], recipients[found["cell"]] = found["donors"], found["recipients"]
    return ClassTable(donors=donors, recipients=recipients)


def _ring_table(want: Ring, classes: ClassTable, found: dict[str, Counts], name: str) -> RingTable:
    cell, gap, weight = found["cell"], found["gap"], found[name]
    recipients = np.zeros_like(classes.recipients)
    np.add.at(recipients, cell, weight)
    first = np.cumsum(classes.donors) - classes.donors
    gaps = np.zeros(int(classes.donors.sum()), np.int64)
    held = gap >= 0
    gaps[first[cell[held]] + gap[held]] = weight[held]
    return RingTable(want=want, donors=classes.donors, recipients=recipients, gaps=gaps)


def _block_table(want: Blocks, found: dict[str, Counts]) -> BlockTable:
    """Lines that weigh something, blocks numbered through."""
    weighs = found["s0"] > 0
    cell, gap, part, weight = (found[name][weighs].astype(np.int64) for name in ("cell", "gap", "part", "s0"))
    pairs = cell * (gap.max(initial=0) + 1) + gap
    block = np.full(len(gap), NOBODY_SERVES, np.int64)
    block[gap >= 0] = np.unique(pairs[gap >= 0], return_inverse=True)[1]
    return BlockTable(want=want, block=block, cell=part, weight=weight)


EVERY_CELL = (0, 2**31 - 1)


class LocalMatcher:
    """The matcher of an engine that may send its records."""

    def place(self, tables: Tables, words: Sequence[str], key: str) -> None:
        """PEOPLE: the records in PACKED, which is dropped, with their places."""
        first_id = 0
        for part, (first, last) in enumerate(runs_of(tables)):
            found = tables.ask(f"SELECT * FROM {PACKED} WHERE cell0 BETWEEN {first} AND {last}")
            placed = quietly(labelled, found, words, key)
            tables.give(PEOPLE, _identified(placed, first_id), more=part > 0)
            first_id += len(placed)
        tables.drop(PACKED)

    def match(self, tables: Tables, column: DonorSql, plan: MatchPlan, classes: ClassTable) -> None:
        """TAKEN, TIED and GAPS: what donors offer to the recipients who visit their cells."""
        for part, cells in enumerate(lots(np.arange(len(classes.donors)), plan.rows(classes))):
            lines = tables.ask(column.lines(far=plan.far, cells=cells))
            met = quietly(offers, lines, column.order, column.digit.answers, plan)
            for name, table in ((TAKEN, met.taken), (TIED, met.tied), (GAPS, met.gaps)):
                tables.give(name, table, more=part > 0)


def _identified(people: pa.Table, first: int) -> pa.Table:
    """The records with numbers of their own, from `first` on: a name to join by, which says nothing else."""
    return people.append_column(ID, pa.array(np.arange(first, first + len(people), dtype=np.int64)))


def runs_of(tables: Tables) -> list[tuple[int, int]]:
    """All cells at once where records are few; else runs of cells that hold few enough."""
    (records,) = tables.ask(f"SELECT count(*) AS n FROM {PACKED}")["n"]
    if records <= LOT:
        return [EVERY_CELL]
    found = tables.ask(f"SELECT cell0 AS cell, count(*) AS n FROM {PACKED} GROUP BY cell0")
    return lots(found["cell"], found["n"])
