"""Objective perturbation for least squares: the objective is tilted at random before its minimum is taken.

Proved for a tilt that has a density, in ideal reals; what a computer draws lies on a lattice, so no plan is offered it.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

from flint import ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.models.design import Records, Sums
from reticent.models.fit import Estimator, FitTerms, Line, ModelNoise, sums_of
from reticent.models.moments import steps
from reticent.models.perturbed import STEP, check_ball, slope_bound, within_ball
from reticent.models.residual import SHARE, residual_variance
from reticent.privacy.convert import ball_up
from reticent.sensitivity.bounds import Neighbours

PAGE = "proofs/models/objective.md"


def curvature_loss(curve: Fraction, *, rank: int, ridge: Fraction, neighbours: Neighbours) -> Fraction:
    """What the change of curvature tells: records x rank x ln(1 + curve/ridge), rounded up."""
    with ctx.workprec(128):
        return ball_up(neighbours.records * rank * (1 + ball(curve / ridge)).log())


def least_ridge(
    curve: Fraction, ridge: Fraction, *, rank: int, epsilon: Fraction, neighbours: Neighbours
) -> Fraction:
    """The ridge asked for, or the least one for which curvature tells at most half of epsilon.

    ln(1 + c/r) <= c/r, so r = 2 c rank records / epsilon is enough.
    """
    return max(ridge, 2 * curve * rank * neighbours.records / Fraction(epsilon))


def tilt_epsilon(epsilon: Fraction, told: Fraction) -> Fraction:
    """What is left for the tilt."""
    if told >= epsilon:
        raise PlanError("it is too small for this many predictors; use a larger ridge.", field="epsilon")
    return epsilon - told


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(Estimator):
    """Chaudhuri, Monteleoni and Sarwate 2011, algorithm 2, over a ball as Kifer, Smith and Thakurta 2012 allow.

    Minimises the sum of (y - x'b)^2/2 plus ridge |b|^2/2 plus t'b over |b| <= radius, in unit columns, t random.
    """

    proof: ClassVar = ("objective perturbation", PAGE)
    arithmetic: ClassVar = "ideal reals"
    ridge: Fraction = Fraction(50)
    radius: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        check_ball(self.ridge, self.radius)

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """The minimiser of the tilted objective, told on a grid.

        Guarantee   epsilon-DP for one call, in ideal reals.
        Adjacency   `neighbours`.
        Theorem     Chaudhuri, Monteleoni and Sarwate 2011, with the determinant bounded for one row of rank one.
        Proof       proofs/models/objective.md
        Assumes     the tilt has a density; ours lies on a lattice of 2^-20, so the claim says ideal reals.
        Keeps back  the exact sums and the tilt.
        """
        sums = sums_of(data)
        gram, cross, _ = sums.ordinary()
        first = (1 - SHARE) * terms.epsilon
        ridge, tilt = self._tilt(len(cross), epsilon=first, neighbours=terms.neighbours, noise=terms.noise)
        tilted = [c - t for c, t in zip(cross, tilt, strict=True)]
        found = within_ball(gram, tilted, ridge=ridge, radius=self.radius, error=STEP / 2)
        theta = [steps(b / STEP) * STEP for b in found]
        left = residual_variance(
            sums, theta, epsilon=terms.epsilon - first, neighbours=terms.neighbours, noise=terms.noise
        )
        return theta, left

    def _tilt(
        self, features: int, *, epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
    ) -> tuple[Fraction, list[Fraction]]:
        curve = Fraction(features)  # |x|^2 <= p
        ridge = least_ridge(curve, self.ridge, rank=1, epsilon=epsilon, neighbours=neighbours)
        told = curvature_loss(curve, rank=1, ridge=ridge, neighbours=neighbours)
        bound = ceil(neighbours.steps * slope_bound(features, self.radius) / STEP)
        drawn = noise.spherical([0] * features, sensitivity=bound, epsilon=tilt_epsilon(epsilon, told))
        return ridge, [step * STEP for step in drawn]
