"""Real numbers known to some bits, and more on demand.

A uniform number is a prefix of fair bits. A comparison is made with what is known; where that does not decide,
more bits are drawn. Nothing is ever rounded, so the law of the outcome is the law on the real line.
"""

from dataclasses import dataclass
from fractions import Fraction

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
