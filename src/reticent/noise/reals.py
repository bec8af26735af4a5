"""Real numbers known to some bits, and more on demand.

A uniform number is a prefix of fair bits. A comparison is made with what is known; where that does not decide,
more bits are drawn. Nothing is ever rounded, so the law of the outcome is the law on the real line.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from reticent.errors import PlanError
from reticent.noise.bits import Bits


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
