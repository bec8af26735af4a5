"""Exact Gaussian noise from tables of 64-bit words: whole arrays at once, for long lists of answers.

For a whole-number noise X with a symmetric law, the table holds floor(2**64 P(|X| <= m)) for m = 0, 1, ... A uniform
number U is met by its first 64 binary digits; |X| is the least m with U < P(|X| <= m), and comparing words finds it. Where
a word equals an entry the digits do not decide, and more of them are drawn. Nothing is rounded, so the law is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.noise.bits import Bits, words
from reticent.noise.coins import exp_bracket
from reticent.noise.reals import Uniform

Whole = NDArray[np.int64]
Words = NDArray[np.uint64]
Bracket = Callable[[int, int], tuple[int, int]]
"""Integers low <= 2**places * P(|X| <= m) <= high, for m and places; they close in as places grow."""

FULL = (1 << 64) - 1
LARGEST = float(1 << 16)
"""The largest sigma that gets a table: half a million words, built in about a second."""

_SPARE = 128


@dataclass(frozen=True, slots=True)
class WordTable:
    """floor(2**64 P(|X| <= m)) for m = 0, 1, ... up to the first that is 2**64 - 1, and brackets for the rest."""

    entries: Words = field(repr=False)
    bracket: Bracket = field(repr=False)

    def draw(self, n: int, bits: Bits) -> Whole:
        """`n` independent draws of X. Proof: proofs/noise/tabled.md."""
        drawn = words(n, bits)
        size = np.searchsorted(self.entries, drawn, side="left")
        for i in np.flatnonzero(self.entries[size] == drawn):
            size[i] = self.settle(int(size[i]), Uniform(bits, int(drawn[i]), 64))
        return np.where(_coins(n, bits), -size, size)

    def settle(self, m: int, u: Uniform) -> int:
        """The least m, from the given one on, with u < P(|X| <= m), from as many digits of u as it takes."""
        while not self._is_below(u, m):
            m += 1
        return m

    def _is_below(self, u: Uniform, m: int) -> bool:
        while True:
            low, high = self.bracket(m, u.known)
            if u.prefix + 1 <= low:
                return True
            if u.prefix >= high:
                return False
            u.refine(64)


def _coins(n: int, bits: Bits) -> NDArray[np.bool_]:
    """`n` fair coins."""
    drawn = bits.take(8 * -(-n // 8)).to_bytes(-(-n // 8))
    return np.unpackbits(np.frombuffer(drawn, dtype=np.uint8), count=n).astype(np.bool_)


@lru_cache(maxsize=32)
def discrete_table(sigma: float) -> WordTable:
    """The discrete Gaussian, P(x) ~ exp(-x*x / (2 sigma*sigma)), for a sigma of at most `LARGEST`."""
    _check(sigma)
    return _table(
        discrete_bracket(sigma, 64 + _SPARE), lambda m, places: discrete_bracket(sigma, places)(m, places)
    )


@lru_cache(maxsize=32)
def rounded_table(sigma: float) -> WordTable:
    """The rounded normal, floor(sigma Z + 1/2) with Z standard normal, for a sigma of at most `LARGEST`."""
    _check(sigma)
    return _table(
        lambda m, places: rounded_bracket(sigma, m, places),
        lambda m, places: rounded_bracket(sigma, m, places),
    )


def _check(sigma: float) -> None:
    if not 0 < sigma <= LARGEST:
        raise ValueError("a table is made for a positive sigma of at most 2**16")


def _table(near: Bracket, exact: Bracket) -> WordTable:
    """The entries up to the first full word."""
    entries: list[int] = []
    while not entries or entries[-1] != FULL:
        entries.append(_word(len(entries), near, exact))
    return WordTable(np.array(entries, dtype=np.uint64), exact)


def _word(m: int, near: Bracket, exact: Bracket) -> int:
    """floor(2**64 P(|X| <= m)): a bracket with digits to spare settles it, or one with twice as many."""
    bracket, spare = near, _SPARE
    while True:
        low, high = (end >> spare for end in bracket(m, 64 + spare))
        if low == high:
            return low
        bracket, spare = exact, 2 * spare


def discrete_bracket(sigma: float, places: int) -> Bracket:
    """Brackets of `places` digits and fewer, by whole-number arithmetic alone; the sums are made once.

    With e(x) = exp(-x*x / (2 sigma*sigma)) and r(x) = e(x+1) / e(x): r(x+1) = r(x) r(0)**2 and e(x+1) = e(x) r(x), every
    product rounded down. The sum of e over -m .. m is then too small by at most m (m+1) (m+2) units, and what lies
    beyond the last x by at most 2x of them.
    """
    p = places + 64
    gamma = 1 / (2 * Fraction(sigma) ** 2)
    ratio, square = (exp_bracket(k * gamma, p)[0] for k in (1, 2))
    last = ceil(Fraction(sigma) * (isqrt(2 * p) + 1)) + 1
    mass = one = 1 << p
    sums = [one]
    for _ in range(last):
        mass, ratio = mass * ratio >> p, ratio * square >> p
        sums.append(sums[-1] + 2 * mass)
    whole = (sums[-1], sums[-1] + last * (last + 1) * (last + 2) + 2 * last)

    def bracket(m: int, digits: int) -> tuple[int, int]:
        if m >= last:
            return (sums[-1] << digits) // whole[1], 1 << digits
        high = (sums[m] + m * (m + 1) * (m + 2)) << digits
        return (sums[m] << digits) // whole[1], min(1 << digits, -(-high // whole[0]))

    return bracket


def rounded_bracket(sigma: float, m: int, places: int) -> tuple[int, int]:
    """P(|X| <= m) = erf((m + 1/2) / (sigma root 2)), by balls that hold the real number."""
    before = ctx.prec
    try:
        ctx.prec = places + 64
        ball = (arb(2 * m + 1) / (2 * arb(2).sqrt() * arb(sigma))).erf() * arb(1 << places)
        return _floor(ball.lower()), min(1 << places, _floor(ball.upper()) + 1)
    finally:
        ctx.prec = before


def _floor(end: arb) -> int:
    """The whole number at or below the end of a ball, which is a number with finitely many digits."""
    found = end.floor().unique_fmpz()
    if found is None:
        raise AssertionError("the floor of an exact number is one number")
    return int(found)
