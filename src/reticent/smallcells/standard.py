"""Sampling standard errors of the estimates, and how far one respondent moves them.

Read off the rows. The published method gives standard errors noise of their own in the same way as estimates, with
additions in the corners of the square; so do we, with removals beside them.
"""

import numpy as np

from reticent.smallcells.estimators import CellMean, Estimator, Predict, divide
from reticent.smallcells.fits import Fits, Floats, fits
from reticent.smallcells.local import UP, chunks, respondents
from reticent.smallcells.moments import CellMoments, moments
from reticent.smallcells.points import GridPoints

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
