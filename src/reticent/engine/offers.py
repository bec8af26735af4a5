"""What donors offer to those who visit their cell.

A line is a donor or a visitor of a cell. In the order of the circle each has r donors of the cell before it: a
visitor takes donor r, r + 1, ..., counted around. It takes as many as its visit says. Where several cells are tied
in a visitor's distance, each offers that many, with their points on the circle, and the first of all are taken later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.engine.circle import Whole, order_of
from reticent.engine.needs import MatchPlan

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
