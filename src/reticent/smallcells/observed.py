"""The maximum observed sensitivity of Chetty and Friedman (2019): the envelope, the noise, and the table with its label.

The envelope chi / N, with chi the largest N times local sensitivity over all cells or within declared groups, lies on or
above every cell's own local sensitivity. It is read off the rows, so noise scaled to it is *observed, not differentially
private*. The method is offered because it is in use and readers ask for it. The label goes with every table made here, and
`unprotected` says what nothing hides.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.noise.vector import draw_laplace, draw_laplace_each, round_up
from reticent.privacy.claim import Change, Claim
from reticent.sensitivity.bounds import Observed
from reticent.smallcells.estimators import Estimator, Floats, estimates
from reticent.smallcells.local import error_sensitivity, local_sensitivity, sampling_errors
from reticent.smallcells.points import CellMoments, GridPoints, Wholes, moments
from reticent.smallcells.readings import CellReadings

Whole = NDArray[np.int64]
DECIMALS = 10**9
"""chi is rounded up to nine decimals, so that what is printed is what was used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Envelope:
    """chi of every group, and for each cell the sensitivity its noise is scaled to; None for cells left out.

    `chi` is 0 for a group without a cell in use. With `equal_sizes` the cells of one size take the largest local
    sensitivity among themselves, and chi / N is only above it.
    """

    chi: tuple[Fraction, ...]
    bounds: tuple[Observed | None, ...]


def envelope(
    local: Floats,
    sizes: Whole,
    *,
    groups: Whole | None = None,
    least: int = 1,
    equal_sizes: bool = False,
) -> Envelope:
    """The envelope over cells with a local sensitivity and at least `least` respondents.

    `groups[g]` numbers the declared group of cell g from 0. All three arrays have one entry for each declared cell.
    """
    if least < 1:
        raise PlanError("an estimate needs at least one respondent.", field="least")
    of = np.zeros(len(sizes), dtype=np.int64) if groups is None else groups
    if len(of) != len(sizes) or (len(of) and of.min() < 0):
        raise PlanError("every cell has one group.", field="groups")
    used = np.flatnonzero((sizes >= least) & ~np.isnan(local))
    chi = _largest(of[used], _up(local[used] * sizes[used]), int(of.max(initial=0)) + 1)
    bounds: list[Observed | None] = [None] * len(sizes)
    own = _among_equals(local[used], sizes[used], of[used]) if equal_sizes else None
    for place, g in enumerate(used.tolist()):
        bound = chi[of[g]] / int(sizes[g]) if own is None else Fraction(own[place])
        bounds[g] = Observed(bound=bound)
    return Envelope(chi=chi, bounds=tuple(bounds))


