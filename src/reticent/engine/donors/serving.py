"""Who is served on the rings of a level: all of its recipients by one sort, or some of them by a look at what is near.

Coarse levels are asked by the few recipients whom no finer level served, and hold many records. Everybody still stands on
the ring. But whether x is served is settled by the records next in front of it, as many as the cap: so only arcs in which such
a recipient stands, and the arcs in front of those, are put in order. Arcs hold about as many records each. Where too few
stand in front, longer arcs are looked at. What comes out is what the sort of all would give.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.engine.donors.circle import HASH_BITS, Whole, order_of

Flags = NDArray[np.bool_]


def serve(cell: Whole, place: Whole, label: Whole, gives: Flags, cap: int) -> tuple[Whole, Whole]:
    """Which recipients are served on the rings of some cells, and by whom: places in the arrays, side by side.

    Everybody is a donor or a recipient, and cells are whole.

    Guarantee   a donor who comes or goes changes who serves at most `cap` recipients of its cell; a recipient who comes
                or goes, at most one other.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2, at one level.
    Proof       proofs/engine/capped.md
    Assumes     `place` and `label` are functions of the record, labels of different records differ.
    Keeps back  all of it.
    """
    order = order_of(cell, place, [label])
    held, donor = cell[order], gives[order]
    who, donors = np.flatnonzero(~donor), np.flatnonzero(donor)
    if not len(donors):
        return who[:0], who[:0]
    # In front of the i-th recipient, at who[i], stand who[i] - i donors; the next one is its first clockwise.
    upto = who - np.arange(len(who))
    onward = donors[np.minimum(upto, len(donors) - 1)]
    around = (upto == len(donors)) | (held[onward] != held[who])  # past the start of the circle
    before = onward - who - 1
    turned = who[around]
    start, end = (np.searchsorted(held, held[turned], side=side) for side in ("left", "right"))
    front = donors[np.minimum(np.searchsorted(donors, start), len(donors) - 1)]
    onward[around], before[around] = front, end - turned - 1 + front - start
    served = (held[onward] == held[who]) & (before < cap)
    return order[who[served]], order[onward[served]]


@dataclass(frozen=True, slots=True)
class Arcs:
    """The circles of some cells cut into equal arcs, numbered through: of each cell the `first`, and the bits of a place below
    the number of its arc within the cell."""

    first: Whole
    shift: Whole

    def of(self, cell: Whole, place: Whole) -> Whole:
        """The arc in which a place lies."""
        return self.first[cell] + (place >> self.shift[cell])

    def after(self, cell: Whole, arc: Whole) -> Whole:
        """The next arc of the cell, the first after the last; a cell of one arc has no other."""
        first = self.first[cell]
        return first + (arc - first + 1) % (1 << (HASH_BITS - self.shift[cell]))

    @property
    def count(self) -> int:
        return int(self.first[-1] + (1 << (HASH_BITS - self.shift[-1]))) if len(self.first) else 0


def arcs_of(sizes: Whole, length: int) -> Arcs:
    """Arcs of at least `length` records of a cell on average, and one where it has fewer than twice as many."""
    bits = np.frexp(np.maximum(1.0, sizes / length))[1].astype(np.int64) - 1
    counts = 1 << bits
    return Arcs(np.cumsum(counts) - counts, HASH_BITS - bits)


FEWEST, LONGEST = 8, 64  # records of an arc at first
LONGER = 16  # how many times as long arcs are at the next look, at most
ROOM = 2**22  # records that are kept at a time, as far as that can be said beforehand


class OnRing(NamedTuple):
    """Donors and recipients of a group on the rings of a level, or some of them: cells numbered from 0, places, labels, who
    gives, and the digits of each item."""

    cell: Whole
    place: Whole
    label: Whole
    gives: Flags
    items: tuple[Whole, ...]

    def only(self, which: NDArray[Any]) -> "OnRing":
        cell, place, label, gives, items = self
        return OnRing(cell[which], place[which], label[which], gives[which], tuple(y[which] for y in items))


def joined(parts: Sequence[OnRing]) -> OnRing:
    """All of them, one after the other."""
    if len(parts) == 1:
        return parts[0]
    cell, place, label, gives, items = zip(*parts, strict=True)
    put = np.concatenate
    several = tuple(put(each) for each in zip(*items, strict=True))
    return OnRing(put(cell), put(place), put(label), put(gives), several)


class SomeServed:
    """Whether some recipients of a level are served, and with which digits, as `serve` has it with everybody on the ring.

    `look` says which arcs matter, `meet` takes up records, in any order and portions, all of them once for each look, and
    `settle` says who is served. Where more records are wanted in front of somebody, it `is_open` for another look.
    """

    def __init__(self, cell: Whole, place: Whole, label: Whole, sizes: Whole, cap: int) -> None:
        self.cell, self.place, self.label, self.sizes, self.cap = cell, place, label, sizes, cap
        often = int(sizes.sum()) // (8 * max(1, len(cell)))
        self._length = min(min(max(often, FEWEST), LONGEST) + 4 * cap, self._room)
        self._met: list[OnRing] = []
        self.found: list[tuple[Whole, tuple[Whole, ...]]] = []

    @property
    def is_open(self) -> bool:
        return len(self.cell) > 0

    def look(self) -> None:
        """Mark the arcs of those who ask, and the arcs in front of these."""
        self._arcs = arcs_of(self.sizes, self._length)
        own = self._arcs.of(self.cell, self.place)
        self._next = self._arcs.after(self.cell, own)
        self._marks = np.zeros(self._arcs.count, np.bool_)
        self._marks[own] = self._marks[self._next] = True
        self._met = []

    def meet(self, some: OnRing) -> None:
        """Keep those of `some` who stand in a marked arc."""
        self._met.append(some.only(np.flatnonzero(self._marks[self._arcs.of(some.cell, some.place)])))

    def settle(self) -> None:
        """Who is served, of those in front of whom enough records are known; the others are left."""
        near = joined(self._met)
        counts = np.bincount(self._arcs.of(near.cell, near.place), minlength=self._arcs.count)
        whole = self._arcs.shift[self.cell] >= HASH_BITS - 1  # two arcs at most, and both are marked
        known = whole | (counts[self._next] >= self.cap)
        taker, donor = serve(near.cell, near.place, near.label, near.gives, self.cap)
        asked = np.isin(near.label[taker], self.label[known])
        self.found.append((near.label[taker[asked]], tuple(y[donor[asked]] for y in near.items)))
        self.cell, self.place, self.label = (each[~known] for each in (self.cell, self.place, self.label))
        self._length = min(self._length * LONGER, max(self._length * 2, self._room))
        self._met = []

    @property
    def _room(self) -> int:
        """How long arcs may be: two of half as many records more than that are kept for everybody who asks."""
        return max(1, ROOM // (3 * max(1, len(self.cell))))
