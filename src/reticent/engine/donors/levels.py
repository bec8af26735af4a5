"""A group of columns filled level by level, from fine to coarse, in every ring, with records some cells at a time.

At the first level all recipients ask, at each later one those who are left. Everybody stands on the rings of all levels,
served before or not. Records are held in arrays a few million at a time, whole cells of the finer levels together. For levels
whose cells have more, all records are read in portions, of which only what stands near somebody who asks is kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from reticent.engine.donors.circle import LOT, Powers, Whole, coefficients, cubic, lots
from reticent.engine.donors.filling import PEOPLE
from reticent.engine.donors.records import ID, SPOT
from reticent.engine.donors.serving import Flags, OnRing, SomeServed, serve
from reticent.engine.protocol import Tables
from reticent.prepare.repair import CappedDonors

HELD = 2**20  # gifts of a ring that are kept before the engine is given them


class Members:
    """Donors and recipients of a group: labels, spots, their cells at some levels, digits, and who gives."""

    def __init__(self, found: Mapping[str, Whole], answers: Sequence[int]) -> None:
        self.label, self.spot = found[ID], found[SPOT]
        self.cells = {int(name[1:]): each for name, each in found.items() if name[0] == "c"}
        self.items = tuple(found[f"y{i}"] for i in range(len(answers)))
        self.gives: Flags = np.logical_and.reduce(
            [y < most for y, most in zip(self.items, answers, strict=True)]
        )

    @cached_property
    def powers(self) -> Powers:
        return Powers(self.spot)

    def at(self, level: int, key: str, cells: "CellNumbers | None" = None) -> OnRing:
        """Where they stand on the rings of a level, by one ring's key."""
        cell = self.cells[level] if cells is None else cells.of(self.cells[level])
        return OnRing(cell, self.powers.places(coefficients(key, 4)), self.label, self.gives, self.items)


class CellNumbers:
    """Numbers from 0 for the cells of some records, and how many records each has."""

    def __init__(self, cell: Whole) -> None:
        few = int(cell.max(initial=0)) < 8 * len(cell) + 2**16
        self._known = None if few else np.unique(cell)
        self.sizes = np.bincount(self.of(cell))

    def of(self, cell: Whole) -> Whole:
        return cell if self._known is None else np.searchsorted(self._known, cell)


class SizedCells(CellNumbers):
    """The cells of a whole partition, which have numbers already, with so many records each."""

    def __init__(self, sizes: Whole) -> None:
        self._known, self.sizes = None, sizes


class CellColumn(NamedTuple):
    """Where the cells of a level stand in PEOPLE: in a column, or `width` cells of one side by side are one."""

    name: str
    width: int = 1

    @property
    def text(self) -> str:
        return self.name if self.width == 1 else f"({self.name} // {self.width})"

    def of(self, held: Mapping[str, Whole]) -> Whole:
        return held[self.name] if self.width == 1 else held[self.name] // self.width

    def sizes(self, known: Mapping[str, Whole]) -> Whole:
        """How many records each of these cells has, from how many those of the columns have."""
        found = known[self.name]
        if self.width == 1:
            return found
        return np.add.reduceat(found, np.arange(0, len(found), self.width)) if len(found) else found


class Left:
    """Recipients of a ring whom no level has served yet: labels, spots and their cells at later levels."""

    def __init__(self, levels: int, members: Members | None = None, which: Whole | None = None) -> None:
        if members is None:
            columns = [np.zeros(0, np.int64) for _ in range(1 + levels)]
        else:
            cells = [members.cells[level] for level in range(1, levels)]
            columns = [each[which] for each in (members.label, members.spot, *cells)]
        self.label, self.spot, *self.cells = columns

    def take(self, more: "Left") -> None:
        """These and those."""
        pairs = zip(self._columns, more._columns, strict=True)
        self.label, self.spot, *self.cells = (np.concatenate(pair) for pair in pairs)

    def remove(self, served: Whole) -> None:
        stay = ~np.isin(self.label, served)
        self.label, self.spot, *self.cells = (each[stay] for each in self._columns)

    @property
    def _columns(self) -> tuple[Whole, ...]:
        return (self.label, self.spot, *self.cells)


class Gifts:
    """Who was served in a ring, and with which digits: given to the engine from time to time, and at the end."""

    def __init__(self, tables: Tables, name: str, items: int) -> None:
        self.tables, self.name, self.items = tables, name, items
        self._held: list[tuple[Whole, tuple[Whole, ...]]] = []
        self._is_begun = False

    def add(self, label: Whole, items: tuple[Whole, ...]) -> None:
        self._held.append((label, items))
        if sum(len(each) for each, _ in self._held) > HELD:
            self.give()

    def give(self) -> None:
        labels = np.concatenate([label for label, _ in self._held] or [np.zeros(0, np.int64)])
        digits = [
            np.concatenate([given[i] for _, given in self._held] or [np.zeros(0, np.int64)]).astype(np.int64)
            for i in range(self.items)
        ]
        table = pa.table({ID: labels, **{f"g{i}": each for i, each in enumerate(digits)}})
        self.tables.give(self.name, table, more=self._is_begun)
        self._held, self._is_begun = [], True


class RecordRuns(NamedTuple):
    """How records lie in PEOPLE: the first and last ids of each run, how many levels of a group have whole cells in every run,
    counted from the first, and the sizes of cells, by the names of the columns that are kept."""

    ids: Sequence[tuple[int, int]]
    whole: int
    sizes: Mapping[str, Whole]


