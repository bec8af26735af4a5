"""Answered cells, weighted by who answers: a fit of complete rows to tables with missing cells, under MAR as far as it shows.

Every list is measured *with* its missing answers: a pair has a block of those who answered both columns, one of those
who answered the first alone, one of those who answered the second alone, and one cell for neither. Every respondent is in
exactly one cell, so this costs what counting the first block and one cell for all others does. What is made of it after the
noise is in `answered.py`. Where nobody is seen to answer by other answers, this is counting available cells; no synthetic row has
anything left to fill.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from reticent.synth.base import Counted, FitTask, Floats, MissingMethod, Places
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable
from reticent.synth.lists import Lists
from reticent.synth.marginals.answered import AnsweredTables, in_runs
from reticent.synth.marginals.scores import SHARES, scaled_misfit
from reticent.synth.marginals.study import ColumnView, MarginalFit, View, merged, plain, with_silence
from reticent.synth.network import simplex

RUNS = 16
"""Cells of a number in a table of two columns, at most."""
PACE = 2


@dataclass(slots=True, kw_only=True)
class WeightedFit(MarginalFit):
    """A fit in progress whose lists tell missing answers apart, and whose tables are weighted by who answers.

    Columns are counted cell by cell. Pairs are counted in the model's groups, of a number with many of them in at most `runs`
    runs of neighbours, each of about as many respondents by the noisy histogram.
    """

    runs: int = RUNS
    tables: AnsweredTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        MarginalFit.__post_init__(self)
        self.pace = PACE
        self.view = plain(self.domain, MissingMethod.AVAILABLE)
        self.tables = AnsweredTables(
            domain=self.domain,
            lists=self.kept,
            view=self.view,
            paired=self.view,
            total=1.0,
            bits=self.accountant.noise.bits,
        )

    def start(self, *, amount: Fraction, merge: float) -> None:
        """All columns one by one: the total, who answered what, rare cells put together, and runs for pairs."""
        places = range(len(self.domain.axes))
        self.hold([(place,) for place in places])
        for place in places:
            self._measured((place,), amount=amount / len(places))
        self.total = self.tables.total = self.lists().total
        ones = [self.tables.histogram(place) for place in places]
        self.rates = [each.deviation / one.deviation for each, one in zip(self.kept, ones, strict=True)]
        clean = [simplex(one.cells, self.total) for one in ones]
        self.view = self.tables.view = merged(self.view, clean, least=[merge * one.deviation for one in ones])
        self.measured = [self.tables.table((place,), None) for place in places]
        self.tables.paired = View(sides=tuple(self._counted_side(place) for place in places))

    def _counted_side(self, place: int) -> ColumnView:
        side = self.view.sides[place]
        if not self.runs:
            return side
        return in_runs(side, self.measured[place].table, self.domain.axes[place], self.domain, self.runs)

    def measure(self, places: Places, *, amount: Fraction, is_chosen: bool = True) -> NoisyTable:
        """One more list. What the model is fitted to is made of all lists anew, in `fit`."""
        self.hold([places])
        self._measured(places, amount=amount, is_chosen=is_chosen)
        self.measured.append(self.tables.table(places, None))
        return self.measured[-1]

    def score(self, places: Places, model: Floats) -> int:
        """CONFIDENTIAL: how far answered cells are from those that the model expects, at the best scale."""
        view = self.view if len(places) == 1 else self.tables.paired
        relative = self.tables.relative(places)
        expected = model if relative is None else model * relative
        return scaled_misfit(view.table(self.held[places], places), expected, view.blocks(places))

    @property
    def grain(self) -> int:
        return SHARES

    @property
    def reach(self) -> int:
        return SHARES * self.accountant.spend.neighbours.steps

    def counted(self, table: Floats, places: Places) -> Floats:
        return self.tables.coarse(table, places)

    def fit(self, *, iterations: int, start: FittedGraph | None = None) -> FittedGraph:
        return self.tables.fitted(self._sets(), self.zeroes(), iterations=iterations, start=start)

    def offered(self, measured: NoisyTable, model: FittedGraph) -> NoisyTable:
        return self.tables.table(measured.places, model)

    def finish(self, *, iterations: int, start: FittedGraph | None = None) -> FittedGraph:
        return self.tables.in_turns(self._sets(), self.zeroes(), iterations=iterations, start=start)

    def _sets(self) -> list[Places]:
        """What the model is fitted to, each set once."""
        return list(dict.fromkeys(each.places for each in self.measured))

    def lists(self) -> Lists:
        sides = with_silence(self.tables.paired, self.domain).sides
        return replace(MarginalFit.lists(self), groups=tuple(side.into for side in sides))

    def _list(self, places: Places) -> Counted:
        """Every respondent in exactly one cell, missing answers the last group of each column."""
        answers = self.tables.paired if len(places) > 1 else plain(self.domain, MissingMethod.AVAILABLE)
        return np.asarray(with_silence(answers, self.domain).table(self.held[places], places).ravel())

    def _cells(self, places: Places) -> int:
        return self._list(places).size

    def _is_grouped(self, places: Places) -> bool:
        return len(places) > 1

    def _groups_of(self, place: int) -> ColumnView:
        return self.tables.paired.sides[place]


def study_of(task: FitTask, *, residuals: bool) -> MarginalFit:
    """A fit in progress for the task's strategy; with `residuals`, for intervals, every cell of a pair is counted."""
    if task.missing is not MissingMethod.WEIGHTED:
        return MarginalFit.of(task, residuals=residuals)
    made = WeightedFit.of(task, residuals=residuals)
    made.runs = 0 if residuals else RUNS
    return made
