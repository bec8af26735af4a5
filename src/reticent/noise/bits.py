"""Fair bits, the only randomness of the library, and what is made of them exactly: real numbers and biased coins.

A release takes bits from the operating system. A uniform number is a prefix of fair bits. A comparison is made with what is
known; where that does not decide, more bits are drawn. Nothing is ever rounded, so the law of the outcome is the law on the
real line. Many coins at once fall heads with probability exp(-gamma): each owns a uniform number U and falls heads when
U < exp(-gamma). The first 64 binary digits of U and a double with a proved error margin decide all but about one coin in
2**40; the rest go to integer arithmetic with the digits they already have. So floating point decides only where it cannot be
wrong.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError


class Bits(Protocol):
    """A source of fresh, independent, fair bits."""

    @property
    def is_private(self) -> bool:
        """Whether nobody can foresee or replay the bits. Only such bits can stand behind a claim."""
        ...

    def take(self, n: int) -> int:
        """The next `n` bits as an integer below 2**n."""
        ...


class SystemBits:
    """The operating system's generator.

    Nothing is kept between calls, so a forked child has no state of ours to repeat.
    """

    @property
    def is_private(self) -> bool:
        """True: the kernel reseeds and never repeats."""
        return True

    def take(self, n: int) -> int:
        """`n` fresh bits from the kernel."""
        size = (n + 7) // 8
        return int.from_bytes(os.urandom(size)) >> (8 * size - n)


def below(n: int, bits: Bits) -> int:
    """An integer uniform on 0 .. n-1: draw as many bits as n-1 has, and again while it is too large."""
    if n < 1:
        raise ValueError("there is no integer from 0 below it")
    width = (n - 1).bit_length()
    while (drawn := bits.take(width)) >= n:
        pass
    return drawn


def words(n: int, bits: Bits) -> NDArray[np.uint64]:
    """`n` independent words of 64 bits."""
    return np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64)


@dataclass(slots=True)
class Uniform:
    """A uniform number in [0, 1], known to lie in [prefix, prefix + 1] / 2**known."""

    bits: Bits
    prefix: int = 0
    known: int = 0

    def refine(self, more: int) -> None:
        """Draw `more` further binary digits."""
        self.prefix = self.prefix << more | self.bits.take(more)
        self.known += more


@dataclass(slots=True)
class Largest:
    """The largest of several uniform numbers, known to lie in [prefix, prefix + 1] / 2**known.

    `count` of them agree with the prefix so far; the others are smaller whatever their further digits, and are gone.
    """

    bits: Bits
    count: int
    prefix: int = 0
    known: int = 0

    def refine(self, more: int) -> None:
        """Draw `more` further digits of each number still in the race, and keep the leaders."""
        drawn = self.bits.take(more * self.count)
        mask = (1 << more) - 1
        digits = [drawn >> more * i & mask for i in range(self.count)]
        best = max(digits)
        self.prefix, self.known, self.count = (
            self.prefix << more | best,
            self.known + more,
            digits.count(best),
        )


@dataclass(frozen=True, slots=True)
class RoundedLine:
    """x -> floor((answer + scale * x) / grid + 1/2), the released number of grid steps, in whole numbers.

    `offset`, `slope` and `unit` are answer/grid + 1/2 and scale/grid over their common denominator.
    """

    offset: int
    slope: int
    unit: int

    def steps(self, top: int, bottom: int) -> int:
        """The number of grid steps at x = top / bottom."""
        return (self.offset * bottom + self.slope * top) // (self.unit * bottom)


def line(answer: Fraction | int, *, scale: Fraction, grid: Fraction) -> RoundedLine:
    """The line of `answer + scale * x` on `grid`."""
    if grid <= 0:
        raise PlanError("the grid is positive")
    offset, slope = Fraction(answer) / grid + Fraction(1, 2), scale / grid
    unit = math.lcm(offset.denominator, slope.denominator)
    return RoundedLine(int(offset * unit), int(slope * unit), unit)


def settle(
    where: RoundedLine, sign: int, w: Largest, *, is_inner: bool, power: Fraction = Fraction(1)
) -> int:
    """The grid step of x = sign * w (inner) or x = sign * w**-power (outer), from as many digits of w as it takes."""
    near: int
    far: int | None
    while True:
        one = 1 << w.known
        low, high = w.prefix, w.prefix + 1
        if is_inner:
            near, far = where.steps(sign * low, one), where.steps(sign * high, one)
        else:
            low, high = power_bracket(low, power, w.known)[0], power_bracket(high, power, w.known)[1]
            near, far = where.steps(sign * one, high), where.steps(sign * one, low) if low else None
        if near == far:
            return near
        w.refine(16)


def power_bracket(v: int, power: Fraction, places: int) -> tuple[int, int]:
    """Integers low <= 2**places * (v / 2**places)**power <= high, at most 1 apart."""
    top, bottom = power.numerator, power.denominator
    if top == bottom:
        return v, v
    # r**bottom <= v**top * 2**(places * (bottom - top)) says that r <= 2**places * (v / 2**places)**(top / bottom).
    shift = places * (bottom - top)
    low = root(v**top << shift if shift >= 0 else v**top >> -shift, bottom)
    return low, low + 1


def root(n: int, k: int) -> int:
    """The largest integer r with r**k <= n, by Newton's steps from above."""
    if n == 0 or k == 1:
        return n
    r = 1 << -(-n.bit_length() // k)
    while (below := ((k - 1) * r + n // r ** (k - 1)) // k) < r:
        r = below
    return r


Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

LARGEST = 60.0
"""Beyond this gamma, exp(-gamma) is below 2**-86 and only a word of 64 zeros is left undecided."""

MARGIN = 2.0**-40
"""Far above the relative error of `exp_minus`, which proofs/noise/laplace.md bounds by 2**-43."""


def exp_bracket(gamma: Fraction, places: int) -> tuple[int, int]:
    """Integers low <= 2**places * exp(-gamma) <= high, for gamma >= 0; high - low is at most 2.

    exp(-gamma) = exp(-x)**(2**j) with x = gamma / 2**j at most 1/2. The series of exp(-x) alternates and falls, so it
    lies between any two neighbouring partial sums; every product is rounded down on one side and up on the other.
    """
    if gamma > places:  # then exp(-gamma) < 2**-places, since e > 2
        return 0, 1
    halvings = max(0, (2 * gamma).__ceil__() - 1).bit_length()
    p = places + 2 * halvings + 16
    x_low = (gamma.numerator << p) // (gamma.denominator << halvings)
    low, high = _exp_low(x_low + 1, p), _exp_high(x_low, p)
    for _ in range(halvings):
        low, high = low * low >> p, -(-high * high >> p)
    return low >> (p - places), -(-high >> (p - places))


def _exp_low(x: int, p: int) -> int:
    """At most 2**p * exp(-x / 2**p), for 0 <= x / 2**p <= 3/4."""
    return _series(x, p)[0]


def _exp_high(x: int, p: int) -> int:
    """At least 2**p * exp(-x / 2**p), for 0 <= x / 2**p <= 3/4."""
    return _series(x, p)[1]


def _series(x: int, p: int) -> tuple[int, int]:
    """Both sides of 2**p * exp(-x / 2**p): sums of the alternating series, terms rounded against each side."""
    low = high = term_low = term_high = 1 << p
    k = 0
    while term_high > 1:
        k += 1
        term_low, term_high = term_low * x // (k << p), -(-term_high * x // (k << p))
        if k % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    # The sum stops after term k; what is left out is smaller than that term, at most 1 either way.
    return low - 1, high + 1


def is_below_exp(u: Uniform, gamma: Fraction) -> bool:
    """Whether u < exp(-gamma): true with probability exp(-gamma), exactly."""
    if gamma == 0:
        return True
    while True:
        low, high = exp_bracket(gamma, u.known)
        if u.prefix + 1 <= low:
            return True
        if u.prefix >= high:
            return False
        u.refine(32)


def _table(count: int, step: Fraction) -> Floats:
    """exp(-i * step) for i < count, each within relative 2**-52."""
    places = 160
    return np.array([float(Fraction(exp_bracket(i * step, places)[0], 1 << places)) for i in range(count)])


_UNITS = _table(61, Fraction(1))
_FINE = _table(256, Fraction(1, 256))
_FINEST = _table(256, Fraction(1, 65536))


def exp_minus(gamma: Floats) -> Floats:
    """exp(-gamma) for 0 <= gamma <= 60, from tables and + - * alone, so that its error can be bounded.

    gamma = i + j/256 + k/65536 + t with t < 2**-16; exp(-t) = 1 - t + t*t/2 within t**3/6 < 2**-50.
    """
    steps = np.floor(gamma * 65536.0)
    t = gamma - steps / 65536.0
    whole = steps.astype(np.int64)
    product = _UNITS[whole >> 16] * _FINE[whole >> 8 & 255] * _FINEST[whole & 255]
    return np.asarray(product * (1.0 - t + 0.5 * t * t))


def flip_many(gamma: Floats, exact: Callable[[int], Fraction], bits: Bits) -> Flags:
    """Coin i falls heads with probability exp(-exact(i)), independently.

    `gamma[i]` is `min(exact(i), 60)` within 2**-43; `exact` is asked for the undecided few only.
    """
    return decide(words(len(gamma), bits), gamma, exact, bits)


def decide(drawn: Words, gamma: Floats, exact: Callable[[int], Fraction], bits: Bits) -> Flags:
    """Whether U < exp(-gamma), where `drawn` holds the first 64 binary digits of each U."""
    p = exp_minus(gamma)
    u = drawn.astype(np.float64) * 2.0**-64
    heads = u < p * (1.0 - MARGIN) - 2.0**-64
    is_open = ~heads & (u <= p * (1.0 + MARGIN))
    for i in np.flatnonzero(is_open):
        heads[i] = is_below_exp(Uniform(bits, int(drawn[i]), 64), exact(int(i)))
    return np.asarray(heads)
