"""Stand-ins for the noise of models. What is made with them is marked not private."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from reticent.lab import noise as twins
from reticent.lab.noise import NoNoise, QuickNoise
from tests.doubles import Call, FrozenNoise


@dataclass(frozen=True)
class RoundCall(Call):
    """A call whose moves are measured by their Euclidean length."""

    def distance(self, other: Call) -> int | Fraction:
        return Fraction(
            sum((a - b) ** 2 for a, b in zip(self.answers, other.answers, strict=True)) ** 0.5
        ).limit_denominator(10**9)


class FrozenModelNoise(FrozenNoise):
    """Records every call and replays prescribed outputs; rho stands where epsilon does."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(self._give(RoundCall("spherical", tuple(answers), sensitivity, epsilon), tuple(answers)))

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        return list(self._give(RoundCall("gaussian", tuple(answers), sensitivity, rho), tuple(answers)))


class ZeroModelNoise(NoNoise):
    """No noise at all."""

    __slots__ = ()

    def spherical(self, answers: Sequence[int], **_: Any) -> list[int]:
        return list(answers)

    def gaussian_many(self, answers: Sequence[int], **_: Any) -> list[int]:
        return list(answers)


@dataclass(frozen=True, slots=True)
class QuickModelNoise(QuickNoise):
    """Seeded noise of the same laws in floating point; `halved` plants the bug of half the noise."""

    rng: np.random.Generator = field(repr=False)
    factor: float = 1.0

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        scale = self.factor * float(sensitivity / epsilon)
        noise = twins.laplace(self.rng, scale=scale, size=len(answers))
        return [answer + step for answer, step in zip(answers, noise.tolist(), strict=True)]

    def select(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        best = max(scores)
        rate = float(epsilon / (2 * sensitivity)) / self.factor
        gaps = [float(score - best) for score in scores]
        return int(twins.permute_and_flip(self.rng, gaps, rate=rate, size=1)[0])

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        way = self.rng.standard_normal(len(answers))
        far = self.rng.gamma(len(answers)) * self.factor * float(sensitivity / epsilon)
        noise = np.floor(way / np.linalg.norm(way) * far + 0.5).astype(np.int64).tolist()
        return [answer + step for answer, step in zip(answers, noise, strict=True)]

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        sigma = self.factor * sensitivity / (2 * float(rho)) ** 0.5
        noise = np.floor(self.rng.standard_normal(len(answers)) * sigma + 0.5).astype(np.int64).tolist()
        return [answer + step for answer, step in zip(answers, noise, strict=True)]
