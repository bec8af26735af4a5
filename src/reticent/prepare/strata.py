"""Post-strata as public values: base cells, base weights, binning strategies, collapsing orders. None is read off rows.

Every respondent falls into one base cell: one base bin of each stratifier, the last stratifier fastest. An answer that is
missing, or none of the declared ones, falls into the bin declared for it. A strategy puts base cells together into bins
whose population totals are known; bins may also be chosen attribute by attribute and then crossed.

A collapsing order says which bins are put together first when some are too small, and can be used twice. Its chain of
ever coarser strategies can be chosen from privately, and it can be walked with counts in hand: noisy ones
(`reticent.refine.collapse`), or exact ones, which promises nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError, nearest

Codes = NDArray[np.int64]
Groups = Sequence[Sequence[int]]

LARGEST = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseWeights:
    """What the design says of base weights: whole numbers of `unit`, none above `heaviest`.

    A weight of 0 is no record. With `heaviest` 1 all weights are equal. `kept` is K, how many of the largest
    weights of each cell an engine hands over; it is public, and only needed where weights differ.
    """

    unit: Fraction = Fraction(1)
    heaviest: int = 1
    kept: int = 0

    def __post_init__(self) -> None:
        if self.unit <= 0 or not 1 <= self.heaviest <= LARGEST:
            raise PlanError("the largest base weight must be declared, and is positive.", field="weight")
        if self.kept < (self.heaviest > 1):
            raise PlanError("where weights differ, at least the largest one is kept.", field="kept")


EQUAL = BaseWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratifier:
    """An attribute with so many base bins, numbered from 0, and the bin of those who did not say."""

    name: str
    bins: int
    missing: int

    def __post_init__(self) -> None:
        if not 0 <= self.missing < self.bins:
            raise PlanError("a missing answer goes to one of the declared bins.", field=self.name)

    def groups_of(self, groups: Groups) -> Codes:
        """The group of every base bin; each bin is in one group."""
        named = [each for group in groups for each in group]
        if sorted(named) != list(range(self.bins)) or not all(groups):
            raise PlanError("the groups hold every base bin once.", field=self.name)
        where = {each: number for number, group in enumerate(groups) for each in group}
        return np.array([where[each] for each in range(self.bins)], np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCells:
    """All combinations of the stratifiers' base bins."""

    stratifiers: tuple[Stratifier, ...]

    def __post_init__(self) -> None:
        if not self.stratifiers or len({each.name for each in self.stratifiers}) < len(self.stratifiers):
            raise PlanError("needs one stratifier or more, each named once.", field="stratifiers")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(each.bins for each in self.stratifiers)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def of(self, codes: Sequence[Codes]) -> Codes:
        """The base cell of every record, from one code for each stratifier; whatever is no code is missing."""
        kept = [
            np.where((code >= 0) & (code < each.bins), code, each.missing)
            for each, code in zip(self.stratifiers, codes, strict=True)
        ]
        return np.ravel_multi_index(kept, self.shape).astype(np.int64)

    def by(self, chosen: Mapping[str, Groups | None]) -> tuple[int, ...]:
        """The bin of every base cell when only `chosen` stratifiers count, in groups or (None) in base bins."""
        names = [each.name for each in self.stratifiers]
        for name in chosen:
            if name not in names:
                raise PlanError(f"no stratifier is called {name!r}{nearest(name, names)}", field="by")
        places = np.indices(self.shape).reshape(len(names), -1)
        bins = np.zeros(self.size, np.int64)
        for each, at in zip(self.stratifiers, places, strict=True):
            if each.name in chosen:
                groups = chosen[each.name] or [[number] for number in range(each.bins)]
                bins = bins * len(groups) + each.groups_of(groups)[at]
        return tuple(bins.tolist())


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


Members = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoffs:
    """Bins with fewer `records`, or weighted up or down by more than `factor`, are collapsed. Not private."""

    records: int
    factor: Fraction


