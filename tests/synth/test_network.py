"""Rows drawn from a network: the right number, near the chances in every group, and free of ties between columns."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.privacy.claim import Claim
from reticent.synth import network as module
from reticent.synth.base import Conditional
from reticent.synth.network import Network, draw_column, rounded
from tests.noise.seeded import SeededBits
from tests.synth.standins import toy

CLAIM = Claim(measure="pure", epsilon=Fraction(1))


def chances(rng, *sizes):
    """Lines of chances whose last cell never happens."""
    table = rng.dirichlet(np.full(sizes[-1] - 1, 0.5), size=sizes[:-1])
    return np.concatenate([table, np.zeros((*sizes[:-1], 1))], axis=-1)


@pytest.fixture
def network():
    """c given a and b, d given c."""
    rng = np.random.default_rng(1)
    domain = toy([3, 2, 4, 3])
    sizes = domain.shape
    steps = [
        Conditional(place=1, given=(), table=chances(rng, sizes[1])),
        Conditional(place=0, given=(1,), table=chances(rng, sizes[1], sizes[0])),
        Conditional(place=2, given=(0, 1), table=chances(rng, sizes[0], sizes[1], sizes[2])),
        Conditional(place=3, given=(2,), table=chances(rng, sizes[2], sizes[3])),
    ]
    return Network(domain=domain, steps=tuple(steps), total=1000.0, claim=CLAIM)


def counts(rows, places, sizes):
    table = np.zeros([sizes[place] for place in places], dtype=np.int64)
    np.add.at(table, tuple(rows[:, place] for place in places), 1)
    return table


def is_within_one(network, rows):
    """Whether every group's counts are its size times its chances, rounded down or up."""
    for step in network.steps:
        found = counts(rows, (*step.given, step.place), network.domain.shape)
        aimed = found.sum(axis=-1, keepdims=True) * step.table
        if not (np.abs(found - aimed) < 1 + 1e-9).all():
            return False
    return True


@pytest.mark.parametrize("rows", [0, 1, 7, 1000, 20_000])
def test_counts_are_within_one_of_what_is_expected_in_every_group(network, rows):
    drawn = network.draw(rows, SeededBits(3))
    assert drawn.shape == (rows, 4) and drawn.dtype == np.int32
    assert is_within_one(network, drawn)


def independent_draw(network, rows, rng):
    """The twin: every row for itself."""
    drawn = np.zeros((rows, 4), dtype=np.int32)
    for step in network.steps:
        line = step.table[tuple(drawn[:, place] for place in step.given)]
        line = np.broadcast_to(line, (rows, step.table.shape[-1]))
        drawn[:, step.place] = (rng.random((rows, 1)) > np.cumsum(line, axis=1)).sum(axis=1)
    return drawn


def test_rows_drawn_one_by_one_are_not_that_near(network):
    assert not is_within_one(network, independent_draw(network, 1000, np.random.default_rng(0)))


def test_impossible_cells_are_never_drawn(network):
    drawn = network.draw(50_000, SeededBits(4))
    for step in network.steps:
        assert (drawn[:, step.place] < step.table.shape[-1] - 1).all()


LINES = st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any)


@given(line=LINES, size=st.integers(0, 10**9), start=st.floats(0, 1, exclude_max=True))
@settings(max_examples=300, deadline=None)
def test_rounding_keeps_sums_and_noughts(line, size, start):
    """Any line, any size, any start: the counts sum to the size, nothing impossible, nothing off by one or more."""
    p = np.array(line, dtype=float) / sum(line)
    found = rounded(p[None], np.array([size]), np.array([start]))[0]
    assert found.sum() == size and (found >= 0).all()
    assert (found[p == 0] == 0).all()
    assert (np.abs(found - size * p) < 1 + 1e-6).all()


@given(line=LINES, size=st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_rounding_is_right_on_average(line, size):
    """Over 4096 evenly spaced starts the mean of every count is its expectation, to one part in 2048."""
    p = np.array(line, dtype=float) / sum(line)
    starts = (np.arange(4096) + 0.5) / 4096
    found = rounded(np.tile(p, (4096, 1)), np.full(4096, size), starts)
    assert (np.abs(found.mean(axis=0) - size * p) <= 1 / 2048).all()


def test_starts_are_spread_and_uniform():
    """Each block of 32 meets every 32nd once. Mean of 64,000 starts: within 6 sd of 1/2 (false alarm 2e-9 at most)."""
    starts = module._starts(64_000, SeededBits(5))
    blocks = np.floor(starts.reshape(-1, 32) * 32).astype(int)
    assert (np.sort(blocks, axis=1) == np.arange(32)).all()
    assert (starts >= 0).all() and (starts < 1).all()
    assert abs(starts.mean() - 0.5) < 6 * (1 / 12 / 64_000) ** 0.5
    assert len(module._starts(5, SeededBits(5))) == 5


def twins(bits, rows=4000):
    """Two columns with even chances, both given a third that tells nothing."""
    domain = toy([2, 2, 2])
    even = np.array([0.5, 0.5, 0.0])
    steps = (
        Conditional(place=0, given=(), table=even),
        Conditional(place=1, given=(0,), table=np.tile(even, (3, 1))),
        Conditional(place=2, given=(0,), table=np.tile(even, (3, 1))),
    )
    drawn = Network(domain=domain, steps=steps, total=1.0, claim=CLAIM).draw(rows, bits)
    return [np.corrcoef(drawn[:, i], drawn[:, j])[0, 1] for i, j in combinations(range(3), 2)]


def test_columns_with_the_same_parent_do_not_follow_each_other(monkeypatch):
    """4000 rows: correlations below 0.1, six standard deviations (false alarm below 1e-8). Without the lot they are 1."""
    assert max(map(abs, twins(SeededBits(6)))) < 0.1
    monkeypatch.setattr(module, "exchange", lambda *_: None)
    assert 1e-3 < max(map(abs, twins(SeededBits(6)))) < 0.1
    monkeypatch.setattr(module, "_shuffled", lambda group, bits: np.argsort(group, kind="stable"))
    assert max(map(abs, twins(SeededBits(6)))) > 0.99


def lone_rows(bits):
    """How far 3210 groups of one row each, with even chances, are off half of them."""
    rows = np.arange(3210, dtype=np.int32)[:, None].repeat(2, axis=1)
    step = Conditional(place=1, given=(0,), table=np.full((3210, 2), 0.5))
    return abs(int(draw_column(step, rows, bits).sum()) - 1605)


def test_sums_over_small_groups_are_nearer_than_chance(monkeypatch):
    """Of 32 starts exactly 16 are below one half, so only the last block, of ten groups, can be off, and by 5 at most.

    A lot for every row is off by 28 (one sd): at most 5 in one of seven seeds, in all of ten with a chance of 1e-8.
    """
    assert max(lone_rows(SeededBits(seed)) for seed in range(10)) <= 5
    uniform = np.random.default_rng(0).random
    monkeypatch.setattr(module, "_starts", lambda groups, bits: uniform(groups))
    assert max(lone_rows(SeededBits(seed)) for seed in range(10)) > 5


def test_large_tables_are_drawn_in_pieces(network, monkeypatch):
    """Pieces change nothing."""
    whole = network.draw(3000, SeededBits(8))
    monkeypatch.setattr(module, "MOST_AT_ONCE", 16)
    assert (network.draw(3000, SeededBits(8)) == whole).all()


def test_a_negative_number_of_rows_is_refused(network):
    with pytest.raises(PlanError):
        network.draw(-1, SeededBits(0))
