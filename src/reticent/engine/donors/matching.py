"""Donor matching: where each cell's recipients find their donors, and what donors offer to those who visit their cell.

A recipient takes the donors of its own cell and, where those are fewer than it needs, of the cells at the next distance,
and so on. Cells at one distance are one ring. All of this is read off the class table, so private.

A line is a donor or a visitor of a cell. In the order of the circle each has r donors of the cell before it: a visitor
takes donor r, r + 1, ..., counted around. It takes as many as its visit says. Where several cells are tied in a visitor's
distance, each offers that many, with their points on the circle, and the first of all are taken later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.engine.donors.circle import Whole, order_of
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


OWN = -1  # the visit of a line that stays in its own cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """`taken`: id and answer. `tied`: these, and what decides. `gaps`: id, and the donor who comes first at home."""

    taken: pa.Table = field(repr=False)
    tied: pa.Table = field(repr=False)
    gaps: pa.Table = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visitors:
    """The visitors of some cells: who they are, by which visit, after how many donors of how many, and the number
    of the cell's first donor among all donors here."""

    id: Whole = field(repr=False)
    visit: Whole = field(repr=False)
    after: Whole = field(repr=False)
    of: Whole = field(repr=False)
    first: Whole = field(repr=False)

    def some(self, which: Whole) -> "Visitors":
        parts = (each[which] for each in (self.id, self.visit, self.after, self.of, self.first))
        return Visitors(**dict(zip(("id", "visit", "after", "of", "first"), parts, strict=True)))


def offers(lines: dict[str, Whole], order: Sequence[str], answers: int, looked: MatchPlan) -> Matches:
    """What is offered to whom, from all `lines` of some cells; digits below `answers` are donors' answers."""
    cell, place, *words = (lines[name] for name in ("cell", *order))
    rank = order_of(cell, place, words)
    gives = (lines["y"] < answers)[rank]
    met, donor = _met(lines, rank, gives, looked), rank[gives]
    home, tied = looked.distance[met.visit] == 0, looked.tied[met.visit]
    who, at, _ = _served(met.some(np.flatnonzero(~tied)), looked)
    taken = {"id": who.id, "y": lines["y"][donor[at]]}
    who, at, around = _served(met.some(np.flatnonzero(tied)), looked)
    point = {name: lines[name][donor[at]] for name in ("y", *order)}
    needs = {"distance": looked.distance[who.visit], "take": looked.take[who.visit]}
    return Matches(
        taken=pa.table(taken),
        tied=pa.table({"id": who.id, "around": around, **needs, **point}),
        gaps=pa.table({"id": met.id[home], "gap": (met.after % met.of)[home]}),
    )


def _met(lines: dict[str, Whole], rank: Whole, gives: NDArray[np.bool_], looked: MatchPlan) -> Visitors:
    """The visitors among the lines, which `rank` puts in order, but those who stay in a cell without donors."""
    length = np.bincount(lines["cell"])
    before = np.concatenate([[0], np.cumsum(gives)])  # donors before each line, and all of them
    upto = before[np.cumsum(length)]
    donors = np.diff(upto, prepend=0)
    which = np.flatnonzero(~gives & np.repeat(donors > 0, length))
    line = rank[which]
    cell, visit = lines["cell"][line], lines["visit"][line].astype(np.int64)
    visit[visit == OWN] = looked.own(cell[visit == OWN])
    first = (upto - donors)[cell]
    return Visitors(
        id=lines["id"][line], visit=visit, after=before[which] - first, of=donors[cell], first=first
    )


def _served(met: Visitors, looked: MatchPlan) -> tuple[Visitors, Whole, Whole]:
    """The visitors, once for each donor that is offered, with the donor's number and whether it is past the start."""
    turns = np.minimum(looked.take[met.visit], met.of)
    who = met.some(np.repeat(np.arange(len(turns)), turns))
    turn = np.arange(len(who.id)) - np.repeat(np.cumsum(turns) - turns, turns)
    place = who.after + turn
    return who, who.first + place % np.maximum(who.of, 1), place >= who.of
