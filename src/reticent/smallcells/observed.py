"""Estimates for small cells with noise scaled to the maximum observed sensitivity (Chetty and Friedman 2019).

*Observed, not differentially private.* The method is offered because it is in use and readers ask for it. The label
goes with every table made here, and `unprotected` says what nothing hides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.noise.each import draw_laplace_each, round_up
from reticent.noise.many import draw_laplace
from reticent.sensitivity.bounds import Observed
from reticent.smallcells.envelope import Envelope, Whole, envelope
from reticent.smallcells.estimators import estimates
from reticent.smallcells.fits import Floats
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.moments import CellMoments, Wholes, moments
from reticent.smallcells.observed_table import Noises, ObservedCells, ObservedTable, publish
from reticent.smallcells.points import GridPoints
from reticent.smallcells.standard import error_sensitivity, sampling_errors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ScaledEstimates:
    """What the noise is added to, in whole steps of the grid, and what it is scaled to. Private."""

    steps: Wholes
    sizes: Whole
    of_estimates: Envelope
    errors: Wholes
    of_errors: Envelope | None


def release_observed(points: GridPoints, ask: ObservedCells, *, bits: Bits) -> ObservedTable:
    """Noisy estimates, counts and standard errors for every declared cell.

    Guarantee   none: observed, not differentially private.
    Adjacency   one respondent added or removed is what the sensitivities are computed for.
    Theorem     THEORY 8.3: why there is none.
    Proof       proofs/smallcells/observed.md
    Assumes     points on the declared grid; each respondent is one point of one cell; groups are public.
    Keeps back  estimates, counts and standard errors without noise. Not hidden: what `unprotected` lists.
    """
    found = measure(points, ask)
    noises = Noises(
        estimates=observed_noise(found.of_estimates.bounds, epsilon=ask.epsilon, grid=ask.grid, bits=bits),
        # A draw of its own: noise shared with the estimate would give the estimate away.
        counts=draw_laplace(points.cells, scale=1 / ask.count_epsilon, bits=bits),
        errors=_error_noise(found.of_errors, ask, bits),
    )
    return publish(
        ask,
        steps=found.steps,
        sizes=found.sizes,
        errors=found.errors,
        scaled_to=found.of_estimates,
        errors_scaled_to=found.of_errors,
        noises=noises,
        is_real=bits.is_private,
    )


def measure(points: GridPoints, ask: ObservedCells) -> ScaledEstimates:
    """Everything that is read off the rows."""
    if ask.groups is not None and len(ask.groups) != points.cells:
        raise PlanError("every cell has one group.", field="groups")
    of = moments(points)
    sizes = of.n.astype(np.int64)
    local = local_sensitivity(
        points, ask.estimator, corners_only=ask.corners_only, removals=ask.removals, span=ask.span
    )
    errors, around = _errors(points, ask, of, sizes)
    return ScaledEstimates(
        steps=estimates(ask.estimator, of).steps(ask.grid, instead=ask.instead),
        sizes=sizes,
        of_estimates=_envelope(ask, local, sizes),
        errors=errors,
        of_errors=around,
    )


def observed_noise(
    bounds: Sequence[Observed | None], *, epsilon: Fraction, grid: Fraction, bits: Bits
) -> list[int]:
    """Laplace noise for each cell in whole steps of `grid`, of scale bound / epsilon rounded up; 0 without a bound.

    Guarantee   none: observed, not differentially private. The draws have exactly the stated law.
    Adjacency   does not apply: the scales differ between neighbours.
    Theorem     THEORY 8.3.
    Proof       proofs/smallcells/observed.md
    Assumes     positive bounds; answers rounded to the grid.
    Keeps back  nothing: the scales can be told from what is published.
    """
    at = [place for place, bound in enumerate(bounds) if bound is not None]
    scales = [round_up(bound.bound / (epsilon * grid)) for bound in bounds if bound is not None]
    noise = [0] * len(bounds)
    for place, drawn in zip(at, draw_laplace_each(scales, bits=bits), strict=True):
        noise[place] = drawn
    return noise


def _envelope(ask: ObservedCells, local: Floats, sizes: Whole) -> Envelope:
    groups = None if ask.groups is None else np.array(ask.groups, dtype=np.int64)
    return envelope(local, sizes, groups=groups, least=ask.least, equal_sizes=ask.equal_sizes)


def _errors(
    points: GridPoints, ask: ObservedCells, of: CellMoments, sizes: Whole
) -> tuple[Wholes, Envelope | None]:
    """Standard errors in steps of the grid, and their own envelope, where they are asked for."""
    if ask.error_epsilon is None:
        return np.zeros(points.cells, dtype=object), None
    found = sampling_errors(ask.estimator, of)
    local = np.where(np.isnan(found), np.nan, error_sensitivity(points, ask.estimator))
    steps = np.rint(np.nan_to_num(found) / float(ask.grid)).astype(np.int64).astype(object)
    return steps, _envelope(ask, local, sizes)


def _error_noise(around: Envelope | None, ask: ObservedCells, bits: Bits) -> list[int]:
    if around is None or ask.error_epsilon is None:
        return []
    return observed_noise(around.bounds, epsilon=ask.error_epsilon, grid=ask.grid, bits=bits)
