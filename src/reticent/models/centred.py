"""Perturbed sums, centred and scaled: the estimator we recommend."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from reticent.errors import PlanError
from reticent.models.fit import Fit, check, claim_of, no_delta, sums_of, tell
from reticent.models.moments import NoisyMoments, laplace_moments
from reticent.models.records import Records
from reticent.models.solve import leftover, lifted, ridge
from reticent.models.sources import ModelNoise
from reticent.models.sums import Sums
from reticent.sensitivity.neighbours import Neighbours

PAGE = "proofs/models/centred.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Centred:
    """Sums of products about the middle of the bounds, with less of the budget for the counts.

    `level` is the scale of the constant column beside 1 for every other: below 1 the slopes gain and the height
    of the line loses. No ridge: eigenvalues that drown in the noise are lifted, the others are left alone.
    """

    level: Fraction = Fraction(1, 2)
    requires: Literal["sums", "rows"] = "sums"

    def __post_init__(self) -> None:
        if not 0 < self.level <= 1:
            raise PlanError(f"it is {self.level}, but must lie above 0 and at most at 1.", field="level")

    def fit(
        self,
        data: Sums | Records,
        *,
        epsilon: Fraction,
        delta: Fraction | None = None,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> Fit:
        """Least squares on noisy sums.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 7.3 with a scale for each column.
        Proof       proofs/models/centred.md
        Assumes     as `laplace_moments`.
        Keeps back  the exact sums.
        """
        no_delta(delta)
        found = self.moments(sums_of(data), epsilon=epsilon, neighbours=neighbours, noise=noise)
        return self.line(found, epsilon=epsilon, neighbours=neighbours)

    def moments(
        self, sums: Sums, *, epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
    ) -> NoisyMoments:
        """The noisy sums that the line is made of, and that say how uncertain it is.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 7.3 with a scale for each column.
        Proof       proofs/models/centred.md
        Assumes     as `laplace_moments`.
        Keeps back  the exact sums.
        """
        check(sums.design, epsilon=epsilon, delta=None, neighbours=neighbours)
        scales = [self.level] + [Fraction(1)] * (len(sums.products) - 1)
        return laplace_moments(sums, scales=scales, epsilon=epsilon, neighbours=neighbours, noise=noise)

    def line(self, found: NoisyMoments, *, epsilon: Fraction, neighbours: Neighbours) -> Fit:
        """The line in sums that were released for `epsilon`: post-processing."""
        theta = ridge(lifted(found.gram, found.blur), found.cross, 0.0)
        claim = claim_of(PAGE, "THEORY 7.3", epsilon=epsilon, neighbours=neighbours)
        return tell(found.design, theta.tolist(), leftover(found, theta), claim)
