"""Margins of a table in groups: two are in one group if they share an axis, directly or through others.

A group holds one small array of factors for each of its margins. It is handed the table summed over all other
axes, with the other groups' factors in, and fits its margins in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, prod

import numpy as np

from reticent.refine.margins import Floats, Margin

LEAST = 1e-20  # a sum below this share of its total counts as empty: no factor could mend it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """How a margin lies in its group's array: runs of axes that are summed out or kept, in turn."""

    number: int
    shape: tuple[int, ...]
    totals: Floats
    scale: Floats
    floor: float
    lead: int
    trail: int
    middle: tuple[int, ...]
    gone: tuple[int, ...]
    spread: tuple[int, ...]
    kept: tuple[int, ...]

    def sums(self, cells: Floats) -> Floats:
        """What the cells say about the margin: products with vectors of ones, which are faster than sums."""
        if self.trail > 1:
            cells = cells.reshape(-1, self.trail) @ np.ones(self.trail)
        if self.lead > 1:
            cells = np.ones(self.lead) @ cells.reshape(self.lead, -1)
        if self.gone:
            cells = cells.reshape(self.middle).sum(axis=self.gone).reshape(-1)
        return cells

    def ratio(self, sums: Floats) -> Floats:
        """What to multiply by; 1 where there is nothing to multiply."""
        if sums.min() > self.floor:
            return np.asarray(self.totals / sums)
        ratio = np.ones_like(sums)
        np.divide(self.totals, sums, out=ratio, where=sums > LEAST * self.totals)
        return ratio

    def error(self, sums: Floats) -> float:
        """The largest error, relative to the total; to the grand total where that is 0."""
        return float((np.abs(sums - self.totals) / self.scale).max())

    def empty(self, sums: Floats) -> list[tuple[int, tuple[int, ...]]]:
        """Totals above 0 of which there are no cells above 0: the number of the margin, and where in it."""
        places = np.flatnonzero((sums == 0) & (self.totals > 0))
        return [(self.number, tuple(map(int, np.unravel_index(place, self.shape)))) for place in places]


def _fold(number: int, margin: Margin, axes: tuple[int, ...], shape: tuple[int, ...]) -> Fold:
    runs: list[tuple[bool, int]] = []  # is it kept, and how many cells long is it
    for axis, length in zip(axes, shape, strict=True):
        kept = axis in margin.axes
        if runs and runs[-1][0] == kept:
            runs[-1] = (kept, runs[-1][1] * length)
        else:
            runs.append((kept, length))
    lead, trail = (0 if runs[end][0] else runs[end][1] for end in (0, -1))
    inner = runs[(not runs[0][0]) : len(runs) - (not runs[-1][0])]
    totals = margin.totals.reshape(-1)
    return Fold(
        number=number,
        shape=margin.totals.shape,
        totals=totals,
        scale=totals if totals.all() else np.where(totals > 0, totals, margin.total),
        floor=LEAST * margin.total,
        lead=lead,
        trail=trail,
        middle=tuple(length for _, length in inner),
        gone=tuple(place for place, (kept, _) in enumerate(inner) if not kept),
        spread=tuple(length for _, length in runs),
        kept=tuple(length if kept else 1 for kept, length in runs),
    )


@dataclass(slots=True, eq=False)
class Group:
    """Margins that hang together, over `axes` of the table, and their factors so far."""

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    folds: tuple[Fold, ...]
    size: int = field(init=False)
    parts: list[Floats] = field(init=False)
    _given: Floats | None = field(init=False, default=None)
    _cells: Floats | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.size = prod(self.shape)
        self.forget()

    @property
    def groups(self) -> tuple["Group"]:
        """Itself: a tree of one leaf."""
        return (self,)

    @property
    def reach(self) -> float:
        """How far the factors are from 1, as a ratio."""
        return max(_reach(part) for part in self.parts)

    def forget(self) -> None:
        """All factors 1."""
        self.parts = [np.ones_like(fold.totals) for fold in self.folds]
        self._given = self._cells = None

    def factors(self) -> Floats:
        """The factors of all margins, multiplied out over the group's axes."""
        if len(self.folds) == 1 and self.parts[0].size == self.size:
            return self.parts[0]
        joint = np.ones(self.shape)
        for fold, part in zip(self.folds, self.parts, strict=True):
            joint.reshape(fold.spread)[...] *= part.reshape(fold.kept)
        return joint.reshape(-1)

    def fit(self, given: Floats, *, judge: bool) -> float:
        """Meet every margin once; the error of the first before it was met, if it is to be judged."""
        cells, error = self._now(given), 0.0
        for number, fold in enumerate(self.folds):
            sums = fold.sums(cells)
            if judge and number == 0:
                error = fold.error(sums)
            ratio = fold.ratio(sums)
            self.parts[number] = self.parts[number] * ratio
            if len(self.folds) > 1:
                cells.reshape(fold.spread)[...] *= ratio.reshape(fold.kept)
        if len(self.folds) > 1:
            self._given, self._cells = given, cells
        return error

    def look(self, given: Floats) -> list[tuple[Fold, Floats]]:
        """Every margin, and what the cells say about it as the factors stand."""
        cells = self._now(given)
        return [(fold, fold.sums(cells)) for fold in self.folds]

    def _now(self, given: Floats) -> Floats:
        """The cells given, times the factors; those of the last time if the same cells are given again."""
        if given is self._given and self._cells is not None:
            return self._cells
        return np.asarray(given * self.factors())


def _reach(part: Floats) -> float:
    """The largest of the factors and of their inverses, but for factors of 0."""
    least = float(part.min()) or float(part.min(initial=inf, where=part > 0))
    return max(float(part.max()), 1 / least)


def group_axes(shape: tuple[int, ...], margins: Sequence[Margin]) -> tuple[list[Group], tuple[int, ...]]:
    """The groups, by their first axis, and the axes that no margin speaks of."""
    clusters: list[set[int]] = []
    for margin in margins:
        joined = set(margin.axes).union(*(c for c in clusters if c & set(margin.axes)))
        clusters = [c for c in clusters if not c & joined] + [joined]
    groups = []
    for axes in sorted(tuple(sorted(cluster)) for cluster in clusters):
        lengths = tuple(shape[axis] for axis in axes)
        folds = (_fold(i, m, axes, lengths) for i, m in enumerate(margins) if m.axes[0] in axes)
        groups.append(Group(axes, lengths, tuple(folds)))
    taken = {axis for group in groups for axis in group.axes}
    return groups, tuple(axis for axis in range(len(shape)) if axis not in taken)
