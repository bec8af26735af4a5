"""Donor imputation one record at a time, from its definition: labelled records and one strict order for each recipient.

No SQL, no rings, no cells visited: every recipient sorts all donors. Only the digest is the library's rule.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import floor

from reticent.engine.wants import Blocks, Key, Ring, has_universe, keys_of
from reticent.prepare.repair import Donors, Match, Repair, Scheme
from reticent.schema import Levels, Schema
from reticent.schema.bind import MISSING, STRUCTURAL, Cell
from tests.engine import slow
from tests.engine.slow import Raw, Row

Place = Callable[[str, Sequence[int]], int]


@dataclass(frozen=True)
class Record:
    """A respondent's record: its answers, and where it stands on the circle."""

    row: Row
    point: tuple[object, ...]  # the place, then the label: no two records share one


P = 2**61 - 1


def place_of(key: str, numbers: Sequence[int]) -> int:
    """The place that a label and a key have on the circle: a cubic of a sum, modulo P."""

    def coefficient(i: int) -> int:
        return int(sha256(f"{key}|{i}".encode()).hexdigest(), 16) % P

    z = coefficient(0) + sum(coefficient(5 + i) * x for i, x in enumerate(numbers))
    return sum(coefficient(1 + i) * z**i for i in range(4)) % P


def records(
    schema: Schema, people: Sequence[Raw], columns: Sequence[str], repair: Repair, place: Place = place_of
) -> list[Record]:
    """Every record that counts, labelled by its owner, its answers and a number among its equals."""
    coded = [{c: slow.code_of(schema.coded[c], raw[c]) for c in columns} for raw in people]
    owned = slow.bounded(schema, people, coded)
    rows = slow.finished(schema, [row for _, row in owned], columns, repair.edits)
    seen, found = Counter[object](), []
    for (owner, _), row in zip(owned, rows, strict=True):
        told = words(schema, columns, row)
        seen[owner, told] += 1
        named = [owner_number(owner)] * (schema.unit != "row")
        label = [*told, seen[owner, told], *named]
        point = (place(repair.key, label), *told, seen[owner, told], owner)
        found.append(Record(row, point))
    return found


def owner_number(owner: str) -> int:
    """The first 60 bits of the identifier's digest."""
    return int(sha256(owner.encode()).hexdigest()[:15], 16)


def words(schema: Schema, columns: Sequence[str], row: Row) -> tuple[int, ...]:
    """The record as numbers in mixed radix, each below 2^63, the first column lowest."""
    done, word, worth = [], 0, 1
    for name in columns:
        column = schema.coded[name]
        answers = column.high - column.low + 1
        size = answers + 2 if has_universe(schema, name) else answers + 1
        if worth * size > 2**63 - 1:
            done, word, worth = [*done, word], 0, 1
        cell = row[name]
        digit = cell - column.low if isinstance(cell, int) else answers + (cell is STRUCTURAL)
        word, worth = word + digit * worth, worth * size
    return (*done, word)


def between(schema: Schema, match: Match, one: Cell, other: Cell) -> Fraction:
    """The distance of two answers to one question."""
    column, (key,) = schema.coded[match.column], keys_of(_only(match))
    a, b = slow.place(key, one, schema), slow.place(key, other, schema)
    if a == b:
        return Fraction(0)
    scale = [Fraction(i) for i in range(key.answers(schema))]
    if isinstance(column, Levels) and column.positions:
        scale = list(column.positions)
    is_scale = not isinstance(column, Levels) or column.ordered
    if not (is_scale and isinstance(one, int) and isinstance(other, int)):
        return match.weight
    return match.weight * abs(scale[a or 0] - scale[b or 0]) / ((scale[-1] - scale[0]) or 1)


def _only(match: Match) -> Donors:
    return Donors(column="", near=(match,), defaults=(0,))


def preferred(schema: Schema, donors: Donors, x: Record, among: Sequence[Record]) -> list[Record]:
    """All donors in the order of x: the nearest, then clockwise from x."""

    def key(t: Record) -> tuple[Fraction, bool, tuple[object, ...]]:
        far = sum(
            (between(schema, m, x.row[m.column], t.row[m.column]) for m in donors.near), start=Fraction(0)
        )
        return far, t.point < x.point, t.point  # type: ignore[operator]

    return sorted(among, key=key)


