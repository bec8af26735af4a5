"""Many coins at once that fall heads with probability exp(-gamma), exactly.

Each coin owns a uniform number U and falls heads when U < exp(-gamma). The first 64 binary digits of U and a double
with a proved error margin decide all but about one coin in 2**40; the rest go to integer arithmetic with the digits
they already have. So floating point decides only where it cannot be wrong.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.noise.bits import Bits, words
from reticent.noise.reals import Uniform

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
