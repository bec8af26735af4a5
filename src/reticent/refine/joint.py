"""How far a difference of two noises reaches, when the scale of one or both is known only by a noisy logarithm.

Each noise alone has a width w that covers it: Q e^psi for Lomax noise whose log scale was released as psi, the
usual quantile for Laplace noise. For X - kZ the two are joined, (w1^p + w2^p)^(1/p). Whether that covers depends
on how the two scales compare, which nobody knows; p is the largest for which it covers whatever they are.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reticent.refine.quantiles import falling_root

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
