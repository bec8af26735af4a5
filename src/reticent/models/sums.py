"""Least squares from perturbed sums: centred and scaled, which we recommend, AdaSSP, and the functional mechanism.

AdaSSP adds a ridge that adapts to the noise. The functional mechanism puts noise on the coefficients of the objective and
takes its minimum.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import ClassVar

import numpy as np
from flint import fmpz_mat

from reticent.errors import PlanError
from reticent.models.design import Records, Sums
from reticent.models.fit import Estimator, Fit, FitTerms, Line, ModelNoise, check, claim_of, sums_of, tell
from reticent.models.moments import (
    UNIT,
    NoisyMoments,
    gaussian_moments,
    laplace_moments,
    leftover,
    lifted,
    ridge,
    steps,
)
from reticent.privacy.convert import zcdp_to_epsilon
from reticent.sensitivity.bounds import Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Centred(Estimator):
    """Sums of products about the middle of the bounds, with less of the budget for the counts.

    `level` is the scale of the constant column beside 1 for every other: below 1 the slopes gain and the height
    of the line loses. No ridge: eigenvalues that drown in the noise are lifted, the others are left alone.
    """

    proof: ClassVar = ("THEORY 7.3", "proofs/models/centred.md")
    level: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        if not 0 < self.level <= 1:
            raise PlanError(f"it is {self.level}, but must lie above 0 and at most at 1.", field="level")

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """Least squares on noisy sums.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 7.3 with a scale for each column.
        Proof       proofs/models/centred.md
        Assumes     as `laplace_moments`.
        Keeps back  the exact sums.
        """
        found = self.moments(
            sums_of(data), epsilon=terms.epsilon, neighbours=terms.neighbours, noise=terms.noise
        )
        return self._line(found)

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
        theorem, page = self.proof
        claim = claim_of(page, theorem, epsilon=epsilon, neighbours=neighbours)
        return tell(found.design, *self._line(found), claim)

    def _line(self, found: NoisyMoments) -> Line:
        theta = ridge(lifted(found.gram, found.blur), found.cross, 0.0)
        return theta.tolist(), leftover(found, theta)


SHARE = Fraction(1, 8)
"""Of the budget, for the smallest eigenvalue."""


@lru_cache(maxsize=256)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, to 24 halvings, for which rho-zCDP is certified to be (epsilon, delta)-DP."""
    low, high = Fraction(0), Fraction(epsilon)
    for _ in range(24):
        middle = (low + high) / 2
        is_enough = zcdp_to_epsilon(rho=middle, delta=delta) <= epsilon
        low, high = (middle, high) if is_enough else (low, middle)
    return low


def least_eigenvalue(sums: Sums) -> int:
    """The largest whole t below the smallest eigenvalue of X'X in steps of 1/UNIT, entries rounded first; exactly.

    A guess in doubles, then moved until the matrix less t is positive definite at t and is not at t + 1.
    """
    gram = [[steps(UNIT * value) for value in row] for row in sums.ordinary()[0]]
    guess = floor(np.linalg.eigvalsh(np.array(gram, dtype=np.float64))[0])
    low, high, stride = int(guess), int(guess) + 1, 1
    while not _is_positive(gram, low):
        low, stride = low - stride, 2 * stride
    stride = 1
    while _is_positive(gram, high):
        high, stride = high + stride, 2 * stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_positive(gram, middle) else (low, middle)
    return low


def _is_positive(gram: list[list[int]], t: int) -> bool:
    """Whether gram - t is positive definite: all leading minors are positive (Sylvester)."""
    size = len(gram)
    return all(
        bool(fmpz_mat([[gram[i][j] - (t if i == j else 0) for j in range(k)] for i in range(k)]).det() > 0)
        for k in range(1, size + 1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaSSP(Estimator):
    """Wang 2018. Without a delta the noise is Laplace; with one it is Gaussian, accounted in zCDP."""

    has_delta: ClassVar = True
    proof: ClassVar = ("AdaSSP", "proofs/models/adassp.md")

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """Ridge regression on noisy sums; the ridge is what the noise needs beyond the smallest eigenvalue.

        Guarantee   epsilon-DP for one call, or (epsilon, delta)-DP where delta is given.
        Adjacency   `neighbours`.
        Theorem     Wang 2018, algorithm 2, with one call for all sums.
        Proof       proofs/models/adassp.md
        Assumes     as `laplace_moments` and `gaussian_moments`.
        Keeps back  the exact sums and the exact eigenvalue.
        """
        sums = sums_of(data)
        if terms.delta is None:
            found, least = self._laplace(sums, terms.epsilon, terms.neighbours, terms.noise)
        else:
            rho = rho_for(terms.epsilon, terms.delta)
            found, least = self._gaussian(sums, rho, terms.neighbours, terms.noise)
        theta = ridge(found.gram, found.cross, max(0.0, found.blur - least))
        return theta.tolist(), leftover(found, theta)

    def _laplace(
        self, sums: Sums, epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
    ) -> tuple[NoisyMoments, float]:
        own, ones = SHARE * epsilon, [Fraction(1)] * len(sums.products)
        bound = eigenvalue_bound(sums.design.features, neighbours=neighbours)
        least = noise.laplace(least_eigenvalue(sums), sensitivity=bound, epsilon=own)
        found = laplace_moments(sums, scales=ones, epsilon=epsilon - own, neighbours=neighbours, noise=noise)
        return found, (least - 3 * float(bound / own)) / UNIT

    def _gaussian(
        self, sums: Sums, rho: Fraction, neighbours: Neighbours, noise: ModelNoise
    ) -> tuple[NoisyMoments, float]:
        own = SHARE * rho
        bound = eigenvalue_bound(sums.design.features, neighbours=neighbours)
        least = noise.gaussian_many([least_eigenvalue(sums)], sensitivity=bound, rho=own)[0]
        found = gaussian_moments(sums, rho=rho - own, neighbours=neighbours, noise=noise)
        return found, (least - 2 * bound / (2 * float(own)) ** 0.5) / UNIT


def eigenvalue_bound(features: int, *, neighbours: Neighbours) -> int:
    """In steps: how far one respondent moves `least_eigenvalue`.

    Guarantee   no pair of neighbours has it further apart.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     Weyl: a row of |x|^2 <= p moves the eigenvalue by at most p, coming, going or replaced.
    Proof       proofs/models/adassp.md
    Assumes     unit columns; the rounding of entries adds p, that of the eigenvalue 1.
    Keeps back  nothing: every input is public.
    """
    return ceil(neighbours.records * features * Fraction(UNIT)) + features + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Functional(Estimator):
    """Zhang, Zhang, Xiao, Yang and Winslett 2012, with the constant of THEORY 7.3."""

    proof: ClassVar = ("THEORY 7.3", "proofs/models/functional.md")

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """The minimum of the noisy objective, after its quadratic part was made positive definite.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 7.3.
        Proof       proofs/models/functional.md
        Assumes     as `laplace_moments`; bounds are declared, and values clipped to them first.
        Keeps back  the exact coefficients of the objective.
        """
        sums = sums_of(data)
        ones = [Fraction(1)] * len(sums.products)
        found = laplace_moments(
            sums, scales=ones, epsilon=terms.epsilon, neighbours=terms.neighbours, noise=terms.noise
        )
        # As published: a ridge of four standard deviations, then a floor for what is still not positive.
        penalty = 4 * float(found.spread.max())
        theta = ridge(lifted(found.gram, -penalty / 2), found.cross, penalty)
        return theta.tolist(), leftover(found, theta)
