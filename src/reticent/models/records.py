"""Complete rows as whole numbers, for models that must look at rows. Confidential: nothing here is printed."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models.design import Bounded, RegressionDesign
from reticent.models.sums import Sums

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

EXACT = 1 << 53
"""Whole numbers up to here are exact in a double, and so are their sums in any order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """One line for each row that has all its answers: z of every predictor, then of the response."""

    design: RegressionDesign
    z: Whole = field(repr=False)

    def sums(self) -> Sums:
        """All sums of products, exactly."""
        counted = np.column_stack([np.ones(len(self.z), dtype=np.int64), self.z])
        return Sums(design=self.design, products=_products(counted, max(self.design.widths)))

    def scaled(self, steps: int) -> Whole:
        """Every row with its count first, each entry in steps of 1/`steps`: integers in [-steps, steps]."""
        # Beyond 2^40 the last digits of z go first, so that the product fits.
        spare = [max(0, width.bit_length() - 40) for width in self.design.widths[1:]]
        z = self.z >> np.array(spare, dtype=np.int64)
        widths = np.array(self.design.widths[1:], dtype=np.int64) >> np.array(spare, dtype=np.int64)
        rounded = np.clip((2 * z * steps + widths) // (2 * widths), -steps, steps)
        return np.column_stack([np.full(len(self.z), steps, dtype=np.int64), rounded])


def _products(z: Whole, widest: int) -> tuple[tuple[int, ...], ...]:
    if len(z) * widest * widest < EXACT:
        floats = z.astype(np.float64)
        found: NDArray[Any] = (floats.T @ floats).astype(np.int64)
    elif len(z) * widest * widest < 1 << 62:
        found = z.T @ z
    else:
        found = z.astype(object).T @ z.astype(object)
    return tuple(tuple(int(entry) for entry in row) for row in found)


def codes(values: NDArray[Any], column: Bounded) -> tuple[Whole, Flags]:
    """Codes of an array of numbers, and which are answers. Outside the bounds is clamped; NaN is no answer."""
    raw = floats(values)
    is_answer = ~np.isnan(raw)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.floor((raw - float(column.origin)) / float(column.grid) + 0.5)
    kept = np.clip(np.where(is_answer, steps, column.low), column.low, column.high)
    return kept.astype(np.int64), np.asarray(is_answer)


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """An array of doubles; what is no number becomes NaN, and is not quoted."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return np.array([_float(value) for value in array.ravel()], dtype=np.float64).reshape(array.shape)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def records(design: RegressionDesign, x: NDArray[Any], y: NDArray[Any]) -> Records:
    """Rows from arrays: `x` with a column for each predictor, `y` the response; incomplete rows do not count."""
    if np.ndim(x) != 2 or np.shape(x)[1] != len(design.predictors) or np.shape(y) != np.shape(x)[:1]:
        raise PlanError("x needs a column for each predictor, and y a value for each row.", field="x")
    found = [codes(each, c) for each, c in zip((*np.asarray(x).T, y), design.columns, strict=True)]
    z = np.column_stack(
        [2 * code - design.centre(column) for (code, _), column in zip(found, design.columns, strict=True)]
    )
    is_complete = np.logical_and.reduce([answered for _, answered in found])
    return Records(design=design, z=z[is_complete])
