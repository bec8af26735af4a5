"""A fitted model, and what every estimator has in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Literal, Protocol

from reticent.errors import PlanError
from reticent.models.design import RegressionDesign
from reticent.models.records import Records
from reticent.models.sources import ModelNoise
from reticent.models.sums import Sums
from reticent.privacy.claim import Arithmetic, Change, Claim
from reticent.sensitivity.neighbours import Neighbours

GRID = Fraction(1, 2**30)
"""Coefficients of unit columns are told in these steps."""

LARGEST = Fraction(2**10)
"""And none is larger than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A line through the noise: response = intercept + slopes x predictors, its spread, and the claim."""

    intercept: Fraction
    slopes: tuple[Fraction, ...]
    variance: Fraction
    claim: Claim

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        """The intercept, then the slopes."""
        return (self.intercept, *self.slopes)


class Estimator(Protocol):
    """Fits a line at a price. `requires` says whether sums are enough or rows must be seen."""

    @property
    def requires(self) -> Literal["sums", "rows"]: ...

    def fit(
        self,
        data: Sums | Records,
        *,
        epsilon: Fraction,
        delta: Fraction | None = None,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> Fit:
        """The fitted line; `delta` is for noise that needs one."""
        ...


def sums_of(data: Sums | Records) -> Sums:
    """The sums of products, whichever was given."""
    return data.sums() if isinstance(data, Records) else data


def check(
    design: RegressionDesign, *, epsilon: Fraction, delta: Fraction | None, neighbours: Neighbours
) -> None:
    """Refuse amounts and designs that no estimator takes; from public numbers alone."""
    if epsilon <= 0:
        raise PlanError(f"it is {epsilon}, but must be positive.", field="epsilon")
    if delta is not None and not 0 < delta < 1:
        raise PlanError(f"it is {delta}, but must lie between 0 and 1.", field="delta")
    if design.size is not None and not neighbours.replaced:
        raise PlanError(
            "it is public, but adding or removing a respondent would change it; protect replaced answers.",
            field="size",
        )


def no_delta(delta: Fraction | None) -> None:
    """Refuse a delta that the noise has no use for (B085)."""
    if delta is not None:
        raise PlanError("this estimator promises epsilon alone; leave it out.", field="delta")


def claim_of(
    page: str,
    theorem: str,
    *,
    epsilon: Fraction,
    delta: Fraction | None = None,
    neighbours: Neighbours,
    arithmetic: Arithmetic = "exact",
) -> Claim:
    """What a fit promises."""
    return Claim(
        measure="pure" if delta is None else "approximate",
        epsilon=Fraction(epsilon),
        delta=Fraction(delta or 0),
        change=Change.REPLACE if neighbours.replaced else Change.ADD_REMOVE,
        rests_on=((theorem, page),),
        arithmetic=arithmetic,
    )


def tell(
    design: RegressionDesign, theta: Sequence[float | Fraction], variance: float | Fraction, claim: Claim
) -> Fit:
    """Coefficients of unit columns, brought to the units of the codebook. Post-processing: reads no row."""
    told = [on_grid(value) for value in theta]
    first, rest = (told[0], told[1:]) if design.intercept else (Fraction(0), told)
    response = design.response
    half = response.grid * design.width(response) / 2
    slopes = tuple(
        2 * half * value / (column.grid * design.width(column))
        for value, column in zip(rest, design.predictors, strict=True)
    )
    middle = response.origin + response.grid * Fraction(design.centre(response), 2)
    centres = [c.origin + c.grid * Fraction(design.centre(c), 2) for c in design.predictors]
    shift = sum((slope * centre for slope, centre in zip(slopes, centres, strict=True)), Fraction(0))
    spread = min(max(on_grid(variance), Fraction(0)), Fraction(1))  # no law on [-1, 1] has a larger variance
    return Fit(intercept=middle + half * first - shift, slopes=slopes, variance=spread * half**2, claim=claim)


def on_grid(value: float | Fraction) -> Fraction:
    """The nearest step, within the largest coefficient; zero for what is no number."""
    if isinstance(value, float) and not isfinite(value):
        return Fraction(0)
    exact = min(max(Fraction(value), -LARGEST), LARGEST)
    return (2 * exact + GRID) // (2 * GRID) * GRID
