"""PrivBayes, by Zhang, Cormode, Procopiuc, Srivastava and Xiao: a network of noisy conditionals, n kept confidential.

Public: columns seen ever more coarsely (16 bins, then 8, 4, 2), and which parents a column may have, all largest sets whose
table is worth its noise. Confidential: the search, whose tables and scores are behind an accountant. How strongly a column
depends on its parents is a whole number with a proved reach of one record.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import below
from reticent.privacy.claim import Claim
from reticent.schema import Levels
from reticent.synth.base import (
    Conditional,
    Counted,
    Counts,
    FitTask,
    Floats,
    MissingMethod,
    Places,
    Spend,
    Step,
)
from reticent.synth.domain import Axis, Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.marginals.study import ColumnView, View
from reticent.synth.network import Network, clipped, lines, nearest, one_scale, total_of
from reticent.synth.spending import Accountant, NoisyCounts, claim_of


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


def ladders(domain: Domain, missing: MissingMethod) -> tuple[Ladder, ...]:
    """For every column its levels, the finest first. Categories without an order have one level."""
    return tuple(_ladder(axis, domain, missing) for axis in domain.axes)


def _ladder(axis: Axis, domain: Domain, missing: MissingMethod) -> Ladder:
    column = domain.schema.coded[axis.column]
    is_ordered = not isinstance(column, Levels) or column.ordered
    widths = [1]
    while is_ordered and axis.answers > 2 * widths[-1]:
        widths.append(2 * widths[-1])
    return tuple(_level(axis, width, missing) for width in widths)


def _level(axis: Axis, width: int, missing: MissingMethod) -> Level:
    """Answers in runs of `width`; silence, where it counts, and the unasked stay by themselves."""
    kept = [cell for cell in range(axis.size) if cell != axis.silence or missing is MissingMethod.VALUES]
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


MOST_PARENTS = 6
MOST_CELLS = 1 << 17
"""Of one table over all cells, as it is counted before its columns are made coarser."""
MOST_CANDIDATES = 2_000

Parents = tuple[tuple[int, int], ...]
"""Columns, each with its level, in order of place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentChoice:
    """A column and the parents it may be drawn from."""

    place: int
    parents: Parents

    @property
    def given(self) -> Places:
        return tuple(place for place, _ in self.parents)

    @property
    def places(self) -> Places:
        """The columns to count, in order."""
        return tuple(sorted((*self.given, self.place)))


def candidates(
    domain: Domain, ladders: Sequence[Ladder], drawn: Places, most: float, *, parents: int = MOST_PARENTS
) -> list[ParentChoice]:
    """For every column not yet drawn its largest parent sets with at most `most` cells, the column's own included.

    Where that makes too many, fewer parents are allowed: the rule looks at sizes alone.
    """
    made = [
        one for place in _rest(domain, drawn) for one in _of(domain, ladders, drawn, place, most, parents)
    ]
    if len(made) > MOST_CANDIDATES and parents > 1:
        return candidates(domain, ladders, drawn, most, parents=parents - 1)
    return made


def _rest(domain: Domain, drawn: Places) -> list[int]:
    return [place for place in range(len(domain.axes)) if place not in drawn]


