"""Intervals for the privacy noise of regression coefficients: from noisy sums that were released, so they cost nothing.

The exact line b solves G b = c. Noise dG and dc moves it by G^-1 (dc - dG b), to first order, and the law of dG and dc is
public. Where the noise is as large as what the predictors vary, first order says nothing, and there is no interval.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist

import numpy as np

from reticent.models.design import RegressionDesign, Sums
from reticent.models.fit import Estimator, Fit, ModelNoise
from reticent.models.moments import Floats, NoisyMoments, uncertain
from reticent.models.sums import Centred
from reticent.sensitivity.bounds import Neighbours

CLEAR = 3.0
"""How far the noisy sums of products must stand out of their noise in every direction."""
MEANING = (
    "covers the least-squares coefficient of the same respondents without privacy noise, with about the stated "
    "probability; computed to first order from the public law of the noise, for each coefficient by itself"
)
DROWNED = (
    "the noise is nearly as large as what the predictors vary, so no interval can be told; give it more epsilon, or "
    "fewer predictors"
)
ONLY_CENTRED = "only the estimator 'centred' releases the noisy sums that say how far the noise may reach"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedLine:
    """A fitted line, and the noisy sums it was made of where the estimator releases them."""

    fit: Fit
    moments: NoisyMoments | None = None

    @property
    def why_none(self) -> str:
        """Why there are no intervals; empty where there are."""
        if self.moments is None:
            return ONLY_CENTRED
        return "" if is_clear(self.moments) else DROWNED

    @property
    def noise_sds(self) -> tuple[float, ...] | None:
        """The standard deviation of the noise of the intercept, then of every slope; None where it cannot be told."""
        if self.moments is None or not is_clear(self.moments):
            return None
        return self._told(self.moments, uncertain(self.moments).noise)

    @property
    def sampling_sds(self) -> tuple[float, ...] | None:
        """The standard errors of the same that a simple random sample would give; None where noise hides them."""
        if self.moments is None or not is_clear(self.moments):
            return None
        return self._told(self.moments, uncertain(self.moments).sampling)

    def _told(self, moments: NoisyMoments, spread: Floats) -> tuple[float, ...]:
        """Roots of the variances in units of the codebook, 0 for an intercept that is not there."""
        by = in_units(moments.design)
        found = np.sqrt(np.maximum(np.diagonal(by @ spread @ by.T), 0.0))
        constant = () if moments.design.intercept else (0.0,)
        return (*constant, *map(float, found))


def fit_line(
    estimator: Estimator,
    sums: Sums,
    *,
    epsilon: Fraction,
    delta: Fraction | None = None,
    neighbours: Neighbours,
    noise: ModelNoise,
) -> ReleasedLine:
    """The line of an estimator that sums are enough for; of `Centred` with the noisy sums that it is made of.

    Guarantee   that of `estimator.fit`, for one call.
    Adjacency   `neighbours`.
    Theorem     that of the estimator; for `Centred` THEORY 7.3 with a scale for each column.
    Proof       proofs/models/intervals.md
    Assumes     as the estimator.
    Keeps back  the exact sums.
    """
    if isinstance(estimator, Centred) and delta is None:
        moments = estimator.moments(sums, epsilon=epsilon, neighbours=neighbours, noise=noise)
        return ReleasedLine(
            fit=estimator.line(moments, epsilon=epsilon, neighbours=neighbours), moments=moments
        )
    return ReleasedLine(
        fit=estimator.fit(sums, epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise)
    )


def is_clear(moments: NoisyMoments) -> bool:
    """Whether every direction of the predictors stands out of the noise."""
    return float(np.linalg.eigvalsh(moments.gram)[0]) >= CLEAR * moments.blur


def reach(level: float) -> float:
    """In standard deviations, how far noise reaches: the larger of what one Laplace number and many together do."""
    return max(-log(1 - level) / sqrt(2), NormalDist().inv_cdf((1 + level) / 2))


def in_units(design: RegressionDesign) -> Floats:
    """The matrix by which `tell` brings coefficients of unit columns to the units of the codebook."""
    half = design.response.grid * design.width(design.response) / 2
    slopes = [2 * half / (c.grid * design.width(c)) for c in design.predictors]
    found = np.diag([float(each) for each in ([half] if design.intercept else []) + slopes])
    if design.intercept:
        centres = [c.origin + c.grid * Fraction(design.centre(c), 2) for c in design.predictors]
        found[0, 1:] = [-float(slope * centre) for slope, centre in zip(slopes, centres, strict=True)]
    return np.asarray(found)
