"""Intervals from bootstrap copies of a synthetic table, for analyses that its maker could not foresee.

The copies were simulated from the released model with the same sampling and the same noise. So the spread of an estimate over
them is its standard error, as far as the model is right, and no variance of a single table is part of it: rules for multiply
imputed or fully synthetic data do not apply.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from reticent.errors import PlanError
from reticent.refine.total import student_half_width

FEWEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedEstimate:
    """An estimate from the released table, its standard error from the copies, and the interval of both."""

    estimate: float
    low: float
    high: float
    standard_error: float
    degrees: int
    level: float
    warning: str = ""


def combine(
    released: float,
    copies: Sequence[float],
    *,
    level: float = 0.95,
    standard_errors: Sequence[float] = (),
) -> CombinedEstimate:
    """The interval of an estimate that was computed on the released table and on each of its bootstrap copies.

    It holds about 86 to 95 % of the time at 95 % for shares, cells, means and slopes of tables that the model rests on, and
    nothing is known of others: `Release.query` has intervals that need no model.

    **Parameters**

    - `released`: the estimate from the released table.
    - `copies`: the same estimate from each copy, five or more.
    - `level`: of the interval.
    - `standard_errors`: of the single tables, if at hand: only to warn where copies vary less than these say.
    """
    found = np.asarray(copies, dtype=np.float64)
    if len(found) < FEWEST:
        raise PlanError(
            f"has {len(found)} estimates, and fewer than {FEWEST} tell too little", field="copies"
        )
    if not (isfinite(released) and np.isfinite(found).all()):
        raise PlanError("holds what is no number", field="copies")
    if not 0 < level < 1:
        raise PlanError("lies between 0 and 1, such as 0.95", field="level")
    degrees, spread = len(found) - 1, float(found.std(ddof=1))
    error = spread * sqrt(1 + 1 / len(found))
    half = student_half_width(degrees, level) * error
    usual = max(standard_errors, default=0.0)
    warning = (
        f"copies vary by {spread:.3g}, less than the standard error {usual:.3g} of one table"
        if spread < usual
        else ""
    )
    return CombinedEstimate(
        estimate=float(released),
        low=float(released - half),
        high=float(released + half),
        standard_error=error,
        degrees=degrees,
        level=level,
        warning=warning,
    )
