"""The fitted lines of all cells as doubles, each number correctly rounded from exact whole numbers.

One respondent at (x, y), u = x - xbar, moves an estimate by lever * residual over what is left of the leverage:
lever = base + tilt * u and residual = y - ybar - slope * u. The three estimators differ in `base` and `tilt` alone; the
mean has slope 0 and no spread to divide by.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.smallcells.estimators import CellMean, Estimator, Slope, divide, offsets
from reticent.smallcells.moments import CellMoments, Wholes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Fits:
    """What updates need to know of each cell; not a number where there is no estimate. Private."""

    n: Floats
    x: Floats
    y: Floats
    slope: Floats
    per_spread: Floats
    base: Floats
    tilt: Floats

    def take(self, cells: NDArray[np.int64] | slice) -> "Fits":
        """The fits of some cells."""
        return Fits(
            n=self.n[cells],
            x=self.x[cells],
            y=self.y[cells],
            slope=self.slope[cells],
            per_spread=self.per_spread[cells],
            base=self.base[cells],
            tilt=self.tilt[cells],
        )

    def leverage(self, u: Floats) -> Floats:
        """1/n + u**2 / Sxx, of a point u from the mean."""
        return np.asarray(1 / self.n + u * u * self.per_spread)

    def lever(self, u: Floats) -> Floats:
        """How far the estimate moves for each unit of the residual of a point at u."""
        return np.asarray(self.base + self.tilt * u)


def fits(estimator: Estimator, of: CellMoments) -> Fits:
    """Means, slopes, spreads and levers of all cells."""
    q, one = of.q, np.ones(len(of.n), dtype=object)
    # Without a line, a mean: it needs one point, and neither slope nor spread plays a part.
    is_mean = isinstance(estimator, CellMean)
    there = of.n if is_mean else q
    zero = np.where(np.asarray(there != 0, dtype=np.bool_), 0.0, np.nan)
    per_spread = zero if is_mean else divide(of.n * of.x_steps**2, q)
    return Fits(
        n=of.n.astype(np.float64) + zero,
        x=divide(of.x, of.n * of.x_steps) + zero,
        y=divide(of.y, of.n * of.y_steps) + zero,
        slope=zero if is_mean else divide(of.p * of.x_steps, q * of.y_steps),
        per_spread=per_spread,
        base=zero if isinstance(estimator, Slope) else divide(one, of.n) + zero,
        tilt=_tilt(estimator, of, q, per_spread),
    )


def _tilt(estimator: Estimator, of: CellMoments, q: Wholes, per_spread: Floats) -> Floats:
    """(x0 - xbar) / Sxx for a prediction, 1 / Sxx for a slope, 0 for a mean."""
    if isinstance(estimator, CellMean | Slope):
        return per_spread
    return divide(offsets(estimator, of) * of.x_steps, estimator.at.denominator * q)
