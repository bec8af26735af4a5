"""Total intervals of quantiles by Woodruff's way: the ends aim at ranks that sampling error and privacy noise move.

A sample's share below the population's quantile at p has the standard error deft sqrt(p(1-p)/n). So the ends of a total
interval aim at ranks farther off than those of the interval for privacy noise, by two more private choices; the size of the
subpopulation is measured for it. All three come out of the interval's budget. Woodruff, *Confidence intervals for medians and
other position measures* (1952); THEORY 13.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, hypot, sqrt

from reticent.answer.context import Context
from reticent.refine.total import DesignFactor, SampleSize, rank_reach

SIZE_SHARE = Fraction(1, 10)
"""Of an interval's budget, to the size of the subpopulation; the rest goes evenly to four ends."""
SIZE = "size of the subpopulation"
WOODRUFF_WORDS = (
    "Woodruff's interval, to the nearest candidate: ranks are moved by sampling under the design and by privacy noise "
    "together; it does not cover nonresponse bias, clamped values or a frame that misses people"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBudgets:
    """What each end of an interval costs, and the size that total ends need; 0 where there is none."""

    end: Fraction
    size: Fraction

    @property
    def has_total(self) -> bool:
        return bool(self.size)


def end_budgets(bar: Fraction, *, has_total: bool) -> EndBudgets:
    """Two ends at half of the budget each; or four and the size of the subpopulation."""
    if not has_total:
        return EndBudgets(end=bar / 2, size=Fraction(0))
    size = bar * SIZE_SHARE
    return EndBudgets(end=(bar - size) / 4, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankError:
    """How far sampling moves ranks: the design factor, the sample's size, the weight, and how much filling widens."""

    factor: DesignFactor
    size: SampleSize | None
    weight: str | None = None
    wider: float = 1.0

    def reach(self, at: Fraction, among: float, level: Fraction) -> float:
        """By how much of `among`, respondents or weight, an end's rank is moved."""
        held = self.size or SampleSize(respondents=among)
        heads = held.heads(among, self.weight) or 1.0
        shift = rank_reach(float(at), max(1.0, heads), factor=self.factor, level=float(level))
        return shift / max(1.0, heads) * among * sqrt(self.wider)


def rank_error(name: str, weight: str | None, context: Context, *, wider: float) -> RankError | None:
    """What is known of the sampling error of a statistic; None where nothing is."""
    factor = context.design.factor(name) if context.design is not None else None
    if factor is None or context.design is None:
        return None
    return RankError(factor=factor, size=context.design.size(name), weight=weight, wider=wider)


def joint_shift(noise: int, sampling: float) -> int:
    """The shift of a total end: independent errors add as the root of their squares, as other half-widths do."""
    return max(noise, ceil(hypot(noise, sampling)))
