"""An interval for a quotient whose numerator and denominator are both noisy (Fieller's idea, with Laplace noise).

Let T~ = T + X and s~ = s + Z be published, k = T/s wanted. Then T~ - k s~ = X - kZ has a known law, so
{k : |T~ - k s~| <= Q(|k|)}, Q the quantile of |X - kZ|, holds the true k with the stated probability. Q grows
with |k|, so from any outer bound u of the set a better one follows: k <= (T~ + Q(u)) / s~.
"""

from dataclasses import dataclass

from reticent.refine.quantiles import ratio_half_width

ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """A published number: its value, the Laplace scale of its noise, and half a step of its grid."""

    value: float
    scale: float = 0.0
    blur: float = 0.0


def quotient_interval(
    top: Noisy, bottom: Noisy, *, level: float, low: float, high: float
) -> tuple[float, float]:
    """The interval for top / bottom within the public limits [low, high]."""
    if bottom.value <= 0:
        return low, high

    def reach(k: float) -> float:
        spread = ratio_half_width(top.scale, k * bottom.scale, level)
        return spread + top.blur + k * bottom.blur

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
