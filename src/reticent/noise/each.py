"""Many exact Laplace draws at once, each with a scale of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.noise.bits import Bits, words
from reticent.noise.coins import Words, decide
from reticent.noise.lazy import Uniform
from reticent.noise.many import Whole, draw_laplace, geometric, geometric_one

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
