"""Noisy moments: all sums of products with noise, in one call, and what least squares makes of them afterwards.

Linear algebra after the noise reads released numbers alone, so it costs nothing and may fail at nothing. So does the
uncertainty of a line, from sampling and from the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil

import numpy as np
from numpy.typing import NDArray

from reticent.models.design import RegressionDesign, Sums, products_l1, products_l2, root_up
from reticent.models.fit import ModelNoise
from reticent.sensitivity.bounds import Neighbours

UNIT = 1 << 20
"""Sums of unit columns are counted in steps of 2^-20 before the noise."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Noisy sums of products of unit columns: released, so they may be printed and worked on freely.

    `spread` holds the standard deviation of the noise of each entry.
    """

    design: RegressionDesign
    table: Floats
    spread: Floats

    @property
    def count(self) -> float:
        """How many rows there are, at least 1."""
        return float(self.design.size or max(1.0, self.table[0, 0]))

    @property
    def gram(self) -> Floats:
        """X'X."""
        return self.table[self._at, self._at]

    @property
    def cross(self) -> Floats:
        """X'y."""
        return self.table[self._at, -1]

    @property
    def square(self) -> float:
        """y'y."""
        return float(self.table[-1, -1])

    @property
    def blur(self) -> float:
        """How far the noise moves X'X, roughly: twice the root mean square of its rows."""
        noise = self.spread[self._at, self._at]
        return float(2 * np.sqrt((noise**2).sum() / len(noise)))

    @property
    def _at(self) -> slice:
        return slice(0 if self.design.intercept else 1, -1)


def steps(value: Fraction) -> int:
    """floor(x + 1/2): two numbers d apart are sent at most d + 1 apart."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def laplace_moments(
    sums: Sums, *, scales: Sequence[Fraction], epsilon: Fraction, neighbours: Neighbours, noise: ModelNoise
) -> NoisyMoments:
    """Every sum of products with discrete Laplace noise; entry (i, j) gets noise in proportion to 1/(a_i a_j).

    Guarantee   epsilon-DP for the whole table, one call.
    Adjacency   `neighbours`; where the design says so, the number of rows is public.
    Theorem     THEORY 7.3 with a scale for each column, then the Laplace mechanism on the integers.
    Proof       proofs/models/moments.md
    Assumes     the scales are public and positive; a row's z depends on that row alone; exact arithmetic.
    Keeps back  the exact sums.
    """
    entries = _entries(sums)
    weights = {(i, j): scales[i] * scales[j] * (1 if i == j else 2) for i, j in entries}
    answers = [steps(UNIT * weights[at] * sums.unit(*at)) for at in entries]
    # Records that lie apart, in tables of their own, are rounded there one by one.
    rounded = len(entries) * (neighbours.records if neighbours.apart else 1)
    bound = ceil(UNIT * products_l1(scales, neighbours=neighbours)) + rounded
    noisy = noise.laplace_many(answers, sensitivity=bound, epsilon=epsilon)
    size = UNIT * np.array([float(weights[at]) for at in entries])
    return _moments(sums.design, entries, noisy, size, 2**0.5 * bound / float(epsilon))


def gaussian_moments(sums: Sums, *, rho: Fraction, neighbours: Neighbours, noise: ModelNoise) -> NoisyMoments:
    """Every sum of products with discrete Gaussian noise of one scale.

    Guarantee   rho-zCDP for the whole table, one call.
    Adjacency   `neighbours`; where the design says so, the number of rows is public.
    Theorem     `products_l2`, then the Gaussian mechanism on the integers.
    Proof       proofs/models/moments.md
    Assumes     a row's z depends on that row alone; exact arithmetic.
    Keeps back  the exact sums.
    """
    entries = _entries(sums)
    answers = [steps(UNIT * sums.unit(*at)) for at in entries]
    reach = UNIT * products_l2(len(sums.products), neighbours=neighbours)
    bound = ceil(reach + root_up(Fraction(len(entries))))
    noisy = noise.gaussian_many(answers, sensitivity=bound, rho=rho)
    size = np.full(len(entries), float(UNIT))
    return _moments(sums.design, entries, noisy, size, bound / (2 * float(rho)) ** 0.5)


def _entries(sums: Sums) -> list[tuple[int, int]]:
    """The places (i, j), i <= j, that are released; a public count is not."""
    pairs = combinations_with_replacement(range(len(sums.products)), 2)
    return [at for at in pairs if at != (0, 0) or sums.design.size is None]


def _moments(
    design: RegressionDesign, entries: list[tuple[int, int]], noisy: list[int], size: Floats, sd: float
) -> NoisyMoments:
    width = len(design.widths)
    table, spread = np.zeros((width, width)), np.zeros((width, width))
    table[0, 0] = design.size or 0
    for (i, j), value, each in zip(entries, noisy, size, strict=True):
        table[i, j] = table[j, i] = value / each
        spread[i, j] = spread[j, i] = sd / each
    return NoisyMoments(design=design, table=table, spread=spread)


def lifted(gram: Floats, floor: float) -> Floats:
    """The nearest symmetric matrix with no eigenvalue below `floor`."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def ridge(gram: Floats, cross: Floats, penalty: float) -> Floats:
    """The minimiser of b'Gb/2 - c'b + penalty |b|^2/2, of least length where there are several."""
    return np.asarray(np.linalg.lstsq(gram + penalty * np.eye(len(gram)), cross, rcond=None)[0])


def leftover(moments: NoisyMoments, theta: Floats) -> float:
    """The mean squared residual of a line, from noisy sums; not below 0."""
    total = float(moments.square - 2 * theta @ moments.cross + theta @ moments.gram @ theta)
    return max(0.0, total) / max(1.0, moments.count - len(theta))


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
