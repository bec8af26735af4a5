"""Intervals when the noise scale is confidential: a noisy logarithm of the scale, and a quantile that knows it.

The smooth bound S may not be printed. ln S moves by at most beta between neighbours, so the integer round(ln S / grid),
noised with discrete Laplace noise at a cost of its own, may. The error of the answer, divided by the noisy scale, is
(X/a) e^-L up to the rounding: a law free of the data, whose quantile we know.

For a difference of two noises X - kZ, each noise alone has a width w that covers it: Q e^psi for Lomax noise whose log scale
was released as psi, the usual quantile for Laplace noise. The two are joined, (w1^p + w2^p)^(1/p). Whether that covers
depends on how the two scales compare, which nobody knows; p is the largest for which it covers whatever they are.

A quotient of two noisy numbers has such a pivot, too (Fieller's idea). Let T~ = T + X and s~ = s + Z be published, k = T/s
wanted. Then T~ - k s~ = X - kZ has a known law, so {k : |T~ - k s~| <= Q(|k|)}, Q the quantile of |X - kZ|, holds the true
k with the stated probability. Q grows with |k|, so from any outer bound u of the set a better one follows: k <= (T~ + Q(u)) / s~.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.calibrate import falling_root, lomax
from reticent.refine.quantiles import (
    gaussian_ratio_half_width,
    normal_half_width,
    ratio_half_width,
)
from reticent.sensitivity.bounds import Global, Smooth
from reticent.sensitivity.donors import Moves

_PRECISIONS = (64, 128, 256, 512, 1024, 4096)
_FINENESS = 256
_WIDEST = 2**17  # steps of the noise on a height; beyond them a bar spans dozens of orders of magnitude
_FORGOTTEN = 1e-16
_NARROWINGS = 60  # of the outer bound of a quotient
Law = Literal["laplace", "gaussian"]
_Law = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """The public parameters of one error bar: Lomax noise at epsilon with bounds smooth in beta, a grid for ln S.

    epsilon and beta are for one record; `epsilon_scale` pays for neighbours who differ in `steps` of them. Where
    the height of another ask's bound is used, `lent` is the beta of that one, at most this one's.
    """

    epsilon: Fraction
    beta: Fraction
    epsilon_scale: Fraction
    level: Fraction
    grid: Fraction
    steps: int = 1
    lent: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "beta", "epsilon_scale", "grid", "steps"):
            if not getattr(self, name) > 0:
                raise PlanError(f"it is {getattr(self, name)}, but must be positive.", field=name)
        if not 0 < self.level < 1:
            raise PlanError(f"it is {self.level}, but must lie between 0 and 1.", field="level")
        lomax(
            epsilon=self.epsilon, beta=self.beta
        )  # refuses what no Lomax noise can carry, while it is early
        if not 0 < self.smooth_in <= self.beta:
            raise PlanError(f"it is {self.lent}, but at most {self.beta} is of use here.", field="lent")
        if self.smooth_in / self.grid > 10**4:
            raise PlanError(f"it is {self.grid}; a grid below beta/10000 gains nothing.", field="grid")
        if self.scale > _WIDEST:
            least = float(self.sensitivity.bound / _WIDEST)
            raise PlanError(
                f"{float(self.epsilon_scale):.2g} for the interval of one part blurs it beyond use, and sums too long to "
                f"be taken; give the interval more: {least:.2g} for each part, or leave it out.",
                field="epsilon_scale",
            )

    @property
    def a(self) -> Fraction:
        return lomax(epsilon=self.epsilon, beta=self.beta)

    @property
    def smooth_in(self) -> Fraction:
        """The beta of the bound whose height is released."""
        return self.beta if self.lent is None else self.lent

    @property
    def sensitivity(self) -> Global:
        """How far one respondent moves round(ln S / grid): ceil(steps beta/grid), and one to spare."""
        return Global(bound=Fraction(math.ceil(self.steps * self.smooth_in / self.grid) + 1))

    @property
    def spread(self) -> float:
        """The scale of the noise on ln S itself."""
        return float(self.grid * self.scale)

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noise on round(ln S / grid)."""
        return self.sensitivity.bound / self.epsilon_scale

    def height(self, smooth: Smooth) -> int:
        """round(ln S / grid) by the rule floor(x + 1/2), decided exactly. Private until noised.

        Guarantee   adding discrete Laplace noise of `scale` to it is epsilon_scale-DP.
        Adjacency   the one the smooth bound was proved for.
        Theorem     THEORY 3.5a.
        Proof       proofs/refine/pivot.md
        Assumes     smooth.beta is the beta the height was planned for.
        Keeps back  the height itself.
        """
        if smooth.beta != self.smooth_in:
            raise PlanError(
                f"it is {smooth.beta}, but the interval was planned for {self.smooth_in}.", field="beta"
            )
        return _rounded_log(smooth.bound, self.grid)

    def miss(self, t: float) -> float:
        """The chance that |X| e^(-grid N)/a exceeds t: sum over n of P(N = n)(1 + a t e^(grid n))^-m."""
        return _miss(t, self._law(), m=int(self.epsilon / self.beta))

    def _law(self) -> _Law:
        """a e^(grid n) and P(N = n) for the n that matter."""
        n, weight = _discrete_laplace(float(1 / self.scale))
        return float(self.a) * np.exp(np.clip(float(self.grid) * n, -700.0, 700.0)), weight

    def factor(self) -> float:
        """Q: the half-width is Q e^(grid k) with k the released integer. It covers with at least `level`.

        S e^(-grid round(ln S / grid)) lies within e^(-grid/2) and e^(grid/2), whatever S is, so the quantile is
        widened by e^(grid/2); the last factor covers the rounding of this sum.
        """
        return _factor(self)

    def half_width(self, released: int) -> float:
        """Half the interval around the noisy answer, from the released integer alone."""
        return self.factor() * math.exp(min(float(self.grid) * released, 700.0))


