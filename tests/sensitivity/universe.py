"""A small universe in which section 3 of the theory is taken literally: slow, and without a clever line.

Records carry a label (cell, place on the ring, tag) and two columns, y and z; a missing one is None. Who is a
member and what weight a record has follow from its tag, so a universe is a finite set of records and all
neighbours of a data set can be listed.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from reticent.prepare.distance import Distances
from reticent.sensitivity.hubs import Rings

Data = frozenset["Record"]
Label = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Record:
    label: Label
    y: int | None
    z: int | None = 0

    @property
    def is_member(self) -> bool:
        return self.label[2] % 2 == 0

    @property
    def weight(self) -> int:
        return 1 + 2 * (self.label[2] == 0)


HEAVIEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A record after imputation: what queries see."""

    y: Fraction
    z: Fraction
    is_member: bool
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Universe:
    distances: Distances
    places: int
    ys: tuple[int | None, ...]
    zs: tuple[int | None, ...] = (0,)
    tags: int = 2
    k0: int = 1
    default: int = 0
    averages: bool = True
    shared_ties: bool = False

    # ---- what can be ----

    def labels(self) -> list[Label]:
        return list(product(range(self.distances.cells), range(self.places), range(self.tags)))

    def records(self) -> Iterator[Record]:
        return (Record(*each) for each in product(self.labels(), self.ys, self.zs))

    def neighbours(self, data: Data) -> list[Data]:
        taken = {record.label for record in data}
        longer = [data | {record} for record in self.records() if record.label not in taken]
        return longer + [data - {record} for record in data]

    # ---- orders and donors ----

    def distance(self, x: Label, t: Label) -> int:
        return int(self.distances.row(x[0])[t[0]])

    def place_in_order(self, x: Label, t: Label) -> tuple[int, int, int, int]:
        """x prefers the smaller: distance, clockwise from x, then label."""
        turn = t[1] if self.shared_ties else (t[1] - x[1]) % self.places
        return self.distance(x, t), turn, t[0], t[2]

    def donors(self, data: Data, column: str) -> list[Label]:
        return [record.label for record in data if getattr(record, column) is not None]

    def recipients(self, data: Data, column: str) -> list[Record]:
        return [record for record in data if getattr(record, column) is None]

    def serving(self, data: Data, x: Label, column: str) -> list[Label]:
        """don_D(x), fewer than K0 where defaults stand in."""
        return sorted(self.donors(data, column), key=lambda t: self.place_in_order(x, t))[: self.k0]

    def rank(self, data: Data, t: Label, x: Label, column: str) -> int:
        here = self.place_in_order(x, t)
        return sum(self.place_in_order(x, s) < here for s in self.donors(data, column) if s != t)

    def loose_rank(self, data: Data, t: Label, x: Label, column: str) -> int:
        """The rank 3.4 counts: on the ring within the cell, strictly nearer donors outside it."""
        others = [s for s in self.donors(data, column) if s != t]
        if x[0] != t[0]:
            return sum(self.distance(x, s) < self.distance(x, t) for s in others)
        return sum(self.place_in_order(x, s) < self.place_in_order(x, t) for s in others if s[0] == t[0])

    def reach(self, data: Data, k: int, *, column: str = "y", loose: bool = False) -> int:
        """N_k, over all labels there can be."""
        rank = self.loose_rank if loose else self.rank
        asking = [record.label for record in self.recipients(data, column)]
        return max(sum(rank(data, t, x, column) < k for x in asking) for t in self.labels())

    # ---- imputation ----

    def fill(self, data: Data) -> list[Filled]:
        return [
            Filled(
                y=self._answer(data, each, "y"),
                z=self._answer(data, each, "z"),
                is_member=each.is_member,
                weight=each.weight,
            )
            for each in data
        ]

    def _answer(self, data: Data, record: Record, column: str) -> Fraction:
        own = getattr(record, column)
        if own is not None:
            return Fraction(own)
        answers = {each.label: getattr(each, column) for each in data}
        given = [answers[t] for t in self.serving(data, record.label, column)]
        given += [self.default] * (self.k0 - len(given))
        if self.averages:
            return Fraction(sum(given), self.k0)
        votes = Counter(given)
        return Fraction(min(value for value in given if votes[value] == max(votes.values())))

    def moved(self, data: Data, other: Data, *, column: str = "y") -> int:
        """c(D, D'): recipients of both whose donors differ, and recipients of one only."""
        mine, theirs = (set(self.recipients(each, column)) for each in (data, other))
        differ = sum(
            self.serving(data, x.label, column) != self.serving(other, x.label, column) for x in mine & theirs
        )
        return differ + len(mine ^ theirs)


Query = Callable[[list[Filled]], Fraction]


def local(universe: Universe, data: Data, queries: list[Query]) -> list[Fraction]:
    """Exact local sensitivity of each query."""
    here = universe.fill(data)
    filled = [universe.fill(other) for other in universe.neighbours(data)]
    return [max(abs(query(here) - query(there)) for there in filled) for query in queries]


def rings(
    universe: Universe, data: Data, column: str = "y", *, members: bool = False, weighted: bool = False
) -> Rings:
    """What an engine would hand over: per cell, donors and recipients, and the gaps of its ring."""
    asking = [x for x in universe.recipients(data, column) if x.is_member or not members]
    cells = range(universe.distances.cells)
    gaps: list[int] = []
    for cell in cells:
        ring = sorted(t[1:] for t in universe.donors(data, column) if t[0] == cell)
        here = [0] * len(ring)
        for x in asking:
            if ring and x.label[0] == cell:
                here[
                    min(range(len(ring)), key=lambda j: ((ring[j][0] - x.label[1]) % universe.places, j))
                ] += x.weight if weighted else 1
        gaps += here
    return Rings(
        donors=np.array([sum(t[0] == c for t in universe.donors(data, column)) for c in cells]),
        recipients=np.array(
            [sum((x.weight if weighted else 1) for x in asking if x.label[0] == c) for c in cells]
        ),
        gaps=np.array(gaps, dtype=np.int64),
    )
