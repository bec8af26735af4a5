"""The statements that let donors fill one column. Only names of ours stand in them, and whole numbers.

PEOPLE holds one line for each record: its label and place, and its cell. VISITS says in which cells a cell's
recipients look for donors. On RING stand the donors of every cell and all who visit it, in the order of the
circle, with the number of donors before each: a visitor with r donors before it takes donor r, r + 1, ...,
counted around. Cell and number together are a `spot`, one number to join by.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reticent.engine import sql
from reticent.engine.packing import Digit
from reticent.prepare.donors import Donors, Scheme

PEOPLE, VISITS, RING, GUESTS, FILL = "people_", "visits_", "ring_", "guests_", "fill_"
SPOTS = 2**40  # more than a cell can have donors


@dataclass(frozen=True, slots=True, kw_only=True)
class Ringing:
    """One column's donors: its `digit`, the number of its `domain`, and the `order` of records on the circle."""

    donors: Donors
    digit: Digit
    domain: int
    order: tuple[str, ...]

    def classes(self) -> str:
        """The class table."""
        return f"""
            SELECT cell, count(*) FILTER (WHERE {self._gives}) AS donors,
                count(*) FILTER (WHERE {self._asks}) AS recipients
            FROM ({self._records}) GROUP BY cell"""

    def ring(self, *, far: bool) -> str:
        """Donors and visitors of every cell; `y` is a donor's answer, `visit` the number of a visitor's visit.

        A recipient's visit to its own cell has the cell's number. `far` says whether there are others.
        """
        order = ", ".join(self.order)
        visitor = ", ".join(f"p.{name}" for name in self.order)
        away = f""" UNION ALL SELECT p.id, v.other, NULL, v.visit, {visitor}
            FROM ({self._records}) p JOIN {VISITS} v ON v.cell = p.cell WHERE {self._asks} AND v.distance > 0"""
        return f"""
            SELECT id, y, visit, CAST(cell AS BIGINT) * {SPOTS} + count(y) OVER (
                PARTITION BY cell ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS spot
            FROM (
                SELECT id, cell, nullif(y, {self.digit.answers}) AS y, cell AS visit, {order}
                FROM ({self._records}) WHERE {self._gives} OR {self._asks}{away if far else ""})"""

    def guests(self) -> str:
        """Which donors each visitor could take in the cell it visits; `around` where the ring's start is passed.

        A table of its own: it is small beside the ring, and an engine that knows so joins well.
        """
        turns = "unnest(range(least(v.take, v.donors)))" if self.donors.k > 1 else "0"
        return f"""
            SELECT id, first + (r + j) % donors AS spot, r + j >= donors AS around, distance, take, tied
            FROM (SELECT p.id, v.first, p.spot - v.first AS r, v.donors, v.distance, v.take, v.tied, {turns} AS j
                FROM {RING} p JOIN {VISITS} v USING (visit) WHERE p.y IS NULL)"""

    def filled(self, *, tied: bool, missing: int) -> str:
        """Every recipient with the digit its donors give; `missing` donors are public ones.

        Where cells are `tied`, each offers as many donors as are taken from all; the first on the common ring
        are chosen.
        """
        met = f"{GUESTS} v JOIN {RING} d ON d.spot = v.spot AND d.y IS NOT NULL"
        picked = f"SELECT v.id, d.y FROM {met} WHERE NOT v.tied"
        if tied:
            order = ", ".join(f"p.{name}" for name in self.order)
            picked += f""" UNION ALL SELECT id, y FROM (
                SELECT v.id, d.y, v.take,
                    row_number() OVER (PARTITION BY v.id, v.distance ORDER BY v.around, {order}) AS turn
                FROM {met} JOIN {PEOPLE} p ON p.rowid = d.id WHERE v.tied) WHERE turn <= take"""
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
            FROM ({rows}) p LEFT JOIN (
                SELECT id, (spot - first) % donors AS gap
                FROM {RING} JOIN {VISITS} USING (visit) WHERE y IS NULL AND distance = 0
            ) v USING (id) GROUP BY ALL"""

    @property
    def _records(self) -> str:
        order = ", ".join(self.order)
        kind = "INTEGER" if self.digit.size < 2**31 else "BIGINT"
        digit = sql.cast(self.digit.value(), kind).sql("duckdb")
        return f"SELECT rowid AS id, cell{self.domain} AS cell, {digit} AS y, {order} FROM {PEOPLE}"

    @property
    def _gives(self) -> str:
        return f"y < {self.digit.answers}"

    @property
    def _asks(self) -> str:
        return f"y = {self.digit.answers}"


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