@lru_cache(maxsize=256)
def _factor(bar: Pivot) -> float:
    law, m = bar._law(), int(bar.epsilon / bar.beta)
    quantile = falling_root(lambda t: _miss(t, law, m=m), float(1 - bar.level), start=1.0)
    return quantile * math.exp(float(bar.grid) / 2) * (1 + 1e-9)


def pivot(
    *, epsilon: Fraction, beta: Fraction, epsilon_scale: Fraction, level: Fraction, steps: int = 1
) -> Pivot:
    """The pivot on the usual grid, beta/256, where rounding widens a bar by less than one part in 200."""
    return Pivot(
        epsilon=epsilon,
        beta=beta,
        epsilon_scale=epsilon_scale,
        level=level,
        grid=beta / _FINENESS,
        steps=steps,
    )


def _miss(t: float, law: _Law, *, m: int) -> float:
    scale, weight = law
    return float(np.sum(weight * np.exp(-m * np.log1p(scale * t))))


def _discrete_laplace(rate: float) -> _Law:
    """The values n that matter and P(N = n), proportional to e^(-rate |n|); what is cut off misses, to be safe."""
    reach = math.ceil(-math.log(_FORGOTTEN) / rate) + 1
    n = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-rate * np.abs(n)) * math.tanh(rate / 2)
    weight[0] += max(0.0, 1.0 - float(np.sum(weight)))
    return n, weight


def _rounded_log(value: Fraction, grid: Fraction) -> int:
    """floor(ln(value)/grid + 1/2). ln of a rational other than 1 is irrational, so precision decides."""
    if value == 1:
        return 0
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            place = (ball(value).log() / ball(grid) + arb(1) / 2).floor().unique_fmpz()
            if place is not None:
                return int(place)
    raise PlanError("the scale could not be placed on its grid; choose a coarser one.", field="grid")


Floats = NDArray[np.float64]

LEAST, MOST = 0.5, 16.0
_ROUNDS = 12
_ENOUGH = 1e-6
_FAR = 30.0  # e^-30 is left out
_SCALES = np.exp(np.linspace(-11.0, 11.0, 45))


@dataclass(frozen=True, slots=True)
class Shape:
    """A symmetric noise of scale 1: double Lomax with tail (1 + x)^-m, or Laplace (m = 0).

    `spread` is the scale of the noise on its released log scale; 0 where the scale is public.
    """

    m: int = 0
    spread: float = 0.0

    def tail(self, t: Floats) -> Floats:
        """P(|X| > t)."""
        return np.exp(-self.m * np.log1p(t)) if self.m else np.exp(-t)

    def inverse(self, v: Floats) -> Floats:
        """The t with P(|X| > t) = e^-v."""
        return np.expm1(v / self.m) if self.m else v

    def width(self, miss: float) -> float:
        """The w with P(|X| > w e^L) = miss, L the noise on the log scale."""
        at, weight = _two_sided(self.spread, 16)
        factor = np.exp(np.clip(at, -700.0, 700.0))
        return falling_root(lambda t: float(weight @ self.tail(t * factor)), miss, start=1.0)


