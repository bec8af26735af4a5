"""The clean rows held in a table of their own, donors' answers filled in. Spills, and is dropped at the end."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import RowView, code, named
from reticent.engine.circle import lots
from reticent.engine.labels import LINE, order_of
from reticent.engine.needs import ClassTable, Counts, visits
from reticent.engine.offers import offers
from reticent.engine.packing import Packing, unpacked
from reticent.engine.placing import Tables, quietly
from reticent.engine.results import RingTable
from reticent.engine.rings import FILL, GAPS, PACKED, PEOPLE, TAKEN, TIED, VISITS, DonorSql, is_recipient
from reticent.engine.sql import Sql
from reticent.engine.wants import Key, Ring, keys_of
from reticent.errors import PlanError
from reticent.prepare.distance import Distances
from reticent.prepare.donors import Donors, Repair
from reticent.prepare.metric import distances_of
from reticent.schema import Schema

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

    def __init__(self, tables: Tables, schema: Schema, packing: Packing, repair: Repair) -> None:
        self.tables, self.schema, self.packing, self.repair = tables, schema, packing, repair
        self.cells: RowView = unpacked(schema, packing)

    def fill(self, wants: Sequence[Ring]) -> dict[Ring, RingTable]:
        """Fill every column that donors fill, and read off the rings that are wanted."""
        found: dict[Ring, RingTable] = {}
        for place, donors in enumerate(self.repair.donors):
            asked = [want for want in wants if want.column == donors.column]
            found |= self._fill(donors, place, asked)
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
            on = exp.EQ(this=exp.column("id", table=table), expression=exp.column("rowid", table=PEOPLE))
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

    def _fill(self, donors: Donors, place: int, wants: Sequence[Ring]) -> dict[Ring, RingTable]:
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
        for part, cells in enumerate(lots(np.arange(distances.cells), looked.rows(classes))):
            lines = self.tables.ask(ringing.lines(far=looked.far, cells=cells))
            met = quietly(offers, lines, ringing.order, ringing.digit.answers, looked)
            for name, table in ((TAKEN, met.taken), (TIED, met.tied), (GAPS, met.gaps)):
                self.tables.give(name, table, more=part > 0)
        missing = max(0, donors.k - int(classes.donors.sum()))
        self.tables.make(f"{FILL}{place}", ringing.filled(missing=missing))
        return self._rings(ringing, classes, wants) if wants else {}

    def _rings(self, ringing: DonorSql, classes: ClassTable, wants: Sequence[Ring]) -> dict[Ring, RingTable]:
        sums = [self._weight(want).sql("duckdb") for want in wants]
        kept = [sql.column(f"cell{ringing.domain}"), sql.alias(sql.column("rowid"), "id")]
        rows = self._people({}, kept).where(is_recipient(ringing.digit, ringing.place), copy=False)
        found = self.tables.ask(ringing.gaps(sql.text(rows), sums))
        return {want: quietly(_ring_table, want, classes, found, f"s{i}") for i, want in enumerate(wants)}

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
