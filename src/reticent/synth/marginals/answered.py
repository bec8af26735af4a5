"""Tables of complete rows from noisy lists that tell missing answers apart, weighted by who answers. After the noise, all of it.

A list over columns a and b has a block O of those who answered both, A of those who answered a alone, B of those who
answered b alone, and N of those who answered neither. A and B say how answering follows other answers (`response.py`); O, divided by the chance
of being in it, stands for everybody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from reticent.noise.bits import Bits
from reticent.schema import Levels
from reticent.synth.base import Floats, MissingMethod, Places
from reticent.synth.domain import Axis, Domain
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable, Zeroes, estimate
from reticent.synth.lists import NoisyList, left_out
from reticent.synth.marginals.response import LevelRates, Propensities, SilentCounts, Wholes, propensities
from reticent.synth.marginals.smooth import smoothed
from reticent.synth.marginals.study import ColumnView, View, plain
from reticent.synth.network import draw_column, one_scale, simplex
from reticent.synth.spending import NoisyCounts

ROWS = 20_000
SHRUNK = 0.5
"""How far a table goes towards what an empirical Bayes rule makes of it."""
TURNS = 3
ENOUGH = 3.0
"""Deviations of noise above which answers are taken to be missing at all."""


@dataclass(slots=True, kw_only=True)
class AnsweredTables:
    """What a model of complete rows is fitted to, from the lists measured so far.

    Parameters
    ----------
    domain : the columns
    lists : noisy lists, columns first, each with missing answers as the last group
    view : the model's groups of cells
    paired : the groups in which pairs are counted; each holds whole groups of the model
    total : the noisy number of respondents
    bits : for rows drawn from models
    """

    domain: Domain
    lists: list[NoisyList] = field(repr=False)
    view: View = field(repr=False)
    paired: View = field(repr=False)
    total: float
    bits: Bits = field(repr=False)
    first: View = field(init=False, repr=False)
    seen: Propensities | None = field(init=False, default=None, repr=False)
    _known: dict[Places, Floats | None] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.first = plain(self.domain, MissingMethod.AVAILABLE)

    def fitted(
        self, sets: Sequence[Places], zeroes: Sequence[Zeroes], *, iterations: int, start: FittedGraph | None
    ) -> FittedGraph:
        """The model nearest to the weighted tables of these sets; then who answers, by this model."""
        tables = [self.table(places, start) for places in sets]
        made = estimate(
            self.view.shape, tables, total=self.total, start=start, iterations=iterations, zeroes=zeroes
        )
        self.seen, self._known = self.propensities_of(lambda: _drawn(made, self.bits)), {}
        return made

    def in_turns(
        self, sets: Sequence[Places], zeroes: Sequence[Zeroes], *, iterations: int, start: FittedGraph | None
    ) -> FittedGraph:
        """The last fits, in turns, since weights rest on the model and the model on weights."""
        for _ in range(TURNS - 1):
            start = self.fitted(sets, zeroes, iterations=iterations, start=start)
        return self.fitted(sets, zeroes, iterations=iterations, start=start)

    def table(self, places: Places, model: FittedGraph | None) -> NoisyTable:
        """One set's table over the model's groups, on the scale of all respondents."""
        return self._column(places[0]) if len(places) == 1 else self._pair(places, model)

    def relative(self, places: Places) -> Floats | None:
        """How much more or less often than others each cell of a counted table is answered, as far as is known."""
        if self.seen is not None and places not in self._known:
            self._known[places] = self._relative(places, self.seen)
        return self._known.get(places)

    def _relative(self, places: Places, seen: Propensities) -> Floats | None:
        view = self.view if len(places) == 1 else self.paired
        shape = tuple(view.sides[place].size for place in places)
        into = [self._within(place, view) for place in places]
        return seen.relative(places, into, shape, view.blocks(places))

    def coarse(self, table: Floats, places: Places) -> Floats:
        """A table over the model's groups as one over those in which pairs are counted."""
        for axis, place in enumerate(places if len(places) > 1 else ()):
            into, many = self._within(place, self.paired), self.paired.sides[place].size
            if many < self.view.sides[place].size:
                made = np.zeros((many, *np.delete(table.shape, axis)))
                np.add.at(made, into, np.moveaxis(table, axis, 0))
                table = np.moveaxis(made, 0, axis)
        return table

    def histogram(self, place: int) -> NoisyCounts:
        """A column's answers, cell by cell, on the scale of all respondents: its lists together."""
        each = self._average((place,))
        found = one_scale(self._parted(each, self.first), self.total, self.first.blocks((place,)))
        axis = self.domain.axes[place]
        return replace(found, cells=smoothed(found.cells, found.deviation, axis, self.domain))

    def _column(self, place: int) -> NoisyTable:
        one, side = self.histogram(place), self.view.sides[place]
        cells, relative = one.cells, self.relative((place,))
        groups = side.into[self.first.sides[place].into >= 0]
        if relative is not None:
            cells = cells / relative[groups]
        table = np.zeros(side.size)
        np.add.at(table, groups, simplex(cells, self.total))
        return NoisyTable(places=(place,), table=table, deviation=one.deviation)

    def _pair(self, places: Places, model: FittedGraph | None) -> NoisyTable:
        each = self._average(places)
        scaled = one_scale(self._parted(each, self.paired), self.total, self.paired.blocks(places))
        table = scaled.cells.reshape([self.paired.sides[place].size for place in places])
        relative = self.relative(places)
        if relative is not None:
            table = table / relative
        if model is None:
            return NoisyTable(
                places=places,
                table=self._spread(table, places, None),
                deviation=self._finer(scaled.deviation, places),
            )
        fine = model.marginal(places)
        table = _shrunk(table, self.coarse(fine, places), scaled.deviation)
        return NoisyTable(
            places=places,
            table=self._spread(table, places, fine),
            deviation=self._finer(scaled.deviation, places),
        )

    def _spread(self, table: Floats, places: Places, fine: Floats | None) -> Floats:
        """A counted table over the model's groups: inside a counted cell in the model's proportions."""
        if table.shape == tuple(self.view.sides[place].size for place in places):
            return table
        into = np.ix_(*(self._within(place, self.paired) for place in places))
        fine = np.ones([self.view.sides[place].size for place in places]) if fine is None else fine + 1e-9
        return np.asarray(table[into] * fine / self.coarse(fine, places)[into])

    def _finer(self, deviation: float, places: Places) -> float:
        """Of one of the model's cells: a counted cell's noise is shared out among as many."""
        return float(deviation / np.sqrt(self.view.cells(places) / self.paired.cells(places)))

    def _within(self, place: int, view: View) -> Wholes:
        """For each of the model's groups of a column, the group of `view` that it lies in."""
        side, other = self.view.sides[place], view.sides[place]
        made = np.zeros(side.size, dtype=np.int64)
        made[side.into[side.into >= 0]] = other.into[side.into >= 0]
        return made

    def _average(self, places: Places) -> NoisyList:
        """The lists of one set, weighed by the inverse of their variances."""
        found = [each for each in self.lists if each.places == places]
        weights = np.array([each.deviation**-2 for each in found])
        cells = np.average([each.cells for each in found], axis=0, weights=weights)
        return NoisyList(
            places=places,
            cells=cells,
            left=np.zeros(0),
            sums=np.zeros(0),
            deviation=float(weights.sum() ** -0.5),
            sum_deviations=np.zeros(0),
            is_chosen=False,
            is_grouped=len(places) > 1,
        )

    def _whole(self, each: NoisyList) -> Floats:
        view = self.paired if len(each.places) > 1 else self.first
        return each.cells.reshape([view.sides[place].size + 1 for place in each.places])

    def _parted(self, each: NoisyList, view: View) -> NoisyCounts:
        """Answered cells, then by block the rows that lack an answer."""
        whole = self._whole(each)
        answered = whole[tuple(slice(-1) for _ in each.places)].ravel()
        unasked = [_unasked_group(view.sides[place]) for place in each.places]
        left, *_ = left_out(whole, each.deviation, [self._silent(place) for place in each.places], unasked)
        return NoisyCounts(cells=np.append(answered, left), deviation=each.deviation, size=each.deviation)

    def _silent(self, place: int) -> tuple[float, float]:
        """How many gave no answer to a column, by its own lists, and the variance of that."""
        each = self._average((place,))
        return float(each.cells[-1]), each.deviation**2

    def rate(self, place: int) -> float:
        """The share of those asked who answered a column."""
        cells, side = self._average((place,)).cells, self.first.sides[place]
        group = _unasked_group(side)
        asked = self.total - (0.0 if group is None else cells[group])
        return float(np.clip(1 - cells[-1] / max(asked, 1.0), 0.05, 1.0))

    def propensities_of(self, rows: Callable[[], Wholes]) -> Propensities | None:
        """The chance of each row of the model's groups, a line for each column, to answer; none where all are alike.

        Rows are made only where something is seen.
        """
        seen: dict[int, dict[int, LevelRates]] = {}
        for places in dict.fromkeys(each.places for each in self.lists if len(each.places) == 2):
            for place, other in (places, places[::-1]):
                found = (
                    self._silent_counts(places, place, other).differences() if self._lacks(place) else None
                )
                if found is not None:
                    seen.setdefault(place, {})[other] = found
        if not seen:
            return None
        columns = range(len(self.domain.axes))
        return propensities(
            rows(),
            seen,
            [self.rate(place) for place in columns],
            [self._within(place, self.paired) for place in columns],
            [_unasked_group(self.view.sides[place]) for place in columns],
        )

    def _lacks(self, place: int) -> bool:
        """Whether more answers to a column are missing than noise alone would make."""
        silent, variance = self._silent(place)
        return silent > ENOUGH * float(np.sqrt(variance))

    def _silent_counts(self, places: Places, place: int, other: int) -> SilentCounts:
        """Who left `place` without an answer, by answers to `other`."""
        each = self._average(places)
        whole = self._whole(each)
        by_other = whole if places[0] == other else whole.T  # lines are the other's answers
        column = self._average((other,))
        first = self.first.sides[other].into
        kept, groups = first >= 0, self.paired.sides[other].into
        asked, spread = np.zeros(len(by_other) - 1), np.zeros(len(by_other) - 1)
        np.add.at(asked, groups[kept], column.cells[first[kept]])
        np.add.at(spread, groups[kept], column.deviation**2)
        unasked = _unasked_group(self.paired.sides[place])
        if unasked is not None:
            asked, spread = asked - by_other[:-1, unasked], spread + each.deviation**2
        is_compared = np.ones(len(asked), dtype=np.bool_)
        outside = _unasked_group(self.paired.sides[other])
        if outside is not None:
            # Who was not asked the other could not be silent on it: where silence clusters, they differ by that alone.
            is_compared[outside] = False
        return SilentCounts(
            silent=by_other[:-1, -1],
            noise=each.deviation**2,
            asked=asked,
            spread=spread,
            is_compared=is_compared,
        )


