"""Belief propagation gives the marginals of the joint table, whatever the potentials."""

import numpy as np
import pytest

from reticent.synth.graph.beliefs import Beliefs
from reticent.synth.graph.tree import junction_tree
from tests.synth.graph.joint import joint_of, summed

SHAPE = (2, 3, 4, 2, 3)
SETS = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "ring": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "apart": [(0, 1), (2,), (3, 4)],
    "nested": [(0,), (0, 1), (1, 2, 3), (2, 3), (4,)],
    "single": [(2,)],
}


def walked(sets, potentials):
    """Marginals of the sets, and the plan that found them."""
    beliefs = Beliefs(junction_tree(SHAPE, sets), sets)
    assert beliefs.up(potentials)
    found = [np.empty([SHAPE[place] for place in places]) for places in sets]
    beliefs.down(found)
    return found, beliefs


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("spread", [1.0, 30.0, 800.0, 1e5])
def test_marginals_are_those_of_the_joint_table(name, spread):
    """By enumeration, from gentle potentials to such as no double can hold the exponential of."""
    rng = np.random.default_rng(7)
    sets = SETS[name]
    potentials = [spread * rng.normal(size=[SHAPE[place] for place in places]) for places in sets]
    joint = joint_of(SHAPE, dict(zip(sets, potentials, strict=True)))
    found, beliefs = walked(sets, potentials)
    for places, table in zip(sets, found, strict=True):
        assert np.allclose(table, summed(joint, places), rtol=0, atol=1e-10)
    for clique, table in zip(beliefs.tree.cliques, beliefs.cliques, strict=True):
        assert np.allclose(table, summed(joint, clique), rtol=0, atol=1e-10)


def naive_products(potentials):
    """The twin: multiply exponentials and hope."""
    with np.errstate(all="ignore"):
        joint = np.exp(potentials[0])[:, :, None] * np.exp(potentials[1])[None]
        return joint.sum(axis=2) / joint.sum()


def test_opposite_potentials_need_logarithms():
    """One set says e^-900 and its neighbour e^900. The naive product knows nothing of the cell they meet in."""
    first, second = np.zeros((2, 3)), np.zeros((3, 4))
    first[:, 1:] = -900.0
    second[0, :] = -900.0
    joint = joint_of(SHAPE[:3], {(0, 1): first, (1, 2): second})
    truth = summed(joint, (0, 1))
    found, _ = walked([(0, 1), (1, 2)], [first, second])
    assert np.allclose(found[0], truth, atol=1e-12)
    assert not np.allclose(naive_products([first, second]), truth, atol=1e-3)


def test_impossible_cells_have_chance_nought_and_the_rest_is_conditional():
    rng = np.random.default_rng(3)
    sets = SETS["ring"]
    potentials = [rng.normal(size=[SHAPE[place] for place in places]) for places in sets]
    potentials[1][0, :] = -np.inf
    potentials[3][1, 2] = -np.inf
    joint = joint_of(SHAPE, dict(zip(sets, potentials, strict=True)))
    for _ in range(2):
        found, beliefs = walked(sets, potentials)
        assert (found[1][0] == 0).all() and found[3][1, 2] == 0
        for places, table in zip(sets, found, strict=True):
            assert np.allclose(table, summed(joint, places), atol=1e-12)
        # The second walk of the same plan knows which lines are empty by rule.
        assert beliefs.up(potentials) and beliefs._can_multiply


def test_nothing_possible_is_said():
    beliefs = Beliefs(junction_tree(SHAPE, [(0,), (1,)]), [(0,), (1,)])
    assert not beliefs.up([np.full(2, -np.inf), np.zeros(3)])
    assert not beliefs.up([np.full(2, -np.inf), np.zeros(3)])


def test_a_set_without_a_home_is_refused():
    with pytest.raises(ValueError, match="not made for these sets"):
        Beliefs(junction_tree(SHAPE, [(0,), (1,)]), [(0, 1)])
