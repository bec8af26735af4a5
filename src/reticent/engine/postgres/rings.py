"""Capped donors by counting windows: the same rings, places and gifts as in local arrays, made where the records are.

In the order of a ring, donors carry running numbers. A recipient after r of its cell's n donors meets donor r % n + 1, an
equality join. Places are the field's polynomials (`circle.py`) in whole numbers past 64 bits. No record is sent.
"""

from reticent.engine.donors.capped import CappedStaging, capped_domains, fill_name
from reticent.engine.donors.circle import PRIME, coefficients
from reticent.engine.donors.filling import PACKED, PEOPLE
from reticent.engine.donors.records import ID, OWNER, SPOT
from reticent.engine.wants import level_keys
from reticent.prepare.repair import CappedDonors

NUMBERED, RING = "numbered_", "ring_"


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

    def place(self) -> None:
        """PEOPLE: the records in PACKED, which is dropped, in the order of their labels."""
        label = [*self.packing.words, *[OWNER] * self.owned]
        a0, by_number, *a = coefficients(f"{self.repair.key}|spots", len(label) + 2)
        equal = ", ".join(label)
        # Records that agree in all of a label cannot be told apart, so no order is owed among them.
        self.tables.make(
            NUMBERED,
            f"SELECT p.*, row_number() OVER (PARTITION BY {equal} ORDER BY {equal}) AS number_ FROM {PACKED} p",
        )
        terms = [(a_, name) for a_, name in zip((*a, by_number), (*label, "number_"), strict=True)]
        z = self._element(a0, terms)
        self.tables.drop(PACKED)
        spotted = f"SELECT n.*, {z} AS {SPOT} FROM {NUMBERED} n"
        order = ", ".join([SPOT, *label, "number_"])
        self.tables.make(
            PEOPLE, f"SELECT s.*, row_number() OVER (ORDER BY {order}) AS {ID} FROM ({spotted}) s"
        )
        self.tables.drop(NUMBERED)

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
        for name in (NUMBERED, RING):
            self.tables.drop(name)

    @property
    def owned(self) -> bool:
        """Whether records have owners."""
        return self.schema.unit != "row"

    def _ring(self, group: CappedDonors, level: int, ring: int) -> str:
        """Donors and recipients in the order of their rings, with running numbers."""
        cell = f"cell{capped_domains(self.repair).index(level_keys(group.levels[level]))}"
        gives, asks = self._status(group, gives=True), self._status(group, gives=False)
        items = [f"y{self.columns.index(name)}" for name in group.columns]
        key = f"{self.repair.key}|{'|'.join(group.columns)}|level {level}|ring {ring}"
        named = ", ".join(f"{item} AS g{i}" for i, item in enumerate(items))
        people = f"""SELECT {ID}, {cell} AS cell, CASE WHEN {gives} THEN 1 ELSE 0 END AS gives, {named},
            {self._cubic(coefficients(key, 4))} AS place FROM {PEOPLE} WHERE {gives} OR {asks}"""
        order = f"PARTITION BY cell ORDER BY place, {ID}"
        return f"""SELECT p.*, row_number() OVER ({order}) AS pos, count(*) OVER (PARTITION BY cell) AS size,
            CAST(sum(gives) OVER ({order}) AS BIGINT) AS upto,
            CAST(sum(gives) OVER (PARTITION BY cell) AS BIGINT) AS n FROM ({people}) p"""

    def _served(self, group: CappedDonors, level: int) -> str:
        """The recipients before whom fewer than the cap stand, with their donors' digits."""
        gifts = ", ".join(f"d.g{i} AS g{i}" for i in range(len(group.columns)))
        between = "CASE WHEN r.upto < r.n THEN d.pos - r.pos - 1 ELSE r.size - r.pos + d.pos - 1 END"
        return f"""SELECT r.{ID}, {gifts} FROM
            (SELECT {ID}, cell, pos, size, upto, n, upto % n + 1 AS meets FROM {RING} WHERE gives = 0 AND n > 0) r
            JOIN (SELECT * FROM {RING} WHERE gives = 1) d ON d.cell = r.cell AND d.upto = r.meets
            WHERE {between} < {group.levels[level].serve}"""

    def _element(self, start: int, terms: list[tuple[int, str]]) -> str:
        """The sum of the terms in the field of 2^61 - 1 elements, reduced after each product."""
        total = self._wide(str(start))
        for by, name in terms:
            total = f"({total} + {self._wide(f'{name} % {PRIME}')} * {by}) % {PRIME}"
        return f"CAST({total} AS BIGINT)"

    def _cubic(self, c: list[int]) -> str:
        total = self._wide(str(c[3]))
        for each in (c[2], c[1], c[0]):
            total = f"({total} * {SPOT} + {each}) % {PRIME}"
        return f"CAST({total} AS BIGINT)"

    def _wide(self, value: str) -> str:
        kind = self.packing.dialect.kind(self.packing.dialect.wide_int())
        return f"CAST({value} AS {self.packing.dialect.printed(kind)})"
