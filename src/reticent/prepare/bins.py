"""Base cells and base weights of a post-stratified survey, as public values: nothing here is read off the rows.

Every respondent falls into one base cell: one base bin of each stratifier, the last stratifier fastest. An
answer that is missing, or none of the declared ones, falls into the bin declared for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.words import nearest

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
