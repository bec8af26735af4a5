"""Objective and output perturbation for least squares within a ball.

Output perturbation adds noise to the coefficients of the exact ridge line. Objective perturbation tilts the objective at
random before the minimum is taken. The minimum over the ball is found in exact arithmetic up to a stated distance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from flint import ctx, fmpq, fmpq_mat

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.models.design import Records, Sums, root_up
from reticent.models.fit import Fit, ModelNoise, check, claim_of, no_delta, sums_of, tell
from reticent.models.moments import steps
from reticent.models.residual import SHARE, residual_variance
from reticent.privacy.convert import ball_up
from reticent.sensitivity.bounds import Neighbours

Square = Sequence[Sequence[Fraction]]


def within_ball(
    gram: Square, cross: Sequence[Fraction], *, ridge: Fraction, radius: Fraction, error: Fraction
) -> list[Fraction]:
    """Within `error` of the minimiser of b'Gb/2 - c'b + ridge |b|^2/2 over |b| <= radius.

    If the free minimiser lies in the ball, it is the answer. Else the answer is b(m), the free minimiser with ridge + m
    for the one m > 0 that gives it the length of the radius; b(m) is shorter for larger m. Halving brackets m until the
    two ends are `error` apart at most: they differ by at most (high - low) |b(low)| / ridge.
    """
    free = _solve(gram, cross, ridge)
    if _square(free) <= radius**2:
        return free
    low, high = Fraction(0), sum(map(abs, cross), Fraction(0)) / radius
    longest = free
    while ((high - low) / ridge) ** 2 * _square(longest) > error**2:
        middle = _rounded((low + high) / 2, high - low)
        tried = _solve(gram, cross, ridge + middle)
        if _square(tried) > radius**2:
            low, longest = middle, tried
        else:
            high = middle
    return _solve(gram, cross, ridge + high)


def _rounded(value: Fraction, span: Fraction) -> Fraction:
    """A number of few digits within a quarter of the span of `value`, so that fractions stay short."""
    places = max(0, (span.denominator // span.numerator).bit_length() + 3)
    return Fraction(round(value * 2**places), 2**places)


def _solve(gram: Square, cross: Sequence[Fraction], ridge: Fraction) -> list[Fraction]:
    size = len(cross)
    entries = [gram[i][j] + (ridge if i == j else 0) for i in range(size) for j in range(size)]
    matrix = fmpq_mat(size, size, [_rational(value) for value in entries])
    found = matrix.solve(fmpq_mat(size, 1, [_rational(value) for value in cross]))
    return [Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(size)]


def _rational(value: Fraction | int) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _square(vector: Sequence[Fraction]) -> Fraction:
    return sum((entry * entry for entry in vector), Fraction(0))


OUTPUT_PAGE = "proofs/models/output.md"
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
        claim = claim_of(OUTPUT_PAGE, "stability of ridge regression", epsilon=epsilon, neighbours=neighbours)
        return tell(sums.design, theta, left, claim)

    def _bound(self, features: int, neighbours: Neighbours) -> int:
        """In steps: how far the minimiser moves, half a step of error at each end, and the rounding."""
        moved = neighbours.steps * slope_bound(features, self.radius) / self.ridge
        return ceil(moved / STEP + 1 + root_up(Fraction(features)))


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
class Objective:
    """Chaudhuri, Monteleoni and Sarwate 2011, algorithm 2, over a ball as Kifer, Smith and Thakurta 2012 allow.

    Minimises the sum of (y - x'b)^2/2 plus ridge |b|^2/2 plus t'b over |b| <= radius, in unit columns, t random.
    """

    ridge: Fraction = Fraction(50)
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
        """The minimiser of the tilted objective, told on a grid.

        Guarantee   epsilon-DP for one call, in ideal reals.
        Adjacency   `neighbours`.
        Theorem     Chaudhuri, Monteleoni and Sarwate 2011, with the determinant bounded for one row of rank one.
        Proof       proofs/models/objective.md
        Assumes     the tilt has a density; ours lies on a lattice of 2^-20, so the claim says ideal reals.
        Keeps back  the exact sums and the tilt.
        """
        no_delta(delta)
        sums = sums_of(data)
        check(sums.design, epsilon=epsilon, delta=delta, neighbours=neighbours)
        gram, cross, _ = sums.ordinary()
        first = (1 - SHARE) * epsilon
        ridge, tilt = self._tilt(len(cross), epsilon=first, neighbours=neighbours, noise=noise)
        tilted = [c - t for c, t in zip(cross, tilt, strict=True)]
        found = within_ball(gram, tilted, ridge=ridge, radius=self.radius, error=STEP / 2)
        theta = [steps(b / STEP) * STEP for b in found]
        left = residual_variance(sums, theta, epsilon=epsilon - first, neighbours=neighbours, noise=noise)
        claim = claim_of(
            PAGE, "objective perturbation", epsilon=epsilon, neighbours=neighbours, arithmetic="ideal reals"
        )
        return tell(sums.design, theta, left, claim)

    def _tilt(
        self, features: int, *, epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
    ) -> tuple[Fraction, list[Fraction]]:
        curve = Fraction(features)  # |x|^2 <= p
        ridge = least_ridge(curve, self.ridge, rank=1, epsilon=epsilon, neighbours=neighbours)
        told = curvature_loss(curve, rank=1, ridge=ridge, neighbours=neighbours)
        bound = ceil(neighbours.steps * slope_bound(features, self.radius) / STEP)
        drawn = noise.spherical([0] * features, sensitivity=bound, epsilon=tilt_epsilon(epsilon, told))
        return ridge, [step * STEP for step in drawn]
