"""The minimum of a quadratic over a ball, in exact arithmetic up to a stated distance."""

from collections.abc import Sequence
from fractions import Fraction

from flint import fmpq, fmpq_mat

Square = Sequence[Sequence[Fraction]]


def within_ball(
    gram: Square, cross: Sequence[Fraction], *, ridge: Fraction, radius: Fraction, error: Fraction
) -> list[Fraction]:
    """Within `error` of the minimiser of b'Gb/2 - c'b + ridge |b|^2/2 over |b| <= radius.

    If the free minimiser lies in the ball, it is the answer. Else the answer is b(m), the free minimiser with ridge + m
    for the one m > 0 that gives it the length of the radius; b(m) is shorter for larger m. Halving brackets m until the
    two ends are `error` apart at most: they differ by at most (high - low) |b(low)| / ridge.
    """
    free = _solve(gram, cross, ridge)
    if _square(free) <= radius**2:
        return free
    low, high = Fraction(0), sum(map(abs, cross), Fraction(0)) / radius
    longest = free
    while ((high - low) / ridge) ** 2 * _square(longest) > error**2:
        middle = _rounded((low + high) / 2, high - low)
        tried = _solve(gram, cross, ridge + middle)
        if _square(tried) > radius**2:
            low, longest = middle, tried
        else:
            high = middle
    return _solve(gram, cross, ridge + high)


def _rounded(value: Fraction, span: Fraction) -> Fraction:
    """A number of few digits within a quarter of the span of `value`, so that fractions stay short."""
    places = max(0, (span.denominator // span.numerator).bit_length() + 3)
    return Fraction(round(value * 2**places), 2**places)


def _solve(gram: Square, cross: Sequence[Fraction], ridge: Fraction) -> list[Fraction]:
    size = len(cross)
    entries = [gram[i][j] + (ridge if i == j else 0) for i in range(size) for j in range(size)]
    matrix = fmpq_mat(size, size, [_rational(value) for value in entries])
    found = matrix.solve(fmpq_mat(size, 1, [_rational(value) for value in cross]))
    return [Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(size)]


def _rational(value: Fraction | int) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _square(vector: Sequence[Fraction]) -> Fraction:
    return sum((entry * entry for entry in vector), Fraction(0))
