"""Output perturbation: the exact ridge line within a ball, then noise on its coefficients."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from reticent.errors import PlanError
from reticent.models.ball import within_ball
from reticent.models.fit import Fit, check, claim_of, no_delta, sums_of, tell
from reticent.models.moments import steps
from reticent.models.moves import root_up
from reticent.models.records import Records
from reticent.models.residual import SHARE, residual_variance
from reticent.models.sources import ModelNoise
from reticent.models.sums import Sums
from reticent.sensitivity.neighbours import Neighbours

PAGE = "proofs/models/output.md"
STEP = Fraction(1, 2**20)


def slope_bound(features: int, radius: Fraction) -> Fraction:
    """The steepest that one row's loss (y - x'b)^2/2 can be over the ball: |x| (1 + |x| radius), |x| <= sqrt p."""
    return root_up(Fraction(features)) + features * radius


def check_ball(ridge: Fraction, radius: Fraction) -> None:
    """Refuse a ridge or a radius that is not positive."""
    for name, value in (("ridge", ridge), ("radius", radius)):
        if value <= 0:
            raise PlanError(f"it is {value}, but must be positive.", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Chaudhuri, Monteleoni and Sarwate 2011, algorithm 1; Wu and others 2017 for strongly convex losses.

    Minimises the sum of (y - x'b)^2/2 plus ridge |b|^2/2 over |b| <= radius, in unit columns. Both are public: a
    larger ridge means less noise and more shrinkage; a tenth of the rows expected is a fair choice.
    """

    ridge: Fraction = Fraction(500)
    radius: Fraction = Fraction(1)
    requires: Literal["sums", "rows"] = "sums"

    def __post_init__(self) -> None:
        check_ball(self.ridge, self.radius)

    def fit(
        self,
        data: Sums | Records,
        *,
        epsilon: Fraction,
        delta: Fraction | None = None,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> Fit:
        """The ridge line, with noise that falls with the Euclidean distance.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     minimisers of strongly convex sums are stable; then `add_spherical`.
        Proof       proofs/models/output.md
        Assumes     ridge and radius are public; exact arithmetic.
        Keeps back  the exact minimiser and whether it touched the ball.
        """
        no_delta(delta)
        sums = sums_of(data)
        check(sums.design, epsilon=epsilon, delta=delta, neighbours=neighbours)
        gram, cross, _ = sums.ordinary()
        exact = within_ball(gram, cross, ridge=self.ridge, radius=self.radius, error=STEP / 2)
        bound = self._bound(len(cross), neighbours)
        first = (1 - SHARE) * epsilon
        noisy = noise.spherical([steps(b / STEP) for b in exact], sensitivity=bound, epsilon=first)
        theta = [min(max(step * STEP, -self.radius), self.radius) for step in noisy]
        left = residual_variance(sums, theta, epsilon=epsilon - first, neighbours=neighbours, noise=noise)
        claim = claim_of(PAGE, "stability of ridge regression", epsilon=epsilon, neighbours=neighbours)
        return tell(sums.design, theta, left, claim)

    def _bound(self, features: int, neighbours: Neighbours) -> int:
        """In steps: how far the minimiser moves, half a step of error at each end, and the rounding."""
        moved = neighbours.steps * slope_bound(features, self.radius) / self.ridge
        return ceil(moved / STEP + 1 + root_up(Fraction(features)))
