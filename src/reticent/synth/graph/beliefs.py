"""Belief propagation on a junction tree: from potentials to marginals, by one walk up and one down.

On the way up every clique becomes conditional on its separator, in logarithms and so that no exponential can
overflow. On the way down conditionals are multiplied by what the parent says of the separator. Potentials may be
minus infinity, where a cell is impossible.
"""

from collections.abc import Sequence

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.graph.sums import middle_tables
from reticent.synth.graph.tree import Tree


class Beliefs:
    """Memory and plan for passes over one tree. `sets` are the places of the potentials, in their order."""

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

    @property
    def cliques(self) -> list[Floats]:
        """The probabilities of every clique, as the last pass left them. Not a copy."""
        return [top.room for top in self._tops]

    def up(self, potentials: Sequence[Floats]) -> float:
        """Take potentials to conditionals; gives the logarithm of the sum of all joint cells."""
        tables = [*potentials, *self._messages]
        for i in reversed(range(len(self._tops))):
            self._tops[i].spread(tables)
            self._condition(i)
        return float(self._messages[0])

    def _condition(self, i: int) -> None:
        """Make clique `i` conditional on its separator, and send on what was divided by."""
        lines = self._tops[i].room.reshape(self._sums[i].size, -1)
        highest = lines.max(axis=1)
        highest[highest == -np.inf] = 0.0
        lines -= highest[:, None]
        np.exp(lines, out=lines)
        np.add.reduce(lines, axis=1, out=self._sums[i])
        with np.errstate(divide="ignore"):
            sent = np.log(self._sums[i]) + highest
        self._messages[i][...] = sent.reshape(self._messages[i].shape)

    def down(self, marginals: Sequence[Floats]) -> None:
        """Take conditionals to probabilities of cliques, and write those of the sets into `marginals`."""
        self._messages[0][...] = 1.0
        tables = [*marginals, *self._messages]
        for i, top in enumerate(self._tops):
            lines, sums = top.room.reshape(self._sums[i].size, -1), self._sums[i]
            share = self._messages[i].reshape(-1) / np.where(sums > 0, sums, 1.0)
            lines *= share[:, None]
            top.collect(tables)


def _home(tree: Tree, places: Places) -> int:
    home = tree.home(places)
    if home is None:
        raise ValueError("the tree was not made for these sets")
    return home
