"""Capped donors by counting windows: the same rings, places and gifts as in local arrays, made where the records are.

Donors carry running numbers, ring behind ring. A recipient meets the donor with the next number or, behind the last of its
cell, the cell's first: an equality join. Places are the field's polynomials (`circle.py`). No record is sent.
That is for what does not come in lots (`LotStaging`).
"""

from math import prod

from reticent.engine.donors.capped import CappedStaging, capped_domains, fill_name
from reticent.engine.donors.circle import coefficients
from reticent.engine.donors.field import PrimeField
from reticent.engine.donors.filling import PACKED, PEOPLE
from reticent.engine.donors.lots import LotStaging
from reticent.engine.donors.records import ID, OWNER, SPOT
from reticent.engine.postgres.words import POSTGRES
from reticent.engine.wants import level_keys
from reticent.prepare.repair import CappedDonors

RING = "ring_"


class WindowedStaging(CappedStaging):
    """Capped rings by statements alone.

    Guarantee   in each ring a donor who comes or goes changes the filled cells of at most `serve` recipients, a recipient
                those of at most one other for each level, anybody else nobody's; filled rows, as a set, are a function of
                the set of records.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/postgres.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    field = PrimeField(POSTGRES.int_div_sign)

    def place(self) -> None:
        """PEOPLE: the records in PACKED, which is dropped, with ids in the order of their labels, and powers of their spots."""
        label = [*self.packing.words, *[OWNER] * self.owned]
        a0, by_number, *a = coefficients(f"{self.repair.key}|spots", len(label) + 2)
        equal = ", ".join(label)
        # Records that agree in all of a label cannot be told apart, so no order is owed among them.
        numbered = f"SELECT p.*, row_number() OVER (PARTITION BY {equal} ORDER BY {equal}) AS number_ FROM {self.records} p"
        terms = [(a_, name) for a_, name in zip((*a, by_number), (*label, "number_"), strict=True)]
        kept = [*label, "number_", *self._digits()]
        spotted = self.field.element(numbered, kept, a0, terms, SPOT)
        order = f"ORDER BY cell0, {SPOT}, {equal}, number_ ROWS UNBOUNDED PRECEDING"
        powers = self.field.powers(spotted, [*kept, SPOT], SPOT)
        self.tables.make(PEOPLE, f"SELECT t.*, row_number() OVER ({order}) AS {ID} FROM ({powers}) t")
        self.tables.drop(PACKED)

    def fill(self) -> None:
        """Fill every group of columns, in every ring: at the first level that serves a recipient."""
        for number, group in enumerate(self.repair.capped):
            for ring in range(self.repair.rings):
                target = fill_name(number, ring)
                for level in range(len(group.levels)):
                    self.tables.make(RING, self._ring(group, level, ring))
                    served = self._served(group, level)
                    if level:
                        self.tables.make(f"{target}_", f"SELECT * FROM {target}")
                        before = f"SELECT 1 FROM {target}_ b WHERE b.{ID} = s.{ID}"
                        served = f"SELECT * FROM {target}_ UNION ALL SELECT * FROM ({served}) s WHERE NOT EXISTS ({before})"
                    self.tables.make(target, served)
                    self.tables.drop(f"{target}_")
        self.tables.drop(RING)

    def drop(self) -> None:
        super().drop()
        self.tables.drop(RING)

    @property
    def owned(self) -> bool:
        """Whether records have owners."""
        return self.schema.unit != "row"

    def _ring(self, group: CappedDonors, level: int, ring: int) -> str:
        """Donors and recipients in the order of their rings, one ring behind the other, with running numbers.

        The first bits of (cell, place) share a word, by which most of the sorting is done.
        """
        domain = level_keys(group.levels[level])
        cell = f"cell{capped_domains(self.repair).index(domain)}"
        room = max(0, 62 - prod(key.size(self.schema) for key in domain).bit_length())
        gives, asks = self._status(group, gives=True), self._status(group, gives=False)
        items = [f"y{self.columns.index(name)}" for name in group.columns]
        key = f"{self.repair.key}|{'|'.join(group.columns)}|level {level}|ring {ring}"
        named = ", ".join(f"{item} AS g{i}" for i, item in enumerate(items))
        people = f"""SELECT {ID}, CAST({cell} AS BIGINT) AS cell, CASE WHEN {gives} THEN 1 ELSE 0 END AS gives, {named},
            {self.field.parts(SPOT, coefficients(key, 4))} FROM {PEOPLE} WHERE {gives} OR {asks} OFFSET 0"""
        placed = f"SELECT p.*, {self.field.reduced()} AS place FROM ({people}) p OFFSET 0"
        first = f"cell * {2**room} + (place >> {61 - room})"
        order = f"ORDER BY {first}, place, {ID} ROWS UNBOUNDED PRECEDING"
        return f"""SELECT {ID}, cell, gives, {", ".join(f"g{i}" for i in range(len(items)))},
            row_number() OVER ({order}) AS pos, CAST(sum(gives) OVER ({order}) AS BIGINT) AS upto FROM ({placed}) p"""

    def _served(self, group: CappedDonors, level: int) -> str:
        """The recipients before whom fewer than the cap stand, with their donors' digits."""
        gifts = ", ".join(f"d.g{i} AS g{i}" for i in range(len(group.columns)))
        sizes = f"""SELECT cell, count(*) AS size, CAST(sum(gives) AS BIGINT) AS n, max(upto) AS last
            FROM {RING} GROUP BY cell"""
        between = "CASE WHEN r.upto < c.last THEN d.pos - r.pos - 1 ELSE c.size - r.pos + d.pos - 1 END"
        meets = "CASE WHEN r.upto < c.last THEN r.upto + 1 ELSE c.last - c.n + 1 END"
        return f"""SELECT r.{ID}, {gifts} FROM {RING} r
            JOIN ({sizes}) c ON c.cell = r.cell AND c.n > 0 AND r.gives = 0
            JOIN (SELECT * FROM {RING} WHERE gives = 1) d ON d.upto = {meets}
            WHERE {between} < {group.levels[level].serve}"""

    def _digits(self) -> list[str]:
        """A record's cells, and what it answered of the columns that donors fill."""
        cells = [f"cell{i}" for i in range(len(capped_domains(self.repair)))]
        return [*cells, *(f"y{i}" for i in range(len(self.columns)))]


class PostgresLots(LotStaging):
    """Records come from the server a lot at a time; where none will do, donors serve there by windows."""

    windows = WindowedStaging
