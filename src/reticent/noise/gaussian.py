"""Discrete Gaussian noise for whole numbers with a global bound: one at a time, and whole arrays from tables of 64-bit words.

For a whole-number noise X with a symmetric law, the table holds floor(2**64 P(|X| <= m)) for m = 0, 1, ... A uniform
number U is met by its first 64 binary digits; |X| is the least m with U < P(|X| <= m), and comparing words finds it. Where
a word equals an entry the digits do not decide, and more of them are drawn. Nothing is rounded, so the law is exact. Where
sigma is too large for that, a table finds a block of whole numbers, and a coin keeps or refuses one of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import absolute_distance, l2_distance
from opendp.mod import enable_features

from reticent.errors import PlanError
from reticent.exact import check_whole, float_up
from reticent.noise.bits import Bits, SystemBits, Uniform, exp_bracket, is_below_exp, words
from reticent.noise.vector import draw_gaussian
from reticent.sensitivity.bounds import Global

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
        size = self.sizes(n, bits)
        return np.where(_coins(n, bits), -size, size)

    def sizes(self, n: int, bits: Bits) -> Whole:
        """`n` independent draws of |X|."""
        drawn = words(n, bits)
        size = np.searchsorted(self.entries, drawn, side="left")
        for i in np.flatnonzero(self.entries[size] == drawn):
            size[i] = self.settle(int(size[i]), Uniform(bits, int(drawn[i]), 64))
        return size

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
def half_table(sigma: float) -> WordTable:
    """One side of it: P(y) ~ exp(-y*y / (2 sigma*sigma)) for y = 0, 1, ..., as sizes alone."""
    _check(sigma)
    return _table(
        discrete_bracket(sigma, 64 + _SPARE, sides=1),
        lambda m, places: discrete_bracket(sigma, places, sides=1)(m, places),
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


def discrete_bracket(sigma: float, places: int, *, sides: int = 2) -> Bracket:
    """Of the law on both sides of zero, or on one with zero. Brackets of `places` digits and fewer, by whole-number arithmetic alone; the sums are made once.

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
        sums.append(sums[-1] + sides * mass)
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


MANY, FARTHEST = 32, float(1 << 48)
"""Lists from this length on are drawn by our own samplers, where sigma fits them; shorter ones, and single answers, by OpenDP."""
TABLED = 1 << 12
"""Sigma up to which the whole law has a table, and the length of a list from which a larger one has a table of its blocks."""

_DIGITS, _SLACK = 11, 2.0**-24
"""A table of blocks is for a sigma of so many binary digits; what doubles and the digits of a coin leave open is below the slack."""


def draw_wide(n: int, *, sigma: float, bits: Bits) -> Whole:
    """`n` independent draws of the discrete Gaussian, exactly, for a sigma from 2**10 to 2**48. Proof: proofs/noise/tabled.md.

    Ducas, Durmus, Lepoint and Lyubashevsky 2013, algorithm 12: with w a power of two, y of the half law of sigma / w and u
    even on 0 .. w-1, |x| = w y + u is kept with probability exp(-u (u + 2 w y) / (2 sigma*sigma)), which is nearly one.
    """
    if not 1 << (_DIGITS - 1) <= sigma < FARTHEST:
        raise ValueError("a scale is at least 2**10 and below 2**48")
    places = math.frexp(sigma)[1] - _DIGITS
    table = half_table(math.ldexp(sigma, -places))
    drawn = _wide_tries(n + (n >> 9) + 8, sigma, places, table, bits)
    while len(drawn) < n:
        drawn = np.concatenate([drawn, _wide_tries(n - len(drawn) + 8, sigma, places, table, bits)])
    return drawn[:n]


def _wide_tries(n: int, sigma: float, places: int, table: WordTable, bits: Bits) -> Whole:
    """Those of `n` tries that are kept. One word has the digits of u, and those of the number that decides."""
    start = table.sizes(n, bits) << places
    word = words(n, bits)
    within = (word & np.uint64((1 << places) - 1)).astype(np.int64)
    digits, known = word >> np.uint64(places), 64 - places
    gamma = within * ((within + 2.0 * start) / sigma / sigma / 2)
    # exp(-gamma) >= 1 - gamma settles nearly all; the doubles are off by far less than the slack.
    kept = digits * 0.5**known < 1 - _SLACK - gamma
    for i in np.flatnonzero(~kept):
        u, y = int(within[i]), int(start[i])
        exact = Fraction(u * (u + 2 * y)) / (2 * Fraction(sigma) ** 2)
        kept[i] = is_below_exp(Uniform(bits, int(digits[i]), known), exact)
    size, negative = start + within, _coins(n, bits)
    kept &= ~(negative & (size == 0))
    return np.where(negative, -size, size)[kept]


