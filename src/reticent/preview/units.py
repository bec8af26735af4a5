"""Which unit would cost less for a plan: the noise of the plan as it is, paid in epsilon and paid in rho (THEORY 16.2).

Noise of one size costs epsilon as Laplace noise and epsilon squared over four as Gaussian noise; a choice at one epsilon costs
an eighth of its square; what has pure noise only costs half of it. What has a delta of its own has no rho, but for synthesizers
that measure and learn from all rows, whose noise is bought in rho. Public numbers, for planning; nothing is promised by them.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from reticent.answer.parts import AnyMeasurement, Measurement
from reticent.exact import show
from reticent.plan.budgets import Product
from reticent.plan.plan import Plan
from reticent.plan.synth import Synth, SyntheticTables
from reticent.privacy.claim import Claim, as_approximate, in_words
from reticent.synth.spending import rho_within

FINE = 10**6
CHOICES = ("permute-and-flip", "exponential mechanism")


@dataclass(frozen=True, slots=True, kw_only=True)
class InBothUnits:
    """What the noise of a plan costs in each unit; None where something in it cannot be paid in that unit."""

    epsilon: Fraction | None
    rho: Fraction | None


def in_both_units(plan: Plan) -> InBothUnits:
    """The sums over all that the plan measures."""
    costs = [cost for product in plan.products for cost in _of_product(product, plan)]
    return InBothUnits(epsilon=_sum([each.epsilon for each in costs]), rho=_sum([each.rho for each in costs]))


def _of_product(product: Product, plan: Plan) -> list[InBothUnits]:
    if isinstance(product, SyntheticTables):
        return [_of_synth(synth) for synth in product.tables]
    return [_of_claim(each) if isinstance(each, Claim) else _of_part(each) for each in product.costs(plan)]


def _of_synth(synth: Synth) -> InBothUnits:
    claim = synth.claim
    if claim.measure != "approximate":
        return _of_claim(claim)
    rho = None if synth.is_sampled else rho_within(claim.epsilon, claim.delta)
    return InBothUnits(epsilon=claim.epsilon, rho=rho)


def _of_part(part: AnyMeasurement) -> InBothUnits:
    share = 8 if part.mechanism in CHOICES else 4 if isinstance(part, Measurement) else 2
    epsilon = _root(share * part.rho) if part.rho else part.epsilon
    return InBothUnits(epsilon=epsilon, rho=part.rho or epsilon**2 / share)


def _of_claim(claim: Claim) -> InBothUnits:
    if claim.measure == "zcdp":
        return InBothUnits(epsilon=None, rho=claim.rho)
    if claim.measure == "pure":
        return InBothUnits(epsilon=claim.epsilon, rho=claim.epsilon**2 / 2)
    return InBothUnits(epsilon=claim.epsilon, rho=None)


def _sum(amounts: list[Fraction | None]) -> Fraction | None:
    known = [each for each in amounts if each is not None]
    return sum(known, Fraction(0)) if len(known) == len(amounts) else None


def _root(square: Fraction) -> Fraction:
    return Fraction(isqrt(int(square * FINE * FINE)), FINE)


def unit_line(plan: Plan) -> str:
    """One sentence for a preview."""
    both = in_both_units(plan)
    if both.rho is None or both.epsilon is None:
        other = "rho" if both.rho is None else "epsilon"
        return f"units: counted in {plan.unit}; something in this plan has no budget in {other}"
    rounded = Fraction(round(both.rho * FINE**2), FINE**2)
    shown = f"{in_words(rounded, plan.delta)}, or epsilon {show(both.epsilon, digits=6)}"
    return f"units: noise of this size costs {shown}; {_advice(plan, both.epsilon, rounded)}"


def _advice(plan: Plan, epsilon: Fraction, rho: Fraction) -> str:
    cheaper = "rho" if as_approximate(rho, plan.delta) < epsilon else "epsilon"
    if cheaper == plan.unit:
        return f"{cheaper} costs less here"
    way = (
        'measure = "zcdp" and a ledger opened with --rho'
        if cheaper == "rho"
        else "a plan and a ledger in epsilon"
    )
    return f"{cheaper} would cost less: {way}"


def unit_section(plan: Plan) -> dict[str, str | None]:
    """The same as plain values."""
    both = in_both_units(plan)
    told = {"epsilon": both.epsilon, "rho": both.rho}
    return {
        "counted_in": plan.unit,
        **{name: None if each is None else show(each) for name, each in told.items()},
    }
