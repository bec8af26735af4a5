"""The statements that let donors fill one column. Only names of ours stand in them, and whole numbers.

PACKED holds one line for each record, its words and its cells, and PEOPLE the same with its place. VISITS says in
which other cells a cell's recipients look for donors. TAKEN, TIED and GAPS are what comes of it: `Offers`. FILL has
each recipient's new digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.offers import OWN
from reticent.engine.packing import Digit
from reticent.engine.sql import Sql
from reticent.prepare.donors import Donors, Scheme

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
        return _made_of(picked, self.donors, self.digit.answers)

    def gaps(self, rows: str, sums: Sequence[str]) -> str:
        """The `sums` over recipients among `rows`, by cell and by the donor who comes first, -1 where none is."""
        named = ", ".join(f"CAST(sum({each}) AS BIGINT) AS s{i}" for i, each in enumerate(sums))
        return f"""
            SELECT p.cell{self.domain} AS cell, coalesce(v.gap, -1) AS gap, {named}
            FROM ({rows}) p LEFT JOIN {GAPS} v USING (id) GROUP BY ALL"""

    @property
    def _records(self) -> str:
        order = ", ".join(self.order)
        return f"SELECT rowid AS id, cell{self.domain} AS cell, y{self.place} AS y, {order} FROM {PEOPLE}"

    @property
    def _gives(self) -> str:
        return f"y < {self.digit.answers}"

    @property
    def _asks(self) -> str:
        return f"y = {self.digit.answers}"


def is_recipient(digit: Digit, place: int) -> Sql:
    """Whether a record in PEOPLE lacks the column that is filled in that place."""
    return exp.EQ(this=sql.column(f"y{place}"), expression=sql.number(digit.answers))


def _made_of(picked: str, donors: Donors, answers: int) -> str:
    """What the scheme makes of `picked`, a donor's digit a line: itself, the rounded mean, the most frequent."""
    k = donors.k
    if donors.scheme is Scheme.NEAREST:
        return picked
    if donors.scheme is Scheme.MEAN:
        return f"SELECT id, CAST((2 * sum(y) + {k}) // {2 * k} AS BIGINT) AS y FROM ({picked}) GROUP BY id"
    # The largest of m A + (A - 1 - y) belongs to the most frequent digit and, of those, to the lowest.
    best = f"max(CAST(m AS HUGEINT) * {answers} + {answers - 1} - y)"
    return f"""SELECT id, CAST({answers - 1} - {best} % {answers} AS BIGINT) AS y
        FROM (SELECT id, y, count(*) AS m FROM ({picked}) GROUP BY id, y) GROUP BY id"""
