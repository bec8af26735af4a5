"""Denial constraints between two rows: what no pair of synthetic rows may be, hard or by a weight. After the noise, so free.

A constraint is a conjunction of comparisons of one column in both rows, `t1.state = t2.state and t1.city != t2.city`. Rows
are accepted one after the other: a candidate that violates a weighted constraint v times with the rows before it is accepted
with chance exp(-weight v), so that rows are drawn in proportion to their chance times that number (Ge and others 2021); a hard
one is never violated. Violations are counted by an index: rows that agree share an entry, and orders are kept in Fenwick's
trees (1994). No pair is looked at.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import exp, prod
from typing import Literal, cast

from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.noise.bits import Bits
from reticent.schema import Levels
from reticent.synth.domain import UNASKED, Domain, Rows, uniforms

Sign = Literal["=", "!=", "<", "<=", ">", ">="]
Key = tuple[int, ...]

HARD = "hard"
MOST_ORDERS, MOST_UNEQUAL = 2, 1
TRIES = 60
"""Candidates for one row, before it takes over answers of an accepted one."""
DONORS = 20
POOL = 1_000
FIELD = "denial"

_PART = re.compile(r"t([0-9]+)\.(\w+)\s*(=|!=|<=|>=|<|>)\s*t([0-9]+)\.(\w+)")
_SHAPES = (
    "write comparisons of one column in both rows joined by `and`: any number of `t1.a = t2.a`, at most one `t1.b != t2.b`, "
    "and at most two of `t1.c < t2.c`, <=, > or >="
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """No two rows fulfil all comparisons at once: columns that are equal, that differ, and that stand in an order.

    Parameters
    ----------
    text : as it was written
    weight : how much one violation costs; none for a hard constraint
    equal : columns with the same answer in both rows
    unequal : a column with different ones, or none
    orders : columns and the sign between the first row's answer and the second's
    """

    text: str
    weight: Fraction | None
    equal: tuple[str, ...]
    unequal: tuple[str, ...]
    orders: tuple[tuple[str, Sign], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.equal, *self.unequal, *(name for name, _ in self.orders))

    def words(self) -> str:
        """`no two rows with t1.a = t2.a and t1.b != t2.b`, and what a violation costs."""
        if self.weight is None:
            return f"no two rows with {self.text}"
        return f"rarely two rows with {self.text}: each such pair makes a row less likely by exp(-{show(self.weight)})"


def read_denials(
    raw: Sequence[tuple[str, str]], domain: Domain, rows: int | None = None
) -> tuple[Denial, ...]:
    """Constraints with their weights, held against the columns of a table; `rows` is how many are to be drawn."""
    found = tuple(_denial(text, weight, domain) for text, weight in raw)
    for each in found:
        if each.weight is None and not (each.unequal or each.orders):
            _check_room(each, domain, rows)
    return found


def _denial(text: str, weight: str, domain: Domain) -> Denial:
    parts = [_part(part.strip(), domain) for part in re.split(r"\band\b", text)]
    by = {sign: tuple(name for name, each in parts if each == sign) for sign in ("=", "!=")}
    orders = tuple((name, sign) for name, sign in parts if sign not in by)
    if len(by["!="]) > MOST_UNEQUAL or len(orders) > MOST_ORDERS or len({n for n, _ in parts}) < len(parts):
        raise PlanError(f"{text[:200]!r} has a shape that is not indexed; {_SHAPES}", field=FIELD)
    return Denial(
        text=text, weight=_weight(weight), equal=tuple(sorted(by["="])), unequal=by["!="], orders=orders
    )


def _part(text: str, domain: Domain) -> tuple[str, Sign]:
    found = _PART.fullmatch(text)
    if found is None:
        raise PlanError(f"{text[:80]!r} is no comparison of two rows; {_SHAPES}", field=FIELD)
    one, name, sign, other, same = found.groups()
    if {one, other} - {"1", "2"}:
        raise PlanError(
            f"{text[:80]!r} speaks of a third row; constraints hold between t1 and t2", field=FIELD
        )
    if one == other or name != same:
        raise PlanError(f"{text[:80]!r} does not compare one column of t1 and t2; {_SHAPES}", field=FIELD)
    if name not in domain.columns:
        raise PlanError(
            f"{name[:80]!r} is not among the columns of this table{nearest(name, domain.columns)}",
            field=FIELD,
        )
    column = domain.schema.coded[name]
    if sign not in ("=", "!=") and isinstance(column, Levels) and not column.ordered:
        raise PlanError(
            f"{name} is nominal and has no order; use = or !=, or declare it ordinal", field=FIELD
        )
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    return name, cast(Sign, sign if one == "1" else turned.get(sign, sign))


def _weight(text: str) -> Fraction | None:
    if text == HARD:
        return None
    weight = read_decimal(text)
    if weight is None or not 0 < weight <= 1000:
        raise PlanError(f'the weight is "{HARD}" or a decimal above 0, at most 1000', field=FIELD)
    return weight


def _check_room(each: Denial, domain: Domain, rows: int | None) -> None:
    """Rows that must all differ cannot be more than there are answers."""
    columns = [domain.schema.coded[name] for name in each.equal]
    most = prod(column.high - column.low + 1 for column in columns)
    if rows is not None and rows > most:
        raise PlanError(
            f"{each.text[:200]!r} leaves room for {most:,} rows and {rows:,} are to be drawn; draw fewer, or give it a weight",
            field=FIELD,
        )


@dataclass(slots=True)
class _Tree:
    """How many accepted rows are within bounds, in up to two orders: a Fenwick tree that holds what is not zero."""

    lows: Key
    sizes: Key
    counts: Counter[tuple[Key, Key]] = field(default_factory=Counter)

    def add(self, key: Key, at: Key) -> None:
        paths = [_up(x - low + 1, size) for x, low, size in zip(at, self.lows, self.sizes, strict=True)]
        self.counts.update((key, nodes) for nodes in product(*paths))

    def below(self, key: Key, at: Sequence[tuple[int, Sign]]) -> int:
        """How many rows of `key` stand, in every order, on the side that the sign says: the new answer, the sign, theirs."""
        sides = []
        for (x, sign), low, size in zip(at, self.lows, self.sizes, strict=True):
            upto = x - low + 1 - (sign in (">", "<="))  # theirs is below x, or all but those below
            sides.append([(1, upto)] if sign in (">", ">=") else [(1, size), (-1, upto)])
        return sum(
            prod(factor for factor, _ in side) * self._upto(key, tuple(end for _, end in side))
            for side in product(*sides)
        )

    def _upto(self, key: Key, ends: Key) -> int:
        return sum(self.counts.get((key, nodes), 0) for nodes in product(*map(_down, ends)))


def _up(i: int, size: int) -> list[int]:
    found = []
    while i <= size:
        found.append(i)
        i += i & -i
    return found


def _down(i: int) -> list[int]:
    found = []
    while i > 0:
        found.append(i)
        i -= i & -i
    return found


class DenialIndex:
    """Accepted rows of one table, as one constraint sees them."""

    def __init__(self, denial: Denial, domain: Domain) -> None:
        self._denial = denial
        columns = [domain.schema.coded[name] for name, _ in denial.orders]
        lows, sizes = tuple(c.low for c in columns), tuple(c.high - c.low + 1 for c in columns)
        self._all, self._same = _Tree(lows, sizes), _Tree(lows, sizes)

    def violations(self, row: Mapping[str, int]) -> int:
        """How many accepted rows violate the constraint together with this one, either way round."""
        if any(row[name] <= UNASKED for name in self._denial.columns):
            return 0
        signs = [sign for _, sign in self._denial.orders]
        turned: dict[Sign, Sign] = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
        ways = [signs, [turned[sign] for sign in signs]] if signs else [signs]
        return sum(self._count(row, way) for way in ways)

    def add(self, row: Mapping[str, int]) -> None:
        """Accept a row. One that lacks an answer can violate nothing."""
        if any(row[name] <= UNASKED for name in self._denial.columns):
            return
        at = tuple(row[name] for name, _ in self._denial.orders)
        self._all.add(_key(row, self._denial.equal), at)
        if self._denial.unequal:
            self._same.add(_key(row, (*self._denial.equal, *self._denial.unequal)), at)

    def _count(self, row: Mapping[str, int], signs: Sequence[Sign]) -> int:
        at = [(row[name], sign) for (name, _), sign in zip(self._denial.orders, signs, strict=True)]
        found = self._all.below(_key(row, self._denial.equal), at)
        if self._denial.unequal:
            found -= self._same.below(_key(row, (*self._denial.equal, *self._denial.unequal)), at)
        return found


def _key(row: Mapping[str, int], names: Sequence[str]) -> Key:
    return tuple(row[name] for name in names)


More = Callable[[int], Sequence[Rows]]
"""So many further rows that keep all other rules, for each copy."""


def kept_apart(
    tables: Sequence[Rows],
    denials: Sequence[Denial],
    domain: Domain,
    ruled: Sequence[str],
    more: More,
    bits: Bits,
) -> tuple[Rows, ...]:
    """As many rows, in every copy without what the constraints deny; `ruled` are columns that other rules tie to theirs."""
    made = _Acceptance([dict(table) for table in tables], denials, domain, ruled, bits)
    spare = _pool(more)
    for i in range(len(next(iter(tables[0].values())))):
        made.settle(i, spare)
    return tuple(made.tables)


def _pool(more: More) -> Iterator[list[dict[str, int]]]:
    """Candidates one by one, a row for each copy, drawn many at a time."""
    while True:
        tables = more(POOL)
        for i in range(POOL):
            yield [_row(table, i) for table in tables]


def _row(table: Rows, i: int) -> dict[str, int]:
    return {name: int(codes[i]) for name, codes in table.items()}


class _Acceptance:
    """Rows accepted one after the other."""

    def __init__(
        self, tables: list[Rows], denials: Sequence[Denial], domain: Domain, ruled: Sequence[str], bits: Bits
    ) -> None:
        self.tables, self._denials, self._bits = tables, denials, bits
        self._indices = [[DenialIndex(each, domain) for each in denials] for _ in tables]
        self._columns = tuple(dict.fromkeys([*ruled, *(name for each in denials for name in each.columns)]))
        self._taken = 0
        self._chances: list[float] = []

    def settle(self, i: int, spare: Iterator[list[dict[str, int]]]) -> None:
        """Put an acceptable row at place `i`: the one drawn there, another, or one with the ruled answers of an accepted one."""
        rows = [_row(table, i) for table in self.tables]
        for _ in range(TRIES):
            if self._is_accepted(rows):
                return self._put(i, rows)
            rows = next(spare)
        return self._put(i, self._mended(i, rows))

    def _mended(self, i: int, rows: list[dict[str, int]]) -> list[dict[str, int]]:
        """Answers that rules speak of, all copied from one accepted row, which has violated nothing hard."""
        for donor in (int(u * i) for u in uniforms(DONORS if i else 0, self._bits)):
            taken = [{name: int(table[name][donor]) for name in self._columns} for table in self.tables]
            mended = [{**row, **part} for row, part in zip(rows, taken, strict=True)]
            if self._cost(mended) is not None:
                return mended
        if self._cost(rows) is not None:
            return rows
        hard = "; ".join(each.text for each in self._denials if each.weight is None)
        raise PlanError(
            f"no row was found that keeps apart from the {i:,} before it ({hard[:200]}); give the constraint a weight, or draw "
            "fewer rows. What was charged stays charged",
            field=FIELD,
        )

    def _is_accepted(self, rows: Sequence[Mapping[str, int]]) -> bool:
        cost = self._cost(rows)
        return cost is not None and (cost == 0 or self._chance() < exp(-cost))

    def _cost(self, rows: Sequence[Mapping[str, int]]) -> float | None:
        """Weights of all violations, or none where a hard constraint is violated."""
        total = 0.0
        for row, indices in zip(rows, self._indices, strict=True):
            for index, denial in zip(indices, self._denials, strict=True):
                violations = index.violations(row)
                if violations and denial.weight is None:
                    return None
                total += violations * float(denial.weight or 0)
        return total

    def _chance(self) -> float:
        if self._taken == len(self._chances):
            self._chances, self._taken = uniforms(POOL, self._bits).tolist(), 0
        self._taken += 1
        return float(self._chances[self._taken - 1])

    def _put(self, i: int, rows: Sequence[Mapping[str, int]]) -> None:
        for table, row, indices in zip(self.tables, rows, self._indices, strict=True):
            for name, code in row.items():
                table[name][i] = code
            for index in indices:
                index.add(row)
