"""Many exact draws at once, for long lists of answers on the grid: Laplace and double Lomax, each with a scale of its own.

Whole arrays of 64-bit words are decided by integers, or by doubles with a proved margin; the few draws that this leaves
open are finished by the scalar code, starting from the bits they already have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.exact import check_whole
from reticent.noise import calibrate
from reticent.noise.bits import (
    LARGEST,
    Bits,
    Flags,
    Largest,
    Uniform,
    Words,
    below,
    decide,
    exp_bracket,
    flip_many,
    is_below_exp,
    line,
    words,
)
from reticent.noise.laplace import settle_lomax

Whole = NDArray[np.int64]

BATCH = 1 << 14
"""Tries made at once: enough to hide the cost of a call, few enough to stay in the processor's cache."""

_GEOMETRIC = np.array([exp_bracket(Fraction(k), 128)[0] >> 64 for k in range(64, 0, -1)], dtype=np.uint64)
"""floor(2**64 * exp(-k)) for k = 64 .. 1, ascending; the first twenty are zero."""


def draw_laplace(n: int, *, scale: Fraction, bits: Bits) -> list[int]:
    """`n` independent draws of P(x) ~ exp(-|x| / scale), exactly. Proof: proofs/noise/laplace.md.

    With scale = p/q (Canonne, Kamath and Steinke 2020, Algorithm 2): u uniform on 0 .. p-1, kept with probability
    exp(-u/p); v geometric, P(v >= k) = exp(-k); then |x| = (u + p v) // q, and a sign. A negative zero is drawn again.
    """
    p, q = scale.numerator, scale.denominator
    if p <= 0:
        raise ValueError("a scale is positive")
    drawn: list[int] = []
    while len(drawn) < n:
        tries = min(BATCH, 5 * (n - len(drawn)) + 8)
        drawn += _laplace_batch(tries, p, q, bits) if p < 1 << 50 else _laplace_one(p, q, bits)
    return drawn[:n]


