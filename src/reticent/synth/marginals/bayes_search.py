"""A search for parents in progress: confidential tables and scores behind a purse."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np

from reticent.noise.bits import below
from reticent.synth.base import Conditional, Counted, Counts, Floats, Holes, Places
from reticent.synth.domain import Domain
from reticent.synth.marginals.bayes_levels import Ladder, grouped, ladders
from reticent.synth.marginals.bayes_parents import ParentChoice
from reticent.synth.marginals.views import View
from reticent.synth.spending import Accountant, NoisyCounts
from reticent.synth.tables import lines, nearest, one_scale

BATCH = 1 << 22
"""Cells counted by one pass."""


@dataclass(slots=True, kw_only=True)
class Search:
    """CONFIDENTIAL: scores so far, and the rows they are read off. Only the purse lets anything out.

    `tidy` rids a noisy table of negative cells.
    """

    counts: Counts = field(repr=False)
    domain: Domain
    holes: Holes
    purse: Accountant
    score: Callable[[Counted], int]
    tidy: Callable[[Floats], Floats] = nearest
    ladders: tuple[Ladder, ...] = field(init=False, repr=False)
    known: dict[ParentChoice, int] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.ladders = ladders(self.domain, self.holes)

    def by_lot(self) -> ParentChoice:
        """A first column: any one, without parents."""
        return ParentChoice(place=below(len(self.domain.axes), self.purse.noise.bits), parents=())

    def best(self, open_: Sequence[ParentChoice], *, sensitivity: int, amount: Fraction) -> ParentChoice:
        """One with nearly the best score. `sensitivity` bounds the move of a score between neighbours."""
        self._look_at(open_)
        scores = [self.known[one] for one in open_]
        return open_[self.purse.choose(scores, sensitivity=sensitivity, amount=amount)]

    def measure(self, network: Sequence[ParentChoice], *, amount: Fraction) -> list[NoisyCounts]:
        """Each column with its parents, as a list, and at its end the rows left out: every row is in one entry."""
        counted = self.counts.count([one.places for one in network])
        return self.purse.measure(
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
        return one_scale(noisy, total, blocks) if self.holes is Holes.AVAILABLE and blocks.any() else noisy

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