class GroupFill:
    """One group of columns: `cells` says where its levels' cells are in PEOPLE, `digits` its items with how many answers each has.

    `held` are all records where they fit into one run, else they are read from PEOPLE by `runs`.
    """

    def __init__(
        self,
        tables: Tables,
        group: CappedDonors,
        *,
        cells: Sequence[CellColumn],
        digits: Mapping[str, int],
        keys: Callable[[int, int], str],
        held: Mapping[str, Whole] | None,
        runs: RecordRuns,
    ) -> None:
        self.tables, self.group, self.cells, self.digits, self.keys = tables, group, cells, digits, keys
        self.held, self.runs = held, runs

    def run(self, gifts: Sequence[Gifts]) -> None:
        """Serve the recipients of all rings, each at the first level that does."""
        levels = range(len(self.cells))
        inside = len(levels) if self.held is not None else max(1, self.runs.whole)
        left = [Left(len(levels)) for _ in gifts]
        for members in self._first():
            here = [self._serve_all(members, ring, given) for ring, given in enumerate(gifts)]
            for level in levels[1:inside]:
                self._serve_left(
                    level, CellNumbers(members.cells[level]), partial(iter, [members]), gifts, here
                )
            for each, more in zip(left, here, strict=True):
                each.take(more)
        for level in levels[inside:]:
            cells = SizedCells(self.cells[level].sizes(self.runs.sizes))
            self._serve_left(level, cells, partial(self._portions, level), gifts, left)
        for given in gifts:
            given.give()

    def _serve_all(self, members: Members, ring: int, gifts: Gifts) -> Left:
        """The finest level, where all recipients ask; and who is left."""
        here = members.at(0, self.keys(0, ring))
        taker, donor = serve(here.cell, here.place, here.label, here.gives, self.group.levels[0].serve)
        gifts.add(here.label[taker], tuple(y[donor] for y in here.items))
        waits = ~here.gives
        waits[taker] = False
        return Left(len(self.cells), members, np.flatnonzero(waits))

    def _serve_left(
        self,
        level: int,
        cells: CellNumbers,
        portions: Callable[[], Iterator[Members]],
        gifts: Sequence[Gifts],
        left: Sequence[Left],
    ) -> None:
        """Those who are left, in all rings, with as few looks at the records of a level as will do."""
        asking = []
        for ring, each in enumerate(left):
            key, cap = self.keys(level, ring), self.group.levels[level].serve
            place = cubic(each.spot, coefficients(key, 4))
            cell = cells.of(each.cells[level - 1])
            asking.append((key, SomeServed(cell, place, each.label, cells.sizes, cap)))
        while waiting := [(key, some) for key, some in asking if some.is_open]:
            for _, some in waiting:
                some.look()
            for members in portions():
                for key, some in waiting:
                    some.meet(members.at(level, key, cells))
            for _, some in waiting:
                some.settle()
        for given, each, (_, some) in zip(gifts, left, asking, strict=True):
            for label, items in some.found:
                given.add(label, items)
                each.remove(label)

    def _first(self) -> Iterator[Members]:
        """All members, whole cells of the first level together."""
        levels = range(len(self.cells))
        if self.held is not None:
            yield self._of(self.held)
        elif self.runs.whole:
            for first, last in self.runs.ids:
                yield self._read(f"{ID} BETWEEN {first} AND {last}", levels)
        else:
            sizes = self.cells[0].sizes(self.runs.sizes)
            for low, high in lots(np.arange(len(sizes)), sizes):
                yield self._read(f"{self.cells[0].text} BETWEEN {low} AND {high}", levels)

    def _portions(self, level: int) -> Iterator[Members]:
        """All members with their cells at one level, some at a time."""
        for start in range(0, self.runs.ids[-1][1] + 1, LOT):
            yield self._read(f"{ID} BETWEEN {start} AND {start + LOT - 1}", [level])

    def _read(self, here: str, levels: Sequence[int]) -> Members:
        cells = ", ".join(f"{self.cells[level].text} AS c{level}" for level in levels)
        items = ", ".join(f"{name} AS y{i}" for i, name in enumerate(self.digits))
        found = self.tables.ask(
            f"SELECT {ID}, {SPOT}, {cells}, {items} FROM {PEOPLE} WHERE {self._belongs} AND {here}"
        )
        return Members(found, list(self.digits.values()))

    def _of(self, held: Mapping[str, Whole]) -> Members:
        """The members among records that are held."""
        digits, answers = [held[name] for name in self.digits], list(self.digits.values())
        gives = np.logical_and.reduce([y < most for y, most in zip(digits, answers, strict=True)])
        asks = np.logical_or.reduce([y == most for y, most in zip(digits, answers, strict=True)])
        found = {ID: held[ID], SPOT: held[SPOT]}
        found |= {f"c{level}": cell.of(held) for level, cell in enumerate(self.cells)}
        found |= {f"y{i}": each for i, each in enumerate(digits)}
        belongs = gives | asks
        some = found if belongs.all() else {name: each[belongs] for name, each in found.items()}
        return Members(some, answers)

    @property
    def _belongs(self) -> str:
        """Who answered everything in the group, or lacks some of it."""
        gives = " AND ".join(f"{name} < {answers}" for name, answers in self.digits.items())
        asks = " OR ".join(f"{name} = {answers}" for name, answers in self.digits.items())
        return f"(({gives}) OR ({asks}))"
