"""Noise for studying error: seeded and in floating point, or none at all. Nothing drawn here protects anybody.

A curator takes no noise from its caller, so nothing made with these can be charged or published.

Floating-point twins of every noise, for simulation with the truth in hand.

Equal in law to the exact noise as far as doubles go, many times faster, and drawn from a seeded generator: good for
studying error, unfit for release. What comes out are plain arrays, and nothing of the library imports this module.

The quick noise of models: seeded, in floating point, for studying error. Nothing drawn here protects anybody.

Bits that can be replayed, for running the real mechanisms in a simulation. A release drawn from them is none.

The quick noise of synthesizers: seeded, in floating point, for studying error. Nothing drawn here protects anybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from reticent.noise import calibrate
from reticent.noise.selection import exponential_around
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.value_ladder import CountLengths

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


@dataclass(frozen=True, slots=True)
class QuickNoise:
    """The laws of the exact noise by their floating-point twins, from a generator that can be replayed."""

    rng: np.random.Generator = field(repr=False)

    @property
    def is_private(self) -> bool:
        """False: whoever knows the seed can take the noise off again."""
        return False

    def laplace(self, answer: int, *, sensitivity: int, epsilon: Fraction) -> int:
        return self.laplace_many([answer], sensitivity=sensitivity, epsilon=epsilon)[0]

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        noise = laplace(self.rng, scale=float(sensitivity / epsilon), size=len(answers))
        return [answer + step for answer, step in zip(answers, noise.tolist(), strict=True)]

    def gaussian(self, answer: int, *, sensitivity: int, rho: Fraction) -> int:
        return self.gaussian_many([answer], sensitivity=sensitivity, rho=rho)[0]

    def gaussian_many(
        self, answers: Sequence[int], *, sensitivity: int | Fraction, rho: Fraction
    ) -> list[int]:
        sigma = float(sensitivity) / (2 * float(rho)) ** 0.5
        steps = gaussian(self.rng, sigma=sigma, size=len(answers)).tolist()
        return [answer + step for answer, step in zip(answers, steps, strict=True)]

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The exponential mechanism: the best score after Gumbel noise of scale 2 sensitivity / epsilon."""
        best = max(scores)  # gaps, not scores: a double holds them without loss
        gaps = np.array([float(score - best) for score in scores]) * float(epsilon / (2 * sensitivity))
        return int(np.argmax(gaps + self.rng.gumbel(size=len(gaps))))

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        best = max(scores)  # gaps, not scores: a double holds them without loss
        gaps = [float(score - best) for score in scores]
        rate = float(epsilon / (sensitivity if monotone else 2 * sensitivity))
        return int(permute_and_flip(self.rng, gaps, rate=rate, size=1)[0])

    def around(self, lengths: CountLengths, *, sensitivity: int, epsilon: Fraction) -> int:
        """The exact draw, from bits that can be replayed."""
        bits = SeededBits(self.rng)
        return exponential_around(lengths, sensitivity=sensitivity, epsilon=epsilon, bits=bits)

    def lomax(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        a = calibrate.lomax(epsilon=epsilon, beta=sensitivity.beta)
        x = lomax(self.rng, m=int(epsilon / sensitivity.beta), size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)

    def cauchy(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        gamma = 1 + epsilon / (2 * sensitivity.beta)
        a = calibrate.cauchy_as_published(epsilon=epsilon, beta=sensitivity.beta, gamma=gamma)
        x = cauchy(self.rng, gamma=float(gamma), size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)

    def cauchy4(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        a = calibrate.cauchy(epsilon=epsilon, beta=sensitivity.beta, gamma=Fraction(4))
        x = cauchy(self.rng, gamma=4.0, size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)

    def student(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        a = calibrate.student4(epsilon=epsilon, beta=sensitivity.beta)
        x = student(self.rng, size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """The noise switched off: what the same rows say by themselves."""

    @property
    def is_private(self) -> bool:
        """False, of course."""
        return False

    def laplace(self, answer: int, *, sensitivity: int, epsilon: Fraction) -> int:
        return answer

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(answers)

    def gaussian(self, answer: int, *, sensitivity: int, rho: Fraction) -> int:
        return answer

    def gaussian_many(
        self, answers: Sequence[int], *, sensitivity: int | Fraction, rho: Fraction
    ) -> list[int]:
        return list(answers)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The first candidate with the best score."""
        return list(scores).index(max(scores))

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        """The first candidate with the best score."""
        return list(scores).index(max(scores))

    def around(self, lengths: CountLengths, *, sensitivity: int, epsilon: Fraction) -> int:
        return lengths.count

    def lomax(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        return _steps(answer, Fraction(0), grid)

    def cauchy(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        return _steps(answer, Fraction(0), grid)

    def cauchy4(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        return _steps(answer, Fraction(0), grid)

    def student(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        return _steps(answer, Fraction(0), grid)


def _steps(answer: Fraction, noise: Fraction, grid: Fraction) -> int:
    return floor((answer + noise) / grid + Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class QuickModelNoise(QuickNoise):
    """`QuickNoise` with the law more that models call."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """A length that is gamma, in a direction that is even."""
        way = self.rng.standard_normal(len(answers))
        length = self.rng.gamma(len(answers)) * float(sensitivity / epsilon)
        steps = np.floor(way / np.linalg.norm(way) * length + 0.5).tolist()
        return [answer + int(step) for answer, step in zip(answers, steps, strict=True)]


@dataclass(frozen=True, slots=True)
class NoModelNoise(NoNoise):
    """The noise of models switched off."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(answers)


@dataclass(frozen=True, slots=True)
class SeededBits:
    """The bits of a seeded generator. A curator draws from the system alone, so these stand behind no claim."""

    rng: np.random.Generator = field(repr=False)

    @property
    def is_private(self) -> bool:
        """False: whoever knows the seed can take the noise off again."""
        return False

    def take(self, n: int) -> int:
        """The next `n` bits, from whole bytes."""
        size = (n + 7) // 8
        return int.from_bytes(self.rng.bytes(size)) >> (8 * size - n)


@dataclass(frozen=True, slots=True)
class QuickSynthNoise(QuickModelNoise):
    """`QuickModelNoise` with bits for what needs no secrecy."""

    @property
    def bits(self) -> SeededBits:
        return SeededBits(self.rng)


@dataclass(frozen=True, slots=True)
class NoSynthNoise:
    """The noise switched off. Rows are still drawn by chance, from a generator that can be replayed."""

    rng: np.random.Generator = field(repr=False)

    @property
    def is_private(self) -> bool:
        """False, of course."""
        return False

    @property
    def bits(self) -> SeededBits:
        return SeededBits(self.rng)

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(answers)

    def gaussian_many(
        self, answers: Sequence[int], *, sensitivity: int | Fraction, rho: Fraction
    ) -> list[int]:
        return list(answers)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The first candidate with the best score."""
        return list(scores).index(max(scores))