def impute(schema: Schema, found: Sequence[Record], repair: Repair) -> list[Row]:
    """The rows with every column filled, each from original answers."""
    rows = [dict(record.row) for record in found]
    for donors in repair.donors:
        among = [t for t in found if isinstance(t.row[donors.column], int)]
        for row, x in zip(rows, found, strict=True):
            if x.row[donors.column] is MISSING:
                first = [t.row[donors.column] for t in preferred(schema, donors, x, among)]
                row[donors.column] = made_of(donors, [*first, *donors.defaults][: donors.k])  # type: ignore[list-item]
    return rows


def made_of(donors: Donors, answers: Sequence[int]) -> int:
    if donors.scheme is Scheme.MEAN:
        return floor(Fraction(sum(answers), donors.k) + Fraction(1, 2))
    times = Counter(answers)
    return min(answers, key=lambda code: (-times[code], code))


def ring(
    schema: Schema, found: Sequence[Record], donors: Donors, want: Ring
) -> tuple[list[int], list[int], list[int]]:
    """Donors and recipients of every cell, and what each donor's gap holds of its own cell."""
    keys = keys_of(donors)
    sizes = [key.size(schema) for key in keys]
    cells = 1
    for size in sizes:
        cells *= size
    homes = [_cell(schema, keys, sizes, record.row) for record in found]
    counts, recipients, gaps = [0] * cells, [0] * cells, []
    for cell in range(cells):
        here = [record for record, home in zip(found, homes, strict=True) if home == cell]
        among = sorted((t for t in here if isinstance(t.row[donors.column], int)), key=lambda t: t.point)  # type: ignore[arg-type, return-value]
        held = [0] * len(among)
        for x in here:
            if x.row[donors.column] is MISSING and slow.counts(want.rows, x.row):
                weight = x.row[want.weight] if want.weight else 1
                weight = weight if isinstance(weight, int) else 0
                recipients[cell] += weight
                if among:
                    after = [i for i, t in enumerate(among) if t.point > x.point]  # type: ignore[operator]
                    held[after[0] if after else 0] += weight
        counts[cell] = len(among)
        gaps += held
    return counts, recipients, gaps


def blocks(
    schema: Schema, found: Sequence[Record], filled: Sequence[Row], donors: Donors, want: Blocks
) -> list[tuple[int, int, int]]:
    """Recipients by the donor of their own cell who comes first, in the order of cells and circles, and by cell of the table."""
    keys = keys_of(donors)
    sizes = [key.size(schema) for key in keys]
    homes = [_cell(schema, keys, sizes, record.row) for record in found]
    held = Counter[tuple[tuple[int, int], int]]()
    for x, home, row in zip(found, homes, filled, strict=True):
        if x.row[donors.column] is not MISSING or not slow.counts(want.ring.rows, x.row):
            continue
        here = [t for t, cell in zip(found, homes, strict=True) if cell == home]
        among = sorted((t for t in here if isinstance(t.row[donors.column], int)), key=lambda t: t.point)  # type: ignore[arg-type, return-value]
        after = [i for i, t in enumerate(among) if t.point > x.point]  # type: ignore[operator]
        served = (home, after[0] if after else 0) if among else (-1, -1)
        counted = slow.counts(want.rows, row)
        place = _cell(schema, want.keys, [key.size(schema) for key in want.keys], row)
        weight = x.row[want.weight] if want.weight else 1
        held[served, place if counted else -1] += weight if isinstance(weight, int) else 0
    held = +held
    number = {each: i for i, each in enumerate(sorted({each for each, _ in held if each[0] >= 0}))}
    return sorted((number.get(each, -1), place, weight) for (each, place), weight in held.items())


def _cell(schema: Schema, keys: Sequence[Key], sizes: Sequence[int], row: Row) -> int:
    index = 0
    for key, size in zip(keys, sizes, strict=True):
        index = index * size + (slow.place(key, row[key.column], schema) or 0)
    return index
