"""Rows in memory that a synthesizer may count, as the engine's are. For trials only: the engine's do not show themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.lab.judge.counting import tally
from reticent.lab.trials.coding import Cells
from reticent.noise.bits import Bits
from reticent.synth.base import Conditional, Counted, Places
from reticent.synth.decode import uniforms
from reticent.synth.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Cells of a domain. Implements `synth.base.Counts`."""

    domain: Domain
    cells: Cells = field(repr=False)

    def count(self, sets: Sequence[Places]) -> list[Counted]:
        lines = np.ascontiguousarray(self.cells.T, dtype=np.int32)
        return [tally(lines[list(places)], self.domain.sizes(places)) for places in sets]

    def complete(self) -> "Held":
        silent = np.array([axis.silence for axis in self.domain.axes])
        return Held(domain=self.domain, cells=self.cells[(self.cells != silent).all(axis=1)])

    def filled(self, fills: Sequence[Conditional], bits: Bits) -> "Held":
        cells = self.cells.copy()
        for fill in fills:
            silent = cells[:, fill.place] == self.domain.axes[fill.place].silence
            if silent.any():
                rows = cells[silent]
                chances = fill.table[tuple(rows[:, place] for place in fill.given)]
                cells[silent, fill.place] = drawn(
                    np.broadcast_to(chances, (len(rows), chances.shape[-1])), bits
                )
        return Held(domain=self.domain, cells=cells)


def drawn(chances: NDArray[np.float64], bits: Bits) -> NDArray[np.int32]:
    """One cell for every line, with the chances of that line."""
    even = uniforms(len(chances), bits)
    below = np.cumsum(chances, axis=1)
    place = (below <= even[:, None] * below[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(place, chances.shape[1] - 1), dtype=np.int32)