def _unasked_group(side: ColumnView) -> int | None:
    return None if side.unasked is None else int(side.into[side.unasked])


def _drawn(model: FittedGraph, bits: Bits) -> Wholes:
    """Rows of a model, a line for each column."""
    steps = model.conditionals()
    rows = np.zeros((ROWS, len(steps)), dtype=np.int32)
    for step in steps:
        rows[:, step.place] = draw_column(step, rows, bits)
    return rows.T.astype(np.int64)


def _shrunk(table: Floats, model: Floats, deviation: float) -> Floats:
    """The table drawn towards independence of its columns by as much as noise is in what sets it apart from that."""
    total = max(float(model.sum()), 1.0)
    alone = np.multiply.outer(model.sum(axis=1), model.sum(axis=0)) / total
    apart = table - alone
    signal = max(0.0, float(np.square(apart).sum()) - deviation**2 * table.size) / total
    kept = signal * alone / (signal * alone + deviation**2)
    return np.asarray(alone + (1 - SHRUNK + SHRUNK * kept) * apart)


def in_runs(side: ColumnView, mass: Floats, axis: Axis, domain: Domain, runs: int) -> ColumnView:
    """A number's groups, neighbours put together to at most so many runs of about the same mass; rare ones stay apart."""
    column = domain.schema.coded[axis.column]
    if side.size <= runs or (isinstance(column, Levels) and not column.ordered):
        return side
    sizes = np.bincount(side.into[side.into >= 0], minlength=side.size)
    apart = (sizes > 1) | (side.group_blocks > 0)
    weights = np.where(apart, 0.0, np.maximum(mass, 1e-9))
    at = np.floor(runs * (np.cumsum(weights) - weights / 2) / weights.sum())
    at = np.where(apart, runs + np.arange(side.size), at)
    groups = np.unique(at, return_inverse=True)[1]
    into = np.where(side.into < 0, -1, groups[side.into])
    chances = (side.within * np.maximum(mass, 1e-9)[:, None]).sum(axis=0)
    return ColumnView.of(into, chances, side.unasked)