def _laplace_batch(n: int, p: int, q: int, bits: Bits) -> list[int]:
    """Those of `n` tries that are kept, in order, for p below 2**50."""
    raw = words(n, bits) >> np.uint64(64 - max(1, (p - 1).bit_length()))
    u = raw[raw < p].astype(np.int64)
    if p > 1:
        u = u[decide(words(len(u), bits), u / p, lambda i: Fraction(int(u[i]), p), bits)]
    drawn = words(len(u), bits)
    v, is_open = geometric(drawn)
    negative = words(len(u), bits) >> np.uint64(63) != 0
    # Here u + p v < 2**50 * 65, so a larger q leaves nothing but zeros.
    size: NDArray[Any] = (u + p * v) // min(q, 1 << 62)
    for i in np.flatnonzero(is_open):
        size = _with_exact(size, i, (int(u[i]) + p * geometric_one(Uniform(bits, int(drawn[i]), 64))) // q)
    kept: list[int] = np.where(negative, -size, size)[~(negative & (size == 0))].tolist()
    return kept


def _with_exact(size: NDArray[Any], i: np.intp, exact: int) -> NDArray[Any]:
    """`size` with one entry replaced, as Python integers if it does not fit."""
    size = size if exact < 1 << 62 else size.astype(object)
    size[i] = exact
    return size


def geometric(drawn: Words) -> tuple[Whole, Flags]:
    """How many k = 1, 2, ... have U < exp(-k), and where the first 64 digits of U leave that open."""
    at = np.searchsorted(_GEOMETRIC, drawn, side="right")
    is_open = (_GEOMETRIC[np.maximum(at, 1) - 1] == drawn) & (at > 0)
    return len(_GEOMETRIC) - at, is_open


def geometric_one(u: Uniform) -> int:
    """The same count from a number whose further digits are drawn as needed."""
    v = 0
    while is_below_exp(u, Fraction(v + 1)):
        v += 1
    return v


def _laplace_one(p: int, q: int, bits: Bits) -> list[int]:
    """One try, kept or not, for any scale."""
    u = below(p, bits)
    if not is_below_exp(Uniform(bits), Fraction(u, p)):
        return []
    size = (u + p * geometric_one(Uniform(bits))) // q
    negative = bits.take(1) == 1
    return [] if negative and size == 0 else [-size if negative else size]


def draw_gaussian(n: int, *, sigma: float, bits: Bits) -> list[int]:
    """`n` independent draws of P(x) ~ exp(-x*x / (2 sigma*sigma)), exactly, for any sigma. Proof: proofs/noise/tabled.md.

    Canonne, Kamath and Steinke 2020, Algorithm 3: y of Laplace noise of scale t = floor(sigma) + 1 is kept with
    probability exp(-(|y| - sigma*sigma/t)**2 / (2 sigma*sigma)).
    """
    if not 0 < sigma < 1 << 48:
        raise ValueError("a scale is positive, and below 2**48")
    t, square = int(sigma) + 1, Fraction(sigma) ** 2
    drawn: list[int] = []
    while len(drawn) < n:
        tries = draw_laplace(min(BATCH, 2 * (n - len(drawn)) + 8), scale=Fraction(t), bits=bits)
        away = (np.abs(np.array(tries, dtype=np.float64)) - float(square / t)) / sigma
        kept = flip_many(np.minimum(away * away / 2, LARGEST), partial(_gamma, tries, t, square), bits)
        drawn += np.array(tries, dtype=np.int64)[kept].tolist()
    return drawn[:n]


def _gamma(tries: Sequence[int], t: int, square: Fraction, i: int) -> Fraction:
    return (abs(tries[i]) - square / t) ** 2 / (2 * square)


def draw_lomax(n: int, *, m: int, scale: Fraction, bits: Bits) -> list[int]:
    """`n` independent draws of double Lomax noise times `scale`, rounded to whole numbers, exactly.

    For answers on the grid, `scale` in grid steps: adding such a draw is what `add_lomax` does. Proof:
    proofs/noise/lomax.md.
    """
    drawn: list[int] = []
    while len(drawn) < n:
        drawn += _lomax_batch(min(BATCH, n - len(drawn)), m, scale, bits)
    return drawn


def _lomax_batch(n: int, m: int, scale: Fraction, bits: Bits) -> list[int]:
    """With w in [p, p+1] / 2**64 and c = 2**64 - 1 - p, |x| = 1/w - 1 lies in [c / (p+1), (c+1) / p]."""
    each = words(m * n, bits).reshape(m, n)
    p = each.max(axis=0)
    c = (~p).astype(np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        size = float(min(scale, Fraction(1 << 1000)))  # beyond that nothing settles here
        low = (size * c / (p + 1.0) + 0.5) * (1.0 - 2.0**-46)
        high = (size * (c + 1.0) / p + 0.5) * (1.0 + 2.0**-46)
        is_settled = (np.floor(low) == np.floor(high)) & (high < 2.0**50)
    negative = words(n, bits) >> np.uint64(63) != 0
    floor = np.where(is_settled, np.floor(low), 0.0).astype(np.int64)
    drawn: list[int] = np.where(negative, -floor, floor).tolist()
    where = line(0, scale=scale, grid=Fraction(1))
    for i in np.flatnonzero(~is_settled):
        w = Largest(bits, int((each[:, i] == p[i]).sum()), int(p[i]), 64)
        drawn[i] = settle_lomax(where, -1 if negative[i] else 1, w)
    return drawn


FINE = 40
"""Binary digits of a rounded scale: noise grows by less than one part in 2**39."""


def round_up(scale: Fraction) -> Fraction:
    """The least p / 2**k (or whole number) of `FINE` digits that is not below a positive scale."""
    places = max(0, FINE - (scale.numerator // scale.denominator).bit_length())
    if scale < 1:
        places += (scale.denominator // scale.numerator).bit_length() - 1
    return Fraction(-(-(scale.numerator << places) // scale.denominator), 1 << places)


def draw_laplace_each(scales: Sequence[Fraction], *, bits: Bits) -> list[int]:
    """One draw of P(x) ~ exp(-|x| / scale) for each scale, independent and exact. Proof: proofs/noise/each.md.

    Every scale takes tries of its own, as `draw_laplace` makes them, until one is kept; a round makes one try for each
    that still waits. Scales that do not fit the arrays are drawn one by one.
    """
    if any(scale <= 0 for scale in scales):
        raise ValueError("a scale is positive")
    drawn: NDArray[Any] = np.zeros(len(scales), dtype=object)
    is_small = np.array([s.numerator < 1 << 50 and s.denominator < 1 << 62 for s in scales], dtype=np.bool_)
    for i in np.flatnonzero(~is_small):
        drawn[i] = draw_laplace(1, scale=scales[int(i)], bits=bits)[0]
    waiting = np.flatnonzero(is_small)
    law = _Law.of([scales[int(i)] for i in waiting])
    while len(waiting):
        kept, size = _tries(law, bits)
        drawn[waiting[kept]] = size
        is_done = np.zeros(len(waiting), dtype=np.bool_)
        is_done[kept] = True
        waiting, law = waiting[~is_done], law.take(~is_done)
    return [int(x) for x in drawn]


@dataclass(frozen=True, slots=True)
class _Law:
    """Scales p / q, and how many digits a word loses so that it is as long as p - 1."""

    p: Whole
    q: Whole
    lost: Words

    @classmethod
    def of(cls, scales: Sequence[Fraction]) -> "_Law":
        p, q = ([getattr(s, name) for s in scales] for name in ("numerator", "denominator"))
        lost = [64 - max(1, (each - 1).bit_length()) for each in p]
        return cls(np.array(p, np.int64), np.array(q, np.int64), np.array(lost, np.uint64))

    def take(self, which: NDArray[Any]) -> "_Law":
        return _Law(self.p[which], self.q[which], self.lost[which])


def _tries(law: _Law, bits: Bits) -> tuple[Whole, NDArray[Any]]:
    """One try for each scale: which were kept, and what they gave."""
    raw = words(len(law.p), bits) >> law.lost
    kept = np.flatnonzero(raw < law.p.astype(np.uint64))
    u, p = raw[kept].astype(np.int64), law.p[kept]
    heads = decide(words(len(u), bits), u / p, lambda i: Fraction(int(u[i]), int(p[i])), bits)
    kept, u, p, q = kept[heads], u[heads], p[heads], law.q[kept][heads]
    digits = words(len(u), bits)
    v, is_open = geometric(digits)
    size: NDArray[Any] = ((u + p * v) // q).astype(object)
    for i in np.flatnonzero(is_open):
        v_i = geometric_one(Uniform(bits, int(digits[i]), 64))
        size[i] = (int(u[i]) + int(p[i]) * v_i) // int(q[i])
    negative = words(len(u), bits) >> np.uint64(63) != 0
    fine = ~(negative & np.asarray(size == 0, dtype=np.bool_))
    return kept[fine], np.where(negative, -size, size)[fine]


Floats = NDArray[np.float64]


def add_lomax_many(
    answers: Sequence[int], *, bounds: Floats, beta: Fraction, epsilon: Fraction, bits: Bits
) -> list[int]:
    """Add double Lomax noise to each answer, a whole number of grid steps, scaled to its own smooth bound in steps.

    Guarantee   epsilon-DP for the whole list, one call.
    Adjacency   the one the bounds were made for, if it touches one answer and its bound and leaves all others alone.
    Theorem     THEORY 2.1, 2.2 and 2.6; parallel composition.
    Proof       proofs/noise/lomax_many.md
    Assumes     beta = epsilon / m for an integer m >= 3; every bound is a positive double, beta-smooth.
    Keeps back  the bounds and the scales: both were read off the rows.
    """
    check_whole(answers)
    if len(answers) != len(bounds) or not (np.isfinite(bounds) & (bounds > 0)).all():
        raise ValueError("every answer has a bound, finite and positive")
    a = calibrate.lomax(epsilon=epsilon, beta=beta)
    m = int(epsilon / beta)  # a whole number, or the calibration has refused it
    drawn: list[int] = []
    for first in range(0, len(answers), BATCH):
        drawn += _batch(bounds[first : first + BATCH], a, m, bits)
    return [answer + noise for answer, noise in zip(answers, drawn, strict=True)]


def _batch(bounds: Floats, a: Fraction, m: int, bits: Bits) -> list[int]:
    """floor((S/a)|x| + 1/2) with a sign: w in [p, p+1] / 2**64, c = 2**64 - 1 - p, |x| in [c / (p+1), (c+1) / p]."""
    n = len(bounds)
    each = words(m * n, bits).reshape(m, n)
    negative = words(n, bits) >> np.uint64(63) != 0
    p = each.max(axis=0)
    c = (~p).astype(np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        size = bounds / float(a)
        low = (size * c / (p + 1.0) + 0.5) * (1.0 - 2.0**-46)
        high = (size * (c + 1.0) / p + 0.5) * (1.0 + 2.0**-46)
        is_settled = (np.floor(low) == np.floor(high)) & (high < 2.0**50)
    floor = np.where(is_settled, np.floor(low), 0.0).astype(np.int64)
    drawn: list[int] = np.where(negative, -floor, floor).tolist()
    for i in np.flatnonzero(~is_settled):
        w = Largest(bits, int((each[:, i] == p[i]).sum()), int(p[i]), 64)
        where = line(0, scale=Fraction(float(bounds[i])) / a, grid=Fraction(1))
        drawn[i] = settle_lomax(where, -1 if negative[i] else 1, w)
    return drawn
