"""The statistics of a plan as a product: every `[[statistic]]`, and the weights to known totals that some of them use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reticent.answer.statistic import Setting, Statistic
from reticent.answer.weighting import Weighting
from reticent.plan.asks import read_asks
from reticent.plan.claims import claim_of, claim_of_bins
from reticent.plan.product import Given, Product
from reticent.plan.sections import StatisticSection
from reticent.plan.weights import serving
from reticent.plan.words import copied_stand_in
from reticent.privacy.claim import Claim

if TYPE_CHECKING:
    from reticent.plan.plan import Plan


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
        schema=given.schema,
        neighbours=given.neighbours,
        repair=given.repairs.repair,
        weighting=given.weight,
        copied=copied_stand_in(given.repairs.models),
    )
    asks = read_asks(raw, setting)
    weight = serving(given.weight, asks, given.schema, given.neighbours) if given.weight else None
    return Statistics(asks=asks, weight=weight)
