"""How far one respondent moves the sums of products of columns in [-1, 1], and a gradient.

Write z for a row with its count: every entry lies in [-1, 1]. A row that does not count is z = 0.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from reticent.sensitivity.neighbours import Neighbours

_FINE = 1 << 40


def root_up(square: Fraction) -> Fraction:
    """A rational at or above the square root, by less than 2^-39 of 1 or of itself."""
    return Fraction(isqrt(int(square * _FINE * _FINE)) + 1, _FINE)


def products_l1(scales: Sequence[Fraction], *, neighbours: Neighbours) -> Fraction:
    """The L1 bound of (a_i^2 Z_ii, 2 a_i a_j Z_ij for i < j), Z the sum of zz' over rows and a the `scales`.

    Guarantee   no pair of neighbours has them further apart, summed over entries.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     THEORY 7.3, with a scale for each column: records x (a_0 + ... + a_m)^2.
    Proof       proofs/models/moves.md
    Assumes     entries of z in [-1, 1]; the scales are public and not negative.
    Keeps back  nothing: every input is public.
    """
    return neighbours.records * sum(scales, Fraction(0)) ** 2


def products_l2(columns: int, *, neighbours: Neighbours) -> Fraction:
    """The Euclidean bound of (Z_ij for i <= j), Z the sum of zz' over rows of `columns` entries.

    Guarantee   no pair of neighbours has them further apart.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     records x sqrt(m(m+1)/2) for a row that comes or goes, sqrt(m^2 + m/2) for one that is replaced.
    Proof       proofs/models/moves.md
    Assumes     entries of z in [-1, 1].
    Keeps back  nothing: every input is public.
    """
    m = columns
    square = Fraction(2 * m * m + m, 2) if neighbours.replaced else Fraction(m * (m + 1), 2)
    return neighbours.records * root_up(square)


def gradient(features: int, largest: Fraction, *, neighbours: Neighbours) -> tuple[Fraction, Fraction]:
    """The L1 and Euclidean bounds of a sum of r x over rows, |r| <= `largest`, x of `features` entries in [-1, 1].

    Guarantee   no pair of neighbours has the sums further apart.
    Adjacency   `neighbours`; whether a row counts may change with it.
    Theorem     |r x|_1 <= largest x p and |r x|_2 <= largest x sqrt p; twice that for a replaced row.
    Proof       proofs/models/moves.md
    Assumes     r and x of a row depend on that row and public numbers alone.
    Keeps back  nothing: every input is public.
    """
    reach = neighbours.steps * largest
    return reach * features, reach * root_up(Fraction(features))
