"""Estimators for small cells: a prediction from a line, its slope, or a mean, exactly, and the fitted lines as doubles.

Each double is correctly rounded from exact whole numbers. One respondent at (x, y), u = x - xbar, moves an estimate by
lever * residual over what is left of the leverage: lever = base + tilt * u and residual = y - ybar - slope * u. The three
estimators differ in `base` and `tilt` alone; the mean has slope 0 and no spread to divide by.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.smallcells.points import CellMoments, Wholes


@dataclass(frozen=True, slots=True, kw_only=True)
class Predict:
    """The height of the least-squares line at x = `at`, both on the unit scale."""

    at: Fraction

    def __post_init__(self) -> None:
        if not 0 <= self.at <= 1:
            raise PlanError("a prediction is made within the bounds of x.", field="predict")


@dataclass(frozen=True, slots=True)
class Slope:
    """The line's height at 1 less its height at 0."""


@dataclass(frozen=True, slots=True)
class CellMean:
    """The mean of y."""


Estimator = Predict | Slope | CellMean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ratios:
    """An exact rational for each cell: top / bottom, undefined where bottom is 0. Private."""

    top: Wholes
    bottom: Wholes

    @property
    def is_defined(self) -> NDArray[np.bool_]:
        """Where there is an estimate at all."""
        return np.asarray(self.bottom != 0, dtype=np.bool_)

    def of(self, cell: int) -> Fraction | None:
        """One cell's estimate."""
        bottom = int(self.bottom[cell])
        return Fraction(int(self.top[cell]), bottom) if bottom else None

    def floats(self) -> NDArray[np.float64]:
        """The estimates, correctly rounded; not a number where undefined."""
        return divide(self.top, self.bottom)

    def steps(self, grid: Fraction, *, instead: Fraction = Fraction(0)) -> Wholes:
        """floor(estimate / grid + 1/2): the nearest step of a public grid; of `instead` where undefined."""
        is_defined = self.is_defined
        top = np.where(is_defined, self.top, instead.numerator)
        bottom = np.where(is_defined, self.bottom, instead.denominator) * (2 * grid.numerator)
        return np.asarray((2 * grid.denominator * top + bottom // 2) // bottom)


def estimates(estimator: Estimator, of: CellMoments) -> Ratios:
    """The estimate of every cell, as an exact rational on the unit scale."""
    q, p = of.q, of.p
    if isinstance(estimator, CellMean):
        return Ratios(top=of.y, bottom=of.n * of.y_steps)
    if isinstance(estimator, Slope):
        return Ratios(top=p * of.x_steps, bottom=q * of.y_steps)
    d = estimator.at.denominator
    # ybar + (p/q)(x0 - xbar), all over the common denominator d n q.
    top = d * of.y * q + p * offsets(estimator, of)
    return Ratios(top=top, bottom=d * of.n * q * of.y_steps)


def offsets(estimator: Predict, of: CellMoments) -> Wholes:
    """x0 less the mean of x, times d n x_steps with d the denominator of x0."""
    a, d = estimator.at.numerator, estimator.at.denominator
    return np.asarray(of.n * (a * of.x_steps) - d * of.x)


def divide(top: Wholes, bottom: Wholes) -> NDArray[np.float64]:
    """top / bottom of Python integers, correctly rounded; not a number where bottom is 0."""
    ratio = np.full(len(bottom), np.nan)
    is_defined = np.asarray(bottom != 0, dtype=np.bool_)
    ratio[is_defined] = (top[is_defined] / bottom[is_defined]).astype(np.float64)
    return ratio


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
