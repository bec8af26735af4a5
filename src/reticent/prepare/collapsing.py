"""Collapsing orders: which bins are put together first when some are too small. Public, and fixed beforehand.

An order can be used twice. Its chain of ever coarser strategies can be chosen from privately, and it can be
walked with counts in hand: noisy ones (`reticent.refine.collapse`), or exact ones, which promises nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reticent.errors import PlanError
from reticent.prepare.strategies import Strategy

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