ACS = Cutoffs(records=10, factor=Fraction(7, 2))
"""The American Community Survey's: ten records, and population over weighted sample between 1/3.5 and 3.5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Pairs of bins, in the order in which they are put together, each with whatever they were joined to before."""

    merges: tuple[tuple[int, int], ...]

    def chain(self, start: Strategy) -> tuple[Strategy, ...]:
        """The strategies after no merge, one, two and so on; a merge within one bin gives none."""
        self._check(start)
        groups = _Groups(len(start.totals))
        chain = [start]
        for one, other in self.merges:
            if groups.join(one, other):
                name = f"{start.name}, {len(chain)} merged"
                chain.append(start.joined(groups.all(), name=name))
        return tuple(chain)

    def collapse(self, start: Strategy, is_short: Callable[[Members], bool]) -> Strategy:
        """Go through the merges and carry out those of which one side is short, until none is left to do.

        A bin may be short at the end, when the order has nothing more to join it to.
        """
        self._check(start)
        groups, again = _Groups(len(start.totals)), True
        while again:
            again = False
            for one, other in self.merges:
                if any(is_short(groups.of(each)) for each in (one, other)):
                    again |= groups.join(one, other)
        return start.joined(groups.all(), name=f"{start.name}, collapsed")

    def _check(self, start: Strategy) -> None:
        if any(not 0 <= each < len(start.totals) for merge in self.merges for each in merge):
            raise PlanError("a merge names a bin that the strategy does not have.", field="order")


def outward(bins: int) -> Order:
    """For ordered bins: each with the next, from the first one on."""
    return Order(merges=tuple((each, each + 1) for each in range(bins - 1)))


class _Groups:
    """Which bins have been put together so far."""

    def __init__(self, bins: int) -> None:
        self._of: list[Members] = [(each,) for each in range(bins)]

    def of(self, each: int) -> Members:
        return self._of[each]

    def join(self, one: int, other: int) -> bool:
        """Put two groups together; whether they were two."""
        if other in self._of[one]:
            return False
        both = tuple(sorted(self._of[one] + self._of[other]))
        for each in both:
            self._of[each] = both
        return True

    def all(self) -> Sequence[Members]:
        return sorted(set(self._of))


MOST = 1000
"""Strategies that can come of all choices together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to bin an attribute: the group of every base cell, by that attribute alone."""

    name: str
    groups: tuple[int, ...]

    @property
    def size(self) -> int:
        return max(self.groups) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifierGroup:
    """Stratifiers that are binned together, the ways to do so, and the price of choosing one; a single way is free."""

    by: tuple[str, ...]
    ways: tuple[Way, ...]
    epsilon: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not self.ways or len({way.name for way in self.ways}) < len(self.ways):
            raise PlanError("needs one way or more to bin it, each named once.", field="attribute")
        if (len(self.ways) == 1) != (self.epsilon == 0) or self.epsilon < 0:
            raise PlanError("a choice has its price, and a single way has none.", field="epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The attributes in the order of their choices, and the total of every base cell."""

    attributes: tuple[StratifierGroup, ...]
    totals: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        named = [name for each in self.attributes for name in each.by]
        if not named or len(set(named)) < len(named):
            raise PlanError("a stratifier belongs to one attribute.", field="attribute")
        if prod(len(each.ways) for each in self.attributes) > MOST:
            raise PlanError(
                f"the choices could come to more than {MOST} strategies; give fewer ways", field="attribute"
            )

    @property
    def epsilon(self) -> Fraction:
        """The prices of all choices together."""
        return sum((each.epsilon for each in self.attributes), Fraction(0))

    def strategy(self, chosen: Sequence[int]) -> Strategy:
        """The bins of the first attributes crossed, each in the way chosen; attributes after these do not count."""
        ways = [each.ways[at] for each, at in zip(self.attributes, chosen, strict=False)]
        bins = [0] * len(self.totals)
        for way in ways:
            size = way.size
            bins = [bin_ * size + group for bin_, group in zip(bins, way.groups, strict=True)]
        return summed("; ".join(way.name for way in ways), bins, self.totals)

    def candidates(self, chosen: Sequence[int]) -> Candidates:
        """What the next attribute is chosen among: its ways, crossed with the bins chosen before."""
        ways = self.attributes[len(chosen)].ways
        return Candidates(strategies=tuple(self.strategy([*chosen, at]) for at in range(len(ways))))

    def everything(self) -> Candidates:
        """All strategies that can come of the choices."""
        all_ = product(*(range(len(each.ways)) for each in self.attributes))
        return Candidates(strategies=tuple(self.strategy(chosen) for chosen in all_))

    def delta(self, place: int) -> Fraction:
        """The largest Delta that the choice of this attribute can have, whatever was chosen before."""
        before = product(*(range(len(each.ways)) for each in self.attributes[:place]))
        return max(self.candidates(chosen).delta for chosen in before)
