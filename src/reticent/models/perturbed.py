"""Output perturbation for least squares within a ball: noise on the coefficients of the exact ridge line.

The minimum over the ball is found in exact arithmetic up to a stated distance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

from flint import fmpq, fmpq_mat

from reticent.errors import PlanError
from reticent.models.design import Records, Sums, root_up
from reticent.models.fit import Estimator, FitTerms, Line, sums_of
from reticent.models.moments import steps
from reticent.models.residual import SHARE, residual_variance
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
class Output(Estimator):
    """Chaudhuri, Monteleoni and Sarwate 2011, algorithm 1; Wu and others 2017 for strongly convex losses.

    Minimises the sum of (y - x'b)^2/2 plus ridge |b|^2/2 over |b| <= radius, in unit columns. Both are public: a
    larger ridge means less noise and more shrinkage; a tenth of the rows expected is a fair choice.
    """

    proof: ClassVar = ("stability of ridge regression", "proofs/models/output.md")
    ridge: Fraction = Fraction(500)
    radius: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        check_ball(self.ridge, self.radius)

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """The ridge line, with noise that falls with the Euclidean distance.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     minimisers of strongly convex sums are stable; then `add_spherical`.
        Proof       proofs/models/output.md
        Assumes     ridge and radius are public; exact arithmetic.
        Keeps back  the exact minimiser and whether it touched the ball.
        """
        sums = sums_of(data)
        gram, cross, _ = sums.ordinary()
        exact = within_ball(gram, cross, ridge=self.ridge, radius=self.radius, error=STEP / 2)
        bound = self._bound(len(cross), terms.neighbours)
        first = (1 - SHARE) * terms.epsilon
        noisy = terms.noise.spherical([steps(b / STEP) for b in exact], sensitivity=bound, epsilon=first)
        theta = [min(max(step * STEP, -self.radius), self.radius) for step in noisy]
        left = residual_variance(
            sums, theta, epsilon=terms.epsilon - first, neighbours=terms.neighbours, noise=terms.noise
        )
        return theta, left

    def _bound(self, features: int, neighbours: Neighbours) -> int:
        """In steps: how far the minimiser moves, half a step of error at each end, and the rounding."""
        moved = neighbours.steps * slope_bound(features, self.radius) / self.ridge
        return ceil(moved / STEP + 1 + root_up(Fraction(features)))
