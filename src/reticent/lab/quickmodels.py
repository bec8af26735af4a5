"""The quick noise of models: seeded, in floating point, for studying error. Nothing drawn here protects anybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.lab import twins
from reticent.lab.quick import NoNoise, QuickNoise


@dataclass(frozen=True, slots=True)
class QuickModelNoise(QuickNoise):
    """`QuickNoise` with the two laws more that models call."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """A length that is gamma, in a direction that is even."""
        way = self.rng.standard_normal(len(answers))
        length = self.rng.gamma(len(answers)) * float(sensitivity / epsilon)
        steps = np.floor(way / np.linalg.norm(way) * length + 0.5).tolist()
        return [answer + int(step) for answer, step in zip(answers, steps, strict=True)]

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        sigma = sensitivity / (2 * float(rho)) ** 0.5
        steps = twins.gaussian(self.rng, sigma=sigma, size=len(answers)).tolist()
        return [answer + step for answer, step in zip(answers, steps, strict=True)]


@dataclass(frozen=True, slots=True)
class NoModelNoise(NoNoise):
    """The noise of models switched off."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(answers)

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        return list(answers)
