"""Belief propagation on a junction tree: from potentials to marginals, by one walk up and one down.

On the way up every clique becomes conditional on its separator. On the way down conditionals are multiplied by what
the parent says of the separator. Exponentials are dear, so they are taken of the small tables of potentials, and
cliques are made of products. If a line of products comes near what a double can hold, the walk is done again in
logarithms, where nothing can under- or overflow; so are all walks after it. Potentials may be minus infinity, where a
cell is impossible.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.synth.base import Floats, Places
from reticent.synth.graph.sums import middle_tables
from reticent.synth.graph.tree import Tree

# A line that sums to this holds its cells down to 1e-100 of the largest, whatever was lost below 1e-308.
SMALLEST = 1e-200


class Beliefs:
    """Memory and plan for walks over one tree. `sets` are the places of the potentials, in their order."""

    def __init__(self, tree: Tree, sets: Sequence[Places]) -> None:
        self.tree = tree
        count = len(tree.cliques)
        self._messages = [np.zeros(tree.sizes(places)) for places in tree.separators]
        held: list[list[tuple[int, Places]]] = [[] for _ in range(count)]
        for number, places in enumerate(sets):
            held[_home(tree, places)].append((number, places))
        for child in range(1, count):
            held[tree.parents[child]].append((len(sets) + child, tree.separators[child]))
        self._tops = [middle_tables(c, tree.shape, h) for c, h in zip(tree.cliques, held, strict=True)]
        self._sums = [np.ones(message.size) for message in self._messages]
        self._possible: list[NDArray[np.bool_]] | None = None
        self._can_multiply = True

    @property
    def cliques(self) -> list[Floats]:
        """The probabilities of every clique, as the last walk left them. Not a copy."""
        return [top.room for top in self._tops]

    def up(self, potentials: Sequence[Floats]) -> bool:
        """Take potentials to conditionals. False where no joint cell is possible."""
        if not (self._can_multiply and self._up_by_products(potentials)):
            # The first time, lines may have been empty because they must be. After that we know which.
            self._can_multiply = self._possible is None
            self._up_by_logarithms(potentials)
            self._possible = [sums > 0 for sums in self._sums]
        return bool(self._sums[0][0] > 0)

    def _up_by_products(self, potentials: Sequence[Floats]) -> bool:
        """Whether every line was large enough to be trusted."""
        tables = [*(_exponential(table) for table in potentials), *self._messages]
        for i in reversed(range(len(self._tops))):
            self._tops[i].spread(tables, np.multiply)
            sums = self._sums[i]
            np.add.reduce(self._lines(i), axis=0, out=sums)
            if self._smallest(i) < SMALLEST:
                return False
            np.divide(sums.reshape(self._messages[i].shape), sums.max() or 1.0, out=self._messages[i])
        return True

    def _smallest(self, i: int) -> float:
        """The smallest sum of a line that is not empty by rule."""
        if self._possible is None:
            return float(self._sums[i].min())
        return float(self._sums[i].min(where=self._possible[i], initial=1.0))

    def _up_by_logarithms(self, potentials: Sequence[Floats]) -> None:
        tables = [*potentials, *self._messages]
        for i in reversed(range(len(self._tops))):
            self._tops[i].spread(tables, np.add)
            lines, sums = self._lines(i), self._sums[i]
            highest = lines.max(axis=0)
            highest[highest == -np.inf] = 0.0
            np.exp(np.subtract(lines, highest, out=lines), out=lines)
            np.add.reduce(lines, axis=0, out=sums)
            with np.errstate(divide="ignore"):
                self._messages[i][...] = (np.log(sums) + highest).reshape(self._messages[i].shape)

    def down(self, marginals: Sequence[Floats]) -> None:
        """Take conditionals to probabilities of cliques, and write those of the sets into `marginals`."""
        self._messages[0][...] = 1.0
        tables = [*marginals, *self._messages]
        for i, top in enumerate(self._tops):
            lines, sums = self._lines(i), self._sums[i]
            share = np.divide(self._messages[i].reshape(-1), sums, out=np.zeros_like(sums), where=sums > 0)
            np.multiply(lines, share, out=lines)
            top.collect(tables)

    def _lines(self, i: int) -> Floats:
        """A clique as a matrix with a column for each cell of its separator."""
        return self._tops[i].room.reshape(-1, self._sums[i].size)


def _exponential(potential: Floats) -> Floats:
    """With a largest cell of 1, or empty where everything is impossible."""
    highest = float(potential.max())
    found: Floats = np.exp(potential - (highest if highest > -np.inf else 0.0))
    return found


def _home(tree: Tree, places: Places) -> int:
    home = tree.home(places)
    if home is None:
        raise ValueError("the tree was not made for these sets")
    return home
