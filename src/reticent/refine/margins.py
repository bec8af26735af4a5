"""Known margins that a table is raked to: what can be refused about them beforehand, and their factors in groups and trees.

Two margins are in one group if they share an axis, directly or through others. A group holds one small array of factors for
each of its margins. It is handed the table summed over all other axes, with the other groups' factors in, and fits its
margins in turn. Groups stand in a tree: each side is handed the table with the factors of the other side summed in. For
the side on the left that is the table, as a matrix, times the factors on the right; so a cycle reads the whole table twice,
and all else are arrays of about the square root of its size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import PlanError

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Margin:
    """Known totals over some axes of a table, the other axes summed out; `totals` has one axis for each of `axes`."""

    axes: tuple[int, ...]
    totals: Floats = field(repr=False)
    total: float

    def __init__(self, axes: Sequence[int] | int, totals: ArrayLike) -> None:
        given = (axes,) if isinstance(axes, int) else tuple(axes)
        values = np.array(totals, dtype=np.float64)
        if not given or len(set(given)) < len(given) or min(given) < 0:
            raise PlanError(f"{given} names no axes, or one twice, or a negative one.", field="axes")
        if values.ndim != len(given):
            raise PlanError(
                f"a margin over {len(given)} axes has {values.ndim} in its totals.", field="totals"
            )
        total = float(values.sum())
        if not (values.size and values.min() >= 0 and 0 < total < inf):
            raise PlanError("they must be finite, not negative, and not all 0.", field="totals")
        # In the order of the table's axes.
        object.__setattr__(self, "axes", tuple(sorted(given)))
        object.__setattr__(self, "totals", np.ascontiguousarray(values.transpose(np.argsort(given))))
        object.__setattr__(self, "total", total)
        self.totals.setflags(write=False)

    def over(self, axes: tuple[int, ...]) -> Floats:
        """The totals over fewer axes."""
        gone = tuple(place for place, axis in enumerate(self.axes) if axis not in axes)
        return np.asarray(self.totals.sum(axis=gone))

    def project(self, table: NDArray[np.generic]) -> NDArray[np.generic]:
        """What the table says about this margin."""
        return np.asarray(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in self.axes)))


def check_margins(
    margins: Sequence[Margin], *, shape: tuple[int, ...], zeroes: Mask | None, tolerance: float
) -> None:
    """Refuse what no table of this shape and these structural zeroes can meet. Everything here is public."""
    if not margins:
        raise PlanError("give at least one margin.", field="margins")
    for number, margin in enumerate(margins):
        _check_shape(number, margin, shape)
        if zeroes is not None:
            _check_zeroes(number, margin, zeroes)
    for (i, one), (j, other) in combinations(enumerate(margins), 2):
        _check_pair(i, one, j, other, tolerance)


def _check_shape(number: int, margin: Margin, shape: tuple[int, ...]) -> None:
    if margin.axes[-1] >= len(shape) or margin.totals.shape != tuple(shape[axis] for axis in margin.axes):
        raise PlanError(
            f"margin {number} has totals of shape {margin.totals.shape} over axes {margin.axes}, which does not "
            f"fit a table of shape {shape}.",
            field="margins",
        )


def _check_zeroes(number: int, margin: Margin, zeroes: Mask) -> None:
    """A total above 0 needs a cell that may be above 0."""
    stuck = (margin.project(~zeroes) == 0) & (margin.totals > 0)
    if stuck.any():
        where = tuple(int(place) for place in np.argwhere(stuck)[0])
        raise PlanError(
            f"margin {number} has a total above 0 at {where}, where every cell is a structural zero.",
            field="margins",
        )


def _check_pair(i: int, one: Margin, j: int, other: Margin, tolerance: float) -> None:
    """Two margins agree about the axes they share, and about the grand total if they share none."""
    shared = tuple(axis for axis in one.axes if axis in other.axes)
    agree = abs(one.total - other.total) <= tolerance / 10 * one.total
    if agree and shared:
        here, there = one.over(shared), other.over(shared)
        agree = not (np.abs(here - there) > tolerance / 10 * np.maximum(here, there)).any()
    if not agree:
        what = f"the totals over axes {shared}" if shared else "the grand total"
        raise PlanError(f"margins {i} and {j} contradict each other about {what}.", field="margins")


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


Side: TypeAlias = "Group | Pair"


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two sides that share no axis; the left one's axes come first."""

    left: Side
    right: Side
    size: int

    @property
    def groups(self) -> tuple[Group, ...]:
        return (*self.left.groups, *self.right.groups)

    def factors(self) -> Floats:
        """All factors, multiplied out."""
        return np.multiply.outer(self.left.factors(), self.right.factors()).reshape(-1)

    def fit(self, given: Floats, *, judge: bool) -> float:
        """Meet every margin once; the error of the very first before it was met, if it is to be judged."""
        matrix = given.reshape(self.left.size, -1)
        error = self.left.fit(matrix @ self.right.factors(), judge=judge)
        self.right.fit(self.left.factors() @ matrix, judge=False)
        return error

    def look(self, given: Floats) -> list[tuple[Fold, Floats]]:
        """Every margin, and what the table says about it as the factors stand."""
        matrix = given.reshape(self.left.size, -1)
        here = self.left.look(matrix @ self.right.factors())
        return here + self.right.look(self.left.factors() @ matrix)


def tree_of(groups: list[Group]) -> Side:
    """Cut in two where the sides are nearest in size, again and again."""
    if len(groups) == 1:
        return groups[0]
    sizes = [group.size for group in groups]
    cut = min(range(1, len(groups)), key=lambda k: prod(sizes[:k]) + prod(sizes[k:]))
    return Pair(tree_of(groups[:cut]), tree_of(groups[cut:]), prod(sizes))
