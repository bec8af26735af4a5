"""Noise for studying error: seeded and in floating point, or none at all. Nothing drawn here protects anybody.

A curator takes no noise from its caller, so nothing made with these can be charged or published.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

import numpy as np

from reticent.lab import twins
from reticent.noise import calibrate
from reticent.sensitivity.bounds import Smooth


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
        noise = twins.laplace(self.rng, scale=float(sensitivity / epsilon), size=len(answers))
        return [answer + step for answer, step in zip(answers, noise.tolist(), strict=True)]

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        best = max(scores)  # gaps, not scores: a double holds them without loss
        gaps = [float(score - best) for score in scores]
        rate = float(epsilon / (sensitivity if monotone else 2 * sensitivity))
        return int(twins.permute_and_flip(self.rng, gaps, rate=rate, size=1)[0])

    def lomax(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        a = calibrate.lomax(epsilon=epsilon, beta=sensitivity.beta)
        x = twins.lomax(self.rng, m=int(epsilon / sensitivity.beta), size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)

    def cauchy(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        gamma = 1 + epsilon / (2 * sensitivity.beta)
        a = calibrate.cauchy_as_published(epsilon=epsilon, beta=sensitivity.beta, gamma=gamma)
        x = twins.cauchy(self.rng, gamma=float(gamma), size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)

    def cauchy4(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        a = calibrate.cauchy(epsilon=epsilon, beta=sensitivity.beta, gamma=Fraction(4))
        x = twins.cauchy(self.rng, gamma=4.0, size=1)
        return _steps(answer, Fraction(x[0]) * sensitivity.bound / a, grid)

    def student(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        a = calibrate.student4(epsilon=epsilon, beta=sensitivity.beta)
        x = twins.student(self.rng, size=1)
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

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        """The first candidate with the best score."""
        return list(scores).index(max(scores))

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
