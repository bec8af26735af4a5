"""How far one respondent can move a sum, a table or a rank, when nothing was imputed.

Each record adds one number between `low` and `high`, or nothing; so the bound needs the public bounds, the
change that is hidden, and how many records a respondent may own.
"""

from fractions import Fraction

from reticent.sensitivity.bounds import Global, Neighbours
from reticent.sensitivity.domains import additive_bound


def bound_sum(low: int, high: int, *, neighbours: Neighbours) -> Global:
    """The bound of a sum of contributions in [low, high].

    Guarantee   no pair of neighbours has sums further apart.
    Adjacency   `neighbours`.
    Theorem     one record moves the sum by at most max(|low|, |high|) when it comes or goes, and by at most
                max(high, 0) - min(low, 0) when it is exchanged for another or for none; in sums apart, THEORY 14.1.
    Proof       proofs/sensitivity/linear.md
    Assumes     the contribution of a record depends on that record alone; integers.
    Keeps back  nothing: every input is public.
    """
    reach = max(high, 0) - min(low, 0) if neighbours.replaced else max(abs(low), abs(high))
    bound = Global(bound=Fraction(max(1, neighbours.records * reach)))
    return additive_bound(bound, records=neighbours.records) if neighbours.apart else bound


def bound_table(largest: int, *, neighbours: Neighbours) -> Global:
    """The L1 bound of a table in which each record adds a weight in [0, largest] to one cell, or to none.

    Guarantee   no pair of neighbours has tables further apart, summed over cells.
    Adjacency   `neighbours`.
    Theorem     a record that comes or goes changes one cell by at most `largest`; one that is exchanged
                changes two.
    Proof       proofs/sensitivity/linear.md
    Assumes     the cell and weight of a record depend on that record alone; integers.
    Keeps back  nothing: every input is public.
    """
    cells = 2 if neighbours.replaced else 1
    return Global(bound=Fraction(max(1, cells * neighbours.records * largest)))


def length_table(largest: int, *, neighbours: Neighbours) -> Global:
    """The Euclidean length of such a table's move: for Gaussian noise, which needs no more than that.

    Guarantee   no pair of neighbours has tables further apart, in the root of the sum of squares.
    Adjacency   `neighbours`.
    Theorem     a record that comes or goes moves the table by a vector of length at most `largest`; one that is exchanged
                by the difference of two such vectors in the positive quadrant, of length at most sqrt(2) `largest`.
    Proof       proofs/sensitivity/linear.md
    Assumes     the cell and weight of a record depend on that record alone; integers.
    Keeps back  nothing: every input is public.
    """
    each = ROOT_OF_TWO if neighbours.replaced else Fraction(1)
    return Global(bound=max(Fraction(1), each * neighbours.records * largest))


ROOT_OF_TWO = Fraction(99, 70)
"""Just above it: 99 * 99 = 2 * 70 * 70 + 1."""


def bound_rank(at: Fraction, largest: int, *, neighbours: Neighbours) -> Global:
    """The bound of the rank score -max(0, b B - a W, b A - (b - a) W) of every candidate, at = a/b.

    B and A are the weights below and above the candidate, W that of everybody.

    Guarantee   no pair of neighbours gives any candidate scores further apart.
    Adjacency   `neighbours`.
    Theorem     with weight w a record moves (bB - aW) by (b - a)w or -aw, and (bA - (b-a)W) by aw or
                -(b - a)w; exchanging it moves each by at most b times the larger weight.
    Proof       proofs/sensitivity/linear.md
    Assumes     0 < at < 1; weights in [0, largest] that depend on the record alone; integers.
    Keeps back  nothing: every input is public.
    """
    a, b = at.numerator, at.denominator
    reach = b if neighbours.replaced else max(a, b - a)
    return Global(bound=Fraction(max(1, neighbours.records * reach * largest)))
