"""A fitted joint table, kept as the tables of a junction tree's cliques."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reticent.synth.base import Conditional, Floats, Places
from reticent.synth.graph.between import Across
from reticent.synth.graph.tree import Tree

NOTHING = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedGraph:
    """`tables` hold the probabilities of the cliques, `potentials` what was fitted for each measured set."""

    tree: Tree
    tables: tuple[Floats, ...] = field(repr=False)
    potentials: Mapping[Places, Floats] = field(repr=False)
    total: float

    @property
    def cliques(self) -> tuple[Places, ...]:
        """The axes of every clique, sorted."""
        return tuple(tuple(sorted(clique)) for clique in self.tree.cliques)

    def marginal(self, places: Places) -> Floats:
        """The table over `places`, in their order, scaled to the total."""
        return self.marginals([places])[0]

    def marginals(self, sets: Sequence[Places]) -> list[Floats]:
        """Many tables at once, sharing what they have in common."""
        across = Across(self.tree, self.tables)
        return [self.total * across.table(places) for places in sets]

    def conditionals(self) -> tuple[Conditional, ...]:
        """The same joint table as a row of steps: each axis given some of those before it.

        Chances below 1e-15 become 0, so that whatever can be drawn has a line of its own.
        """
        across = Across(self.tree, self.tables)
        steps = []
        for clique, separator in zip(self.tree.cliques, self.tree.separators, strict=True):
            # Axes of the separator come last, and are there already; the others follow from the back.
            for place in reversed(range(len(clique) - len(separator))):
                steps.append(_conditional(across, clique[place], tuple(sorted(clique[place + 1 :]))))
        return tuple(steps)


def _conditional(across: Across, place: int, given: Places) -> Conditional:
    joint = across.table((*given, place))
    lines = joint.reshape(-1, joint.shape[-1])
    mass = lines.sum(axis=1, keepdims=True)
    chances = np.where(mass > 0, lines / np.where(mass > 0, mass, 1.0), lines.sum(axis=0))
    chances = np.where(chances < NOTHING, 0.0, chances)
    chances /= chances.sum(axis=1, keepdims=True)
    return Conditional(place=place, given=given, table=chances.reshape(joint.shape))
