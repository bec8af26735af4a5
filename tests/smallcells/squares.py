"""Small cells made by hand or at random, and the naive way to everything: refit, in exact rationals."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.points import GridPoints

Spot = tuple[Fraction, Fraction]
QUARTER = Predict(at=Fraction(1, 4))
ESTIMATORS = [QUARTER, Predict(at=Fraction(1)), Slope(), CellMean()]

PLAIN = list(zip((1, 2, 4, 5, 7, 9), (2, 1, 3, 5, 4, 8), strict=True))
CLUSTERED = list(zip((48, 49, 50, 51, 52, 50), (40, 50, 50, 60, 50, 40), strict=True))
COMB = [(i, 7 * i % 20) for i in range(20)]


def points(cells: Sequence[Sequence[tuple[int, int]]], x_steps: int, y_steps: int) -> GridPoints:
    """These cells, in order, on this grid."""
    rows = np.array([row for cell in cells for row in sorted(cell)], dtype=np.int64).reshape(-1, 2)
    starts = np.cumsum([0, *(len(cell) for cell in cells)]).astype(np.int64)
    return GridPoints(
        starts=starts, x=rows[:, 0].copy(), y=rows[:, 1].copy(), x_steps=x_steps, y_steps=y_steps
    )


def spots(cell: Sequence[tuple[int, int]], x_steps: int, y_steps: int) -> list[Spot]:
    """The same cell on the unit square."""
    return [(Fraction(x, x_steps), Fraction(y, y_steps)) for x, y in cell]


def refit(estimator: Estimator, rows: Sequence[Spot]) -> Fraction | None:
    """The estimate from its textbook definition; None where there is none."""
    n = len(rows)
    if n == 0:
        return None
    xbar, ybar = sum(x for x, _ in rows) / n, sum(y for _, y in rows) / n
    if isinstance(estimator, CellMean):
        return ybar
    spread = sum((x - xbar) ** 2 for x, _ in rows)
    if spread == 0:
        return None
    slope = sum((x - xbar) * (y - ybar) for x, y in rows) / spread
    return slope if isinstance(estimator, Slope) else ybar + slope * (estimator.at - xbar)


def moves(estimator: Estimator, rows: list[Spot], neighbours: Sequence[Sequence[Spot]]) -> list[Fraction]:
    """How far each neighbour's estimate lies from this cell's, where both exist."""
    here = refit(estimator, rows)
    found = [refit(estimator, other) for other in neighbours]
    return [] if here is None else [abs(there - here) for there in found if there is not None]


def removals(rows: list[Spot]) -> list[list[Spot]]:
    """All cells with one respondent less."""
    return [rows[:i] + rows[i + 1 :] for i in range(len(rows))]


def additions(rows: list[Spot], parts: int) -> list[list[Spot]]:
    """All cells with one respondent more, on a grid of `parts` along x; y at its ends and in the middle."""
    heights = (Fraction(0), Fraction(1, 2), Fraction(1))
    return [[*rows, (Fraction(i, parts), y)] for i in range(parts + 1) for y in heights]
