"""Binning strategies: base cells put together into bins whose population totals are known. Public, all of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from reticent.errors import PlanError
from reticent.prepare.bins import LARGEST, Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The bin of every base cell, and the known total of every bin. A bin of total 0 gives its members no weight."""

    name: str
    bins: tuple[int, ...]
    totals: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if set(self.bins) != set(range(len(self.totals))):
            raise PlanError("every bin has a total, and every total a bin with a base cell.", field=self.name)
        if min(self.totals) < 0 or not any(self.totals) or max(self.totals) > LARGEST:
            raise PlanError("totals are 0 or more, and not all 0.", field=self.name)
        if self.smallest < Fraction(1, LARGEST):
            raise PlanError("a positive total is too small to tell from 0; round it.", field=self.name)

    @property
    def size(self) -> int:
        """|S|: bins whose members have a weight."""
        return sum(total > 0 for total in self.totals)

    @property
    def smallest(self) -> Fraction:
        """The least positive total."""
        return min(total for total in self.totals if total > 0)

    @property
    def largest(self) -> Fraction:
        return max(self.totals)

    def joined(self, groups: Groups, *, name: str) -> "Strategy":
        """These groups of bins put together; bins that no group names stay alone. Numbered by their first bin."""
        named = [each for group in groups for each in group]
        first = list(range(len(self.totals)))
        if len(set(named)) < len(named) or not set(named) <= set(first):
            raise PlanError("a bin is in one group at most, and one of the strategy's.", field=name)
        for group in groups:
            for each in group:
                first[each] = min(group)
        number = {each: at for at, each in enumerate(sorted(set(first)))}
        return summed(name, [number[each] for each in first], self.totals).over(self.bins)

    def over(self, bins: Sequence[int]) -> "Strategy":
        """This strategy's bins for base cells that lie in `bins`, which this strategy takes for its base cells."""
        return Strategy(name=self.name, bins=tuple(self.bins[each] for each in bins), totals=self.totals)


def summed(name: str, bins: Sequence[int], base_totals: Sequence[Fraction]) -> Strategy:
    """The strategy whose totals are sums over base cells."""
    totals = [Fraction(0)] * (max(bins) + 1)
    for each, total in zip(bins, base_totals, strict=True):
        totals[each] += total
    return Strategy(name=name, bins=tuple(bins), totals=tuple(totals))


def separate(base_totals: Sequence[Fraction], *, name: str = "separate") -> Strategy:
    """Every base cell a bin."""
    return summed(name, range(len(base_totals)), base_totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Strategies to choose from, over the same base cells and the same population."""

    strategies: tuple[Strategy, ...]

    def __post_init__(self) -> None:
        if not self.strategies or len({each.name for each in self.strategies}) < len(self.strategies):
            raise PlanError("needs one strategy or more, each named once.", field="strategies")
        if len({len(each.bins) for each in self.strategies}) > 1:
            raise PlanError("strategies are over the same base cells.", field="strategies")
        if len({sum(each.totals) for each in self.strategies}) > 1:
            raise PlanError("the totals of all strategies have the same sum.", field="strategies")

    @property
    def delta(self) -> Fraction:
        """How far one respondent can move a score |S|/W_0: max over strategies of |S| / min N (THEORY 6.4)."""
        return max(each.size / each.smallest for each in self.strategies)
