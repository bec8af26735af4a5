"""Middle tables change the work, never the result."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.synth.graph.beliefs import Middle, middle_tables
from tests.synth.graph.joint import lifted, summed

SHAPE = (2, 3, 4, 2, 3)


@st.composite
def plans(draw):
    axes = tuple(draw(st.permutations(range(5))))
    some = st.permutations(range(5)).flatmap(lambda p: st.integers(0, 5).map(lambda n: tuple(p[:n])))
    return axes, draw(st.lists(some, max_size=8))


def passes(middle: Middle) -> int:
    """How often the first table is walked through to collect."""
    return len(middle.below)


@given(plan=plans(), seed=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_collecting_sums_and_spreading_adds(plan, seed):
    axes, sets = plan
    rng = np.random.default_rng(seed)
    middle = middle_tables(axes, SHAPE, list(enumerate(sets)))
    joint = rng.random(SHAPE)
    middle.room[...] = joint.transpose(axes)
    found = [np.empty([SHAPE[place] for place in places]) for places in sets]
    middle.collect(found)
    for places, table in zip(sets, found, strict=True):
        assert np.allclose(table, summed(joint, places), rtol=1e-12)

    parts = [rng.random(table.shape) for table in found]
    for joined, nothing in ((np.add, 0.0), (np.multiply, 1.0)):
        middle.spread(parts, joined)
        whole = np.full(SHAPE, nothing)
        for places, table in zip(sets, parts, strict=True):
            ordered = table.transpose(np.argsort(places)) if places else table
            whole = joined(whole, lifted(ordered, tuple(sorted(places)), 5))
        assert np.allclose(middle.room, whole.transpose(axes), rtol=1e-12)


def test_many_pairs_take_few_walks():
    """Ten pairs of five axes: three walks through the table of all five, and not ten."""
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    assert passes(middle_tables((0, 1, 2, 3, 4), SHAPE, list(enumerate(pairs)))) == 3
