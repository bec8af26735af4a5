"""The unit that a privacy budget is counted in, epsilon or rho (zCDP), and what a claim costs in each.

A ledger has one unit for good, and adds exact decimals of it. (epsilon, delta) is for readers: it is computed from a sum
of rho when it is shown, for one declared delta, and is neither stored nor added (THEORY 16.3).
"""

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Literal

from reticent.errors import PlanError
from reticent.exact import show
from reticent.privacy.claim import Claim
from reticent.privacy.convert import pure_to_zcdp, rounded_up, zcdp_to_epsilon

Unit = Literal["epsilon", "rho"]
UNITS: tuple[Unit, ...] = ("epsilon", "rho")
DELTA = Fraction(1, 10**6)
"""The delta at which rho is shown where nobody declared another."""
PAGE = "proofs/privacy/units.md"
SQUARED = ("every pure mechanism in rho: epsilon squared over two", PAGE)
_SHOWN = 10**4


def in_unit(claim: Claim, unit: Unit, *, field: str = "measure") -> Claim:
    """The claim as a ledger of this unit counts it, or a refusal that says what to write.

    Guarantee   whatever satisfies `claim` satisfies what is returned.
    Adjacency   that of the claim.
    Theorem     THEORY 16.1: epsilon-DP is epsilon^2/2-zCDP.
    Proof       proofs/privacy/units.md
    Assumes     the claim was proved.
    Keeps back  nothing: no row is read.
    """
    if unit == "rho":
        return _in_rho(claim, field)
    if claim.measure == "zcdp":
        raise PlanError(
            "is promised in rho, which a ledger in epsilon cannot add; give it an epsilon, or use a ledger opened "
            "with --rho.",
            field=field,
        )
    return claim


def _in_rho(claim: Claim, field: str) -> Claim:
    if claim.measure == "zcdp":
        return replace(claim, rho=rounded_up(claim.rho))
    if claim.measure == "pure":
        rho = pure_to_zcdp(epsilon=claim.epsilon)
        return replace(
            claim, measure="zcdp", epsilon=Fraction(0), rho=rho, rests_on=(*claim.rests_on, SQUARED)
        )
    if claim.measure == "approximate":
        raise PlanError(
            "has a delta of its own, which does not add to rho; give it rho in place of epsilon and delta, or take a "
            "pure one.",
            field=field,
        )
    raise PlanError(
        "promises nothing that rho could count; publish it under a ledger in epsilon.", field=field
    )


def cost(claim: Claim, unit: Unit, *, field: str = "measure") -> Fraction:
    """What a ledger of this unit is charged for the claim: a decimal of 12 places where the unit is rho."""
    found = in_unit(claim, unit, field=field)
    return found.rho if unit == "rho" else found.epsilon


def as_approximate(rho: Fraction, delta: Fraction = DELTA) -> Fraction:
    """The epsilon that goes with `delta` for a sum of rho, rounded up to four places; 0 where nothing was spent."""
    if rho == 0:
        return Fraction(0)
    return Fraction(ceil(zcdp_to_epsilon(rho=rho, delta=delta) * _SHOWN), _SHOWN)


def in_words(rho: Fraction, delta: Fraction = DELTA) -> str:
    """`rho = 0.088, that is (2.0021, 0.000001)-DP`."""
    return f"rho = {show(rho)}, that is ({show(as_approximate(rho, delta))}, {show(delta)})-DP"
