"""Capped rings one record at a time, from THEORY 11.1: no sorting of cells, no SQL, every recipient looks for itself.

Also three rules that look alike and have no such bound: they must fail where this one holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from reticent.engine.wants import level_keys
from reticent.prepare.repair import CappedDonors, Default, MatchLevel, Repair
from reticent.schema import Schema
from reticent.schema.bind import MISSING
from tests.engine import slow
from tests.engine.donors_reference import P
from tests.engine.slow import Row

Point = tuple[object, ...]


@dataclass(frozen=True)
class Body:
    """Somebody on the rings of several levels: a donor with an answer, or a recipient; a cell and a point for each level."""

    name: str
    answer: object | None
    cells: tuple[int, ...]
    points: tuple[Point, ...] = field(repr=False)


def ahead(x: Body, others: Sequence[Body], level: int) -> list[Body]:
    """The others of x's cell, clockwise from x."""
    here = [o for o in others if o.cells[level] == x.cells[level] and o is not x]
    return sorted(here, key=lambda o: (o.points[level] < x.points[level], o.points[level]))  # type: ignore[operator]


def first_donor(x: Body, everybody: Sequence[Body], level: int) -> tuple[Body, int] | None:
    """d(x) and before(x)."""
    for before, other in enumerate(ahead(x, everybody, level)):
        if other.answer is not None:
            return other, before
    return None


def serving(everybody: Sequence[Body], level: int, cap: int) -> dict[str, Body]:
    """Who serves whom at one level."""
    found = {}
    for x in everybody:
        met = first_donor(x, everybody, level) if x.answer is None else None
        if met is not None and met[1] < cap:
            found[x.name] = met[0]
    return found


Serving = Callable[[Sequence[Body], int, int], dict[str, Body]]


def filled(everybody: Sequence[Body], caps: Sequence[int], rule: Serving = serving) -> dict[str, object]:
    """Every recipient's answer, by the first level that serves it; None stands for the default."""
    found: dict[str, object] = {x.name: None for x in everybody if x.answer is None}
    for level, cap in reversed(list(enumerate(caps))):
        found |= {name: donor.answer for name, donor in rule(everybody, level, cap).items()}
    return found


def farthest_first(everybody: Sequence[Body], level: int, cap: int) -> dict[str, Body]:
    """Wrong: a donor serves those of its gap who stand farthest in front of it."""
    found = {}
    for t in (each for each in everybody if each.answer is not None):
        gap = [
            x for x in everybody if x.answer is None and (m := first_donor(x, everybody, level)) and m[0] is t
        ]
        gap.sort(key=lambda x: -first_donor(x, everybody, level)[1])  # type: ignore[index]
        found |= {x.name: t for x in gap[:cap]}
    return found


def walking_on(everybody: Sequence[Body], level: int, cap: int) -> dict[str, Body]:
    """Wrong: whom a donor has no room for goes on to the next donor who has."""
    found: dict[str, Body] = {}
    left = {t.name: cap for t in everybody if t.answer is not None}
    seekers = [x for x in everybody if x.answer is None and first_donor(x, everybody, level)]
    for x in sorted(seekers, key=lambda x: first_donor(x, everybody, level)[1]):  # type: ignore[index]
        for other in ahead(x, everybody, level):
            if left.get(other.name):
                left[other.name] -= 1
                found[x.name] = other
                break
    return found


def leftovers_only(everybody: Sequence[Body], caps: Sequence[int]) -> dict[str, object]:
    """Wrong: whoever was served does not stand on later rings."""
    found: dict[str, object] = {x.name: None for x in everybody if x.answer is None}
    left = list(everybody)
    for level, cap in enumerate(caps):
        given = serving(left, level, cap)
        found |= {name: donor.answer for name, donor in given.items()}
        left = [each for each in left if each.name not in given]
    return found


def spot_of(key: str, words: Sequence[int], number: int, owner: Sequence[int]) -> int:
    """What a label's places are made of."""
    a0, by_number, *a = (_coefficient(f"{key}|spots", i) for i in range(2 + len(words) + len(owner)))
    return (a0 + sum(x * y for x, y in zip(a, (*words, *owner), strict=True)) + by_number * number) % P


def place_at(key: str, spot: int) -> int:
    return sum(_coefficient(key, i) * spot**i for i in range(4)) % P


def _coefficient(key: str, i: int) -> int:
    return int(sha256(f"{key}|{i}".encode()).hexdigest(), 16) % P


def cell_of(schema: Schema, level: MatchLevel, row: Row) -> int:
    index = 0
    for key in level_keys(level):
        index = index * key.size(schema) + (slow.place(key, row[key.column], schema) or 0)
    return index


def stand_in(default: Default, row: Row) -> int:
    answer = row[default.by] if default.by is not None else None
    return default.codes[answer] if isinstance(answer, int) else default.code


@dataclass(frozen=True)
class Labelled:
    """A record with its label: words, running number, owner."""

    row: Row
    words: tuple[int, ...]
    number: int
    owner: tuple[int, ...]


Spot = Callable[[str, Labelled], int]


def spot_at(key: str, each: Labelled) -> int:
    return spot_of(key, each.words, each.number, each.owner)


def impute(
    schema: Schema, found: Sequence[Labelled], repair: Repair, ring: int, spot: Spot = spot_at
) -> list[Row]:
    """The rows as one ring completes them, each group from original answers."""
    rows = [dict(each.row) for each in found]
    for group in repair.capped:
        bodies = _bodies(schema, found, repair, group, ring, spot)
        given = filled(bodies, [level.serve for level in group.levels])
        for at, (row, each) in enumerate(zip(rows, found, strict=True)):
            answers = given.get(str(at))
            for item, (name, default) in enumerate(zip(group.columns, group.defaults, strict=True)):
                if each.row[name] is MISSING:
                    row[name] = answers[item] if isinstance(answers, tuple) else stand_in(default, each.row)
    return rows


def _bodies(
    schema: Schema, found: Sequence[Labelled], repair: Repair, group: CappedDonors, ring: int, spot: Spot
) -> list[Body]:
    bodies = []
    for at, each in enumerate(found):
        cells = [each.row[name] for name in group.columns]
        gives, asks = all(isinstance(cell, int) for cell in cells), any(cell is MISSING for cell in cells)
        if not (gives or asks):
            continue
        own = spot(repair.key, each)
        label = (
            cell_of(schema, repair.capped[0].levels[0], each.row),
            own,
            each.words,
            each.owner,
            each.number,
        )
        keys = [
            f"{repair.key}|{'|'.join(group.columns)}|level {i}|ring {ring}" for i in range(len(group.levels))
        ]
        homes = tuple(cell_of(schema, level, each.row) for level in group.levels)
        points = tuple((place_at(key, own), *label) for key in keys)
        bodies.append(Body(str(at), tuple(cells) if gives else None, homes, points))
    return bodies
