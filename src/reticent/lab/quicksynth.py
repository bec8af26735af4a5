"""The quick noise of synthesizers: seeded, in floating point, for studying error. Nothing drawn here protects anybody."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from reticent.lab.quickmodels import QuickModelNoise
from reticent.lab.seeded import SeededBits


@dataclass(frozen=True, slots=True)
class QuickSynthNoise(QuickModelNoise):
    """`QuickModelNoise` with the choice that synthesizers make, and bits for what needs no secrecy."""

    @property
    def bits(self) -> SeededBits:
        return SeededBits(self.rng)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The exponential mechanism: the best score after Gumbel noise of scale 2 sensitivity / epsilon."""
        best = max(scores)  # gaps, not scores: a double holds them without loss
        gaps = np.array([float(score - best) for score in scores]) * float(epsilon / (2 * sensitivity))
        return int(np.argmax(gaps + self.rng.gumbel(size=len(gaps))))


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

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        return list(answers)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The first candidate with the best score."""
        return list(scores).index(max(scores))