LAPLACE = Shape()


def joined(one: float, other: float, p: float) -> float:
    """(one^p + other^p)^(1/p), without leaving the doubles."""
    wide, narrow = max(one, other), min(one, other)
    return wide * math.exp(math.log1p((narrow / wide) ** p) / p) if wide else 0.0


@lru_cache(maxsize=256)
def exponent(one: Shape, other: Shape, *, level: float, common: bool = False) -> float:
    """The largest p at which the joined width covers with `level`, however the scales compare.

    `common` where both log scales were released with one and the same noise. Coverage falls as p grows.
    """
    if covers(one, other, MOST, level=level, common=common):
        return MOST
    low, high = LEAST, MOST
    for _ in range(_ROUNDS):
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if covers(one, other, middle, level=level, common=common) else (low, middle)
        )
    return low


def covers(one: Shape, other: Shape, p: float, *, level: float, common: bool) -> bool:
    """Whether the width joined with p misses at most as often as said, at every ratio of the scales looked at."""
    miss = 1 - level
    return bool(misses(one, other, p, level=level, common=common).max() <= miss * (1 + 1e-4) + _ENOUGH)


def misses(
    one: Shape, other: Shape, p: float, *, level: float, common: bool = False, scales: Floats = _SCALES
) -> Floats:
    """How often |s X - Z| exceeds the joined width, for each scale s of the first: X, Z of the two shapes."""
    left, right, weight = _heights(one, other, common=common)
    first, second = one.width(1 - level), other.width(1 - level)
    found = []
    for s in scales.tolist():
        a, b = math.log(s * first) + left, math.log(second) + right
        top = np.maximum(a, b)
        w = np.exp(np.minimum(top + np.log(np.exp(p * (a - top)) + np.exp(p * (b - top))) / p, 600.0))
        found.append(float(weight @ _tail(s, one, other, w)))
    return np.array(found)


def _heights(one: Shape, other: Shape, *, common: bool) -> tuple[Floats, Floats, Floats]:
    """Values of the two noises on the log scales, and their probabilities."""
    if common:
        at, weight = _two_sided(one.spread, 8)
        return at, at, weight
    panels = 8 if not (one.spread and other.spread) else 3
    (left, p), (right, q) = _two_sided(one.spread, panels), _two_sided(other.spread, panels)
    weight = np.outer(p, q).ravel()
    kept = weight > 1e-10
    pairs = np.repeat(left, len(right)), np.tile(right, len(left))
    return pairs[0][kept], pairs[1][kept], weight[kept]


def _tail(s: float, one: Shape, other: Shape, w: Floats) -> Floats:
    """P(|s X - Z| > w): the wider noise by its tail, the narrower by its quantiles."""
    v, weight = _one_sided(12)
    half = np.array([math.log(2)])
    if s * one.inverse(half)[0] > other.inverse(half)[0]:
        wide, scale, narrow = one, s, other.inverse(v)
    else:
        wide, scale, narrow = other, 1.0, s * one.inverse(v)
    t = w[:, None]
    inner = 0.5 * wide.tail(np.abs(t - narrow) / scale)
    outer = 0.5 * wide.tail((t + narrow) / scale)
    found: Floats = (outer + np.where(narrow <= t, inner, 1 - inner)) @ weight
    return found


@lru_cache(maxsize=8)
def _one_sided(panels: int) -> tuple[Floats, Floats]:
    """Points and weights for the mean of a function of an exponential variable, panel by panel."""
    x, w = np.polynomial.legendre.leggauss(6)
    edges = _FAR * np.linspace(0.0, 1.0, panels + 1) ** 2  # fine where most of it is
    half = np.diff(edges)[:, None] / 2
    at = (edges[:-1, None] + half * (1 + x)).ravel()
    return at, (half * w).ravel() * np.exp(-at)


@lru_cache(maxsize=64)
def _two_sided(scale: float, panels: int) -> tuple[Floats, Floats]:
    """The same for a Laplace variable of this scale; one point if it is 0."""
    if not scale:
        return np.zeros(1), np.ones(1)
    at, weight = _one_sided(panels)
    return scale * np.concatenate([-at[::-1], at]), np.concatenate([weight[::-1], weight]) / 2


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
        return self.scale * (normal_half_width(level) if self.law == "gaussian" else -math.log(1 - level))


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
    for _ in range(_NARROWINGS):
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
