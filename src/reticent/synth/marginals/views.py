"""Views of a domain: which cells are told apart, how a model over them is widened, and which pairs may be measured.

Public throughout, but for how badly a public model fits a confidential table: a whole number, with a proved reach of one
record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import MOST_CELLS as MOST_HELD
from reticent.errors import PlanError
from reticent.synth.base import Conditional, Counted, Floats, MissingMethod, Places
from reticent.synth.domain import Axis, Domain

Wholes = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnView:
    """One column: `into[cell]` is the group of a cell, -1 where rows with it are left out of its tables.

    Line g of `within` has the chances of the column's cells inside group g. `unasked` is the cell of those who were not
    asked, where there is one; it is a group by itself.
    """

    into: Wholes = field(repr=False)
    within: Floats = field(repr=False)
    unasked: int | None = None

    @property
    def size(self) -> int:
        return len(self.within)

    @property
    def blocks(self) -> int:
        """Who was asked is one block of the column, who was not another."""
        return 1 if self.unasked is None else 2

    @property
    def cell_blocks(self) -> Wholes:
        """The block of every cell."""
        return np.asarray(np.arange(len(self.into)) == self.unasked, dtype=np.int64)

    @property
    def group_blocks(self) -> Wholes:
        """The block of every group."""
        made = np.zeros(self.size, dtype=np.int64)
        if self.unasked is not None:
            made[self.into[self.unasked]] = 1
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One side for each axis of a domain."""

    sides: tuple[ColumnView, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(side.size for side in self.sides)

    def cells(self, places: Places) -> int:
        return int(np.prod([self.sides[place].size for place in places], dtype=np.int64))

    def table(self, counted: Counted, places: Places) -> Counted:
        """A table over groups: every row in one cell, or in none where one of its cells is left out."""
        for axis, place in enumerate(places):
            counted = np.moveaxis(_grouped(np.moveaxis(counted, axis, 0), self.sides[place]), 0, axis)
        return counted

    def blocks(self, places: Places) -> Wholes:
        """For each cell of such a table, as a list, its block: who was asked which of the columns."""
        return self._numbered(places, [self.sides[place].group_blocks for place in places])

    def parted(self, counted: Counted, places: Places) -> Counted:
        """The same as a list, and at its end the rows left out of each block: every row in exactly one cell."""
        kept = self.table(counted, places).ravel()
        whole = self._numbered(places, [self.sides[place].cell_blocks for place in places])
        return np.append(kept, summed(counted.ravel(), whole) - summed(kept, self.blocks(places)))

    def _numbered(self, places: Places, sides: Sequence[Wholes]) -> Wholes:
        many = [self.sides[place].blocks for place in places]
        return np.ravel_multi_index(np.ix_(*sides), many).ravel()

    def allowed(self, can_be: Flags, places: Places) -> Flags:
        """Groups that hold a cell which can be."""
        return np.asarray(self.table(can_be.astype(np.int64), places) > 0)

    def widened(self, step: Conditional) -> Conditional:
        """How the column's own cells are drawn, given all cells of the given columns."""
        sides = [self.sides[place] for place in step.given]
        # A cell that is left out is never drawn: given it, the average line serves.
        table = step.table @ self.sides[step.place].within
        for axis, side in enumerate(sides):
            spare = table.mean(axis=axis, keepdims=True)
            table = np.concatenate([table, spare], axis=axis)
            table = table.take(side.into, axis=axis)  # -1 takes the spare line
        table /= table.sum(axis=-1, keepdims=True)
        return Conditional(place=step.place, given=step.given, table=table)


def plain(domain: Domain, missing: MissingMethod) -> View:
    """Every cell by itself; silence is left out unless it counts as a value."""
    return View(sides=tuple(_plain(axis, missing) for axis in domain.axes))


def _plain(axis: Axis, missing: MissingMethod) -> ColumnView:
    is_kept = np.ones(axis.size, dtype=bool)
    is_kept[axis.silence] = missing is MissingMethod.VALUES
    return _side(np.where(is_kept, np.cumsum(is_kept) - 1, -1), np.ones(axis.size), axis.unasked)


def merged(view: View, ones: Sequence[Floats], *, least: Sequence[float]) -> View:
    """Cells with less than `least` in the column's noisy table `ones` share one group, inside which they stay as they are.

    McKenna, Miklau and Sheldon 2021 merge below three deviations of the noise. Who was not asked stays apart.
    """
    return View(
        sides=tuple(_merged(*each) for each in zip(view.sides, ones, least, strict=True)),
    )


def _merged(side: ColumnView, counts: Floats, least: float) -> ColumnView:
    is_rare = (counts < least) & (side.group_blocks == 0)
    if is_rare.sum() < 2:
        return side
    groups = np.where(is_rare, (~is_rare).sum(), np.cumsum(~is_rare) - 1)
    weights = side.within.T @ np.maximum(counts, 1e-9)
    return _side(np.where(side.into < 0, -1, groups[side.into]), weights, side.unasked)


def _side(into: Wholes, weights: Floats, unasked: int | None) -> ColumnView:
    within = np.zeros((int(into.max()) + 1, len(into)))
    is_kept = into >= 0
    within[into[is_kept], np.flatnonzero(is_kept)] = weights[is_kept]
    return ColumnView(into=into, within=within / within.sum(axis=1, keepdims=True), unasked=unasked)


def summed(cells: Counted, blocks: Wholes) -> Counted:
    """The sum of each block's cells; every block has one."""
    made = np.zeros(int(blocks.max()) + 1, dtype=np.int64)
    np.add.at(made, blocks, cells)
    return made


def _grouped(counted: Counted, side: ColumnView) -> Counted:
    """Lines of one group added up."""
    made = np.zeros((side.size, *counted.shape[1:]), dtype=np.int64)
    is_kept = side.into >= 0
    np.add.at(made, side.into[is_kept], counted[is_kept])
    return made


UNIT = 16
"""Steps to one record in `distance`."""
SHARES = 1 << 20
"""Steps to the whole in `misfit`."""


def distance(table: Counted, model: Floats) -> int:
    """The sum of |count - model| over cells, in steps of 1/UNIT, the model rounded to such steps first.

    A model that noise has made so large that the sum would leave 64 bits is cut to what fits.

    Guarantee   moves by at most UNIT.
    Adjacency   one record added or removed.
    Theorem     one cell moves by one; the model is public and stays.
    Proof       proofs/synth/marginals/aim.md
    Assumes     one record is in at most one cell of `table`; `model` was made of released numbers.
    Keeps back  the distance.
    """
    most = 2.0**62 / max(1, model.size)
    return int(np.abs(UNIT * table - _whole(np.clip(UNIT * model, -most, most))).sum())


def misfit(table: Counted, model: Floats) -> int:
    """The sum of |count - (sum of counts) share| over cells, in steps of 1/SHARES, shares of the model rounded down.

    For tables of available cells: no model can meet their different sums, and none of these need be known.

    Guarantee   moves by at most 2 SHARES.
    Adjacency   one record added or removed, or one that changes its cell, or falls silent, or speaks.
    Theorem     a record moves the list by e_x - share, whose lengths are at most one each.
    Proof       proofs/synth/marginals/aim.md
    Assumes     one record is in at most one cell of `table`; `model` was made of released numbers.
    Keeps back  the misfit, and how many rows the table holds.
    """
    total = float(model.sum())
    shares = (
        np.floor(SHARES * (model / total)).astype(np.int64) if total > 0 else np.zeros(model.shape, np.int64)
    )
    excess = int(shares.sum()) - SHARES
    if excess > 0:  # sums of doubles: never more than the whole
        shares.flat[int(shares.argmax())] -= excess
    return int(np.abs(SHARES * table - int(table.sum()) * shares).sum())


def _whole(values: Floats) -> NDArray[np.int64]:
    return np.rint(values).astype(np.int64)


MOST_CELLS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A set of columns that may be measured; `weight` says how much of the workload it touches."""

    places: Places
    weight: int


def pairs(domain: Domain, most: int = MOST_CELLS) -> tuple[Places, ...]:
    """All pairs of columns whose table has at most `most` cells."""
    every = combinations(range(len(domain.axes)), 2)
    return tuple(pair for pair in every if domain.cells(pair) <= most)


def check_held(domain: Domain, sets: Sequence[Places]) -> None:
    """Refuse from public numbers tables that the engine will not count at once."""
    cells = sum(domain.cells(each) for each in sets)
    if cells > MOST_HELD:
        raise PlanError(
            f"makes pairs of {cells:,} cells, and at most {MOST_HELD:,} are counted at once; use fewer columns or bins",
            field="columns",
        )


def candidates(workload: Sequence[Places], columns: int) -> tuple[Candidate, ...]:
    """The workload's sets and all single columns, each with the sum of its overlaps with the workload."""
    sets = dict.fromkeys([*((place,) for place in range(columns)), *workload])
    return tuple(
        Candidate(places=each, weight=max(1, sum(len({*each} & {*other}) for other in workload)))
        for each in sets
    )
