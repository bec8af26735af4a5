"""One fit of marginals in progress: confidential tables behind a budget, what was measured of them, and views of the domain.

A view says which cells are told apart, how a model over them is widened, and which pairs may be measured. Views are public
throughout, but for how badly a public model fits a confidential table: a whole number, with a proved reach of one record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import MOST_CELLS as MOST_HELD
from reticent.errors import PlanError
from reticent.privacy.claim import Claim
from reticent.schema import Schema
from reticent.synth.base import (
    Conditional,
    Counted,
    Counts,
    FitTask,
    Floats,
    MissingMethod,
    Places,
    PublicMargin,
)
from reticent.synth.domain import Axis, Domain
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable, Zeroes, estimate
from reticent.synth.graph.rake import raked
from reticent.synth.lists import Lists, NoisyList
from reticent.synth.marginals.scores import SHARES, UNIT, distance, misfit
from reticent.synth.marginals.smooth import smoothed
from reticent.synth.network import Network, one_scale, simplex, total_of
from reticent.synth.residuals import FineAxis, column_residual, fine_axes, pair_residual, residual_places
from reticent.synth.rules import lawful_pairs
from reticent.synth.spending import Accountant, NoisyCounts, RowSums

SURVEYED = ("weight", "psu", "stratum")
"""Roles of columns that make a survey's design complex."""


def is_complex(schema: Schema) -> bool:
    """Whether rows are no independent draws: by the survey's design, or because a respondent may own several."""
    return schema.at_most > 1 or any(column.role in SURVEYED for column in schema.coded.values())


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

    @classmethod
    def of(cls, into: Wholes, weights: Floats, unasked: int | None) -> "ColumnView":
        """Groups by `into`, inside which cells are in proportion to `weights`."""
        within = np.zeros((int(into.max()) + 1, len(into)))
        is_kept = into >= 0
        within[into[is_kept], np.flatnonzero(is_kept)] = weights[is_kept]
        return cls(into=into, within=within / within.sum(axis=1, keepdims=True), unasked=unasked)

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

    def with_silence(self, silence: int) -> "ColumnView":
        """The same with one group more, the last: missing answers."""
        into = self.into.copy()
        into[silence] = self.size
        weights = self.within.sum(axis=0)
        weights[silence] = 1.0
        return ColumnView.of(into, weights, self.unasked)


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
    """Every cell by itself; silence is left out unless it counts as a value, or is told apart, as the last group."""
    if missing is MissingMethod.WEIGHTED:
        return with_silence(plain(domain, MissingMethod.AVAILABLE), domain)
    return View(sides=tuple(_plain(axis, missing) for axis in domain.axes))


def with_silence(view: View, domain: Domain) -> View:
    """The view with missing answers as the last group of every column."""
    both = zip(view.sides, domain.axes, strict=True)
    return View(sides=tuple(side.with_silence(axis.silence) for side, axis in both))


def _plain(axis: Axis, missing: MissingMethod) -> ColumnView:
    is_kept = np.ones(axis.size, dtype=bool)
    is_kept[axis.silence] = missing is MissingMethod.VALUES
    return ColumnView.of(np.where(is_kept, np.cumsum(is_kept) - 1, -1), np.ones(axis.size), axis.unasked)


def merged(view: View, ones: Sequence[Floats], *, least: Sequence[float]) -> View:
    """Cells with less than `least` in the column's noisy table `ones` share one group, inside which they stay as they are.

    McKenna, Miklau and Sheldon 2021 merge below three deviations of the noise. Who was not asked stays apart.
    """
    return View(
        sides=tuple(_merged(*each) for each in zip(view.sides, ones, least, strict=True)),
    )


def grouped_view(domain: Domain, lists: Lists) -> View:
    """The view that kept lists were measured by; inside a group cells are as their columns' noisy lists have them."""
    sides = []
    for place, axis in enumerate(domain.axes):
        first, groups = lists.plain[place], lists.groups[place]
        weights = np.ones(axis.size)
        weights[first >= 0] = np.maximum(lists.columns[place].cells, 1e-9)[first[first >= 0]]
        sides.append(ColumnView.of(groups, weights, axis.unasked))
    return View(sides=tuple(sides))


def _merged(side: ColumnView, counts: Floats, least: float) -> ColumnView:
    is_rare = (counts < least) & (side.group_blocks == 0)
    if is_rare.sum() < 2:
        return side
    groups = np.where(is_rare, (~is_rare).sum(), np.cumsum(~is_rare) - 1)
    weights = side.within.T @ np.maximum(counts, 1e-9)
    return ColumnView.of(np.where(side.into < 0, -1, groups[side.into]), weights, side.unasked)


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


