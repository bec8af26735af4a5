"""Nearest donors as the document has them: one donor each, Euclidean after one-hot coding, ties by row number.

Of donors equally near, a recipient takes the first one after its own row, and after the last row the first again. Row
numbers are places on a ring, so the bounds of `reticent.sensitivity.hubs` hold for it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.prepare.distance import Distances
from reticent.sensitivity.hubs import Counts, Hubs, Rings

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowDonors:
    """Every row's cell of the matching attributes, and whether it can give an answer. A sample: nobody's survey."""

    distances: Distances
    cells: Counts = field(repr=False)
    gives: Flags = field(repr=False)

    def of(self, asking: Counts) -> Counts:
        """The donor's row for each of these rows; there is at least one donor."""
        donors = np.flatnonzero(self.gives)
        held = np.bincount(self.cells[donors], minlength=self.distances.cells) > 0
        found = np.zeros(len(asking), np.int64)
        for cell in np.unique(self.cells[asking]).tolist():
            row = self.distances.row(cell)
            tied = donors[(held & (row == row[held].min()))[self.cells[donors]]]
            here = self.cells[asking] == cell
            found[here] = tied[np.searchsorted(tied, asking[here], side="right") % len(tied)]
        return found

    def hubs(self, asking: Counts) -> Hubs:
        """How many of these rows one donor can serve, now and some steps from here."""
        donors, size = np.flatnonzero(self.gives), self.distances.cells
        count = np.bincount(self.cells[donors], minlength=size)
        recipients = np.bincount(self.cells[asking], minlength=size)
        return Hubs(
            self.distances, Rings(donors=count, recipients=recipients, gaps=self._gaps(donors, asking))
        )

    def _gaps(self, donors: Counts, asking: Counts) -> Counts:
        """For each donor, cells in order and rows rising: the recipients of its cell that come to it first."""
        order = np.lexsort((donors, self.cells[donors]))
        rows, cells = donors[order], self.cells[donors][order]
        wide = len(self.cells) + 1
        keys = cells * wide + rows
        asked = asking[np.isin(self.cells[asking], cells)]
        at = np.searchsorted(keys, self.cells[asked] * wide + asked)
        begin = np.searchsorted(keys, self.cells[asked] * wide)
        end = np.searchsorted(keys, (self.cells[asked] + 1) * wide)
        # Past the last donor of the cell the ring begins anew.
        return np.bincount(np.where(at < end, at, begin), minlength=len(keys))
