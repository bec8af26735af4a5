"""Local sensitivity: how far one respondent can move each cell's estimate and its standard error, over removals and additions.

Read off the rows, so it is private, and noise scaled to it is *observed, not differentially private*. The published method
gives standard errors noise of their own in the same way as estimates, with additions in the corners of the square; so do
we, with removals beside them.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.smallcells.estimators import CellMean, Estimator, Fits, Floats, Predict, divide, fits, offsets
from reticent.smallcells.points import CellMoments, GridPoints, Wholes, moments

Flags = NDArray[np.bool_]

UP = 1 + 2.0**-26
"""More than rounding in doubles can have taken away; proofs/smallcells/local.md adds it up."""

CHUNK = 1 << 20
"""Points looked at together, so that memory does not grow with the table."""


def local_sensitivity(
    points: GridPoints,
    estimator: Estimator,
    *,
    corners_only: bool = False,
    removals: bool = True,
    span: Fraction | None = None,
) -> Floats:
    """The largest move of each cell's estimate when one respondent comes or goes.

    `span` is the declared length of the range of published estimates: no move is longer, and a cell that has no line,
    or loses it with one respondent, moves by all of it. Without it such cells are not a number and such removals are
    passed over, as in the published method. `corners_only` looks at additions in the corners of the square alone; with
    `removals` off as well, that is the published example.

    Guarantee   none: observed, not differentially private. The number itself is exact, rounded up.
    Adjacency   one respondent added or removed.
    Theorem     THEORY 8.1 and 8.2.
    Proof       proofs/smallcells/local.md
    Assumes     points on the declared grid, fewer than 2**28 in a cell; each respondent is one point of one cell.
    Keeps back  every number it gives: all are read off the rows.
    """
    if span is not None and span <= 0:
        raise PlanError("the declared range has no length.", field="range")
    of = moments(points)
    line = fits(estimator, of)
    moved = added(line, corners_only=corners_only)
    if removals:
        gone, is_lost = removed(points, estimator, of, line)
        moved = np.fmax(moved, gone)
        moved = np.where(is_lost, np.inf, moved) if span is not None else moved
    return moved * UP if span is None else np.fmin(moved * UP, float(span))


def added(line: Fits, *, corners_only: bool) -> Floats:
    """The largest move by an addition: affine in y, a ratio of quadratics in x."""
    where = [-line.x, 1 - line.x]
    if not corners_only:
        where += [np.clip(u, -line.x, 1 - line.x) for y in (0, 1) for u in _turning(line, y)]
    moved = np.full(len(line.n), np.nan)
    for u in where:
        # The further of y = 0 and y = 1 lies 1/2 + |line - 1/2| from the line.
        residual = 0.5 + np.abs(line.y + line.slope * u - 0.5)
        moved = np.fmax(moved, np.abs(line.lever(u)) * residual / (1 + line.leverage(u)))
    return moved


def _turning(line: Fits, y: int) -> tuple[Floats, Floats]:
    """Where an addition at height y moves the estimate most and least, if x could be any number.

    With u = r v and r**2 = (1 + 1/n) Sxx the move is (a + 2 h v + c v**2) / (1 + v**2), a quadratic form on the unit
    circle: it turns at tan(2 angle) = 2 h / (a - c), v being the tangent of the angle.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        e, r = y - line.y, np.sqrt((1 + 1 / line.n) / line.per_spread)
        h = (line.tilt * e - line.base * line.slope) * r / 2
        half = (line.base * e + line.tilt * line.slope * r * r) / 2
        t = h / (np.abs(half) + np.hypot(half, h))
        near, far = r * t, r / t
    return np.where(half < 0, far, near), np.where(half < 0, -near, -far)


def removed(points: GridPoints, estimator: Estimator, of: CellMoments, line: Fits) -> tuple[Floats, Flags]:
    """The largest move by a removal, and whether some removal leaves no estimate."""
    gone, is_lost = np.full(points.cells, np.nan), np.zeros(points.cells, dtype=np.bool_)
    for cells in chunks(points.starts):
        moved, lost = _removals(points, estimator, of, line, cells)
        full = cells[np.diff(points.starts)[cells] > 0]
        firsts = points.starts[full] - points.starts[cells[0]]
        gone[full] = np.fmax.reduceat(moved, firsts) if len(full) else np.nan
        is_lost[full] = np.logical_or.reduceat(lost, firsts) if len(full) else False
    return gone, is_lost


