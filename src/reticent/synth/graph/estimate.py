"""Fit one joint table to noisy tables of some of its axes.

Of all joint tables with the given total that factor over the measured sets, the one nearest to the tables in squares,
each cell weighted by the inverse of its variance. Nothing here sees a row: whatever is done to noisy tables is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, isfinite, log, sqrt

import numpy as np

from reticent.errors import PlanError
from reticent.synth.base import Floats, Places
from reticent.synth.graph.agree import agreed
from reticent.synth.graph.beliefs import Beliefs
from reticent.synth.graph.descent import Descent, longest_step
from reticent.synth.graph.fitted import FittedGraph
from reticent.synth.graph.measured import NoisyTable, Zeroes, check_fits
from reticent.synth.graph.tree import Tree, junction_tree

FEWEST, MOST = 60, 1600
TOLERANCE = 1e-5
EVEN = 0.9


def estimate(
    shape: Sequence[int],
    measured: Sequence[NoisyTable],
    *,
    total: float,
    start: FittedGraph | None = None,
    iterations: int | None = None,
    zeroes: Sequence[Zeroes] = (),
    tolerance: float = TOLERANCE,
) -> FittedGraph:
    """The fitted joint table. It ends early where ten passes win less loss than `tolerance` for each measured cell.

    `iterations` are passes over the tree, as many as `passes` says where left out. `start` lends the potentials of sets
    it shares.
    """
    _check(shape, measured, zeroes, total)
    merged = _merged(measured)
    fit = _Fit(tuple(shape), merged, zeroes, total)
    if merged:
        fit.run(start, passes(merged, total=total) if iterations is None else iterations, tolerance)
    return fit.fitted()


def passes(measured: Sequence[NoisyTable], *, total: float) -> int:
    """How long to fit: 200 passes where the noise of a cell is a thousandth of the total, fewer where it is more.

    Large cells are met first and small ones last, and what small cells of noisy tables say is mostly noise. The rule was
    found on one survey and held on three others (docs/theory/graphs.md). It is no promise.
    """
    deviation = exp(sum(log(each.deviation) for each in measured) / len(measured))
    return round(min(max(200 * sqrt(total / (1000 * deviation)), FEWEST), MOST))


@dataclass(slots=True)
class _Pieces:
    """Tables of many sets in one vector."""

    shapes: list[tuple[int, ...]]
    cuts: list[int]

    def of(self, vector: Floats) -> list[Floats]:
        return [
            vector[a:b].reshape(shape) for (a, b), shape in zip(pairwise(self.cuts), self.shapes, strict=True)
        ]


class _Fit:
    """One problem: the tree over all sets, memory for passes, and the potentials found so far."""

    def __init__(
        self, shape: tuple[int, ...], measured: Sequence[NoisyTable], zeroes: Sequence[Zeroes], total: float
    ) -> None:
        self.measured, self.total = measured, total
        sets = [*(each.places for each in measured), *(each.places for each in zeroes)]
        self.tree: Tree = junction_tree(shape, sets)
        self.beliefs = Beliefs(self.tree, sets)
        shapes = [each.table.shape for each in measured]
        self.pieces = _Pieces(shapes, [0, *np.cumsum([each.table.size for each in measured]).tolist()])
        self.fixed = [np.where(each.allowed, 0.0, -np.inf) for each in zeroes]
        self.spare = [np.empty_like(table) for table in self.fixed]
        self.potentials = np.zeros(self.pieces.cuts[-1])
        self.open = self.marginals(self.potentials) > 0
        tables = agreed(measured, total=total) if measured else [np.empty(0)]
        self.aims = np.concatenate([table.ravel() for table in tables])

    def marginals(self, potentials: Floats) -> Floats:
        """The measured sets' tables under these potentials."""
        found = np.empty_like(potentials)
        if not self.beliefs.up([*self.pieces.of(potentials), *self.fixed]):
            raise PlanError("no cell is left: the structural zeroes contradict each other", field="zeroes")
        self.beliefs.down([*self.pieces.of(found), *self.spare])
        found *= self.total
        return found

    def run(self, start: FittedGraph | None, iterations: int, tolerance: float) -> None:
        """First half of the passes with even weights, where they are uneven, then with the right ones.

        Next to tables that are known well, others would hardly be heard in the time there is. The tables agree already,
        so what even weights lead to is close to what we want.
        """
        weights = np.array([each.deviation**-2 for each in self.measured])
        self.potentials = self.first(start)
        if weights.min() < EVEN * weights.max():
            self._descend(np.ones_like(weights), iterations // 2, tolerance / float(weights.max()))
            iterations -= iterations // 2
        self._descend(weights, iterations, tolerance)

    def _descend(self, weights: Floats, iterations: int, tolerance: float) -> None:
        # Cells that must stay empty cannot be fitted; they would only push.
        many = np.repeat(weights, [each.table.size for each in self.measured]) * self.open
        descent = Descent(self.marginals, self.aims, many, self.potentials)
        step = longest_step(self.total, weights)
        descent.run(step=step, iterations=iterations, enough=tolerance * float(self.open.sum()))
        self.potentials = descent.at

    def first(self, start: FittedGraph | None) -> Floats:
        lent = {} if start is None else start.potentials
        first = np.zeros_like(self.potentials)
        for each, table in zip(self.measured, self.pieces.of(first), strict=True):
            if each.places in lent and lent[each.places].shape == table.shape:
                table[...] = lent[each.places]
        return first

    def fitted(self) -> FittedGraph:
        self.marginals(self.potentials)
        names = [each.places for each in self.measured]
        return FittedGraph(
            tree=self.tree,
            tables=tuple(table.copy() for table in self.beliefs.cliques),
            potentials=dict(zip(names, self.pieces.of(self.potentials), strict=True)),
            total=self.total,
        )


def _merged(measured: Sequence[NoisyTable]) -> list[NoisyTable]:
    """One table for each set: those measured more than once averaged by the inverse of their variances."""
    by_places: dict[Places, list[NoisyTable]] = {}
    for each in measured:
        by_places.setdefault(each.places, []).append(each)
    return [_average(places, tables) for places, tables in by_places.items()]


def _average(places: Places, tables: Sequence[NoisyTable]) -> NoisyTable:
    weights = [each.deviation**-2 for each in tables]
    table = sum(
        (w * each.table for w, each in zip(weights, tables, strict=True)), np.zeros(tables[0].table.shape)
    )
    return NoisyTable(places=places, table=table / sum(weights), deviation=sum(weights) ** -0.5)


def _check(
    shape: Sequence[int], measured: Sequence[NoisyTable], zeroes: Sequence[Zeroes], total: float
) -> None:
    if not shape or min(shape) < 1:
        raise PlanError("every axis needs at least one cell", field="shape")
    if not (isfinite(total) and total > 0):
        raise PlanError("is a positive number", field="total")
    for each in measured:
        check_fits(shape, each.places, each.table.shape)
    for zero in zeroes:
        check_fits(shape, zero.places, zero.allowed.shape)
