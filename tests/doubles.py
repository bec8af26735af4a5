"""Stand-ins for the noise. What is made with them is marked not private and can be neither charged nor published."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, sqrt
from typing import Any

from reticent.lab.noise import NoNoise as ZeroNoise
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.value_ladder import CountLengths

__all__ = ["Call", "FrozenNoise", "ZeroNoise", "passed"]


WINDOW = range(-40, 121)
"""The numbers around which small counts lie."""


def passed(patch: Any) -> None:
    """For a fault that strikes after the charge: the plan's trial on nobody has been passed."""
    patch.setattr("reticent.release.curator.try_plan", lambda plan: None)


@dataclass(frozen=True)
class Call:
    """One meeting of exact answers with the noise. Noise for a smooth bound has `beta` and `grid`, and its
    `sensitivity` is the bound, which is private and may differ between neighbours by a factor e^beta."""

    kind: str
    answers: tuple[int | Fraction, ...]
    sensitivity: int | Fraction
    epsilon: Fraction
    beta: Fraction | None = None
    grid: Fraction | None = None

    @property
    def parameters(self) -> tuple[object, ...]:
        """All of the call that neighbours must share."""
        public = (self.beta, self.grid) if self.beta else self.sensitivity
        return self.kind, len(self.answers), public, self.epsilon

    def distance(self, other: "Call") -> int | Fraction:
        """How far the exact answers are apart: summed, in Euclidean length before Gaussian noise (of which `epsilon` is the
        rho), or for scores the largest single move.

        Scores that should move together, and move both ways, are as far apart as both moves.
        """
        moves = [a - b for a, b in zip(self.answers, other.answers, strict=True)]
        if self.kind == "select together":
            return max(0, *moves) - min(0, *moves)
        if self.kind.startswith("gaussian"):
            return Fraction(sqrt(sum(move * move for move in moves)))
        is_choice = self.kind in ("select", "choose", "choose around")
        return max(map(abs, moves)) if is_choice else sum(map(abs, moves))


@dataclass
class FrozenNoise:
    """Records every call. Gives back the outputs prescribed, and past their end fixed noise.

    Prescribed *outputs*, not prescribed noise, are what adaptive composition speaks of: a later question may
    depend on an earlier released answer, so neighbours are compared along one and the same transcript.
    """

    prescribed: Sequence[tuple[int, ...]] = ()
    is_private: bool = field(default=False, init=False)
    calls: list[Call] = field(default_factory=list)
    outputs: list[tuple[int, ...]] = field(default_factory=list)

    def laplace(self, answer: int, *, sensitivity: int, epsilon: Fraction) -> int:
        return self._meet("laplace", (answer,), sensitivity, epsilon)[0]

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(self._meet("laplace_many", tuple(answers), sensitivity, epsilon))

    def gaussian(self, answer: int, *, sensitivity: int, rho: Fraction) -> int:
        return self._meet("gaussian", (answer,), sensitivity, rho)[0]

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        return list(self._meet("gaussian_many", tuple(answers), sensitivity, rho))

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        return self._meet("choose", tuple(scores), sensitivity, epsilon)[0]

    def select(
        self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, monotone: bool = False
    ) -> int:
        kind = "select together" if monotone else "select"
        return self._meet(kind, tuple(scores), sensitivity, epsilon)[0]

    def around(self, lengths: CountLengths, *, sensitivity: int, epsilon: Fraction) -> int:
        """Records minus the steps of every number in a window, and gives one of them."""
        steps = tuple(-lengths.steps(number) for number in WINDOW)
        return WINDOW[self._meet("choose around", steps, sensitivity, epsilon)[0]]

    def lomax(self, answer: Fraction, **parameters: Any) -> int:
        return self._meet_smooth("lomax", answer, **parameters)

    def cauchy(self, answer: Fraction, **parameters: Any) -> int:
        return self._meet_smooth("cauchy", answer, **parameters)

    def cauchy4(self, answer: Fraction, **parameters: Any) -> int:
        return self._meet_smooth("cauchy4", answer, **parameters)

    def student(self, answer: Fraction, **parameters: Any) -> int:
        return self._meet_smooth("student", answer, **parameters)

    def _meet_smooth(
        self, kind: str, answer: Fraction, *, sensitivity: Smooth, epsilon: Fraction, grid: Fraction
    ) -> int:
        call = Call(kind, (answer,), sensitivity.bound, epsilon, sensitivity.beta, grid)
        return self._give(call, (floor(answer / grid + Fraction(1, 2)),))[0]

    def _meet(
        self, kind: str, answers: tuple[int, ...], sensitivity: int, epsilon: Fraction
    ) -> tuple[int, ...]:
        return self._give(Call(kind, answers, sensitivity, epsilon), answers)

    def _give(self, call: Call, answers: tuple[int, ...]) -> tuple[int, ...]:
        place = len(self.calls)
        self.calls.append(call)
        # Fixed noise: 3, -2, 1, 3, ... for numbers; the best candidate for a choice.
        fixed = (
            (answers.index(max(answers)),)
            if call.kind.startswith(("select", "choose"))
            else tuple(answer + (3, -2, 1)[(place + i) % 3] for i, answer in enumerate(answers))
        )
        given = self.prescribed[place] if place < len(self.prescribed) else fixed
        output = given if len(given) == len(fixed) else fixed
        self.outputs.append(output)
        return output
