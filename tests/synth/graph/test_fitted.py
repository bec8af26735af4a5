"""What a fitted model says of any axes is what its whole joint table says."""

from itertools import combinations, permutations

import numpy as np
import pytest

from reticent.synth.graph.beliefs import Beliefs, FittedGraph
from reticent.synth.graph.estimate import Zeroes, estimate
from reticent.synth.graph.tree import junction_tree
from tests.synth.graph.joint import joint_from, joint_of, noisy, summed

SHAPE = (2, 3, 2, 4, 3, 2)
TOTAL = 300.0
SETS = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    "star": [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)],
    "ring": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)],
    "two parts": [(0, 1), (1, 2), (3, 4), (4, 5)],
    "triples": [(0, 1, 2), (1, 2, 3), (3, 4, 5)],
}


@pytest.fixture(params=SETS, scope="module")
def fitted(request):
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.full(288, 0.3)).reshape(SHAPE) * TOTAL
    measured = noisy(joint, SETS[request.param], [4.0] * len(SETS[request.param]), rng)
    return estimate(SHAPE, measured, total=TOTAL)


@pytest.fixture(scope="module")
def joint(fitted):
    return joint_of(SHAPE, fitted.potentials) * TOTAL


def test_every_subset_of_axes_has_the_marginal_of_the_joint_table(fitted, joint):
    """All 63 subsets, asked at once and one by one."""
    sets = [places for size in range(1, 7) for places in combinations(range(6), size)]
    for places, table in zip(sets, fitted.marginals(sets), strict=True):
        assert np.allclose(table, summed(joint, places), atol=1e-9)
        assert np.allclose(fitted.marginal(places), table, atol=1e-12)


def test_axes_come_in_the_order_asked(fitted, joint):
    for places in permutations((0, 3, 5)):
        assert np.allclose(fitted.marginal(places), summed(joint, places), atol=1e-9)


def test_conditionals_multiply_back_to_the_joint_table(fitted, joint):
    assert np.allclose(joint_from(fitted), joint, atol=1e-9)


def test_conditionals_come_in_an_order_that_can_be_drawn(fitted):
    """Each axis once, given only earlier ones, and lines of chances that sum to one."""
    steps = fitted.conditionals()
    assert sorted(step.place for step in steps) == list(range(6))
    for i, step in enumerate(steps):
        assert set(step.given) <= {earlier.place for earlier in steps[:i]}
        assert step.table.shape == tuple(SHAPE[place] for place in (*step.given, step.place))
        assert (step.table >= 0).all() and np.allclose(step.table.sum(axis=-1), 1)


def test_cliques_are_told_sorted(fitted):
    assert all(list(clique) == sorted(clique) for clique in fitted.cliques)


def test_lines_that_nobody_can_reach_are_still_lines():
    allowed = np.array([[True, True, True], [False, False, False]])
    rng = np.random.default_rng(2)
    measured = noisy(np.full((2, 3), 10.0), [(0, 1)], [1.0], rng)
    fitted = estimate((2, 3), measured, total=60.0, zeroes=[Zeroes(places=(0, 1), allowed=allowed)])
    for step in fitted.conditionals():
        assert np.isfinite(step.table).all() and np.allclose(step.table.sum(axis=-1), 1)
    assert fitted.marginal((0,))[1] == 0


def test_more_axes_than_letters():
    """Sixty axes in a chain, asked for its two ends: what passes along is known in closed form."""
    shape, keep = (2,) * 60, 0.99
    sets = [(i, i + 1) for i in range(59)]
    tree = junction_tree(shape, sets)
    link = np.log([[keep, 1 - keep], [1 - keep, keep]])
    beliefs = Beliefs(tree, sets)
    beliefs.up([link] * 59)
    beliefs.down([np.empty((2, 2)) for _ in sets])
    fitted = FittedGraph(tree=tree, tables=tuple(beliefs.cliques), potentials={}, total=1.0)
    ends = fitted.marginal((0, 59))
    assert ends[0, 0] - ends[0, 1] == pytest.approx((2 * keep - 1) ** 59 / 2, rel=1e-9)
