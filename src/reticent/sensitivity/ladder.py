"""Ladders: how far one respondent can move an answer after k others have changed, and the bound it gives.

A ladder of a query q on data D is U_0, U_1, ... with LS_q(D) <= U_0(D) and U_k(D) <= U_{k+1}(D') for all
neighbours D'. Each ladder carries one or more straight lines above it, so that the search for its smooth
bound may stop: a line is a proof that later rungs cannot win, nothing else is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.sensitivity.bounds import Smooth

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
