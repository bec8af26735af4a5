"""A published number whose noise has a confidential scale, and the noisy logarithm that gives it an error bar."""

from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.refine.joint import Shape
from reticent.refine.pivot import Pivot
from reticent.sensitivity.moves import Moves

ROUNDED = 1 + Fraction(1, 2**30)
"""Two bounds rounded up, each by less than one part in 2^34, compare by this much more than what they bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScale:
    """A released round(ln S / grid), with what S was a bound of. All of it is public once it is here."""

    number: int
    pivot: Pivot
    moves: Moves
    released: int

    def lends(self, moves: Moves, *, beta: Fraction) -> Fraction | None:
        """The r for which the bound S' of these moves, smooth in `beta`, is at most r S; None if nothing is known.

        beta >= ours: e^(-beta k) U'_k <= e^(-ours k) r U_k on every rung, so S' <= r S.
        """
        times = moves.times(self.moves)
        return None if times is None or beta < self.pivot.smooth_in else times * ROUNDED


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenNoise:
    """A published number with Lomax noise of unknown scale: `times` e^psi is at least that scale's S, up to psi's noise.

    `unit` turns steps into the number's own unit, `blur` is half a step of its grid.
    """

    value: float
    pivot: Pivot
    height: LogScale
    times: Fraction
    unit: Fraction

    @property
    def blur(self) -> float:
        return float(self.unit) / 2

    @property
    def shape(self) -> Shape:
        return Shape(int(self.pivot.epsilon / self.pivot.beta), self.pivot.spread)

    def width(self, level: float) -> float:
        """The noise stays within this distance, rounding aside, with probability at least `level`."""
        bar = replace(self.pivot, level=Fraction(level))
        return bar.half_width(self.height.released) * float(self.times * self.unit)
