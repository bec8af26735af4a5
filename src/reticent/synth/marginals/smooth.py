"""Noisy histograms of long numbers, smoothed along their order where that is estimated to help. After the noise, all of it.

Every cell is drawn towards what its neighbours make of it: a line or a parabola through those within a few cells, the cell
itself left out. How far is settled by Stein's estimate of the risk (Stein 1981), which needs the noise alone. Heaps, such as
40 hours a week, stand out from their neighbours: they are set aside, stay as they are, and take no part in what others are
drawn to. Where more than a quarter of the cells stands out, or little is to be won, nothing is done.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reticent.schema import Levels
from reticent.synth.base import Floats
from reticent.synth.domain import Axis, Domain

Flags = NDArray[np.bool_]
LONG = 16
"""Numbers with at most so many cells are left as they are."""
CURVES = ((3, 1), (5, 1), (5, 2), (8, 2))
"""How many neighbours on each side, and the degree of what goes through them."""
APART = 4.0
"""Deviations by which a heap stands out."""
MOST_HEAPS = 0.25
LEAST = 0.4
"""Less than this part of the way is not worth going."""
TURNS = 4
INFLATED = 1.3
"""The variance of a cell less its neighbours' curve, in variances of a cell, about."""


def smoothed(cells: Floats, deviation: float, axis: Axis, domain: Domain) -> Floats:
    """A column's noisy histogram with its answers smoothed; what follows the answers stays as it is.

    Parameters
    ----------
    cells : answers in order, then whatever else the column has a cell for
    deviation : of the noise of one cell
    axis : the column
    domain : whose codebook says whether it is a number
    """
    if isinstance(domain.schema.coded[axis.column], Levels) or axis.answers <= LONG:
        return cells
    return np.append(_along(cells[: axis.answers], deviation), cells[axis.answers :])


def _along(cells: Floats, deviation: float) -> Floats:
    """The histogram of least estimated risk among those by each curve, and itself."""
    least, best = 0.0, cells
    for reach, degree in CURVES:
        aims = _neighbours(len(cells), reach, degree)
        heaps, aimed = _heaps(cells, aims, deviation)
        if heaps.mean() > MOST_HEAPS:
            continue
        apart = np.where(heaps, 0.0, cells - aimed)
        squares, gain = float(np.square(apart).sum()), deviation**2 * float((~heaps).sum())
        part = min(1.0, gain / squares) if squares > 0 else 0.0
        risk = part**2 * squares - 2 * part * gain
        if part >= LEAST and risk < least:
            least, best = risk, cells - part * apart
    return best


def _heaps(cells: Floats, aims: Floats, deviation: float) -> tuple[Flags, Floats]:
    """Cells far from their neighbours' curve, heaps among these put on it; and that curve at every cell."""
    # A heap lifts the first curve for its neighbours, too. Where many look like heaps by that, nothing is smoothed: to
    # begin with their median finds heaps better, and smoothed weekly hours, to which neighbours tell little.
    plain, aimed = cells, aims @ cells
    for _ in range(TURNS):
        found = np.abs(cells - aimed) > APART * np.sqrt(INFLATED) * deviation
        plain = np.where(found, aimed, cells)
        aimed = aims @ plain
    return np.asarray(found), np.asarray(aimed)


@lru_cache(maxsize=64)
def _neighbours(cells: int, reach: int, degree: int) -> Floats:
    """For each cell the weights of its neighbours in what they make of it, by local least squares."""
    made = np.zeros((cells, cells))
    for place in range(cells):
        near = np.arange(max(0, place - reach), min(cells, place + reach + 1))
        near = near[near != place]
        weights = 1 - np.square((near - place) / (reach + 1))
        powers = np.vander((near - place) / reach, degree + 1, increasing=True)
        weighed = powers.T * weights
        made[place, near] = np.linalg.solve(weighed @ powers + 1e-9 * np.eye(degree + 1), weighed)[0]
    return made
