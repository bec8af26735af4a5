"""The spread about a line that was released before, at a price of its own."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from reticent.models.design import Sums
from reticent.models.fit import ModelNoise
from reticent.models.moments import UNIT, steps
from reticent.sensitivity.bounds import Neighbours

SHARE = Fraction(1, 8)
"""Of the budget, for estimators that release a line and nothing else."""


def squares(sums: Sums, theta: Sequence[Fraction]) -> Fraction:
    """The exact sum of squared residuals about `theta`, in unit columns."""
    gram, cross, total = sums.ordinary()
    at = range(len(theta))
    bent = sum((theta[i] * gram[i][j] * theta[j] for i in at for j in at), Fraction(0))
    return total - 2 * sum((theta[i] * cross[i] for i in at), Fraction(0)) + bent


def reach(theta: Sequence[Fraction]) -> Fraction:
    """The square of the largest residual there can be: (1 + |theta|_1)^2."""
    return (1 + sum(map(abs, theta), Fraction(0))) ** 2


def residual_variance(
    sums: Sums, theta: Sequence[Fraction], *, epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
) -> Fraction:
    """The mean squared residual in unit columns: a noisy sum over a noisy, or public, count.

    Guarantee   epsilon-DP for one call, given `theta`.
    Adjacency   `neighbours`.
    Theorem     each squared residual over `reach` lies in [0, 1], and so does each count; then the Laplace mechanism.
    Proof       proofs/models/residual.md
    Assumes     `theta` was released before or is public; exact arithmetic.
    Keeps back  the exact sum and the exact count.
    """
    largest, size = reach(theta), sums.design.size
    answers = [steps(UNIT * squares(sums, theta) / largest)]
    answers += [] if size else [steps(UNIT * sums.unit(0, 0))]
    bound = ceil(len(answers) * neighbours.records * Fraction(UNIT)) + len(answers)
    noisy = noise.laplace_many(answers, sensitivity=bound, epsilon=epsilon)
    count = Fraction(size) if size else max(Fraction(1), Fraction(noisy[1], UNIT))
    return max(Fraction(0), Fraction(noisy[0], UNIT) * largest / max(Fraction(1), count - len(theta)))
