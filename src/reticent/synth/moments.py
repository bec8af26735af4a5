"""Least squares on several predictors from tables of pairs: moments by pair, coefficients as functions of moments.

Variables are centred at the means that their columns' lists tell, so that a coefficient rests on products alone: an error of
a mean is one of second order. Lists that two pairs share are taken into account: weights on one list are added before they
are squared. Where answers are missing every list has rows of its own, and what is the same error in all of them otherwise
cancels no more; `apart` is what that adds.
"""

from dataclasses import dataclass, field
from itertools import combinations
from math import sqrt

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.direct import (
    ENOUGH,
    Estimated,
    ListCombination,
    MeasuredTables,
    NoInterval,
    joined,
    variance_of,
)
from reticent.synth.functionals import values_in
from reticent.synth.questions import Variable


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """Coefficients, the inverse of the predictors' covariances, and the variance about the line."""

    coefficients: Floats
    bread: Floats
    residual: float


@dataclass(frozen=True, slots=True)
class PairMoments:
    """Second moments of centred variables, each from the one measured table that has it. The last variable is explained."""

    tables: MeasuredTables = field(repr=False)
    variables: tuple[Variable, ...]
    _means: dict[int, float] = field(default_factory=dict, init=False, repr=False)
    _products: dict[tuple[int, int], tuple[Estimated, Floats]] = field(
        default_factory=dict, init=False, repr=False
    )

    def _place(self, at: int) -> int:
        return self.tables.lists.domain.columns.index(self.variables[at].column)

    def _mean(self, at: int) -> float:
        if at not in self._means:
            table = self.tables.of((self._place(at),))
            known = values_in(table, self.variables[at])
            if not known.counts.all():
                raise NoInterval(
                    "a variable is not asked of everybody, or missing values count as a value; regress on one"
                )
            self._means[at] = float(known.values @ table.table) / float(table.table.sum())
        return self._means[at]

    def product(self, one: int, other: int) -> tuple[Estimated, Floats]:
        """The table of two variables, and the gradient of the mean of their product, centred, in its cells."""
        if (one, other) not in self._products:
            table = self.tables.of(tuple(sorted({self._place(one), self._place(other)})))
            self._products[one, other] = table, self._centred(table, one) * self._centred(table, other)
        return self._products[one, other]

    def _centred(self, table: Estimated, at: int) -> Floats:
        known = values_in(table, self.variables[at])
        if known.doubt.any():
            raise NoInterval("rare cells of a variable were put together; regress on one column at a time")
        return known.values - self._mean(at)

    @property
    def sets(self) -> list[Places]:
        """All sets of columns whose tables are used."""
        many = range(len(self.variables))
        return sorted({tuple(sorted({self._place(i), self._place(j)})) for i in many for j in many})

    def solve(self) -> LeastSquares:
        """The line; refused where a predictor, or what the others leave of it, is not told apart from a constant."""
        many = len(self.variables)
        covariance = np.zeros((many, many))
        for i in range(many):
            for j in range(i, many):
                table, q = self.product(i, j)
                covariance[i, j] = covariance[j, i] = float(q @ table.table)
                if i == j < many - 1:
                    table.denominator(q, "the variance of a predictor")
        inner, cross = covariance[:-1, :-1], covariance[:-1, -1]
        if np.linalg.eigvalsh(inner).min() <= 1e-12 * np.trace(inner):
            raise NoInterval("the predictors' covariances are not told apart from a lesser rank")
        bread: Floats = np.asarray(np.linalg.inv(inner), dtype=np.float64)
        for at in range(many - 1):
            self._check_apart(bread[at] / bread[at, at], 1 / float(bread[at, at]))
        found = bread @ cross
        return LeastSquares(found, bread, max(0.0, float(covariance[-1, -1] - cross @ found)))

    def _check_apart(self, contrast: Floats, left: float) -> None:
        """The variance of a predictor that the others leave: what its coefficient is divided by."""
        weights = np.zeros((len(self.variables),) * 2)
        weights[:-1, :-1] = np.outer(contrast, contrast)
        noise = variance_of(*self._combined(weights), self.tables.lists)
        if left < ENOUGH * sqrt(noise):
            raise NoInterval(
                f"the variance of a predictor beside the others is less than {ENOUGH:g} of its own standard errors"
            )

    def gradient(self, at: int, fit: LeastSquares) -> tuple[list[ListCombination], list[float]]:
        """How a coefficient moves with each moment: d beta = bread (d cross - d inner beta)."""
        many, row = len(self.variables), fit.bread[at]
        weights = np.zeros((many, many))
        weights[:-1, -1] = row
        weights[:-1, :-1] = -np.outer(row, fit.coefficients)
        return self._combined(weights)

    def _combined(self, weights: Floats) -> tuple[list[ListCombination], list[float]]:
        """The sum of weights times moments, moment by moment; of each product once, in either order."""
        parts, factors, once = [], [], weights + weights.T - np.diag(np.diag(weights))
        for i in range(len(once)):
            for j in range(i, len(once)):
                table, q = self.product(i, j)
                parts.append(table.linear(q))
                factors.append(float(once[i, j]))
        return parts, factors

    def apart(self, parts: list[ListCombination], factors: list[float]) -> float:
        """What missing answers add to the variance of a row's influence on a coefficient.

        The influence is the sum over lists L of 1_L g_L/r_L. Beside that of complete rows, its variance has E g_L g_M (r_LM/(r_L
        r_M) - 1) for any two lists. With answers missing independently that is 1/r of the columns they share, less 1. Two
        lists of three columns have no table in common: what they have in common given the shared column is at most the
        product of their deviations.
        """
        lists = [
            _Influence.of(self.tables, places, w) for places, w in joined(parts, factors).items() if places
        ]
        found = sum(float(np.square(each.values) @ each.shares) * (1 / each.response - 1) for each in lists)
        return found + 2 * sum(one.beside(other, self.tables) for one, other in combinations(lists, 2))


