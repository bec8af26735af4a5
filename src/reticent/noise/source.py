"""What a query calls when its answer meets the noise. There is no seed here, and no way to pass one."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from reticent.noise.bits import SystemBits
from reticent.noise.cauchy import add_cauchy, add_published, add_student
from reticent.noise.gaussian import add_gaussian, add_gaussian_many
from reticent.noise.laplace import add_laplace, add_laplace_many, add_lomax
from reticent.noise.selection import exponential, exponential_around, permute_and_flip
from reticent.sensitivity.bounds import Global, Smooth
from reticent.sensitivity.value_ladder import CountLengths


class Noise(Protocol):
    """Whatever can stand between an exact answer and the world."""

    @property
    def is_private(self) -> bool:
        """Whether an answer drawn from it may be charged and published."""
        ...

    def laplace(self, answer: int, *, sensitivity: int, epsilon: Fraction) -> int:
        """The answer with discrete Laplace noise."""
        ...

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """The answers with discrete Laplace noise each; `sensitivity` bounds the sum of their moves."""
        ...

    def gaussian(self, answer: int, *, sensitivity: int, rho: Fraction) -> int:
        """The answer with discrete Gaussian noise."""
        ...

    def gaussian_many(
        self, answers: Sequence[int], *, sensitivity: int | Fraction, rho: Fraction
    ) -> list[int]:
        """The answers with discrete Gaussian noise each; `sensitivity` bounds the Euclidean length of their moves."""
        ...

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        """The index of a candidate with nearly the best score; `monotone` where scores rise or fall together."""
        ...

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The same by the exponential mechanism: epsilon-DP, and epsilon^2/8-zCDP."""
        ...

    def around(self, lengths: CountLengths, *, sensitivity: int, epsilon: Fraction) -> int:
        """A whole number few steps from a count: epsilon-DP, and epsilon^2/8-zCDP."""
        ...

    def lomax(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """The answer with double Lomax noise scaled to a smooth bound, in steps of the grid."""
        ...

    def cauchy(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """The answer with generalised Cauchy noise as it was published, in steps of the grid."""
        ...

    def cauchy4(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """The answer with generalised Cauchy noise of exponent 4, calibrated exactly, in steps of the grid."""
        ...

    def student(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """The answer with Student noise of three degrees of freedom, in steps of the grid."""
        ...


@dataclass(frozen=True, slots=True)
class SystemNoise:
    """Noise from the operating system's generator, the only kind a release can be made with."""

    @property
    def is_private(self) -> bool:
        """True: nobody can replay it."""
        return True

    def laplace(self, answer: int, *, sensitivity: int, epsilon: Fraction) -> int:
        """See `add_laplace`."""
        return add_laplace(answer, sensitivity=Global(bound=Fraction(sensitivity)), epsilon=epsilon)

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """See `add_laplace_many`."""
        return add_laplace_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), epsilon=epsilon)

    def gaussian(self, answer: int, *, sensitivity: int, rho: Fraction) -> int:
        """See `add_gaussian`."""
        return add_gaussian(answer, sensitivity=Global(bound=Fraction(sensitivity)), rho=rho)

    def gaussian_many(
        self, answers: Sequence[int], *, sensitivity: int | Fraction, rho: Fraction
    ) -> list[int]:
        """See `add_gaussian_many`."""
        return add_gaussian_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), rho=rho)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """See `exponential`."""
        return exponential(scores, sensitivity=sensitivity, epsilon=epsilon, bits=SystemBits())

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        """See `permute_and_flip`."""
        return permute_and_flip(
            scores, sensitivity=sensitivity, epsilon=epsilon, monotone=monotone, bits=SystemBits()
        )

    def around(self, lengths: CountLengths, *, sensitivity: int, epsilon: Fraction) -> int:
        """See `exponential_around`."""
        return exponential_around(lengths, sensitivity=sensitivity, epsilon=epsilon, bits=SystemBits())

    def lomax(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """See `add_lomax`."""
        return add_lomax(answer, sensitivity=sensitivity, epsilon=epsilon, grid=grid, bits=SystemBits())

    def cauchy(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """See `add_published`."""
        return add_published(answer, sensitivity=sensitivity, epsilon=epsilon, grid=grid, bits=SystemBits())

    def cauchy4(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """See `add_cauchy`."""
        return add_cauchy(answer, sensitivity=sensitivity, epsilon=epsilon, grid=grid, bits=SystemBits())

    def student(self, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction) -> int:
        """See `add_student`."""
        return add_student(answer, sensitivity=sensitivity, epsilon=epsilon, grid=grid, bits=SystemBits())
