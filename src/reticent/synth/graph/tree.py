"""Junction trees: cliques that hold every set, joined so that an axis in two of them is in all between.

The graph joins axes that share a set. Eliminating its axes one by one, each with its neighbours at that time, gives
cliques; a spanning tree of largest overlaps joins them (Lauritzen and Spiegelhalter 1988). Which order makes the
fewest cells is hard to know, so two greedy orders are tried.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from reticent.synth.base import Places

Masks = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Cliques, each after its parent. A clique's axes end with those it shares with its parent, its separator."""

    shape: tuple[int, ...]
    cliques: tuple[Places, ...]
    parents: tuple[int, ...]
    separators: tuple[Places, ...]

    def sizes(self, places: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.shape[place] for place in places)

    def home(self, places: Iterable[int]) -> int | None:
        """The smallest clique that holds all `places`, if one does."""
        wanted = set(places)
        holding = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holding, key=lambda i: prod(self.sizes(self.cliques[i])), default=None)


def tree_cells(shape: Sequence[int], sets: Iterable[Iterable[int]]) -> int:
    """How many cells the cliques have together."""
    return sum(_cells(shape, clique) for clique in _cliques(shape, sets))


def junction_tree(shape: Sequence[int], sets: Iterable[Iterable[int]]) -> Tree:
    """A junction tree in which every set lies within a clique. Axes of no set are cliques of their own."""
    left = _cliques(shape, sets)
    start = max(left, key=lambda clique: _cells(shape, clique))
    left.remove(start)
    order, parents, shared = [start], [-1], [0]
    while left:
        # Prim: next comes the clique that overlaps most with one already there.
        clique, parent = max(
            ((c, i) for c in left for i in range(len(order))),
            key=lambda pair: (pair[0] & order[pair[1]]).bit_count(),
        )
        left.remove(clique)
        shared.append(clique & order[parent])
        parents.append(parent)
        order.append(clique)
    separators = tuple(tuple(_members(mask)) for mask in shared)
    rest = (_by_size(shape, c & ~s) for c, s in zip(order, shared, strict=True))
    cliques = tuple(r + s for s, r in zip(separators, rest, strict=True))
    return Tree(shape=tuple(shape), cliques=cliques, parents=tuple(parents), separators=separators)


def _by_size(shape: Sequence[int], mask: int) -> Places:
    """Shortest first: loops over the last are the inner ones, and should be long."""
    return tuple(sorted(_members(mask), key=lambda place: (shape[place], place)))


def _cliques(shape: Sequence[int], sets: Iterable[Iterable[int]]) -> Masks:
    """The cliques of the better of two greedy orders, as masks of axes."""
    masks = {sum(1 << place for place in places) for places in sets}
    tried = (_eliminated(shape, masks, by_fill) for by_fill in (False, True))
    return min(tried, key=lambda cliques: sum(_cells(shape, clique) for clique in cliques))


def _eliminated(shape: Sequence[int], masks: Iterable[int], by_fill: bool) -> Masks:
    """Cliques left by taking out, again and again, the axis with the fewest cells or missing edges around it."""
    near = _neighbours(len(shape), masks)
    left = dict.fromkeys(range(len(shape)), (-1, 0))
    bags: Masks = []
    stale = set(left)
    while left:
        for v in stale:
            cells = _cells(shape, near[v] | 1 << v)
            left[v] = (_missing(near, v), cells) if by_fill else (cells, v)
        v = min(left, key=lambda u: (left[u], u))
        del left[v]
        bags.append(near[v] | 1 << v)
        stale = _take_out(near, v, by_fill)
    return [bag for i, bag in enumerate(bags) if not any(bag & ~other == 0 for other in bags[:i])]


def _take_out(near: Masks, v: int, by_fill: bool) -> set[int]:
    """Join the neighbours of `v` to each other and forget it; gives the axes whose surroundings have changed."""
    around = list(_members(near[v]))
    changed = near[v]
    for u in around:
        near[u] = (near[u] | near[v]) & ~(1 << u) & ~(1 << v)
        changed |= near[u] if by_fill else 0
    return set(_members(changed))


def _missing(near: Masks, v: int) -> int:
    """Edges between neighbours that taking out `v` would add, each counted twice."""
    return sum((near[v] & ~near[u]).bit_count() - 1 for u in _members(near[v]))


def _neighbours(axes: int, masks: Iterable[int]) -> Masks:
    near = [0] * axes
    for mask in masks:
        for v in _members(mask):
            near[v] |= mask & ~(1 << v)
    return near


def _members(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _cells(shape: Sequence[int], mask: int) -> int:
    return prod(shape[place] for place in _members(mask))
