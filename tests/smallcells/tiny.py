"""Small cells, all their neighbours, and estimates by the textbook."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.points import GridPoints

Cell = tuple[tuple[int, int], ...]


def points_of(cells: Iterable[Sequence[tuple[int, int]]], *, x_steps: int, y_steps: int) -> GridPoints:
    """The cells as points, each sorted."""
    held = [sorted(cell) for cell in cells]
    flat = np.array([point for cell in held for point in cell], np.int64).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum([len(cell) for cell in held])]).astype(np.int64)
    return GridPoints(
        starts=starts, x=flat[:, 0].copy(), y=flat[:, 1].copy(), x_steps=x_steps, y_steps=y_steps
    )


def neighbours(cell: Cell, *, x_steps: int, y_steps: int) -> list[Cell]:
    """Everybody who is there gone, and everybody who could come."""
    gone = [cell[:i] + cell[i + 1 :] for i in range(len(cell))]
    come = [(*cell, (x, y)) for x in range(x_steps + 1) for y in range(y_steps + 1)]
    return gone + come


def random_cells(count: int, *, most: int, x_steps: int, y_steps: int, seed: int) -> list[Cell]:
    """Cells of all sizes up to `most`; in a third of them x keeps to a few neighbouring places."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(count):
        n = int(rng.integers(0, most + 1))
        low = int(rng.integers(0, x_steps)) if i % 3 == 0 else 0
        high = min(x_steps, low + 2) if i % 3 == 0 else x_steps
        x, y = rng.integers(low, high + 1, n), rng.integers(0, y_steps + 1, n)
        made.append(tuple(sorted(zip(x.tolist(), y.tolist(), strict=True))))
    return made


def estimate(cell: Cell, estimator: Estimator, *, x_steps: int, y_steps: int) -> Fraction | None:
    """Least squares or the mean, in rationals and as written in a textbook."""
    xs, ys = [Fraction(x, x_steps) for x, _ in cell], [Fraction(y, y_steps) for _, y in cell]
    if not cell:
        return None
    mx, my = sum(xs) / len(cell), sum(ys) / len(cell)
    if isinstance(estimator, CellMean):
        return my
    sxx = sum((x - mx) ** 2 for x in xs)
    if not sxx:
        return None
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sxx
    return slope if isinstance(estimator, Slope) else my + slope * (estimator.at - mx)


ESTIMATORS: tuple[Estimator, ...] = (
    Predict(at=Fraction(1, 4)),
    Predict(at=Fraction(1)),
    Slope(),
    CellMean(),
)
