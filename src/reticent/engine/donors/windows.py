"""Capped rings by windows: donors serve where the records are, and no record leaves the engine.

Counted against the clock, the donor that a recipient meets first is the one passed last: a running maximum of (place in
the count, answers) over the donors of the cell finds it, and the difference of the two places says how many recipients
stand between them. Who passes no donor before the circle's start takes the last one of the whole count. The
same records are served by the same donors as in local arrays (`capped.serve`): places are the same field polynomial
(`field.py`).
"""

from collections.abc import Sequence

from sqlglot import exp

from reticent.engine.donors.capped import CappedStaging, capped_domains
from reticent.engine.donors.circle import coefficients
from reticent.engine.donors.field import CUBE, SQUARE, PrimeField
from reticent.engine.donors.filling import PACKED, PEOPLE
from reticent.engine.donors.records import OWNER, SPOT, Packing
from reticent.engine.protocol import Tables
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql
from reticent.engine.wants import level_keys
from reticent.prepare.repair import CappedDonors, Repair
from reticent.schema import Schema
from reticent.schema.schema import ROW

AT_ONCE = 4  # levels in one statement: engines limit how deep it may go
SERVED = "served_"
NUMBER, PLACE, BACK, AHEAD, FRONT, ALL = "number_", "place_", "back_", "ahead_", "front_", "all_"


