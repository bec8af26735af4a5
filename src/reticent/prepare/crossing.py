"""Bins that are chosen attribute by attribute and then crossed: every attribute has ways to bin it. Public, all of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from reticent.errors import PlanError
from reticent.prepare.strategies import Candidates, Strategy, summed

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
            bins = [bin_ * way.size + group for bin_, group in zip(bins, way.groups, strict=True)]
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