@dataclass(slots=True, kw_only=True)
class MarginalFit:
    """Tables of `counts` are looked at through `view`; nothing of them leaves but through the budget.

    With available cells a table holds only the rows that answered all its columns. It is measured with one cell more, for
    the rows it leaves out, which costs nothing: every row is in exactly one cell. So its sum is known as well as
    one cell is, and it is brought to the common `total` with a deviation of its own. Where columns have universes there is
    such a cell for every block of who was asked what.

    Where `fines` are given, lists also have sums of residuals, so that means of binned numbers can be told. Everything that
    was measured is kept as it came from the budget (`lists`), beside what the model is fitted to (`measured`).
    """

    counts: Counts = field(repr=False)
    domain: Domain
    missing: MissingMethod
    accountant: Accountant
    fines: tuple[FineAxis, ...] = ()
    margins: tuple[PublicMargin, ...] = field(default=(), repr=False)
    lawful: dict[Places, Flags] = field(init=False, repr=False)
    view: View = field(init=False, repr=False)
    total: float = field(init=False, default=1.0)
    rates: list[float] = field(init=False, default_factory=list)
    measured: list[NoisyTable] = field(init=False, default_factory=list, repr=False)
    held: dict[Places, Counted] = field(init=False, default_factory=dict, repr=False)
    kept: list[NoisyList] = field(init=False, default_factory=list, repr=False)
    pace: int = field(init=False, default=1)
    """How many times the passes of a round the model needs to learn a table."""

    @classmethod
    def of(cls, task: FitTask, *, residuals: bool) -> Self:
        """Begun with the rows and the budget of `task`; with sums of residuals of binned numbers where asked for."""
        accountant = Accountant(spend=task.spend, noise=task.noise)
        fines = fine_axes(task.domain) if residuals else ()
        return cls(
            counts=task.counts,
            domain=task.domain,
            missing=task.missing,
            accountant=accountant,
            fines=fines,
            margins=task.public,
        )

    def __post_init__(self) -> None:
        self.lawful = lawful_pairs(self.domain)
        self.view = plain(self.domain, self.missing)

    @property
    def is_parted(self) -> bool:
        """Whether tables leave out rows, each its own."""
        return self.missing is MissingMethod.AVAILABLE

    def hold(self, sets: Sequence[Places]) -> None:
        """Count these tables now, by one pass, and keep them here."""
        new = [places for places in sets if places not in self.held]
        self.held |= dict(zip(new, self.counts.count(new), strict=True))

    def start(self, *, amount: Fraction, merge: float) -> None:
        """All columns one by one: the total, who answered what, and cells below `merge` deviations put together."""
        places = [(place,) for place in range(len(self.domain.axes))]
        self.hold(places)
        noisy = [self._measured(each, amount=amount / len(places)) for each in places]
        self.total = total_of(noisy)
        ones = [self._scaled(*each) for each in zip(noisy, places, strict=True)]
        self.rates = [each.deviation / one.deviation for each, one in zip(noisy, ones, strict=True)]
        even = [
            smoothed(one.cells, one.deviation, axis, self.domain)
            for one, axis in zip(ones, self.domain.axes, strict=True)
        ]
        clean = [simplex(cells, self.total) for cells in even]
        is_kept = [side.into >= 0 for side in self.view.sides]
        self.view = merged(self.view, clean, least=[merge * one.deviation for one in ones])
        for place, one in enumerate(ones):
            side = self.view.sides[place]
            table = np.zeros(side.size)
            np.add.at(table, side.into[is_kept[place]], clean[place])
            self.measured.append(NoisyTable(places=(place,), table=table, deviation=one.deviation))

    def measure(self, places: Places, *, amount: Fraction, is_chosen: bool = True) -> NoisyTable:
        """One more table, on the common scale."""
        self.hold([places])
        noisy = self._measured(places, amount=amount, is_chosen=is_chosen)
        scaled = self._scaled(noisy, places)
        table = scaled.cells.reshape([self.view.shape[place] for place in places])
        self.measured.append(NoisyTable(places=places, table=table, deviation=scaled.deviation))
        return self.measured[-1]

    def score(self, places: Places, model: Floats) -> int:
        """CONFIDENTIAL: how far the table is from the model's, in steps of which `grain` make a record."""
        table = self.view.table(self.held[places], places)
        return misfit(table, self._answered(model, places)) if self.is_parted else distance(table, model)

    @property
    def grain(self) -> int:
        return SHARES if self.is_parted else UNIT

    @property
    def reach(self) -> int:
        """How far neighbours move one score."""
        neighbours = self.accountant.spend.neighbours
        return 2 * SHARES * neighbours.records if self.is_parted else UNIT * neighbours.steps

    def rate(self, places: Places) -> float:
        """About which share of all rows is in a table, from what was released."""
        return float(np.prod([self.rates[place] for place in places]))

    def counted(self, table: Floats, places: Places) -> Floats:
        """A table over the model's groups, over those in which the set is counted."""
        return table

    def modelled(self, model: FittedGraph, sets: Sequence[Places]) -> list[Floats]:
        """The model's tables over the groups in which sets are counted."""
        return [
            self.counted(table, places) for places, table in zip(sets, model.marginals(sets), strict=True)
        ]

    def offered(self, measured: NoisyTable, model: FittedGraph) -> NoisyTable:
        """A measured table as the model would be fitted to it now."""
        return measured

    @property
    def settled(self) -> list[Places]:
        """Sets that are in every model at last: of laws, and of public margins."""
        return [*self.lawful, *(each.places for each in self.margins)]

    def _adjusted(self, fitted: FittedGraph) -> FittedGraph:
        """The model raked to public margins, where there are any. No row is looked at."""
        sides = [side.into for side in self.view.sides]
        margins = {each.places: each.over([sides[place] for place in each.places]) for each in self.margins}
        return raked(fitted, self.view.shape, margins, self.zeroes()) if margins else fitted

    def zeroes(self) -> list[Zeroes]:
        """Which cells of which pairs nobody can be in."""
        found = self.lawful.items()
        return [Zeroes(places=pair, allowed=self.view.allowed(can_be, pair)) for pair, can_be in found]

    def fit(self, *, iterations: int, start: FittedGraph | None = None) -> FittedGraph:
        """The model nearest to what was measured, in which what cannot be has no chance."""
        return estimate(
            self.view.shape,
            self.measured,
            total=self.total,
            start=start,
            iterations=iterations,
            zeroes=self.zeroes(),
        )

    def finish(self, *, iterations: int, start: FittedGraph | None = None) -> FittedGraph:
        """The last fit."""
        return self.fit(iterations=iterations, start=start)

    def fit_only(self, pairs: Sequence[Places]) -> None:
        """Rest the model on the columns and on these pairs; the other lists are kept for direct answers alone."""
        used = {*pairs, *((place,) for place in range(len(self.domain.axes)))}
        self.kept[:] = [replace(each, is_fitted=each.places in used) for each in self.kept]

    def network(self, fitted: FittedGraph, claim: Claim) -> Network:
        """The fitted model over all cells."""
        steps = tuple(self.view.widened(step) for step in self._adjusted(fitted).conditionals())
        return Network(domain=self.domain, steps=steps, total=self.total, claim=claim, lists=self.lists())

    def lists(self) -> Lists:
        """What was measured, raw."""
        return Lists(
            domain=self.domain,
            missing=self.missing,
            plain=tuple(side.into for side in plain(self.domain, self.missing).sides),
            groups=tuple(side.into for side in self.view.sides),
            lists=tuple(self.kept),
            is_gaussian=not self.accountant.is_pure,
            is_complex=is_complex(self.domain.schema),
        )

    def _measured(self, places: Places, *, amount: Fraction, is_chosen: bool = False) -> NoisyCounts:
        """One list through the budget, kept as it is."""
        noisy = self.accountant.measure_with_sums(self._list(places), self._sums(places), amount=amount)
        cells = self._cells(places)
        self.kept.append(
            NoisyList(
                places=places,
                cells=noisy.cells[:cells],
                left=noisy.cells[cells:],
                sums=noisy.sums,
                deviation=noisy.deviation,
                sum_deviations=noisy.sum_deviations,
                is_chosen=is_chosen,
                is_grouped=self._is_grouped(places),
            )
        )
        return noisy

    def _cells(self, places: Places) -> int:
        """How many entries of a list are cells."""
        return self.view.cells(places)

    def _is_grouped(self, places: Places) -> bool:
        """Whether a list about to be kept is over groups, as all are but the first of columns."""
        return len(self.kept) >= len(self.domain.axes)

    def _groups_of(self, place: int) -> ColumnView:
        """The groups of a column in lists of pairs."""
        return self.view.sides[place]

    def _sums(self, places: Places) -> list[RowSums]:
        """CONFIDENTIAL: the sums of residuals that belong to a list, if any are measured."""
        made = []
        for fine, other in residual_places(places, self.fines) if self.fines else ():
            if other is None:
                made.append(column_residual(self.counts, fine))
            else:
                side = self._groups_of(other)
                made.append(pair_residual(self.counts, fine, other, side.into, side.size))
        return made

    def _list(self, places: Places) -> Counted:
        counted = self.held[places]
        if self.is_parted:
            return self.view.parted(counted, places)
        return self.view.table(counted, places).ravel()

    def _answered(self, model: Floats, places: Places) -> Floats:
        """The model's table as far as it would be answered: of those asked a share, of those not asked everybody."""
        sides = [self.view.sides[place] for place in places]
        if all(side.unasked is None for side in sides):
            return model  # one share for all, which a misfit does not see
        shares = [
            np.where(side.group_blocks, 1.0, self.rates[p]) for side, p in zip(sides, places, strict=True)
        ]
        return np.asarray(model * reduce(np.multiply.outer, shares))

    def _scaled(self, noisy: NoisyCounts, places: Places) -> NoisyCounts:
        return one_scale(noisy, self.total, self.view.blocks(places)) if self.is_parted else noisy
