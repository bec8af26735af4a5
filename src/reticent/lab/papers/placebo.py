"""One quasi-experimental estimate, its noise scaled by placebo estimates (Chetty and Friedman 2019).

With a single cell there is no table to take a maximum over. So the same estimate is made many times where nothing
happened, at other cutoffs, in other places or years, and chi is the largest N times local sensitivity over all of them.
*Observed, not differentially private.*

Local sensitivity of any Python function, over removals and a finite set of additions. From Python only, never a plan.

The additions are the caller's: with too few of them the number is too small. *Observed, not differentially private.*
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.sensitivity.bounds import Observed
from reticent.smallcells.observed import LABEL, observed_noise

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboEstimate:
    """The noisy estimate, the variance of its noise, and what it was scaled to."""

    label: str
    estimate: Fraction
    noise_variance: float
    chi: Fraction
    placebos: int
    unprotected: tuple[str, ...] = field(repr=False)


def at_cutoffs(
    rows: Iterable[Row],
    running: Callable[[Row], Fraction | int],
    cutoffs: Sequence[Fraction],
    *,
    width: Fraction,
) -> list[list[tuple[Fraction, Row]]]:
    """One pseudo-cell for each cutoff: the rows within `width` of it, each with its distance from it."""
    held = [(Fraction(running(row)), row) for row in rows]
    return [[(at - cut, row) for at, row in held if abs(at - cut) <= width] for cut in cutoffs]


def release_placebo(
    function: Function[Row],
    real: Sequence[Row],
    placebos: Sequence[Sequence[Row]],
    additions: Sequence[Row],
    *,
    epsilon: Fraction,
    grid: Fraction,
    bits: Bits,
) -> PlaceboEstimate:
    """The real cell's estimate with Laplace noise of scale chi / (epsilon N), N the real cell's size.

    The maximum is over the placebos and the real cell: without the latter the noise could be too small for it.

    Guarantee   none: observed, not differentially private.
    Adjacency   one respondent added or removed is what the sensitivities are computed for.
    Theorem     THEORY 8.3.
    Proof       proofs/smallcells/observed.md
    Assumes     the additions hold the worst one.
    Keeps back  the estimate without noise. Not hidden: chi, and the true size through the variance of the noise.
    """
    if not placebos:
        raise PlanError(
            "at least one placebo is needed; a lone cell has no maximum but its own.", field="placebos"
        )
    if epsilon <= 0 or grid <= 0:
        raise PlanError("epsilon and the grid are positive.", field="epsilon")
    here = estimate(function, real)
    if here is None:
        raise PlanError("the function gives no estimate for the real cell.", field="estimator")
    chi = largest_chi(function, [real, *placebos], additions)
    bound = Observed(bound=chi / len(real))
    noise = observed_noise([bound], epsilon=epsilon, grid=grid, bits=bits)[0]
    return PlaceboEstimate(
        label=LABEL,
        estimate=((here / grid + Fraction(1, 2)) // 1 + noise) * grid,
        noise_variance=float(2 * (bound.bound / epsilon) ** 2),
        chi=chi,
        placebos=len(placebos),
        unprotected=(
            "The noise is scaled to the largest sensitivity seen in the rows, over the placebos and the real cell.",
            "The variance of the noise is printed from the true count, so it gives the count away.",
            "Whether there is an estimate at all is not hidden.",
        ),
    )
