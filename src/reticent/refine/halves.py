"""Groups of margins in a tree: each side is handed the table with the factors of the other side summed in.

For the side on the left that is the table, as a matrix, times the factors on the right; so a cycle reads the
whole table twice, and all else are arrays of about the square root of its size.
"""

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from reticent.refine.groups import Fold, Group
from reticent.refine.margins import Floats

Side: TypeAlias = "Group | Pair"


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two sides that share no axis; the left one's axes come first."""

    left: Side
    right: Side
    size: int

    @property
    def groups(self) -> tuple[Group, ...]:
        return (*self.left.groups, *self.right.groups)

    def factors(self) -> Floats:
        """All factors, multiplied out."""
        return np.multiply.outer(self.left.factors(), self.right.factors()).reshape(-1)

    def fit(self, given: Floats, *, judge: bool) -> float:
        """Meet every margin once; the error of the very first before it was met, if it is to be judged."""
        matrix = given.reshape(self.left.size, -1)
        error = self.left.fit(matrix @ self.right.factors(), judge=judge)
        self.right.fit(self.left.factors() @ matrix, judge=False)
        return error

    def look(self, given: Floats) -> list[tuple[Fold, Floats]]:
        """Every margin, and what the table says about it as the factors stand."""
        matrix = given.reshape(self.left.size, -1)
        here = self.left.look(matrix @ self.right.factors())
        return here + self.right.look(self.left.factors() @ matrix)


def tree_of(groups: list[Group]) -> Side:
    """Cut in two where the sides are nearest in size, again and again."""
    if len(groups) == 1:
        return groups[0]
    sizes = [group.size for group in groups]
    cut = min(range(1, len(groups)), key=lambda k: prod(sizes[:k]) + prod(sizes[k:]))
    return Pair(tree_of(groups[:cut]), tree_of(groups[cut:]), prod(sizes))