enable_features("contrib")  # OpenDP's integer samplers are behind this door


def add_gaussian(answer: int, *, sensitivity: Global, rho: Fraction) -> int:
    """Add discrete Gaussian noise, P(x) ~ exp(-x*x / (2 sigma*sigma)), with sigma at least sensitivity / sqrt(2 rho).

    Guarantee   rho-zCDP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     Canonne, Kamath and Steinke 2020, Theorem 4.
    Proof       proofs/noise/gaussian.md
    Assumes     |answer - answer'| <= sensitivity.bound; OpenDP's integer sampler is exact.
    Keeps back  nothing: the scale is public.
    """
    check_whole([answer])
    if sensitivity.bound.denominator != 1:
        raise PlanError("the bound of a count or a sum on its grid is a whole number of grid steps")
    return int(_scalar(gaussian_scale(sensitivity, rho))(answer))


def add_gaussian_many(answers: Sequence[int], *, sensitivity: Global, rho: Fraction) -> list[int]:
    """Add discrete Gaussian noise to each answer; `sensitivity` bounds the Euclidean length of all their moves.

    Guarantee   rho-zCDP for the whole list, one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     Canonne, Kamath and Steinke 2020, Theorem 4, coordinate by coordinate.
    Proof       proofs/noise/gaussian.md
    Assumes     the sum of (answer - answer')**2 is at most sensitivity.bound**2, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    sigma = gaussian_scale(sensitivity, rho)
    # A table takes about as long to make as OpenDP takes for one and a half sigmas of draws.
    if sigma <= min(len(answers), TABLED):
        return _moved(answers, discrete_table(sigma).draw(len(answers), SystemBits()))
    if len(answers) >= TABLED and sigma < FARTHEST:
        return _moved(answers, draw_wide(len(answers), sigma=sigma, bits=SystemBits()))
    if len(answers) >= MANY and sigma < FARTHEST:
        return _moved(answers, np.array(draw_gaussian(len(answers), sigma=sigma, bits=SystemBits())))
    return [int(x) for x in _vector(sigma)(list(answers))]


def add_rounded_many(answers: Sequence[int], *, sensitivity: Global, rho: Fraction) -> list[int]:
    """Add the rounded normal, floor(sigma Z + 1/2), to each; `sensitivity` bounds the Euclidean length of their moves.

    Guarantee   rho-zCDP for the whole list, one call, and whatever holds of the Gaussian mechanism on the real line.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the Gaussian mechanism, and post-processing by rounding.
    Proof       proofs/noise/tabled.md
    Assumes     the sum of (answer - answer')**2 is at most sensitivity.bound**2, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    sigma = gaussian_scale(sensitivity, rho)
    if sigma > LARGEST:
        raise PlanError("the noise is too large for a table of it; use a larger epsilon, or a coarser grid")
    return _moved(answers, rounded_table(sigma).draw(len(answers), SystemBits()))


def _moved(answers: Sequence[int], noise: Whole) -> list[int]:
    """Their sums. Answers lie within 2**62 of zero, so that 64 bits hold them."""
    moved: list[int] = (np.array(answers, dtype=np.int64) + noise).tolist()
    return moved


def gaussian_scale(sensitivity: Global, rho: Fraction) -> float:
    """A double sigma with sensitivity**2 / (2 sigma**2) <= rho, near the least one."""
    if rho <= 0:
        raise PlanError("rho is positive")
    square = sensitivity.bound**2 / (2 * Fraction(rho))
    # One digit more than a double holds: isqrt(4**k * square) + 1 over 2**k is above the root.
    k = max(0, 64 - (math.floor(square).bit_length() - math.floor(1 / square).bit_length()) // 2)
    return float_up(Fraction(math.isqrt(math.floor(square * 4**k)) + 1, 2**k))


@lru_cache(maxsize=64)
def _scalar(scale: float) -> Any:
    return make_gaussian(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _vector(scale: float) -> Any:
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="i64"), scale=scale)
