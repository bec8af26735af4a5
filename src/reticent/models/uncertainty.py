"""How uncertain a line from noisy sums is: from sampling, and from the noise. Released numbers alone, so it is free."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.models.moments import NoisyMoments
from reticent.models.solve import leftover, lifted, ridge

Floats = NDArray[np.float64]
TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uncertain:
    """A line in unit columns, its residual variance, and its covariance in two parts."""

    theta: Floats
    variance: float
    sampling: Floats
    noise: Floats

    @property
    def total(self) -> Floats:
        """The covariance of the line."""
        return self.sampling + self.noise

    @property
    def root(self) -> Floats:
        """A matrix whose product with standard normal numbers has this covariance; its columns are directions."""
        values, vectors = np.linalg.eigh((self.total + self.total.T) / 2)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def uncertain(moments: NoisyMoments) -> Uncertain:
    """The line that least squares finds in noisy sums, and how far off it may be.

    With G = X'X, c = X'y and residual variance s^2, the line b has covariance s^2 / G from sampling and
    G^-1 N G^-1 from the noise, N that of c - G b.
    """
    gram = lifted(moments.gram, max(moments.blur, TINY))
    theta = ridge(gram, moments.cross, 0.0)
    inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    start = len(moments.table) - 1 - len(theta)
    noise = moments.spread[start:-1, start:-1] ** 2
    # (dG b)_i = sum_j dG_ij b_j with dG symmetric: off the diagonal the one number dG_ij is shared by i and j.
    shared = np.outer(theta, theta) * noise
    np.fill_diagonal(shared, noise @ theta**2 + moments.spread[start:-1, -1] ** 2)
    variance = leftover(moments, theta)
    return Uncertain(
        theta=theta, variance=variance, sampling=variance * inverse, noise=inverse @ shared @ inverse
    )