@dataclass(frozen=True, slots=True)
class _Influence:
    """What rests on one list, centred, cell by cell; with the shares of these cells and the share that answered."""

    places: Places
    values: Floats
    shares: Floats
    response: float

    @classmethod
    def of(cls, tables: MeasuredTables, places: Places, weights: Floats) -> "_Influence":
        table = tables.of(places)
        shares = table.positive
        values = weights.reshape(-1) - float(weights.reshape(-1) @ shares)
        return cls(places, values, shares, float(table.own.response.min()))

    def beside(self, other: "_Influence", tables: MeasuredTables) -> float:
        """E g_L g_M (r_LM/(r_L r_M) - 1); where no table tells the first, what it is at most."""
        both = tuple(sorted({*self.places, *other.places}))
        shared = [place for place in self.places if place in other.places]
        if len(both) <= 2:
            table = tables.of(both)
            values = [each.over(table, tables) for each in (self, other)]
            joint = float(table.own.response.min()) / (self.response * other.response)
            return float((values[0] * values[1]) @ table.positive) * (joint - 1)
        if not shared:
            return 0.0
        (means, spreads), (others, other_spreads) = (each.given(shared[0], tables) for each in (self, other))
        column = tables.of((shared[0],))
        mass = _grouped(column, column.positive, tables)
        rate = 1 / float(column.own.response.min()) - 1
        return rate * float((means * others + np.sqrt(spreads * other_spreads)) @ mass)

    def over(self, table: Estimated, tables: MeasuredTables) -> Floats:
        """The same over the cells of a table that has all its columns."""
        if self.places == table.places:
            return self.values
        (place,) = self.places
        column = tables.of(self.places)
        mass = np.maximum(_grouped(column, self.shares, tables), 1e-300)
        by_group = _grouped(column, self.values * self.shares, tables) / mass
        return np.asarray(by_group[np.indices(table.shape)[table.places.index(place)].ravel()])

    def given(self, place: int, tables: MeasuredTables) -> tuple[Floats, Floats]:
        """Given the group of a column: its mean, and its variance."""
        shape = tables.of(self.places).shape
        values, shares = (
            np.moveaxis(each.reshape(shape), self.places.index(place), 0).reshape(
                shape[self.places.index(place)], -1
            )
            for each in (self.values, self.shares)
        )
        mass = np.maximum(shares.sum(axis=1), 1e-300)
        means = (values * shares).sum(axis=1) / mass
        spreads = (np.square(values) * shares).sum(axis=1) / mass - np.square(means)
        return means, np.maximum(spreads, 0.0)


def _grouped(column: Estimated, values: Floats, tables: MeasuredTables) -> Floats:
    """Sums over the cells of a column's list by the groups that pairs have them in."""
    (place,) = column.places
    first, groups = tables.lists.plain[place], tables.lists.groups[place]
    into = np.zeros(int(first.max()) + 1, dtype=np.int64)
    into[first[first >= 0]] = groups[first >= 0]
    return np.asarray(np.bincount(into, weights=values, minlength=int(groups.max()) + 1), dtype=np.float64)