def _of(
    domain: Domain, ladders: Sequence[Ladder], drawn: Places, place: int, most: float, parents: int
) -> list[ParentChoice]:
    cells = int(most // ladders[place][0].size)
    full = MOST_CELLS // domain.axes[place].size
    sets = largest_sets(domain, ladders, tuple(sorted(drawn)), cells, full, parents)
    return [ParentChoice(place=place, parents=each) for each in sets or [()]]


def largest_sets(
    domain: Domain, ladders: Sequence[Ladder], places: Places, cells: int, full: int, parents: int
) -> list[Parents]:
    """All sets of columns at levels that fit, and to which nothing can be added and none made finer.

    `cells` bounds the product of the levels' sizes, `full` that of all cells, `parents` how many there are. As Zhang and
    others 2017 enumerate them: a set without the first column is largest if no level of that column fits beside it.
    """

    @cache
    def largest(first: int, cells: int, full: int, parents: int) -> tuple[Parents, ...]:
        if cells < 1 or full < 1 or parents < 0:
            return ()
        if first == len(places):
            return ((),)
        place, made = places[first], dict[Parents, Parents]()
        for level, seen in enumerate(ladders[place]):
            rest = largest(first + 1, cells // seen.size, full // domain.axes[place].size, parents - 1)
            for other in rest:
                made.setdefault(other, ((place, level), *other))
        for other in largest(first + 1, cells, full, parents):
            made.setdefault(other, other)
        return tuple(made.values())

    return list(largest(0, cells, full, parents))


BATCH = 1 << 22
"""Cells counted by one pass."""


@dataclass(slots=True, kw_only=True)
class Search:
    """CONFIDENTIAL: scores so far, and the rows they are read off. Only the budget lets anything out.

    `tidy` rids a noisy table of negative cells.
    """

    counts: Counts = field(repr=False)
    domain: Domain
    missing: MissingMethod
    accountant: Accountant
    score: Callable[[Counted], int]
    tidy: Callable[[Floats], Floats] = nearest
    ladders: tuple[Ladder, ...] = field(init=False, repr=False)
    known: dict[ParentChoice, int] = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of(cls, task: FitTask, *, score: Callable[[Counted], int], tidy: Callable[[Floats], Floats]) -> Self:
        """Begun with the rows and the budget of `task`."""
        accountant = Accountant(spend=task.spend, noise=task.noise)
        return cls(
            counts=task.counts,
            domain=task.domain,
            missing=task.missing,
            accountant=accountant,
            score=score,
            tidy=tidy,
        )

    def __post_init__(self) -> None:
        self.ladders = ladders(self.domain, self.missing)

    def by_lot(self) -> ParentChoice:
        """A first column: any one, without parents."""
        return ParentChoice(place=below(len(self.domain.axes), self.accountant.noise.bits), parents=())

    def best(self, open_: Sequence[ParentChoice], *, sensitivity: int, amount: Fraction) -> ParentChoice:
        """One with nearly the best score. `sensitivity` bounds the move of a score between neighbours."""
        self._look_at(open_)
        scores = [self.known[one] for one in open_]
        return open_[self.accountant.choose(scores, sensitivity=sensitivity, amount=amount)]

    def measure(self, network: Sequence[ParentChoice], *, amount: Fraction) -> list[NoisyCounts]:
        """Each column with its parents, as a list, and at its end the rows left out: every row is in one entry."""
        counted = self.counts.count([one.places for one in network])
        return self.accountant.measure(
            [
                self._view(one).parted(_last(each, one), _order(one))
                for each, one in zip(counted, network, strict=True)
            ],
            amount=amount,
        )

    def scaled(self, one: ParentChoice, noisy: NoisyCounts, *, total: float) -> NoisyCounts:
        """Who was not asked cannot be silent: with available cells, those who were asked weigh more, as `one_scale` says.

        Without universes nothing is to be done, since lines of chances have no scale.
        """
        blocks = self._view(one).blocks(_order(one))
        return (
            one_scale(noisy, total, blocks)
            if self.missing is MissingMethod.AVAILABLE and blocks.any()
            else noisy
        )

    def conditional(self, one: ParentChoice, noisy: NoisyCounts) -> Conditional:
        """Chances of all the column's cells given all cells of its parents."""
        view = self._view(one)
        shape = [view.shape[place] for place in _order(one)]
        made = lines(self.tidy(noisy.cells[: prod(shape)].reshape(shape)))
        return view.widened(Conditional(place=one.place, given=one.given, table=made))

    def _view(self, one: ParentChoice) -> View:
        """All columns, the parents as coarse as they are for `one`."""
        levels = dict(one.parents)
        return View(
            sides=tuple(ladder[levels.get(place, 0)].side for place, ladder in enumerate(self.ladders))
        )

    def _table(self, counted: Counted, one: ParentChoice) -> Counted:
        """A table over groups of the parents, the column itself last."""
        levels = dict(one.parents)
        made = grouped(counted, [self.ladders[place][levels.get(place, 0)] for place in one.places])
        return _last(made, one)

    def _look_at(self, open_: Sequence[ParentChoice]) -> None:
        """Scores not yet known, counted by as few passes as memory allows."""
        new: dict[Places, list[ParentChoice]] = {}
        for one in open_:
            if one not in self.known:
                new.setdefault(one.places, []).append(one)
        for sets in _batches(list(new), self.domain):
            for places, counted in zip(sets, self.counts.count(sets), strict=True):
                self.known |= {one: self.score(self._table(counted, one)) for one in new[places]}


def _order(one: ParentChoice) -> Places:
    return (*one.given, one.place)


def _last(counted: Counted, one: ParentChoice) -> Counted:
    """The column itself as the last side."""
    return np.moveaxis(counted, one.places.index(one.place), -1)


def _batches(sets: Sequence[Places], domain: Domain) -> Iterator[list[Places]]:
    batch: list[Places] = []
    cells = 0
    for places in sets:
        if batch and cells + domain.cells(places) > BATCH:
            yield batch
            batch, cells = [], 0
        batch.append(places)
        cells += domain.cells(places)
    if batch:
        yield batch


REACH = 4
_SAFE = 1 << 30  # n * n and twice that fit 64 bits


def dependence(table: Counted) -> int:
    """floor(sum |c - r s / n|): counts against those of independence, the column's own side last.

    That is 2 n R for PrivBayes' score R. R itself has a reach of 3/n + 2/n^2 when n is public and one row is replaced; here
    n is confidential, each table has its own, and none is divided by.

    Guarantee   moves by at most 4.
    Adjacency   one record added or removed.
    Theorem     the sum moves by 4 (n - r_a)(n - s_b) / (n (n + 1)) at most, which is below 4.
    Proof       proofs/synth/marginals/privbayes.md
    Assumes     one record is in at most one cell of `table`.
    Keeps back  the score, and how many rows the table holds.
    """
    joint = table.reshape(-1, table.shape[-1])
    n = int(joint.sum())
    if n == 0:
        return 0
    exact = joint if n < _SAFE else joint.astype(object)
    apart = n * exact - np.outer(exact.sum(axis=1), exact.sum(axis=0))
    return int(np.abs(apart).sum()) // n


PAGE = "proofs/synth/marginals/privbayes.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBayes:
    """Half of the amount chooses parents, half measures. With available cells it is PrivBayesE.

    A table is worth its noise where an even spread of the rows puts `useful` times the noise into a cell. `rows` is a
    public number of rows to judge that by; without it, and without one in the codebook, a noisy count is taken
    for `counting` of the amount. `clips` sets negative cells to zero, which lifts the empty ones.
    """

    rows: int | None = None
    useful: float = 4.0
    choosing: Fraction = Fraction(1, 2)
    counting: Fraction = Fraction(1, 50)
    clips: bool = False
    share: Fraction = SHARE
    name: str = "privbayes"

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        check_spend(missing, spend, self.share)
        if self.rows is not None and self.rows < 1:
            raise PlanError("is a whole number from 1 up", field="rows")

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(missing), ("Zhang and others 2017, with n confidential", PAGE))

    def rounds(self, domain: Domain) -> int:
        return 2 * len(domain.axes) + 1

    def fit(self, task: FitTask) -> Network:
        """Choose a network column by column, then measure its tables.

        Guarantee   that of `spend`, for the network and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     Zhang and others 2017; the score's reach is that of `dependence`.
        Proof       proofs/synth/marginals/privbayes.md
        Assumes     `counts` maps rows one by one; `rows` and the codebook's sample size are public.
        Keeps back  tables, scores and the number of rows.
        """
        domain, step = task.domain, task.step
        ready = prepared(task, model=self, share=self.share)
        search = Search.of(ready, score=dependence, tidy=clipped if self.clips else nearest)
        accountant = search.accountant
        rows = self._rows(search)
        amount = (1 - self.choosing) * accountant.left if len(domain.axes) > 1 else accountant.left
        most = rows / (self.useful * accountant.size(amount / len(domain.axes)))
        network = _network(search, most, amount=accountant.left - amount, step=step)
        noisy = search.measure(network, amount=amount)
        step("tables")
        total = total_of(noisy)
        steps = tuple(
            search.conditional(one, search.scaled(one, table, total=total))
            for one, table in zip(network, noisy, strict=True)
        )
        return Network(
            domain=domain, steps=steps, total=total, claim=self.claim(domain, task.missing, task.spend)
        )

    def _rows(self, search: Search) -> float:
        """A number of rows that may be looked at. Of complete rows no public number is known."""
        known = self.rows or search.domain.schema.sample_size
        if known and search.missing is not MissingMethod.COMPLETE:
            return float(known)
        (table,) = search.counts.count([(0,)])
        (noisy,) = search.accountant.measure(
            [np.array([table.sum()])], amount=self.counting * search.accountant.total
        )
        return max(1.0, float(noisy.cells[0]))


def _network(search: Search, most: float, *, amount: Fraction, step: Step) -> list[ParentChoice]:
    """A first column by lot, then one at a time, each with parents among those before."""
    network = [search.by_lot()]
    columns = len(search.domain.axes)
    reach = REACH * search.accountant.spend.neighbours.steps
    while len(network) < columns:
        open_ = candidates(search.domain, search.ladders, tuple(one.place for one in network), most)
        network.append(search.best(open_, sensitivity=reach, amount=amount / (columns - 1)))
        step("parents")
    return network
