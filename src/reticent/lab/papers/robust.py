"""Robust M-estimation: steps along noisy sums of residuals that were cut first, so that nobody pulls hard."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.models import design
from reticent.models.design import Records, Sums
from reticent.models.fit import Estimator, FitTerms, Line, ModelNoise
from reticent.models.moments import NoisyMoments, gaussian_moments, laplace_moments, leftover, lifted, ridge
from reticent.models.sums import rho_for
from reticent.sensitivity.bounds import Neighbours

STEPS = 1 << 10
"""Columns are counted in steps of 2^-10, residuals in steps of 2^-13, coefficients of 2^-16."""

FINER, THETA, FARTHEST = 8, 1 << 16, 8.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust(Estimator):
    """Huber's estimator by noisy optimisation (Avella-Medina 2021; Avella-Medina, Bradshaw and Loh 2023).

    Half of the budget goes to the sums, which give a start and the curvature; the other half to `rounds` Newton
    steps. A residual beyond `cut`, in halves of the response's width, counts as `cut`.
    """

    requires: ClassVar = "rows"
    has_delta: ClassVar = True
    proof: ClassVar = ("noisy M-estimation", "proofs/models/robust.md")
    cut: Fraction = Fraction(1)
    rounds: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.cut <= 16 or (self.cut * STEPS * FINER).denominator != 1:
            raise PlanError("it is a multiple of 1/8192 from there up to 16.", field="cut")
        if not 1 <= self.rounds <= 100:
            raise PlanError("take from 1 to 100 of them.", field="rounds")

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """The line after the last step.

        Guarantee   epsilon-DP for one call, or (epsilon, delta)-DP where delta is given.
        Adjacency   `neighbours`.
        Theorem     each step is a sum of bounded whole vectors; adaptive composition.
        Proof       proofs/models/robust.md
        Assumes     `cut` and `rounds` are public; a row's term depends on that row and released numbers alone.
        Keeps back  the exact sums and every residual.
        """
        if not isinstance(data, Records):
            raise TypeError("rows were asked for")
        epsilon, delta, neighbours, noise = terms.epsilon, terms.delta, terms.neighbours, terms.noise
        budget = epsilon if delta is None else rho_for(epsilon, delta)
        found = self._sums(data, budget / 2, delta is None, neighbours, noise)
        gram, rows = lifted(found.gram, found.blur), data.scaled(STEPS)
        theta = ridge(gram, found.cross, 0.0)
        for _ in range(self.rounds):
            share = budget / (2 * self.rounds)
            theta, pull = self._pull(data, rows, theta, share, delta is None, neighbours, noise)
            theta = theta + ridge(gram, pull, 0.0)
        return theta.tolist(), leftover(found, theta)

    def _sums(
        self, data: Records, budget: Fraction, is_pure: bool, neighbours: Neighbours, noise: ModelNoise
    ) -> NoisyMoments:
        sums = data.sums()
        if not is_pure:
            return gaussian_moments(sums, rho=budget, neighbours=neighbours, noise=noise)
        ones = [Fraction(1)] * len(sums.products)
        return laplace_moments(sums, scales=ones, epsilon=budget, neighbours=neighbours, noise=noise)

    def _pull(
        self,
        data: Records,
        rows: NDArray[np.int64],
        theta: Floats,
        budget: Fraction,
        is_pure: bool,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> tuple[Floats, Floats]:
        """The line on its grid, and the noisy sum of cut residual times row about it."""
        at, exact = pulls(rows if data.design.intercept else rows[:, 1:], theta, cut=self.cut)
        largest = self.cut * STEPS * FINER * STEPS
        one, two = design.gradient(len(theta), largest, neighbours=neighbours)
        if is_pure:
            noisy = noise.laplace_many(exact, sensitivity=ceil(one), epsilon=budget)
        else:
            noisy = noise.gaussian_many(exact, sensitivity=ceil(two), rho=budget)
        return at, np.array(noisy, dtype=np.float64) / (FINER * STEPS * STEPS)


def pulls(rows: NDArray[np.int64], theta: Floats, *, cut: Fraction) -> tuple[Floats, list[int]]:
    """theta on its grid, and the sum over rows of (residual, rounded and cut) x (the row), in whole numbers."""
    held = np.clip(np.nan_to_num(theta), -FARTHEST, FARTHEST)
    whole = np.floor(held * THETA + 0.5).astype(np.int64)
    x, y = rows[:, :-1], rows[:, -1]
    residual = y * THETA
    for j, each in enumerate(whole.tolist()):
        residual = residual - x[:, j] * each
    unit = THETA // FINER
    most = int(cut * STEPS * FINER)
    kept = np.clip((2 * residual + unit) // (2 * unit), -most, most)
    return whole / THETA, [int((kept * x[:, j]).sum()) for j in range(x.shape[1])]