def chunks(starts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Runs of whole cells with about `CHUNK` points each."""
    first, cells = 0, len(starts) - 1
    while first < cells:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + CHUNK, side="right")) - 1)
        yield np.arange(first, last, dtype=np.int64)
        first = last


def respondents(
    points: GridPoints, of: CellMoments, line: Fits, cells: NDArray[np.int64]
) -> tuple[Fits, Floats, Floats, NDArray[np.int64]]:
    """For each respondent of some cells: the cell's fit, u, the residual, and the cell."""
    here = slice(points.starts[cells[0]], points.starts[cells[-1] + 1])
    owner = np.repeat(cells, np.diff(points.starts)[cells])
    n, x, y = (each.astype(np.int64)[owner] for each in (of.n, of.x, of.y))
    own = line.take(owner)
    u = (n * points.x[here] - x) / (own.n * points.x_steps)
    residual = (n * points.y[here] - y) / (own.n * points.y_steps) - own.slope * u
    return own, u, residual, owner


def _removals(
    points: GridPoints, estimator: Estimator, of: CellMoments, line: Fits, cells: NDArray[np.int64]
) -> tuple[Floats, Flags]:
    """The move by each respondent's removal, and whether it leaves no estimate."""
    own, u, residual, owner = respondents(points, of, line, cells)
    rest = 1 - own.leverage(u)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(own.lever(u) * residual) / rest
    # Few: leverages add up to 2, so at most two respondents of a cell have more than 3/4.
    heavy = np.flatnonzero(rest < 0.25)
    at = heavy + points.starts[cells[0]]
    moved[heavy] = _exactly(estimator, of, owner[heavy], points.x[at], points.y[at])
    lost = np.zeros(len(moved), dtype=np.bool_)
    lost[heavy] = np.isnan(moved[heavy])
    return moved, lost


def _exactly(
    estimator: Estimator,
    of: CellMoments,
    cells: NDArray[np.int64],
    x: NDArray[np.int64],
    y: NDArray[np.int64],
) -> Floats:
    """The move by these removals from whole numbers; not a number where no estimate is left."""
    if isinstance(estimator, CellMean):  # a leverage of 1/n above 3/4: the only respondent
        return np.full(len(cells), np.nan)
    n, q, p = of.n[cells], of.q[cells], of.p[cells]
    one, sx = x.astype(object), of.x[cells]
    u, e = n * one - sx, n * y.astype(object) - of.y[cells]
    top, bottom = _lever(estimator, of, cells, u)
    left = (n - 1) * (of.xx[cells] - one * one) - (sx - one) * (sx - one)
    return divide(np.abs(top * (q * e - p * u)), bottom * n * of.y_steps * left)


def _lever(
    estimator: Estimator, of: CellMoments, cells: NDArray[np.int64], u: Wholes
) -> tuple[Wholes, Wholes]:
    """The lever of respondents at u / (n x_steps), as top / bottom."""
    q = of.q[cells]
    if not isinstance(estimator, Predict):
        return np.asarray(of.x_steps * u), q
    d = estimator.at.denominator
    return np.asarray(d * q + offsets(estimator, of)[cells] * u), np.asarray(d * of.n[cells] * q)


LEAST_REST = 2.0**-20
"""A removal that leaves less than this of a line's spread is passed over: its standard error is beyond doubles."""


def sampling_errors(estimator: Estimator, of: CellMoments) -> Floats:
    """The usual standard errors; not a number where the cell has no degree of freedom left."""
    line, rss = fits(estimator, of), residual_squares(estimator, of)
    return _error(rss, line.n - _spent(estimator), _weight(estimator, line))


def residual_squares(estimator: Estimator, of: CellMoments) -> Floats:
    """The sum of squared residuals, from whole numbers: a perfect fit gives 0 and nothing less."""
    about = of.n * of.yy - of.y * of.y
    if isinstance(estimator, CellMean):
        return divide(about, of.n * of.y_steps**2)
    return divide(about * of.q - of.p * of.p, of.n * of.q * of.y_steps**2)


def error_sensitivity(points: GridPoints, estimator: Estimator) -> Floats:
    """The largest move of each standard error, over removals and over additions in the four corners."""
    of = moments(points)
    line, rss = fits(estimator, of), residual_squares(estimator, of)
    here = sampling_errors(estimator, of)
    free, weight = line.n - _spent(estimator), _weight(estimator, line)
    moved = np.full(points.cells, np.nan)
    for u in (-line.x, 1 - line.x):
        for y in (0, 1):
            residual, left = y - line.y - line.slope * u, 1 + line.leverage(u)
            there = _error(rss + residual**2 / left, free + 1, weight - line.lever(u) ** 2 / left)
            moved = np.fmax(moved, np.abs(there - here))
    for cells in chunks(points.starts):
        full = cells[np.diff(points.starts)[cells] > 0]
        if len(full):
            own, u, residual, owner = respondents(points, of, line, cells)
            rest = 1 - own.leverage(u)
            rest[rest < LEAST_REST] = np.nan
            fewer = np.maximum(0, rss[owner] - residual**2 / rest)
            there = _error(fewer, free[owner] - 1, weight[owner] + own.lever(u) ** 2 / rest)
            gone = np.abs(there - here[owner])
            firsts = points.starts[full] - points.starts[cells[0]]
            moved[full] = np.fmax(moved[full], np.fmax.reduceat(gone, firsts))
    return moved * UP


def _error(rss: Floats, free: Floats, weight: Floats) -> Floats:
    """sqrt(rss / free * weight), weight being the estimate's variance for errors of variance 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(free > 0, rss / free * np.maximum(0, weight), np.nan)
    return np.asarray(np.sqrt(variance))


def _spent(estimator: Estimator) -> int:
    return 1 if isinstance(estimator, CellMean) else 2


def _weight(estimator: Estimator, line: Fits) -> Floats:
    """1/n + (x0 - xbar)**2 / Sxx for a prediction, 1 / Sxx for a slope, 1/n for a mean."""
    if isinstance(estimator, Predict):
        return line.leverage(float(estimator.at) - line.x)
    return 1 / line.n if isinstance(estimator, CellMean) else line.per_spread
