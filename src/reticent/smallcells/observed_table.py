"""What is asked of the observed method, and the table it publishes: label, numbers, and what nothing hides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim
from reticent.smallcells.envelope import Envelope, Whole
from reticent.smallcells.estimators import Estimator
from reticent.smallcells.moments import Wholes

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
