"""The noise of synthesizers from the operating system's generator. There is no seed here, and no way to pass one."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from reticent.noise.bits import Bits, SystemBits
from reticent.noise.gaussian import add_gaussian_many
from reticent.noise.laplace import add_laplace_many
from reticent.noise.selection import exponential
from reticent.sensitivity.bounds import Global


@dataclass(frozen=True, slots=True)
class SystemSynthNoise:
    """The only noise with which a synthesizer's network may be published."""

    @property
    def is_private(self) -> bool:
        """True: nobody can replay it."""
        return True

    @property
    def bits(self) -> Bits:
        """Fresh bits for rows, fills and other draws that come after the noise."""
        return SystemBits()

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """See `add_laplace_many`."""
        return add_laplace_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), epsilon=epsilon)

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        """See `add_gaussian_many`."""
        return add_gaussian_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), rho=rho)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """See `exponential`."""
        return exponential(scores, sensitivity=sensitivity, epsilon=epsilon, bits=self.bits)
