"""Tables of axes that no clique holds together: from clique to clique along the tree, and each way only once.

Beyond a separator the rest of the tree matters only through it. So the table of two far axes is that of the one and a
separator, times the law of the other given that separator; and that law is the same for all tables that ask for it.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.graph.tree import Tree

Factor = tuple[Floats, Places]


class Across:
    """Answers for one calibrated tree. Keeps what it has summed, for the next question."""

    def __init__(self, tree: Tree, tables: Sequence[Floats]) -> None:
        self._tree = tree
        self._sums: list[dict[frozenset[int], Factor]] = [
            {frozenset(clique): (table, clique)} for clique, table in zip(tree.cliques, tables, strict=True)
        ]
        self._laws: dict[tuple[int, int, Places], Factor] = {}
        self._near = _near(tree.parents)
        self._beyond: dict[tuple[int, int], frozenset[int]] = {}

    def table(self, places: Places) -> Floats:
        """The probabilities over `places`, in their order."""
        home = self._tree.home(places)
        if home is not None:
            return _ordered(self._sum(home, places), places)
        best = max(range(len(self._near)), key=lambda i: (self._held(i, places), -self._cells(i)))
        return self._through(best, None, places)

    def _held(self, i: int, places: Places) -> int:
        return len(set(places) & set(self._tree.cliques[i]))

    def _cells(self, i: int) -> int:
        return prod(self._tree.sizes(self._tree.cliques[i]))

    def _through(self, i: int, source: int | None, kept: Places) -> Floats:
        """Clique `i` and what lies behind it, seen from `source`, summed to `kept`."""
        clique = set(self._tree.cliques[i])
        far = [place for place in kept if place not in clique]
        factors: list[Factor] = []
        for j in self._near[i]:
            part = tuple(sorted(place for place in far if j != source and place in self._reach(i, j)))
            if part:
                factors.append(self._law(j, i, part))
        needed = {place for place in kept if place in clique}
        needed.update(place for _, axes in factors for place in axes if place in clique)
        return _multiplied([self._sum(i, needed), *factors], kept)

    def _law(self, i: int, source: int, places: Places) -> Factor:
        """`places`, which lie on the side of clique `i`, given its separator from clique `source`."""
        key = (i, source, places)
        if key not in self._laws:
            shared = tuple(sorted(set(self._tree.cliques[i]) & set(self._tree.cliques[source])))
            joint = self._through(i, source, (*shared, *places))
            mass = _ordered(self._sum(i, shared), shared).reshape(
                joint.shape[: len(shared)] + (1,) * len(places)
            )
            law = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
            self._laws[key] = (law, (*shared, *places))
        return self._laws[key]

    def _reach(self, i: int, j: int) -> frozenset[int]:
        """All axes on the side of `j` when the edge between `i` and `j` is cut."""
        if (i, j) not in self._beyond:
            further = (self._reach(j, k) for k in self._near[j] if k != i)
            self._beyond[i, j] = frozenset(self._tree.cliques[j]).union(*further)
        return self._beyond[i, j]

    def _sum(self, i: int, places: Iterable[int]) -> Factor:
        """Clique `i` summed to `places`, from the smallest sum that is there already."""
        wanted, known = frozenset(places), self._sums[i]
        if wanted not in known:
            table, axes = min((f for key, f in known.items() if wanted <= key), key=lambda f: f[0].size)
            away = tuple(n for n, axis in enumerate(axes) if axis not in wanted)
            known[wanted] = (np.asarray(table.sum(axis=away)), tuple(axis for axis in axes if axis in wanted))
        return known[wanted]


def _multiplied(factors: Sequence[Factor], kept: Places) -> Floats:
    """The product of the factors, summed to `kept`; each axis is summed as soon as no factor to come needs it."""
    table, axes = factors[0]
    for i, (other, more) in enumerate(factors[1:], start=2):
        needed = {*kept, *(place for _, later in factors[i:] for place in later)}
        joint = tuple(place for place in dict.fromkeys((*axes, *more)) if place in needed)
        table, axes = _product(table, axes, other, more, joint), joint
    return _ordered((table, axes), kept)


def _product(a: Floats, a_axes: Places, b: Floats, b_axes: Places, kept: Places) -> Floats:
    # Not by matrix products: most of these are thousands of tiny ones, each slower to start than to do.
    names = {place: i for i, place in enumerate(dict.fromkeys((*a_axes, *b_axes)))}
    sides = [[names[place] for place in axes] for axes in (a_axes, b_axes, kept)]
    operands: list[Any] = [a, sides[0], b, sides[1], sides[2]]
    return np.asarray(np.einsum(*operands))


def _near(parents: Sequence[int]) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in parents]
    for child, parent in enumerate(parents):
        if parent >= 0:
            near[child].append(parent)
            near[parent].append(child)
    return near


def _ordered(factor: Factor, places: Places) -> Floats:
    table, axes = factor
    return table.transpose([axes.index(place) for place in places])
