"""L_1 exactly: the most recipients whose donors change when one respondent comes or goes.

The bound of `reticent.sensitivity.hubs` needs counts and gaps only, and gives every tie between cells away.
Here the places on the ring are known, and ties are settled by them. It is what the literature calls L_1(D),
the donor who might come included.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from reticent.prepare.distance import Distances
from reticent.sensitivity.hubs import Counts, nearest_cells


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """How many records each cell holds, and their places on the ring, cells in order. Private."""

    counts: Counts = field(repr=False)
    places: Counts = field(repr=False)

    def of(self, cells: Counts) -> Counts:
        """The places of these cells' records, clockwise from 0."""
        first = np.cumsum(self.counts) - self.counts
        return np.sort(np.concatenate([self.places[first[c] : first[c] + self.counts[c]] for c in cells]))


def most_donees(distances: Distances, donors: Places, recipients: Places, *, k0: int, circle: int) -> int:
    """max(1, N_{K0}): L_1 over all cells, all places of a ring of `circle` places, and all labels.

    Guarantee   equals the largest number of recipients whose donors differ between D and a neighbour, one
                who comes or goes included. A first rung, not a smooth bound: it may not scale noise by itself.
    Adjacency   one respondent added or removed.
    Theorem     THEORY 3.2 (i).
    Proof       proofs/sensitivity/hubs.md
    Assumes     the order of THEORY 3.1a; a newcomer may have any label.
    Keeps back  the number.
    """
    held, radius = donors.counts.astype(np.float64), 0
    arcs: defaultdict[int, list[tuple[Counts, Counts]]] = defaultdict(list)
    for cell in np.flatnonzero(recipients.counts).tolist():
        row = distances.row(cell)
        cells, nearer, radius = nearest_cells(row, held, k0, radius, distances.farthest)
        asking = recipients.of(np.array([cell]))
        for distance in np.unique(row[cells]):
            ring = cells[row[cells] == distance]
            need = k0 - int(nearer[row[cells] == distance][0])
            reach = _arcs(asking, donors.of(ring), need, circle)
            for t in ring.tolist():
                arcs[t].append((asking, asking + reach))
    return max([1, *(_overlap(each, circle) for each in arcs.values())])


def _arcs(asking: Counts, tied: Counts, need: int, circle: int) -> Counts:
    """How far clockwise each recipient looks before `need` of the tied donors are passed."""
    if len(tied) < need:
        return np.full(len(asking), circle - 1)
    last = tied[(np.searchsorted(tied, asking) + need - 1) % len(tied)]
    return (last - asking) % circle


def _overlap(arcs: list[tuple[Counts, Counts]], circle: int) -> int:
    """The most arcs over one place. Some arc begins where that is reached."""
    begins = np.sort(np.concatenate([begin for begin, _ in arcs]))
    ends = np.sort(np.concatenate([end for _, end in arcs]))
    begun = np.searchsorted(begins, begins, side="right") - np.searchsorted(ends, begins)
    wrapped = len(ends) - np.searchsorted(ends, begins + circle)
    return int((begun + wrapped).max())
