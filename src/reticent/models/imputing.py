"""Filling gaps from a private line: each row from its own answers, the released line, and chance of its own.

Given the line, neighbours stay neighbours (THEORY 7.1), so what is asked of the filled rows needs noise for one row.
"""

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.models.design import Bounded, RegressionDesign, Whole, codes
from reticent.models.fit import Fit
from reticent.noise.bits import Bits, words

Floats = NDArray[np.float64]

FINE = 1 << 20


def predictions(fit: Fit, design: RegressionDesign, x: NDArray[Any]) -> Whole:
    """What the line says for each row, as a code of the response, clamped to its bounds; a gap counts as the middle."""
    return _clamped(means(fit, design, x), design.response)


def draws(fit: Fit, design: RegressionDesign, x: NDArray[Any], *, bits: Bits) -> Whole:
    """The line plus a normal number of the released spread for each row, as codes of the response.

    The draws are part of the model, not of the promise, so doubles will do.
    """
    mean = means(fit, design, x)
    spread = isqrt(int(fit.variance / design.response.grid**2 * FINE**2)) / FINE
    return _clamped(mean + spread * normal(len(mean), bits), design.response)


def normal(n: int, bits: Bits) -> Floats:
    """`n` standard normal numbers, by Box and Muller."""
    if n == 0:
        return np.zeros(0)
    u = (words(2 * n, bits).reshape(2, n) >> np.uint64(11)).astype(np.float64)
    return np.asarray(np.sqrt(-2 * np.log((u[0] + 1) * 2.0**-53)) * np.cos(2 * np.pi * u[1] * 2.0**-53))


def means(fit: Fit, design: RegressionDesign, x: NDArray[Any]) -> Floats:
    """In steps of the response. Added column by column, so a row's mean is a function of that row."""
    response = design.response
    mean = np.full(len(x), float((fit.intercept - response.origin) / response.grid))
    for slope, column, values in zip(fit.slopes, design.predictors, np.asarray(x).T, strict=True):
        code, answered = codes(values, column)
        told = np.where(answered, code, (column.low + column.high) // 2)
        mean = mean + float(slope * column.grid / response.grid) * told
        mean = mean + float(slope * column.origin / response.grid)
    return mean


def _clamped(steps: Floats, column: Bounded) -> Whole:
    return np.clip(np.floor(steps + 0.5), column.low, column.high).astype(np.int64)


def mean_of(total: int | Fraction, count: int | Fraction, column: Bounded) -> Fraction:
    """A mean in the units of the column, from a sum of codes; the middle where nobody counts."""
    if count <= 0:
        return column.origin + column.grid * Fraction(column.low + column.high, 2)
    steps = min(max(Fraction(total) / count, Fraction(column.low)), Fraction(column.high))
    return column.origin + column.grid * steps
