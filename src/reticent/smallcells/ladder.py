"""Smooth bounds for the estimate of every cell: how far one respondent can move it, here and k steps away.

The tightest n - j points of a cell bound what any neighbour's line can do (THEORY 8.4). All of it is read off the
rows and never shown.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.smallcells import kernel
from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.kernel import Cell, Scale
from reticent.smallcells.points import GridPoints
from reticent.smallcells.table import Estimand

SLACK = Fraction(1, 2**34)
MARGIN = 1.0 + 2.0**-36
LEAST_BETA = Fraction(1, 2**20)
_BLOCK = 1024
_ROOM = 1 << 62

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def smooth_bounds(points: GridPoints, aim: Estimand, *, beta: Fraction) -> Floats:
    """For each cell a beta-smooth bound, in steps of the aim, on how far one respondent moves its estimate.

    Guarantee   the bound of a cell covers the local sensitivity of its rounded estimate and drifts by at most e^beta
                between neighbours; the bounds of all other cells stay as they are.
    Adjacency   one point added to or removed from one cell.
    Theorem     THEORY 8.4 and 1.1, with the rational scale of 2.6.
    Proof       proofs/smallcells/ladder.md
    Assumes     beta and the aim are public; `steps_of` gives the estimates.
    Keeps back  the bounds, every rung, and the rung they were found on.
    """
    scale = _scale(points, aim, beta=beta, pooled=False)
    return _climbed(points, aim, scale, np.zeros(points.cells, np.bool_))


def pooled_bound(points: GridPoints, aim: Estimand, *, beta: Fraction, is_left_out: Flags) -> float:
    """A beta-smooth bound on (n + 1) LS, in steps, over the cells that are not left out; at least 1.

    Guarantee   at least (n + 1) times the local sensitivity of every cell that counts; drifts by at most e^beta.
    Adjacency   one point added to or removed from one cell.
    Theorem     THEORY 8.5 and 1.1, with the rational scale of 2.6.
    Proof       proofs/smallcells/ladder.md
    Assumes     beta, the aim and the choice of cells are public; `steps_of` gives the estimates.
    Keeps back  the bound.
    """
    each = _climbed(points, aim, _scale(points, aim, beta=beta, pooled=True), is_left_out)
    return float(max(1.0, each.max(initial=0.0)))


def rungs(points: GridPoints, aim: Estimand, *, cell: int, count: int) -> list[float]:
    """U_0, U_1, ... of one cell in steps, each rounding and the extra step included. Private."""
    scale = _scale(points, aim, beta=Fraction(1), pooled=False)
    values = _read(points, aim.estimator)[points.starts[cell] : points.starts[cell + 1]]
    seen = _Seen(scale, values)
    return [seen.rung(k) for k in range(count)]


def _scale(points: GridPoints, aim: Estimand, *, beta: Fraction, pooled: bool) -> Scale:
    if beta < LEAST_BETA:
        raise PlanError(f"it is {beta}, but must be at least 2^-20; use a larger epsilon.", field="beta")
    kind, steps = _kind(aim.estimator), _steps(points, aim.estimator)
    at = aim.estimator.at * steps if isinstance(aim.estimator, Predict) else Fraction(0)
    fine, coarse = _decay(beta - SLACK, aim.steps)
    unit, top = float(1 / aim.step), float(aim.steps)
    return Scale(kind, steps, at.numerator, at.denominator, unit, top, fine, coarse, pooled)


@lru_cache(maxsize=16)
def _decay(rate: Fraction, top: int) -> tuple[Floats, Floats]:
    """Doubles just above e^(-rate k), in blocks, for all k that a search can come to: (1 + k) e^(-rate k) top > 1/2."""
    last = _BLOCK
    with ctx.workprec(96):
        while last * rate < 1 or not (1 + last) * ball(-rate * last).exp() * top < ball(Fraction(1, 2)):
            last *= 2
        fine = [_above(ball(-rate * k).exp()) for k in range(_BLOCK)]
        coarse = [_above(ball(-rate * k * _BLOCK).exp()) for k in range(last // _BLOCK + 1)]
    return np.array(fine), np.array(coarse)


def _above(value: arb) -> float:
    """A double at most 2^-52 of itself above the ball."""
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    return float(np.nextafter(float(Fraction(mantissa) * Fraction(2) ** exponent), np.inf))


def _kind(estimator: Estimator) -> int:
    match estimator:
        case Predict():
            return kernel.PREDICT
        case Slope():
            return kernel.SLOPE
        case CellMean():
            return kernel.MEAN


def _steps(points: GridPoints, estimator: Estimator) -> int:
    """The grid of the coordinate that the ladder reads."""
    steps = points.y_steps if isinstance(estimator, CellMean) else points.x_steps
    if steps >= 1 << 31:
        raise PlanError("the grid has 2^31 steps or more; declare coarser steps.", field="step")
    return steps


def _read(points: GridPoints, estimator: Estimator) -> NDArray[np.int64]:
    """The coordinate that the ladder reads: x, sorted in each cell, or y for a mean."""
    if isinstance(estimator, CellMean):
        return points.y
    falls = np.flatnonzero(np.diff(points.x) < 0) + 1
    if not np.isin(falls, points.starts).all():
        raise ValueError("the points of a cell are sorted by x")
    return points.x


def _climbed(points: GridPoints, aim: Estimand, scale: Scale, is_left_out: Flags) -> Floats:
    """The largest weighted rung of every cell, rounded up; cells too large for a word go by Python's integers."""
    x = _read(points, aim.estimator)
    sizes = np.diff(points.starts)
    limit = _ROOM // (scale.steps * max(scale.steps, scale.at_bottom))
    is_large = sizes > limit
    out = np.zeros(points.cells)
    kernel.climb(scale, points.starts, x, is_left_out | is_large, out)
    for g in np.flatnonzero(is_large & ~is_left_out):
        out[g] = _Seen(scale, x[points.starts[g] : points.starts[g + 1]]).highest()
    return np.asarray(out * MARGIN)


class _Seen:
    """One cell by Python's integers, whatever its size: the twin of the compiled loop."""

    __slots__ = ("_cell", "_p", "_q", "_scale")

    def __init__(self, scale: Scale, values: NDArray[np.int64]) -> None:
        n, wide = len(values), values.astype(object)
        zero = np.zeros(1, object)
        self._scale = scale
        self._p, self._q = (np.concatenate([zero, np.cumsum(each)]) for each in (wide, wide * wide))
        total, full = int(self._p[-1]), n * scale.steps
        lean = Fraction(abs(n * scale.at_top - scale.at_bottom * total), max(1, full * scale.at_bottom))
        side = Fraction(max(total, full - total), full) if n else Fraction(1)
        self._cell = Cell(n, float(lean), float(side))

    def rung(self, k: int) -> float:
        return float(kernel.rung(self._scale, self._cell, k + 1, float(self._spread(k + 1))))

    def highest(self) -> float:
        best, k, n = 0.0, 0, self._cell.n
        while not kernel.is_over(self._scale, n, k, best):
            best = max(best, kernel.weight(self._scale, n, k) * self.rung(k))
            k += 1
        return best

    def _spread(self, j: int) -> int:
        """w Q - P^2 of the tightest w = n - j points, exactly; 0 where there is no line."""
        w = self._cell.n - j
        if self._scale.kind == kernel.MEAN or w < 2:
            return 0
        totals, squares = (each[w:] - each[: j + 1] for each in (self._p, self._q))
        return int((w * squares - totals * totals).min())
