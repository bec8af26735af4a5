"""When a mechanism uses a row: which answers must be there."""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from reticent.errors import PlanError

Sets = tuple[frozenset[str], ...]
EVERY_ROW: Sets = (frozenset(),)
"""Rows are used whatever is missing: where donors or a model fill the cells first, or where silence is a level."""


def sets_of(*sets: Collection[str]) -> Sets:
    """Sets of attributes in a stated order; one that holds another is left out, since the other is observed with it."""
    if any(isinstance(each, str) for each in sets):
        raise PlanError("give each set as a collection of names, such as {'age'}.", field="attributes")
    found = {frozenset(each) for each in sets}
    if not found:
        raise PlanError("name at least one set of attributes.", field="attributes")
    least = [each for each in found if not any(other < each for other in found)]
    return tuple(sorted(least, key=sorted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A mechanism that is (epsilon, delta)-DP, one row added or removed, in the rows it uses.

    It uses a row if one of its `sets` is observed there in full. Most have one set; a choice among candidate sets
    has them all.
    """

    sets: Sets
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", sets_of(*self.sets))
        if not (isinstance(self.epsilon, Fraction) and isinstance(self.delta, Fraction)):
            raise PlanError("pass exact Fractions, as amount() makes them.", field="epsilon")
        if not self.epsilon > 0:
            raise PlanError(f"it is {self.epsilon}, but must be positive.", field="epsilon")
        if not 0 <= self.delta < 1:
            raise PlanError(f"it is {self.delta}, but must lie from 0 to below 1.", field="delta")


def use(*attributes: str, epsilon: Fraction) -> Use:
    """A mechanism on the rows in which all these attributes are observed."""
    return Use(sets=(frozenset(attributes),), epsilon=epsilon)
