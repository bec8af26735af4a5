"""Least squares on several predictors from tables of pairs: moments by pair, coefficients as functions of moments.

Lists that two pairs share are taken into account: weights on one list are added before they are squared.
"""

from dataclasses import dataclass, field

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.direct import Estimated, ListCombination, MeasuredTables, NoInterval
from reticent.synth.functionals import values_in
from reticent.synth.questions import Variable


@dataclass(frozen=True, slots=True)
class PairMoments:
    """First and second moments of variables, each from the one measured table that has it."""

    tables: MeasuredTables = field(repr=False)
    variables: tuple[Variable, ...]

    def _place(self, at: int) -> int:
        return self.tables.lists.domain.columns.index(self.variables[at].column)

    def product(self, one: int, other: int) -> tuple[Estimated, Floats]:
        """The table of two variables, and the gradient of the mean of their product in its cells."""
        places = tuple(sorted({self._place(one), self._place(other)}))
        table = self.tables.of(places)
        values = [values_in(table, self.variables[at]) for at in (one, other)]
        if not all(value.counts.all() for value in values):
            raise NoInterval("a predictor is not asked of everybody; regress on one column at a time")
        return table, values[0].values * values[1].values

    def mean(self, at: int) -> tuple[Estimated, Floats]:
        table = self.tables.of((self._place(at),))
        known = values_in(table, self.variables[at])
        if not known.counts.all():
            raise NoInterval(
                "a variable is not asked of everybody, or missing values count as a value; regress on one"
            )
        return table, known.values

    @property
    def sets(self) -> list[Places]:
        """All sets of columns whose tables are used."""
        many = range(len(self.variables))
        return sorted({tuple(sorted({self._place(i), self._place(j)})) for i in many for j in many})

    def solve(self) -> tuple[Floats, Floats, float]:
        """Coefficients, the inverse of the predictors' covariances, and the variance about the line."""
        many = len(self.variables)
        first = np.array([float(q @ table.table) for table, q in map(self.mean, range(many))])
        for i in range(many - 1):
            table, q = self.mean(i)
            table.denominator(np.square(q - first[i]), "the variance of a predictor")
        second = np.zeros((many, many))
        for i in range(many):
            for j in range(i, many):
                table, q = self.product(i, j)
                second[i, j] = second[j, i] = float(q @ table.table)
        covariance = second - np.outer(first, first)
        inner, cross = covariance[:-1, :-1], covariance[:-1, -1]
        if np.linalg.eigvalsh(inner).min() <= 1e-12 * np.trace(inner):
            raise NoInterval("the predictors' covariances are not told apart from a lesser rank")
        bread: Floats = np.asarray(np.linalg.inv(inner), dtype=np.float64)
        found = bread @ cross
        return found, bread, float(covariance[-1, -1] - cross @ found)

    def gradient(self, at: int, found: Floats, bread: Floats) -> tuple[list[ListCombination], list[float]]:
        """How a coefficient moves with each moment: d beta = bread (d cross - d inner beta)."""
        many, row = len(self.variables), bread[at]
        weights = np.zeros((many, many))
        for k in range(many - 1):
            weights[k, -1] += row[k]
            weights[k, :-1] -= row[k] * found
        weights = weights + weights.T - np.diag(np.diag(weights))  # of each product once, in either order
        means = [float(q @ table.table) for table, q in map(self.mean, range(many))]
        parts, factors = [], []
        for i in range(many):
            slope = -sum(weights[i, j] * means[j] * (2 if i == j else 1) for j in range(many))
            table, q = self.mean(i)
            parts.append(table.linear(q))
            factors.append(float(slope))
            for j in range(i, many):
                table, q = self.product(i, j)
                parts.append(table.linear(q))
                factors.append(float(weights[i, j]))
        return parts, factors
