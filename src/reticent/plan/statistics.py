"""The statistics of a plan as a product: every `[[statistic]]`, and the weights to known totals that some of them use.

What a statistic costs and rests on follows from public numbers alone, and is asked again of what was actually run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from reticent.answer.factors import GROUND as FACTORS
from reticent.answer.factors import WEIGHTS
from reticent.answer.grounds import FLIP, LAPLACE
from reticent.answer.parts import AnyMeasurement, Measurement
from reticent.answer.route import Route
from reticent.answer.statistic import Setting, Statistic
from reticent.answer.weighting import BINS as CHOICE
from reticent.answer.weighting import TABLE, Weighting
from reticent.plan.asks import read_asks
from reticent.plan.product import Given, Product
from reticent.plan.sections import StatisticSection
from reticent.plan.weights import serving
from reticent.plan.words import copied_stand_in
from reticent.privacy.claim import Change, Claim

if TYPE_CHECKING:
    from reticent.plan.plan import Plan


LAPLACE_NAME = "discrete Laplace"
BINS = ("answer: weighing", "proofs/answer/weighing.md")
EACH = ("answer: attribute by attribute", "proofs/answer/attributes.md")
RAKED = ("answer: totals from a raked table", "proofs/answer/raked.md")


def claim_of(route: Route, change: Change) -> Claim | None:
    """The claim of one statistic, or None for post-processing."""
    return _claim(route, route.epsilon, change)


def claim_of_parts(route: Route, parts: Iterable[AnyMeasurement], change: Change) -> Claim | None:
    """The claim of what was run: the parts' budgets, added, and what the route rests on."""
    return _claim(route, sum((part.amount for part in parts), Fraction(0)), change)


def _claim(route: Route, amount: Fraction, change: Change) -> Claim | None:
    if not amount:
        return None
    if route.statistic.in_rho:
        return Claim(measure="zcdp", rho=amount, change=change, rests_on=route.rests_on)
    return Claim(measure="pure", epsilon=amount, change=change, rests_on=route.rests_on)


def claim_of_bins(parts: Iterable[Measurement], change: Change) -> Claim | None:
    """The claim of finding the totals and bins that weights are made of; None where they are known and fixed."""
    run = tuple(parts)
    if not run:
        return None
    rests_on = [BINS, *([RAKED] if any(part.what == TABLE for part in run) else [])]
    rests_on += [LAPLACE if part.mechanism == LAPLACE_NAME else FLIP for part in run]
    rests_on += [FACTORS] if any(part.what == WEIGHTS for part in run) else []
    rests_on += [EACH] if any(part.what.startswith(f"{CHOICE} by") for part in run) else []
    total = sum((part.epsilon for part in run), Fraction(0))
    return Claim(measure="pure", epsilon=total, change=change, rests_on=tuple(dict.fromkeys(rests_on)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(Product):
    """The statistics of a plan, in order, and the post-stratification that serves them, where there is one."""

    section: ClassVar[str] = "statistic"
    noun: ClassVar[str] = "a statistic"
    plural: ClassVar[str] = "statistics"
    proved_for_moves: ClassVar[bool] = True

    asks: tuple[Statistic, ...]
    weight: Weighting | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(ask.name for ask in self.asks)

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        """One for finding the bins of the weights, one for each statistic that costs anything, and for sampling errors."""
        bins = claim_of_bins(self.weight.parts(plan.neighbours), plan.change) if self.weight else None
        found = (claim_of(route, plan.change) for route in plan.routes)
        asked = tuple(claim for claim in (bins, *found) if claim is not None)
        return asked + plan.design.claims(plan.change)


def read_statistics(raw: Sequence[StatisticSection], given: Given) -> Statistics:
    """All `[[statistic]]` sections, in order; weights to known totals are fitted to what uses them."""
    setting = Setting(
        schema=given.weight.told(given.schema) if given.weight else given.schema,
        neighbours=given.neighbours,
        repair=given.repairs.repair,
        weighting=given.weight,
        copied=copied_stand_in(given.repairs.models),
        unit=given.unit,
    )
    asks = read_asks(raw, setting)
    weight = serving(given.weight, asks, given.schema, given.neighbours) if given.weight else None
    return Statistics(asks=asks, weight=weight)
