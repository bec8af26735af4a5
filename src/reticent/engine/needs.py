"""Where each cell's recipients find their donors: in their own cell, or in the nearest ones that have some.

A recipient takes the donors of its own cell and, where those are fewer than it needs, of the cells at the next
distance, and so on. Cells at one distance are one ring. All of this is read off the class table, so private.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.prepare.distance import Distances

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassTable:
    """A class table: how many donors and recipients each cell of the declared domain holds."""

    donors: Counts = field(repr=False)
    recipients: Counts = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchPlan:
    """From `cell` to donors of cell `other`, `distance` away: `take` of them, from this and all cells tied with it."""

    cell: Counts = field(repr=False)
    other: Counts = field(repr=False)
    distance: Counts = field(repr=False)
    take: Counts = field(repr=False)
    tied: NDArray[np.bool_] = field(repr=False)

    @property
    def far(self) -> bool:
        """Whether anybody looks beyond the own cell."""
        return bool(self.distance.any())

    def rows(self, classes: ClassTable) -> Counts:
        """How many donors, recipients and visitors from afar each cell's ring has."""
        away = self.distance > 0
        visitors = np.zeros_like(classes.donors)
        np.add.at(visitors, self.other[away], classes.recipients[self.cell[away]])
        return classes.donors + classes.recipients + visitors

    def own(self, cells: Counts) -> Counts:
        """The number of each cell's visit to itself; the cells have donors."""
        home = np.flatnonzero(self.distance == 0)
        number = np.zeros(1 + int(self.cell.max(initial=0)), np.int64)
        number[self.cell[home]] = home
        return number[cells]

    def table(self) -> pa.Table:
        """One line for each visit to another cell, and its number."""
        away = np.flatnonzero(self.distance)
        columns = {"cell": self.cell[away], "other": self.other[away], "visit": away}
        return pa.table({name: pa.array(column.astype(np.int32)) for name, column in columns.items()})


def visits(distances: Distances, classes: ClassTable, k: int) -> MatchPlan:
    """Rich cells, with `k` donors of their own, visit themselves. The others look around."""
    asking = classes.recipients > 0
    rich = np.flatnonzero(asking & (classes.donors >= k))
    own = (rich, rich, np.zeros_like(rich), np.full_like(rich, k), np.zeros(len(rich), np.bool_))
    poor = np.flatnonzero(asking & (classes.donors < k))
    parts = [own, *_looking_around(distances, classes.donors, poor, k)]
    cell, other, distance, take, tied = (np.concatenate(each) for each in zip(*parts, strict=True))
    return MatchPlan(cell=cell, other=other, distance=distance, take=take, tied=tied)


def _looking_around(
    distances: Distances, donors: Counts, poor: Counts, k: int
) -> Iterator[tuple[Counts, Counts, Counts, Counts, NDArray[np.bool_]]]:
    """The visits of each poor cell, as far out as it takes to find `k` donors."""
    radius, farthest, everybody = 0, distances.farthest, int(donors.sum())
    for cell in poor.tolist() if everybody else ():
        row = distances.row(cell)
        while True:
            others = np.flatnonzero(row <= radius)
            others = others[donors[others] > 0]
            away = row[others].astype(np.int64)
            held = np.bincount(away, weights=donors[others]).astype(np.int64)  # below 2^53: exact
            if held.sum() >= min(k, everybody) or radius >= farthest:
                break
            radius = min(2 * radius + 1, farthest)
        upto = np.cumsum(held)
        last = int(np.searchsorted(upto, k))  # the distance at which the k-th donor stands
        take = np.minimum(held, k - (upto - held))
        cells = np.bincount(away)
        kept, radius = away <= last, min(last, farthest)
        others, away = others[kept], away[kept]
        yield np.full_like(others, cell), others, away, take[away], cells[away] > 1
