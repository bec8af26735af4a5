"""Columns seen ever more coarsely: 16 bins, then 8, 4, 2. Public throughout; what PrivBayes' parents are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from reticent.schema import Levels
from reticent.synth.base import Counted, Holes
from reticent.synth.domain import Axis, Domain
from reticent.synth.marginals.views import ColumnView


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One column at one coarseness: the cells that count, and at which of them a new group starts."""

    kept: NDArray[np.int64] = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    cells: int
    unasked: int | None = None

    @property
    def size(self) -> int:
        return len(self.starts)

    @property
    def side(self) -> ColumnView:
        """The same as a side of a view; inside a group all cells are alike."""
        into = np.full(self.cells, -1, dtype=np.int64)
        into[self.kept] = np.searchsorted(self.starts, np.arange(len(self.kept)), side="right") - 1
        within = np.zeros((self.size, self.cells))
        within[into[self.kept], self.kept] = 1.0
        return ColumnView(into=into, within=within / within.sum(axis=1, keepdims=True), unasked=self.unasked)


Ladder = tuple[Level, ...]


def ladders(domain: Domain, holes: Holes) -> tuple[Ladder, ...]:
    """For every column its levels, the finest first. Categories without an order have one level."""
    return tuple(_ladder(axis, domain, holes) for axis in domain.axes)


def _ladder(axis: Axis, domain: Domain, holes: Holes) -> Ladder:
    column = domain.schema.coded[axis.column]
    is_ordered = not isinstance(column, Levels) or column.ordered
    widths = [1]
    while is_ordered and axis.answers > 2 * widths[-1]:
        widths.append(2 * widths[-1])
    return tuple(_level(axis, width, holes) for width in widths)


def _level(axis: Axis, width: int, holes: Holes) -> Level:
    """Answers in runs of `width`; silence, where it counts, and the unasked stay by themselves."""
    kept = [cell for cell in range(axis.size) if cell != axis.silence or holes is Holes.VALUES]
    starts = [*range(0, axis.answers, width), *range(axis.answers, len(kept))]
    return Level(kept=np.array(kept), starts=np.array(starts), cells=axis.size, unasked=axis.unasked)


def grouped(table: Counted, levels: Sequence[Level]) -> Counted:
    """A table over cells as one over groups: rows in cells that do not count are left out."""
    return reduce(lambda t, at: _along(t, at[1], at[0]), enumerate(levels), table)


def _along(table: Counted, level: Level, axis: int) -> Counted:
    if level.size == table.shape[axis]:
        return table
    kept = table if len(level.kept) == table.shape[axis] else table.take(level.kept, axis=axis)
    return kept if level.size == len(level.kept) else np.add.reduceat(kept, level.starts, axis=axis)
