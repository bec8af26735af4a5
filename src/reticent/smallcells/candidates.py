"""Local sensitivity of any Python function, over removals and a finite set of additions. From Python only, never a plan.

The additions are the caller's: with too few of them the number is too small. *Observed, not differentially private.*
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from reticent.errors import PlanError

Row = TypeVar("Row")
Function = Callable[[Sequence[Row]], float | Fraction | None]


def estimate(function: Function[Row], rows: Sequence[Row]) -> Fraction | None:
    """The function's value, exactly as the number it gave; None where it gives none, raises, or is not finite."""
    try:
        value = function(rows)
    except Exception:  # noqa: BLE001 - whatever it was, its text may hold something read from a row
        return None
    if value is None or isinstance(value, int | Fraction):
        return None if value is None else Fraction(value)
    return Fraction(float(value)) if math.isfinite(value) else None


def largest_move(
    function: Function[Row], rows: Sequence[Row], additions: Sequence[Row], *, removals: bool = True
) -> Fraction | None:
    """The largest |change| over all removals and the given additions; None where there is nothing to change.

    Neighbours without an estimate are passed over, as in the published method.
    """
    here = estimate(function, rows)
    if here is None:
        return None
    neighbours = [[*rows, new] for new in additions]
    if removals:
        neighbours += [[*rows[:i], *rows[i + 1 :]] for i in range(len(rows))]
    found = [estimate(function, each) for each in neighbours]
    return max((abs(there - here) for there in found if there is not None), default=Fraction(0))


def largest_chi(
    function: Function[Row],
    cells: Sequence[Sequence[Row]],
    additions: Sequence[Row],
    *,
    removals: bool = True,
) -> Fraction:
    """chi: the largest N times local sensitivity over these cells."""
    moves = [(len(rows), largest_move(function, rows, additions, removals=removals)) for rows in cells]
    chi = max((n * move for n, move in moves if move is not None), default=Fraction(0))
    if chi <= 0:
        raise PlanError("the function gave no cell an estimate that can move.", field="estimator")
    return chi
