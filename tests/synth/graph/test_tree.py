"""Junction trees hold every set, and an axis in two cliques is in all between."""

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.synth.graph.tree import Tree, junction_tree, tree_cells

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=9).map(tuple)


@st.composite
def graphs(draw):
    shape = draw(SHAPES)
    sets = st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=4, unique=True).map(tuple)
    return shape, draw(st.lists(sets, max_size=12))


def path(tree: Tree, i: int, j: int) -> list[int]:
    """The cliques from `i` to `j`, both included."""
    up = [i]
    while tree.parents[up[-1]] >= 0:
        up.append(tree.parents[up[-1]])
    other = [j]
    while other[-1] not in up:
        other.append(tree.parents[other[-1]])
    return up[: up.index(other[-1])] + other[::-1]


def has_running_intersection(tree: Tree) -> bool:
    cliques = [set(clique) for clique in tree.cliques]
    pairs = [(i, j) for i in range(len(cliques)) for j in range(i)]
    return all(cliques[i] & cliques[j] <= cliques[k] for i, j in pairs for k in path(tree, i, j))


@given(graph=graphs())
@settings(max_examples=150, deadline=None)
def test_every_tree_is_a_junction_tree(graph):
    """Sets have a home, axes a place, separators are overlaps, and intersections run."""
    shape, sets = graph
    tree = junction_tree(shape, sets)
    assert all(tree.home(places) is not None for places in sets)
    assert {place for clique in tree.cliques for place in clique} == set(range(len(shape)))
    for clique, parent, separator in zip(tree.cliques, tree.parents, tree.separators, strict=True):
        shared = set(clique) & set(tree.cliques[parent]) if parent >= 0 else set()
        assert shared == set(separator)
        assert clique[len(clique) - len(separator) :] == separator
    assert all(parent < i for i, parent in enumerate(tree.parents))
    assert has_running_intersection(tree)


@given(graph=graphs())
@settings(max_examples=100, deadline=None)
def test_cells_are_counted_without_building_the_tree(graph):
    shape, sets = graph
    tree = junction_tree(shape, sets)
    assert tree_cells(shape, sets) == sum(prod(tree.sizes(clique)) for clique in tree.cliques)


def test_a_chain_needs_no_more_than_its_pairs():
    shape = (3, 4, 5, 6)
    assert tree_cells(shape, [(0, 1), (1, 2), (2, 3)]) == 12 + 20 + 30


def test_a_ring_of_four_gets_one_chord():
    """Two triangles, by the smaller diagonal."""
    assert tree_cells((2, 9, 2, 9), [(0, 1), (1, 2), (2, 3), (0, 3)]) == 2 * 2 * 9 * 2


def test_without_sets_every_axis_stands_alone():
    assert tree_cells((3, 4), []) == 7


@pytest.mark.parametrize("parents", [(-1, 0, 0)])
def test_a_tree_that_is_none_is_noticed(parents):
    """The naive twin: cliques of a ring joined without a chord."""
    ring = Tree(
        shape=(2, 2, 2), cliques=((0, 1), (1, 2), (0, 2)), parents=parents, separators=((), (1,), (0,))
    )
    assert not has_running_intersection(ring)