def _largest(groups: Whole, values: Floats, count: int) -> tuple[Fraction, ...]:
    """The largest value of each group, rounded up to a decimal."""
    largest = np.zeros(count)
    np.maximum.at(largest, groups, values)
    return tuple(Fraction(-(-Fraction(x) * DECIMALS // 1), DECIMALS) for x in largest.tolist())


def _up(values: Floats) -> Floats:
    """The next double: at least the exact product that was rounded."""
    return np.nextafter(values, np.inf)


def _among_equals(local: Floats, sizes: Whole, groups: Whole) -> list[float]:
    """The largest local sensitivity among cells of the same group and size."""
    order = np.lexsort((sizes, groups))
    keys = np.stack([groups[order], sizes[order]])
    is_first = np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)][: len(order)]
    largest = np.full(int(is_first.sum()), -np.inf)
    run = np.cumsum(is_first) - 1
    np.maximum.at(largest, run, local[order])
    own = np.empty(len(local))
    own[order] = largest[run]
    return [float(x) for x in own]


LABEL = "observed, not differentially private"
RESTS_ON = (("maximum observed sensitivity", "proofs/smallcells/observed.md"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCells:
    """One estimate for each cell by the observed method. All of it is public.

    `groups` pools chi within declared groups. `least` leaves cells with fewer respondents out, `span` is the declared
    length of the range of estimates (see `local_sensitivity`), `instead` the estimate of a cell without a line, used
    with `span` only. `true_sizes` prints the noise's variance from true counts, as published; left off, from noisy
    ones. Without `error_epsilon` no sampling error is printed.
    """

    estimator: Estimator
    epsilon: Fraction
    count_epsilon: Fraction
    error_epsilon: Fraction | None = None
    groups: tuple[int, ...] | None = field(default=None, repr=False)
    least: int = 1
    span: Fraction | None = None
    instead: Fraction = Fraction(1, 2)
    corners_only: bool = False
    removals: bool = True
    equal_sizes: bool = False
    true_sizes: bool = False
    grid: Fraction = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        if self.grid <= 0:
            raise PlanError("it must be positive.", field="grid")
        for name in ("epsilon", "count_epsilon", "error_epsilon"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise PlanError("it must be positive.", field=name)
        if self.least < 1:
            raise PlanError("an estimate needs at least one respondent.", field="least")

    @property
    def cost(self) -> Fraction:
        """What the method's own accounting adds up: estimates, counts, and standard errors where asked for."""
        return self.epsilon + self.count_epsilon + (self.error_epsilon or 0)

    def claim(self, change: Change = Change.ADD_REMOVE) -> Claim:
        """No promise, and it says so."""
        return Claim(measure="observed", change=change, rests_on=RESTS_ON)


def unprotected(ask: ObservedCells) -> tuple[str, ...]:
    """What nothing hides, in sentences for a preview, a release and a report."""
    few = f"Cells with fewer than {ask.least} respondents" if ask.least > 1 else "Empty cells"
    said = [
        "The noise is scaled to the largest sensitivity seen in the rows, so one respondent can change it everywhere.",
        "The noise of a cell is scaled to its true count, so the spread of the noise speaks of the count.",
        "No number bounds what a reader learns about one respondent from either scale.",
        "The largest sensitivity (chi) is printed without noise.",
        f"{few} are left out by their true count.",
    ]
    if ask.span is None:
        said.append("Cells without an estimate are left out, which tells that they have none.")
    if ask.true_sizes or ask.equal_sizes:
        said.append("The variance of the noise is printed from true counts, so it gives the counts away.")
    return tuple(said)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Noises:
    """The noise of each cell, in whole steps of the grid; of counts, in respondents."""

    estimates: Sequence[int]
    counts: Sequence[int]
    errors: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedTable:
    """One line for each declared cell, None where a number is left out.

    `noise_variance` is the variance of the noise alone; `standard_errors` joins it with the noisy sampling error.
    `chi` has one number for each group. `is_real` is false for noise that can be replayed.
    """

    label: str
    unprotected: tuple[str, ...]
    chi: tuple[Fraction, ...]
    estimates: tuple[Fraction | None, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    noise_variance: tuple[float | None, ...] = field(repr=False)
    standard_errors: tuple[float | None, ...] = field(repr=False)
    is_real: bool


def publish(
    ask: ObservedCells,
    *,
    steps: Wholes,
    sizes: Whole,
    errors: Wholes,
    scaled_to: Envelope,
    errors_scaled_to: Envelope | None,
    noises: Noises,
    is_real: bool,
) -> ObservedTable:
    """Numbers and noise together; past this line nothing without noise is left but what `unprotected` lists."""
    cells = range(len(sizes))
    counts = tuple(int(sizes[g]) + noises.counts[g] for g in cells)
    variance = tuple(_variance(ask, scaled_to, g, counts[g]) for g in cells)
    found: list[float | None] = [None] * len(sizes)
    if errors_scaled_to is not None:
        for g, bound in enumerate(errors_scaled_to.bounds):
            spread = variance[g]
            if bound is not None and spread is not None:
                found[g] = math.hypot(
                    float(max(0, int(errors[g]) + noises.errors[g]) * ask.grid), math.sqrt(spread)
                )
    return ObservedTable(
        label=LABEL,
        unprotected=unprotected(ask),
        chi=scaled_to.chi,
        estimates=tuple(
            None if scaled_to.bounds[g] is None else (int(steps[g]) + noises.estimates[g]) * ask.grid
            for g in cells
        ),
        counts=counts,
        noise_variance=variance,
        standard_errors=tuple(found),
        is_real=is_real,
    )


def _variance(ask: ObservedCells, scaled_to: Envelope, g: int, count: int) -> float | None:
    """2 (chi / (epsilon N))**2, with the noisy count for N unless true sizes are printed."""
    bound = scaled_to.bounds[g]
    if bound is None:
        return None
    if ask.true_sizes or ask.equal_sizes:
        scale = bound.bound / ask.epsilon
    else:
        chi = scaled_to.chi[ask.groups[g] if ask.groups is not None else 0]
        scale = chi / (ask.epsilon * max(ask.least, count))
    return float(2 * scale * scale)


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
    return noised(read(points, ask), ask, bits=bits)


def noised(read: CellReadings, ask: ObservedCells, *, bits: Bits) -> ObservedTable:
    """What `release_observed` gives, from what was read off the points of all cells."""
    found = scaled(read, ask)
    noises = Noises(
        estimates=observed_noise(found.of_estimates.bounds, epsilon=ask.epsilon, grid=ask.grid, bits=bits),
        # A draw of its own: noise shared with the estimate would give the estimate away.
        counts=draw_laplace(read.cells, scale=1 / ask.count_epsilon, bits=bits),
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
    """Everything that is read off the rows, and what the noise is scaled to."""
    return scaled(read(points, ask), ask)


def read(points: GridPoints, ask: ObservedCells) -> CellReadings:
    """The estimate of every cell in whole steps and its local sensitivity; the same of standard errors. Private."""
    of = moments(points)
    local = local_sensitivity(
        points, ask.estimator, corners_only=ask.corners_only, removals=ask.removals, span=ask.span
    )
    errors, error_bounds = _errors(points, ask, of)
    return CellReadings(
        sizes=of.n.astype(np.int64),
        steps=estimates(ask.estimator, of).steps(ask.grid, instead=ask.instead),
        bounds=local,
        errors=errors,
        error_bounds=error_bounds,
    )


def scaled(read: CellReadings, ask: ObservedCells) -> ScaledEstimates:
    """The envelope over the readings of all cells, and that of standard errors where they are asked for."""
    if ask.groups is not None and len(ask.groups) != read.cells:
        raise PlanError("every cell has one group.", field="groups")
    around = None if ask.error_epsilon is None else _envelope(ask, read.error_bounds, read.sizes)
    return ScaledEstimates(
        steps=read.steps,
        sizes=read.sizes,
        of_estimates=_envelope(ask, read.bounds, read.sizes),
        errors=read.errors,
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


def _errors(points: GridPoints, ask: ObservedCells, of: CellMoments) -> tuple[Wholes, Floats]:
    """Standard errors in steps of the grid, and how far one respondent moves each, where they are asked for."""
    if ask.error_epsilon is None:
        return np.zeros(points.cells, dtype=object), np.zeros(points.cells)
    found = sampling_errors(ask.estimator, of)
    local = np.where(np.isnan(found), np.nan, error_sensitivity(points, ask.estimator))
    return np.rint(np.nan_to_num(found) / float(ask.grid)).astype(np.int64).astype(object), local


def _error_noise(around: Envelope | None, ask: ObservedCells, bits: Bits) -> list[int]:
    if around is None or ask.error_epsilon is None:
        return []
    return observed_noise(around.bounds, epsilon=ask.error_epsilon, grid=ask.grid, bits=bits)
