"""The functional mechanism for least squares: noise on the coefficients of the objective, then its minimum."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from reticent.models.fit import Fit, check, claim_of, no_delta, sums_of, tell
from reticent.models.moments import laplace_moments
from reticent.models.records import Records
from reticent.models.solve import leftover, lifted, ridge
from reticent.models.sources import ModelNoise
from reticent.models.sums import Sums
from reticent.sensitivity.neighbours import Neighbours

PAGE = "proofs/models/functional.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Functional:
    """Zhang, Zhang, Xiao, Yang and Winslett 2012, with the constant of THEORY 7.3."""

    requires: Literal["sums", "rows"] = "sums"

    def fit(
        self,
        data: Sums | Records,
        *,
        epsilon: Fraction,
        delta: Fraction | None = None,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> Fit:
        """The minimum of the noisy objective, after its quadratic part was made positive definite.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 7.3.
        Proof       proofs/models/functional.md
        Assumes     as `laplace_moments`; bounds are declared, and values clipped to them first.
        Keeps back  the exact coefficients of the objective.
        """
        no_delta(delta)
        sums = sums_of(data)
        check(sums.design, epsilon=epsilon, delta=delta, neighbours=neighbours)
        ones = [Fraction(1)] * len(sums.products)
        found = laplace_moments(sums, scales=ones, epsilon=epsilon, neighbours=neighbours, noise=noise)
        # As published: a ridge of four standard deviations, then a floor for what is still not positive.
        penalty = 4 * float(found.spread.max())
        theta = ridge(lifted(found.gram, -penalty / 2), found.cross, penalty)
        claim = claim_of(PAGE, "THEORY 7.3", epsilon=epsilon, neighbours=neighbours)
        return tell(sums.design, theta.tolist(), leftover(found, theta), claim)
