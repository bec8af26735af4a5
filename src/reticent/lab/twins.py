"""Floating-point twins of every noise, for simulation with the truth in hand.

Equal in law to the exact noise as far as doubles go, many times faster, and drawn from a seeded generator: good for
studying error, unfit for release. What comes out are plain arrays, and nothing of the library imports this module.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def laplace(rng: np.random.Generator, *, scale: float, size: int) -> Whole:
    """Discrete Laplace: the difference of two geometric numbers."""
    up, down = (np.floor(scale * rng.standard_exponential(size)) for _ in range(2))
    return np.asarray(up - down, dtype=np.int64)


def gaussian(rng: np.random.Generator, *, sigma: float, size: int) -> Whole:
    """Discrete Gaussian: kept from discrete Laplace draws (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
    t = np.floor(sigma) + 1
    kept = np.empty(0, dtype=np.int64)
    while len(kept) < size:
        y = laplace(rng, scale=t, size=2 * (size - len(kept)) + 16)
        chance = np.exp(-((np.abs(y) - sigma**2 / t) ** 2) / (2 * sigma**2))
        kept = np.concatenate([kept, y[rng.random(len(y)) < chance]])
    return kept[:size]


def lomax(rng: np.random.Generator, *, m: int, size: int) -> Floats:
    """Double Lomax of tail m."""
    return np.asarray(_signs(rng, size) * rng.pareto(m, size))


def student(rng: np.random.Generator, *, size: int) -> Floats:
    """Density (2/pi) (1 + x*x)**-2: Student with 3 degrees of freedom over sqrt 3."""
    return np.asarray(rng.standard_t(3, size) / np.sqrt(3.0))


def cauchy(rng: np.random.Generator, *, gamma: float, size: int) -> Floats:
    """Generalised Cauchy: |x|**gamma is the ratio of two gamma numbers of shapes 1/gamma and 1 - 1/gamma."""
    ratio = rng.standard_gamma(1 / gamma, size) / rng.standard_gamma(1 - 1 / gamma, size)
    return np.asarray(_signs(rng, size) * ratio ** (1 / gamma))


def steps(x: Floats, *, answer: float, scale: float, grid: float) -> Floats:
    """The number of grid steps of answer + scale * x; doubles, since a heavy tail may leave the integers."""
    return np.asarray(np.floor((answer + scale * x) / grid + 0.5))


def permute_and_flip(rng: np.random.Generator, scores: Sequence[float], *, rate: float, size: int) -> Whole:
    """Indices of the largest score plus exponential noise, which has the law of permute-and-flip."""
    noise = rng.standard_exponential((size, len(scores))) / rate
    return np.asarray((np.asarray(scores) + noise).argmax(axis=1), dtype=np.int64)


def exponential(rng: np.random.Generator, scores: Sequence[float], *, rate: float, size: int) -> Whole:
    """Indices of the largest score plus Gumbel noise, which has the law of the exponential mechanism."""
    noise = rng.gumbel(size=(size, len(scores))) / rate
    return np.asarray((np.asarray(scores) + noise).argmax(axis=1), dtype=np.int64)


def _signs(rng: np.random.Generator, size: int) -> Floats:
    return np.asarray(1.0 - 2.0 * rng.integers(0, 2, size))
