"""How far a weighted sum of independent noises reaches: from public weights and scales alone, by its Fourier series.

Z = sum of w_i X_i, each X_i a draw of discrete Laplace or discrete Gaussian noise, or uniform on [-1/2, 1/2]. Its
characteristic function is the product of theirs. Z may be a lattice variable, whose series does not converge; so a little
normal noise is added, and what it may hide is added to the width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import erfc, exp, expm1, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError

Floats = NDArray[np.float64]

TERMS = 1 << 15
PERIOD = 40.0
"""Half the period, in standard deviations of Z and in scales of each draw. Beyond it there is less than e^-37 of the law."""
SMOOTH = 1 / 16000
"""The standard deviation of the normal noise that is added, in half periods: mostly 1/400 of that of Z."""
REACH = 5.5
"""So many of its own standard deviations the normal noise is allowed for."""
NUMERIC = 1e-9
"""What the series may be wrong by, generously: what lies beyond the period, left-out terms, rounding."""


class NoiseLaw(Enum):
    """What kind of noise a draw is."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"
    UNIFORM = "uniform on a step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """`count` independent draws of one noise, each times `weight`.

    `scale` is that of P(x) ~ exp(-|x| / scale), or sigma; uniform draws have none.
    """

    weight: float
    scale: float = 1.0
    count: int = 1
    law: NoiseLaw = NoiseLaw.LAPLACE

    @property
    def variance(self) -> float:
        """Of all of them together. That of discrete Gaussian noise is at most sigma^2."""
        return self.count * self.weight**2 * _variance(self)

    @property
    def reach(self) -> float:
        """What one draw hardly ever passes, however small its standard deviation."""
        return 0.0 if self.law is NoiseLaw.UNIFORM else abs(self.weight) * (PERIOD * self.scale + 2)

    def log_characteristic(self, at: Floats) -> Floats:
        """The logarithm of their characteristic function."""
        u = self.weight * at
        if self.law is NoiseLaw.UNIFORM:
            with np.errstate(divide="ignore"):
                return np.asarray(self.count * np.log(np.abs(np.sinc(u / (2 * pi)))))
        if self.law is NoiseLaw.LAPLACE:
            q = exp(-1 / self.scale)
            steep = 4 * q / expm1(-1 / self.scale) ** 2
            return np.asarray(-self.count * np.log1p(steep * np.sin(u / 2) ** 2))
        return self.count * _log_theta(u, self.scale)


def _variance(draws: Draws) -> float:
    match draws.law:
        case NoiseLaw.UNIFORM:
            return 1 / 12
        case NoiseLaw.LAPLACE:
            return 2 * exp(-1 / draws.scale) / expm1(-1 / draws.scale) ** 2
        case NoiseLaw.GAUSSIAN:
            return draws.scale**2


def _log_theta(u: Floats, sigma: float) -> Floats:
    """Of discrete Gaussian noise: by Poisson's formula, sum_j e^(-sigma^2 (u + 2 pi j)^2 / 2) over its value at 0."""
    if sigma < 0.5:
        raise PlanError("intervals of sums need a sigma of at least 0.5; use a smaller rho.", field="rho")
    near = np.abs(u - 2 * pi * np.round(u / (2 * pi)))
    turns = 2 * pi * np.arange(-3, 4)
    logs = -((sigma * (near[:, None] + turns)) ** 2) / 2
    mass = np.logaddexp.reduce(-((sigma * turns) ** 2) / 2)
    return np.asarray(np.logaddexp.reduce(logs, axis=1) - mass)


def standard_deviation(draws: Sequence[Draws]) -> float:
    """Of the weighted sum."""
    return sqrt(sum(each.variance for each in draws))


def half_width(draws: Sequence[Draws], level: float) -> float:
    """A t with P(|Z| <= t) >= level, larger than the least one by about a fiftieth of a standard deviation.

    Guarantee   the weighted sum stays within t with probability at least `level`.
    Adjacency   none: every input is public.
    Theorem     P(|Z| <= t) >= P(|Z + S| <= t - r) - P(|S| > r), S normal; the sine series of a law on a circle.
    Proof       proofs/refine/combination.md
    Assumes     independent draws; doubles are neglected below 1e-9 of probability.
    Keeps back  nothing.
    """
    if not 0 < level < 1 - 1e-6:
        raise PlanError(f"it is {level}, but must lie between 0 and 0.999999.", field="level")
    spread = standard_deviation(draws)
    if spread == 0:
        return 0.0
    half = max(PERIOD * spread, *(each.reach for each in draws))
    smooth = SMOOTH * half
    u = np.asarray(pi / half * np.arange(1, TERMS), dtype=np.float64)
    log_series = sum((each.log_characteristic(u) for each in draws), -((smooth * u) ** 2) / 2)
    weights = 2 * _signed(draws, u) * np.exp(log_series) / (pi * np.arange(1, TERMS))
    inside = np.arange(1, TERMS) / TERMS + _sines(weights)
    wanted = level + NUMERIC + erfc(REACH / sqrt(2))
    first = int(np.argmax(np.maximum.accumulate(inside) >= wanted))
    return half * (first + 1) / TERMS + REACH * smooth


def _sines(weights: Floats) -> Floats:
    """The sine series at its N points: of w_1 .. w_N the sums over k of w_k sin(pi j k / (N + 1)), by an odd row twice as long."""
    odd = np.concatenate([[0.0], weights, [0.0], -weights[::-1]])
    return np.asarray(-np.fft.rfft(odd).imag[1:-1] / 2)


def _signed(draws: Sequence[Draws], u: Floats) -> Floats:
    """The sign of the characteristic function: those of the integer noises are positive."""
    sign = np.ones_like(u)
    for each in draws:
        if each.law is NoiseLaw.UNIFORM and each.count % 2:
            sign *= np.sign(np.sinc(each.weight * u / (2 * pi)))
    return sign
