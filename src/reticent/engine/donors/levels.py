"""A group of columns filled level by level, from fine to coarse, in every ring, with records some cells at a time.

At the first level all recipients ask, at each later one those who are left. Everybody stands on the rings of all levels,
served before or not. Records are given in arrays a few million at a time, whole cells of the finer levels together. For levels
whose cells have more, all records are given once more in portions, of which only what stands near somebody who asks is kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from reticent.engine.donors.circle import Powers, Whole, coefficients, cubic
from reticent.engine.donors.records import ID, SPOT
from reticent.engine.donors.serving import Flags, OnRing, SomeServed, serve
from reticent.engine.donors.shelf import Shelf
from reticent.prepare.repair import CappedDonors

HELD = 2**20  # gifts of a ring that wait before they are put where they stay


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


class Gifts(ABC):
    """Who was served in a ring, and with which digits, by label: held for a while, then put where it stays."""

    def __init__(self, items: int) -> None:
        self.items, self.waiting = items, 0
        self._held: list[tuple[Whole, tuple[Whole, ...]]] = []

    @abstractmethod
    def put(self, columns: dict[str, Whole]) -> None:
        """Ids and the digits of each item, behind what was put before."""

    def add(self, label: Whole, items: tuple[Whole, ...]) -> None:
        self._held.append((label, items))
        self.waiting += len(label)
        if self.waiting > HELD:
            self.give()

    def give(self) -> None:
        """Put what is held; of several rings and groups much comes together."""
        none = np.zeros(0, np.int64)
        digits = [
            np.concatenate([none, *(given[item] for _, given in self._held)]) for item in range(self.items)
        ]
        labels = np.concatenate([none, *(label for label, _ in self._held)])
        self._held, self.waiting = [], 0
        self.put({ID: labels, **{f"g{item}": each for item, each in enumerate(digits)}})


class KeptGifts(Gifts):
    """Gifts put aside on a shelf, from which they are read by label."""

    def __init__(self, shelf: Shelf, items: int) -> None:
        super().__init__(items)
        self.shelf = shelf

    def put(self, columns: dict[str, Whole]) -> None:
        self.shelf.add(columns)

    def of(self, labels: Whole) -> list[pa.Array]:
        """The digits given to recipients, whose labels go up, item by item; null for those whom nobody serves."""
        first, last = (int(labels[0]), int(labels[-1])) if len(labels) else (0, -1)
        found = self.shelf.between(first, last)
        at, nobody = np.searchsorted(labels, found[ID]), np.ones(len(labels), np.bool_)
        nobody[at] = False
        digits = np.zeros((self.items, len(labels)), np.int64)
        for item, each in enumerate(digits):
            each[at] = found[f"g{item}"]
        return [pa.array(each, mask=nobody) for each in digits]


class GroupFill:
    """One group of columns: `cells` says where its levels' cells are among the columns of records, `digits` its items with how
    many answers each has, `keys` the key of a level and a ring. At the first `whole` levels cells are whole in what `take` is
    given; `gifts` gets what every ring gives.
    """

    def __init__(
        self,
        group: CappedDonors,
        *,
        cells: Sequence[CellColumn],
        digits: Mapping[str, int],
        keys: Callable[[int, int], str],
        whole: int,
        gifts: Sequence[Gifts],
    ) -> None:
        self.group, self.cells, self.digits, self.keys = group, cells, digits, keys
        self.whole, self.gifts = whole, gifts
        self._left = [Left(len(cells)) for _ in gifts]

    @property
    def later(self) -> set[str]:
        """The columns that levels beyond those need of all records."""
        rest = self.cells[self.whole :]
        return {SPOT, *(each.name for each in rest), *self.digits} if rest else set()

    @property
    def left(self) -> int:
        """How many recipients wait for levels beyond those, all rings together."""
        return sum(len(each.label) for each in self._left)

    def take(self, people: Mapping[str, Whole]) -> None:
        """Serve recipients of all rings at the levels whose cells are whole among `people`, each at the first that does."""
        members = self.members(people, range(len(self.cells)))
        here = [self._serve_all(members, ring, given) for ring, given in enumerate(self.gifts)]
        for level in range(1, self.whole):
            self._serve_left(level, CellNumbers(members.cells[level]), lambda: [members], here)
        if self.whole == len(self.cells):
            return  # whom these do not serve, nobody does
        for each, more in zip(self._left, here, strict=True):
            each.take(more)

    def finish(
        self,
        portions: Callable[[Sequence[str]], Iterable[Mapping[str, Whole]]],
        sizes: Mapping[str, Whole],
    ) -> None:
        """Serve at the other levels, by all records in portions; `sizes` has those of cells, by the names of their columns."""
        for level in range(self.whole, len(self.cells)):

            def members(at: int = level) -> Iterable[Members]:
                names = [SPOT, self.cells[at].name, *self.digits]
                return (self.members(people, [at]) for people in portions(names))

            self._serve_left(level, SizedCells(self.cells[level].sizes(sizes)), members, self._left)
        for given in self.gifts:
            given.give()

    def members(self, people: Mapping[str, Whole], levels: Iterable[int]) -> Members:
        """Who answered everything in the group, or lacks some of it."""
        digits, answers = [people[name] for name in self.digits], list(self.digits.values())
        gives = np.logical_and.reduce([y < most for y, most in zip(digits, answers, strict=True)])
        asks = np.logical_or.reduce([y == most for y, most in zip(digits, answers, strict=True)])
        found = {ID: people[ID], SPOT: people[SPOT]}
        found |= {f"c{level}": self.cells[level].of(people) for level in levels}
        found |= {f"y{item}": each for item, each in enumerate(digits)}
        belongs = gives | asks
        some = found if belongs.all() else {name: each[belongs] for name, each in found.items()}
        return Members(some, answers)

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
        portions: Callable[[], Iterable[Members]],
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
        for given, each, (_, some) in zip(self.gifts, left, asking, strict=True):
            for label, items in some.found:
                given.add(label, items)
                each.remove(label)
