"""The noise that models call: that of every answer, and two kinds more."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from reticent.models.spherical import add_spherical
from reticent.noise.bits import SystemBits
from reticent.noise.gaussian import add_gaussian_many
from reticent.noise.source import Noise, SystemNoise
from reticent.sensitivity.bounds import Global


class ModelNoise(Noise, Protocol):
    """Whatever can stand between sums and a model."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """The answers with noise that falls with the Euclidean distance; `sensitivity` bounds that of their move."""
        ...

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        """The answers with discrete Gaussian noise each; `sensitivity` bounds the Euclidean length of their move."""
        ...


@dataclass(frozen=True, slots=True)
class SystemModelNoise(SystemNoise):
    """Noise from the operating system's generator."""

    def spherical(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """See `add_spherical`."""
        bound = Global(bound=Fraction(sensitivity))
        return add_spherical(answers, sensitivity=bound, epsilon=epsilon, bits=SystemBits())

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        """See `add_gaussian_many`."""
        return add_gaussian_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), rho=rho)
