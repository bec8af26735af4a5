"""Sensitivity: the kinds of bound on what one respondent can move, bounds of plain sums, and smooth bounds from ladders.

Three kinds of bound, global, local and smooth, allow different noise, so each is a type. Each record adds one number between
`low` and `high`, or nothing; so a global bound needs the public bounds, the change that is hidden, and how many records a
respondent may own.

A ladder of a query q on data D is U_0, U_1, ... with LS_q(D) <= U_0(D) and U_k(D) <= U_{k+1}(D') for all
neighbours D': how far one respondent can move an answer after k others have changed. Each ladder carries one or more straight
lines above it, so that the search for its smooth bound may stop: a line is a proof that later rungs cannot win, nothing
else is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import isqrt, prod

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball


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


def length_residual(lengths: Sequence[int], *, neighbours: Neighbours) -> Global:
    """The Euclidean length of the move of a residual: a table of counts, along each axis n times itself less its sum.

    Guarantee   no pair of neighbours has residuals further apart, in the root of the sum of squares.
    Adjacency   `neighbours`.
    Theorem     THEORY 15.3: a record in cell a moves it by the product over axes of n [i = a] - 1, of squared length the
                product of n(n - 1); one that is exchanged by the difference of two such, at most over which axes agree.
    Proof       proofs/sensitivity/linear.md
    Assumes     the cell of a record depends on that record alone; every record adds 1 to one cell, or nothing; integers.
    Keeps back  nothing: every input is public.
    """
    square = prod(n * (n - 1) for n in lengths)
    if neighbours.replaced:
        agreeing = product((False, True), repeat=len(lengths))
        inner = min(
            prod(n * (n * same - 1) for n, same in zip(lengths, each, strict=True)) for each in agreeing
        )
        square = max(square, 2 * (square - inner))
    root = Fraction(isqrt(square * ROOT_STEPS**2 - 1) + 1, ROOT_STEPS) if square else Fraction(1)
    return Global(bound=neighbours.records * root)


ROOT_STEPS = 1 << 40
"""Roots are rounded up to this part of 1."""
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


SLACK = Fraction(1, 2**34)
_BITS = 48
_FLOOR = Fraction(1, 2**64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderLine:
    """base + slope k, at or above every rung k of the ladder that carries it."""

    base: Fraction
    slope: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.base < 0 or self.slope < 0:
            raise ValueError("a line above a ladder starts at 0 or more and does not fall")

    def at(self, k: int) -> Fraction:
        return self.base + self.slope * k

    def falls_from(self, k: int, beta: Fraction) -> bool:
        """Whether e^(-beta j)(base + slope j) does not rise over j >= k: slope <= beta (base + slope k)."""
        return self.slope <= beta * self.at(k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Rungs as a function of k, read off the rows and so private, and the lines above them."""

    rung: Callable[[int], Fraction] = field(repr=False)
    lines: tuple[LadderLine, ...] = field(repr=False, default=())

    def scaled(self, factor: Fraction) -> "Ladder":
        """The ladder of factor times the query, factor > 0 and public."""
        if factor <= 0:
            raise PlanError(f"it is {factor}, but must be positive.", field="factor")
        lines = tuple(LadderLine(base=factor * x.base, slope=factor * x.slope) for x in self.lines)
        return Ladder(rung=lambda k: factor * self.rung(k), lines=lines)


def constant(bound: Fraction) -> Ladder:
    """The ladder of a global bound."""
    return Ladder(rung=lambda k: bound, lines=(LadderLine(base=bound),))


def straight(*, base: Fraction, slope: Fraction) -> Ladder:
    """U_k = base + slope k; a ladder when base moves by at most slope between neighbours."""
    line = LadderLine(base=base, slope=slope)
    return Ladder(rung=line.at, lines=(line,))


def listed(rungs: Sequence[Fraction], *, line: LadderLine) -> Ladder:
    """The rungs given, as many as were publicly agreed, then `line`, itself a ladder above them (THEORY 1.2b)."""
    known = tuple(rungs)
    return Ladder(rung=lambda k: known[k] if k < len(known) else line.at(k), lines=(line,))


def least(one: Ladder, other: Ladder) -> Ladder:
    """The minimum of two ladders of one query, rung by rung. Either's lines stay above it."""
    return Ladder(rung=lambda k: min(one.rung(k), other.rung(k)), lines=one.lines + other.lines)


def greatest(one: Ladder, other: Ladder) -> Ladder:
    """The maximum of two ladders, rung by rung: it serves both queries."""
    lines = tuple(
        LadderLine(base=max(x.base, y.base), slope=max(x.slope, y.slope))
        for x in one.lines
        for y in other.lines
    )
    return Ladder(rung=lambda k: max(one.rung(k), other.rung(k)), lines=lines)


def total(one: Ladder, other: Ladder) -> Ladder:
    """The sum of two ladders: a ladder of the sum of the queries."""
    lines = tuple(
        LadderLine(base=x.base + y.base, slope=x.slope + y.slope) for x in one.lines for y in other.lines
    )
    return Ladder(rung=lambda k: one.rung(k) + other.rung(k), lines=lines)


def mixture(exact: Ladder, loose: Ladder, *, start: int) -> Ladder:
    """`exact` below rung `start`, `loose` from it on; start public and loose at or above exact (THEORY 1.2b)."""
    if start < 0:
        raise PlanError(f"it is {start}, but a rung is 0 or more.", field="start")
    return Ladder(rung=lambda k: exact.rung(k) if k < start else loose.rung(k), lines=loose.lines)


def smooth_bound(ladder: Ladder, beta: Fraction) -> Smooth:
    """A rational beta-smooth bound on local sensitivity: max over k of e^(-b k) U_k, b = beta - 2^-34, rounded up.

    Guarantee   the bound covers local sensitivity and drifts by at most e^beta between neighbours.
    Adjacency   the one the ladder was proved for.
    Theorem     THEORY 1.1, with the rational scale of 2.6.
    Proof       proofs/sensitivity/ladder.md
    Assumes     the rungs form a ladder and its lines lie above it; beta public and above 2^-34.
    Keeps back  the bound, every rung, and the rung it was found on.
    """
    if not isinstance(beta, Fraction | int) or beta <= SLACK:
        raise PlanError(f"it is {beta}, but must be a rational above 2^-34.", field="beta")
    if not ladder.lines:
        raise PlanError(
            "the ladder has no line above it, so no search of it may stop; add one.", field="ladder"
        )
    with ctx.workprec(2 * _BITS):
        return Smooth(bound=_rounded_up(_highest(ladder, beta - SLACK)), beta=Fraction(beta))


def _highest(ladder: Ladder, beta: Fraction) -> arb:
    # A constant far below any answer's grid is a ladder too; with it the maximum is never 0.
    best, k = ball(_FLOOR), 0
    decay = ball(-beta).exp()
    weight = arb(1)
    while not any(_cannot_win(line, best, weight, k, beta) for line in ladder.lines):
        best = best.max(weight * ball(ladder.rung(k)))
        k, weight = k + 1, weight * decay
    return best


def _cannot_win(line: LadderLine, best: arb, weight: arb, k: int, beta: Fraction) -> bool:
    """Whether rung k and all later ones are proved to stay at or below `best`."""
    return line.falls_from(k, beta) and bool(weight * ball(line.at(k)) <= best)


def _rounded_up(value: arb) -> Fraction:
    """A rational of 48 significant bits, at or above the ball and at most 2^-46 of it away."""
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    spare = max(0, mantissa.bit_length() - _BITS)
    return -(-mantissa >> spare) * Fraction(2) ** (exponent + spare)
