"""What a method reads off the points of small cells: a few numbers for each cell, so that the points need not be kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from reticent.smallcells.points import Wholes

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


def _nothing() -> Wholes:
    return np.zeros(0, dtype=object)


def _no_bounds() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CellReadings:
    """One entry for each declared cell, read off its own points and those of no other. Private.

    `sizes` are points, `steps` estimates in whole steps of a public grid, `bounds` what their noise is scaled to or made
    of; `errors` and `error_bounds` the same of standard errors. What a method does not need has no entries.
    """

    sizes: Whole
    steps: Wholes
    bounds: Floats = field(default_factory=_no_bounds)
    errors: Wholes = field(default_factory=_nothing)
    error_bounds: Floats = field(default_factory=_no_bounds)

    @property
    def cells(self) -> int:
        """How many cells were declared: a public number."""
        return len(self.sizes)


def joined(parts: Sequence[CellReadings]) -> CellReadings:
    """The readings of runs of cells, one run after the other."""
    names = [each.name for each in fields(CellReadings)]
    return CellReadings(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
