"""An interval for a quotient whose numerator and denominator are both noisy (Fieller's idea, for Laplace or Gaussian noise).

Let T~ = T + X and s~ = s + Z be published, k = T/s wanted. Then T~ - k s~ = X - kZ has a known law, so
{k : |T~ - k s~| <= Q(|k|)}, Q the quantile of |X - kZ|, holds the true k with the stated probability. Q grows
with |k|, so from any outer bound u of the set a better one follows: k <= (T~ + Q(u)) / s~.

Where the scale of a noise is confidential, Q is the joined width of `reticent.refine.pivot`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Literal

from reticent.refine.pivot import LAPLACE, HiddenNoise, Shape, exponent, joined
from reticent.refine.quantiles import gaussian_ratio_half_width, normal_half_width, ratio_half_width

ROUNDS = 60
Law = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyValue:
    """A published number: its value, the scale of its noise, and what its grid can add.

    The scale is Laplace's, with half a step of the grid, or the deviation of a Gaussian, with three halves.
    """

    value: float
    scale: float = 0.0
    blur: float = 0.0
    law: Law = "laplace"

    @property
    def shape(self) -> Shape:
        if self.law != "laplace":
            raise ValueError("noise of a confidential scale is joined with Laplace noise alone")
        return LAPLACE

    def width(self, level: float) -> float:
        """The noise, as if it were continuous, stays within this distance with probability `level`."""
        return self.scale * (normal_half_width(level) if self.law == "gaussian" else -log(1 - level))


Told = NoisyValue | HiddenNoise


def quotient_interval(
    top: Told, bottom: Told, *, level: float, low: float, high: float
) -> tuple[float, float]:
    """The interval for top / bottom within the public limits [low, high]."""
    if bottom.value <= 0:
        return low, high

    spread = _spread(top, bottom, level)

    def reach(k: float) -> float:
        return spread(k) + top.blur + k * bottom.blur

    left, right = low, high
    for _ in range(ROUNDS):
        width = reach(max(abs(left), abs(right)))
        tighter = max(low, (top.value - width) / bottom.value), min(high, (top.value + width) / bottom.value)
        if tighter[0] > high or tighter[1] < low:
            # The limits exclude what was published: keep the nearest point of them.
            edge = high if tighter[0] > high else low
            return edge, edge
        left, right = max(left, tighter[0]), min(right, tighter[1])
    return left, right


def _spread(top: Told, bottom: Told, level: float) -> Callable[[float], float]:
    """How far X - kZ reaches with probability at least `level`, rounding aside, as a function of k >= 0."""
    if isinstance(top, NoisyValue) and isinstance(bottom, NoisyValue):
        find = _half_width(top, bottom)
        return lambda k: find(top.scale, k * bottom.scale, level)
    one, other = top.width(level), bottom.width(level)
    if not (one and other):
        return lambda k: one + k * other
    common = isinstance(top, HiddenNoise) and isinstance(bottom, HiddenNoise) and top.height == bottom.height
    p = exponent(top.shape, bottom.shape, level=level, common=common)
    return lambda k: joined(one, k * other, p)


def _half_width(top: NoisyValue, bottom: NoisyValue) -> Callable[[float, float, float], float]:
    """By the law that both noises have; a number without noise goes with any."""
    laws = {each.law for each in (top, bottom) if each.scale}
    if len(laws) > 1:
        raise ValueError("both noises of a quotient are Laplace, or both are Gaussian")
    return gaussian_ratio_half_width if laws == {"gaussian"} else ratio_half_width
