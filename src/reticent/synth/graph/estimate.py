"""Graphical model estimation: fit one joint table to noisy tables of some of its axes. After the noise, so free of charge.

Of all joint tables with the given total that factor over the measured sets, the one nearest to the tables in squares, each
cell weighted by the inverse of its variance. Cells that are known to be empty stay so.

**Agreement first.** A table splits into effects: its total, one for every axis, one for every pair, and so on, orthogonal to
each other. Two tables that share axes measure the same effects of these. The average of each effect, weighted by the
inverse of its variances, gives tables that agree. Among tables that agree these are the nearest in weighted squares, and
squared distances to any tables that agree change by a constant only. So nothing is lost for the fit, and much time is won.

**Mirror descent with momentum.** A plain step takes the potentials along minus the slope of the loss in the marginals (Beck
and Teboulle 2003; McKenna, Sheldon and Miklau 2019). It multiplies large and small cells alike and never leaves the joint
tables. Going on a little in the direction of the last step (Nesterov 1983) saves most of the steps; where that goes up, we
start anew from the best place and without momentum, and where a plain step goes up, with shorter ones (O'Donoghue, Candes
2015).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import exp, isfinite, log, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.synth.base import Floats, Places
from reticent.synth.graph.beliefs import Beliefs, FittedGraph
from reticent.synth.graph.tree import Tree, junction_tree

Marginals = Callable[[Floats], Floats]
LONG, SHORTER, FEWEST_ROUNDS = 10.0, 0.5, 1e-9
LOOK_BACK = 10


class Descent:
    """Where we are: the best potentials so far, their marginals and their loss."""

    def __init__(self, marginals: Marginals, aims: Floats, weights: Floats, start: Floats) -> None:
        self._marginals, self._aims, self._weights = marginals, aims, weights
        self.at = start
        self._found = marginals(start)
        self.loss = self._loss(self._found)

    def _loss(self, found: Floats) -> float:
        away = found - self._aims
        return 0.5 * float(away @ (self._weights * away))

    def run(self, *, step: float, iterations: int, enough: float) -> None:
        """Go down by at most so many passes, or until ten of them win less than `enough`."""
        first, moment, last, since = step, 0, self.at, [self.loss]
        for _ in range(iterations):
            taken = self.at - step * self._weights * (self._found - self._aims)
            # Steps taken in a row reach further and further: 0, 1/4, 2/5, 3/6, ... of the last one on top.
            ahead = taken + moment / (moment + 3) * (taken - last)
            if self._accept(ahead):
                last, moment = taken, moment + 1
                since.append(self.loss)
            else:
                step *= 0.9 if moment else SHORTER
                moment, last = 0, self.at
            if step < FEWEST_ROUNDS * first or _is_done(since, enough):
                return

    def _accept(self, potentials: Floats) -> bool:
        found = self._marginals(potentials)
        loss = self._loss(found)
        if not loss <= self.loss:
            return False
        self.at, self._found, self.loss = potentials, found, loss
        return True


def _is_done(losses: list[float], enough: float) -> bool:
    return len(losses) > LOOK_BACK and losses[-1 - LOOK_BACK] - losses[-1] < enough


def longest_step(total: float, weights: Floats) -> float:
    """A step that is usually short enough. 1 / (total x all weights) always is, and is timid."""
    return LONG / (total * float(np.sum(weights)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTable:
    """One noisy table over `places`; `deviation` is the standard deviation of one cell's noise. May be negative."""

    places: Places
    table: Floats = field(repr=False)
    deviation: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", np.ascontiguousarray(self.table, dtype=np.float64))
        _check_places(self.places, self.table.ndim)
        if not np.isfinite(self.table).all():
            raise PlanError("a measured table holds a number that is not finite", field="measured")
        if not (isfinite(self.deviation) and self.deviation > 0):
            raise PlanError("is a positive number", field="deviation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Zeroes:
    """Structural zeroes: cells of `places` that nobody can be in are those not `allowed`."""

    places: Places
    allowed: NDArray[np.bool_] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", np.ascontiguousarray(self.allowed, dtype=np.bool_))
        _check_places(self.places, self.allowed.ndim)


def _check_places(places: Places, sides: int) -> None:
    if list(places) != sorted(set(places)) or not places or places[0] < 0:
        raise PlanError("are numbers of axes, each once, in order", field="places")
    if len(places) != sides:
        raise PlanError(f"name {len(places)} axes, but the table has {sides} sides", field="places")


def check_fits(shape: Sequence[int], places: Places, sides: tuple[int, ...]) -> None:
    """Refuse a table that does not have the sizes of its axes."""
    if places[-1] >= len(shape):
        raise PlanError(f"names axis {places[-1]}, but there are {len(shape)}", field="places")
    if sides != tuple(shape[place] for place in places):
        raise PlanError(f"the table over axes {list(places)} has other sizes than they", field="places")


def agreed(measured: Sequence[NoisyTable], *, total: float) -> list[Floats]:
    """The tables, made to agree with each other and with `total`."""
    effects = _averages(measured)
    effects[()] = np.full((), total)
    return [_joined(each, effects) for each in measured]


def _averages(measured: Sequence[NoisyTable]) -> dict[Places, Floats]:
    sums: dict[Places, Floats] = {}
    weights: dict[Places, float] = {}
    for each in measured:
        for places in _subsets(each.places):
            # A sum over n cells has n times the variance of a cell.
            weight = 1.0 / (each.deviation**2 * _left_out(each, places))
            sums[places] = sums.get(places, 0.0) + weight * _effect(each, places)
            weights[places] = weights.get(places, 0.0) + weight
    return {places: sums[places] / weights[places] for places in sums}


def _subsets(places: Places) -> Iterator[Places]:
    for size in range(len(places) + 1):
        yield from combinations(places, size)


def _left_out(each: NoisyTable, places: Places) -> int:
    return prod(n for n, place in zip(each.table.shape, each.places, strict=True) if place not in places)


def _effect(each: NoisyTable, places: Places) -> Floats:
    """The table summed to `places`, less what smaller sets of places say."""
    away = tuple(i for i, place in enumerate(each.places) if place not in places)
    table: Floats = np.asarray(each.table.sum(axis=away))
    for side in range(table.ndim):
        table = table - table.mean(axis=side, keepdims=True)
    return table


def _joined(each: NoisyTable, effects: dict[Places, Floats]) -> Floats:
    table = np.zeros(each.table.shape)
    for places in _subsets(each.places):
        sizes = [n if p in places else 1 for n, p in zip(each.table.shape, each.places, strict=True)]
        table += effects[places].reshape(sizes) / _left_out(each, places)
    return table


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
    fit = GraphFit(tuple(shape), merged, zeroes, total)
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


class GraphFit:
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
