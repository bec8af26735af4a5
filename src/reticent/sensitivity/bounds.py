"""Sensitivity: how far one respondent can move a sum, a table or a rank when nothing was imputed, and the kinds of bound.

Three kinds of bound, global, local and smooth, allow different noise, so each is a type. Each record adds one number between
`low` and `high`, or nothing; so a global bound needs the public bounds, the change that is hidden, and how many records a
respondent may own.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from reticent.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """A bound over all data sets, from public facts alone. It may be printed."""

    bound: Fraction

    def __post_init__(self) -> None:
        if self.bound <= 0:
            raise ValueError("a global bound is positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Smooth:
    """A `beta`-smooth bound on local sensitivity. Read off the rows, so private."""

    bound: Fraction = field(repr=False)
    beta: Fraction

    def __post_init__(self) -> None:
        if self.bound <= 0 or self.beta <= 0:
            raise ValueError("a smooth bound and its beta are positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A sensitivity seen in the data at hand. Not differentially private; only noise that says so takes it."""

    bound: Fraction = field(repr=False)


FINE = 20
"""A bound of more than 2^20 steps is counted in coarser steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """One respondent, of at most `records` rows, is added or removed; or (`replaced`) answers otherwise.

    Where each of the rows may lie `apart`, in a sum of its own, a bound is to be shared out evenly among them.
    """

    replaced: bool = False
    records: int = 1
    apart: bool = False

    def __post_init__(self) -> None:
        if self.records < 1:
            raise ValueError("a respondent owns at least one record")

    @property
    def steps(self) -> int:
        """How many records must be added or removed, one at a time, to get from one to the other."""
        return self.records * (2 if self.replaced else 1)


def within_domains(neighbours: Neighbours) -> Neighbours:
    """The change that the mechanism of each domain is calibrated to.

    Guarantee   mechanisms that lose at most epsilon/steps for each record of their own domain that comes or goes lose at
                most epsilon together; `steps` is the number of records returned here.
    Adjacency   `neighbours`.
    Theorem     THEORY 14.1.
    Proof       proofs/sensitivity/domains.md
    Assumes     a public list of domains; the domain of a record depends on that record alone; independent noise.
    Keeps back  nothing: every input is public.
    """
    return Neighbours(records=neighbours.steps, apart=True)


def additive_bound(bound: Global, *, records: int, fine: int = FINE) -> Global:
    """The least bound, not below `bound`, of which a share of 1/`records` is a whole number of coarser steps.

    A bound of more than 2^`fine` steps is counted in coarser steps, and a record's own move is rounded up to them. Two
    records in two domains are rounded up twice, which the rounded bound of both together does not cover.

    Guarantee   r records of a domain move its rounded sum by at most r/`records` of the rounded bound.
    Adjacency   one record of a domain comes or goes, r times.
    Theorem     THEORY 14.1; |floor(x + 1/2) - floor(y + 1/2)| <= ceil(|x - y|).
    Proof       proofs/sensitivity/domains.md
    Assumes     one record moves the sum by at most bound.bound / records.
    Keeps back  nothing: every input is public.
    """
    if records >= 1 << (fine - 1):
        raise PlanError("a respondent owns too many records for domains; declare fewer.", field="at_most")
    each, shift = -(-bound.bound // records), 0
    while True:
        whole = records * (-(-each // (1 << shift)) << shift)
        coarser = max(0, whole.bit_length() - fine)
        if coarser <= shift:
            return Global(bound=Fraction(whole))
        shift = coarser


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
