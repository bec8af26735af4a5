"""A leaf: rationals as balls (`flint.arb`), which hold the true value at whatever precision is set."""

from fractions import Fraction

from flint import arb, fmpq


def ball(value: Fraction | int) -> arb:
    """A ball that holds the rational `value`."""
    return arb(fmpq(value.numerator, value.denominator))