class WindowedCapped(CappedStaging):
    """Capped donors of an engine whose records stay where they are.

    Guarantee   as `CappedStaging`: the same recipients are served by the same donors.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/capped.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    def __init__(self, tables: Tables, schema: Schema, packing: Packing, repair: Repair) -> None:
        super().__init__(tables, schema, packing, repair)
        self.field = PrimeField(packing.dialect.int_div_sign)
        self._made: list[str] = []

    def place(self) -> None:
        """PEOPLE: the records in PACKED with a running number among equals and a spot for each label."""
        label = self._label
        equal = ", ".join(label)
        order = ", ".join(f"{name} NULLS FIRST" for name in label)
        a0, by_number, *a = coefficients(f"{self.repair.key}|spots", len(label) + 2)
        terms = [(by, name) for name, by in zip((*label, NUMBER), (*a, by_number), strict=True)]
        numbered = f"SELECT *, row_number() OVER (PARTITION BY {equal} ORDER BY {order}) AS {NUMBER} FROM {self.records} p"
        kept = [*label, NUMBER, *self._digits]
        spotted = self.field.element(numbered, kept, a0, terms, SPOT)
        self.tables.make(PEOPLE, self.field.powers(spotted, [*kept, SPOT], SPOT))

    def fill(self) -> None:
        """SERVED: PEOPLE with what each level of each ring gives, one column for every item. Some levels in a statement."""
        steps = [
            (number, group, level, ring)
            for number, group in enumerate(self.repair.capped)
            for ring in range(self.repair.rings)
            for level in range(len(group.levels))
        ]
        source = PEOPLE
        for first in range(0, len(steps), AT_ONCE):
            rows = f"SELECT * FROM {source}"
            for step in steps[first : first + AT_ONCE]:
                rows = self._served(rows, *step)
            self._made.append(source := f"{SERVED}{first}_")
            self.tables.make(source, rows)

    def completed(self, ring: int, *more: Sql) -> exp.Select:
        """The records that lack something, as one ring fills them."""
        given: dict[str, Sql] = {}
        for number, group in enumerate(self.repair.capped):
            for item, (name, default) in enumerate(zip(group.columns, group.defaults, strict=True)):
                levels = [sql.column(_given(number, ring, level, item)) for level in range(len(group.levels))]
                if not default.looks:  # else it stays missing, for a line to fill
                    levels.append(self._default(name, default))
                taken = exp.Coalesce(this=levels[0], expressions=levels[1:])
                given[name] = sql.case([(self._lacks(name), taken)])
        query = self._people(given, more, self._made[-1]).where(exp.or_(*self._asks()), copy=False)
        return self._lined(query, more)

    def unserved(self, column: str) -> int:
        """How many recipients of a column's group nobody served, all rings together."""
        number, group = next((i, each) for i, each in enumerate(self.repair.capped) if column in each.columns)
        levels = range(len(group.levels))
        left = [
            " AND ".join(f"{_given(number, ring, level, 0)} IS NULL" for level in levels)
            for ring in range(self.repair.rings)
        ]
        counts = ", ".join(f"count(*) FILTER (WHERE {each}) AS n{ring}" for ring, each in enumerate(left))
        asks = self._status(group, gives=False)
        found = self.tables.ask(f"SELECT {counts} FROM {self._made[-1]} WHERE {asks}")
        return sum(int(each[0]) for each in found.values())

    def drop(self) -> None:
        for name in (PACKED, PEOPLE, *self._made):
            self.tables.drop(name)

    @property
    def _label(self) -> list[str]:
        return [*self.packing.words, *([OWNER] if self.schema.unit != ROW else [])]

    def _served(self, rows: str, number: int, group: CappedDonors, level: int, ring: int) -> str:
        """`rows` with the digits that one level of one ring gives to those whom it serves, else NULL."""
        cell = f"cell{capped_domains(self.repair).index(level_keys(group.levels[level]))}"
        gives, asks = self._status(group, gives=True), self._status(group, gives=False)
        items = [f"y{self.columns.index(name)}" for name in group.columns]
        order = ", ".join(f"{name} DESC NULLS LAST" for name in (PLACE, "cell0", SPOT, *self._label, NUMBER))
        around = (
            f"OVER (PARTITION BY {cell} ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        key = f"{self.repair.key}|{'|'.join(group.columns)}|level {level}|ring {ring}"
        donor = f"CASE WHEN {gives} THEN {self._list([BACK, *items])} END"
        met, first = f"coalesce({AHEAD}, {FRONT})", self._item(f"coalesce({AHEAD}, {FRONT})", 0)
        between = f"{BACK} - {first} - 1 + CASE WHEN {AHEAD} IS NULL THEN {ALL} ELSE 0 END"
        serves = f"{asks} AND {met} IS NOT NULL AND {between} < {group.levels[level].serve}"
        taken = ", ".join(
            f"CASE WHEN {serves} THEN {self._item(met, 1 + item)} END AS {_given(number, ring, level, item)}"
            for item in range(len(items))
        )
        kept = ", ".join(self._kept(number, level, ring))
        return f"""SELECT {kept}, {taken} FROM (
            SELECT *, max({donor}) {around} AS {AHEAD}, max({donor}) OVER (PARTITION BY {cell}) AS {FRONT},
                max({BACK}) OVER (PARTITION BY {cell}) AS {ALL} FROM (
                SELECT *, sum(CASE WHEN {gives} OR {asks} THEN 1 ELSE 0 END) {around} AS {BACK} FROM (
                    SELECT *, {self.field.reduced()} AS {PLACE} FROM (
                        SELECT *, {self.field.parts(SPOT, coefficients(key, 4))} FROM ({rows}) t) t) t) t) t"""

    def _kept(self, number: int, level: int, ring: int) -> list[str]:
        """The columns that stay: a record's own, and what came of the levels before."""
        before = [
            _given(g, r, at, item)
            for g, group in enumerate(self.repair.capped)
            for r in range(self.repair.rings)
            for at in range(len(group.levels))
            for item in range(len(group.columns))
            if (g, r, at) < (number, ring, level)
        ]
        return [*self._label, NUMBER, SPOT, SQUARE, CUBE, *self._digits, *before]

    @property
    def _digits(self) -> list[str]:
        """A record's cells, and what it answered of the columns that donors fill."""
        cells = [f"cell{i}" for i in range(len(capped_domains(self.repair)))]
        return [*cells, *(f"y{i}" for i in range(len(self.columns)))]

    def _list(self, names: Sequence[str]) -> str:
        numbers = [self.packing.dialect.cast(sql.column(name), "BIGINT") for name in names]
        return self.packing.dialect.printed(exp.Array(expressions=numbers))

    def _item(self, values: str, place: int) -> str:
        return self.packing.dialect.printed(
            self.packing.dialect.element_at(exp.Var(this=values), sql.number(place + 1))
        )


def _given(group: int, ring: int, level: int, item: int) -> str:
    return f"g{group}_{ring}_{level}_{item}"
