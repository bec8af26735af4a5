"""Rows that change cells within a group: tables of groups stay, pairs come near to what is expected, triples stay by chance."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from reticent.privacy.claim import Claim
from reticent.synth import network as drawing
from reticent.synth.base import Conditional
from reticent.synth.network import Network
from tests.noise.seeded import SeededBits
from tests.synth.standins import toy

CLAIM = Claim(measure="pure", epsilon=Fraction(1))


def star(columns: int, levels: int, seed: int = 1) -> Network:
    """Columns that all follow the first, and through it alone each other."""
    rng = np.random.default_rng(seed)
    domain = toy([levels] * columns)

    def lines(*sizes: int) -> np.ndarray:
        made = rng.dirichlet(np.ones(levels), size=sizes)
        return np.concatenate([made, np.zeros((*sizes, 1))], axis=-1)

    first = Conditional(place=0, given=(), table=lines())
    rest = [Conditional(place=at, given=(0,), table=lines(levels + 1)) for at in range(1, columns)]
    return Network(domain=domain, steps=(first, *rest), total=1.0, claim=CLAIM)


def off(network: Network, rows: np.ndarray) -> float:
    """The mean distance of pairs that follow each other through the first column from what the network has of them."""
    first, levels = network.steps[0].table[:-1], network.domain.shape[0] - 1
    found = []
    for a, b in combinations(range(1, len(network.steps)), 2):
        lines = [network.steps[at].table[:-1, :-1] for at in (a, b)]
        expected = (lines[0] * first[:, None]).T @ lines[1]
        table = np.zeros((levels, levels))
        np.add.at(table, (rows[:, a], rows[:, b]), 1 / len(rows))
        found.append(np.abs(table - expected).sum() / 2)
    return float(np.mean(found))


def test_pairs_come_nearer_to_what_is_expected_than_by_lot(monkeypatch):
    """2,000 rows, 15 pairs of 6 by 6: at most a third of the distance of rows that were not exchanged."""
    network = star(7, 6)
    near = off(network, network.draw(2000, SeededBits(3)))
    monkeypatch.setattr(drawing, "exchange", lambda *_: None)
    assert near < off(network, network.draw(2000, SeededBits(3))) / 3


def test_what_a_group_has_of_each_cell_stays(monkeypatch):
    network = star(5, 4)
    rows = network.draw(999, SeededBits(4))
    monkeypatch.setattr(drawing, "exchange", lambda *_: None)
    plain = network.draw(999, SeededBits(4))
    # The second column is drawn before anything can be exchanged, and its group is the first column alone.
    assert (rows[:, :2] == plain[:, :2]).all()
    for place in range(2, 5):
        for each in np.unique(rows[:, 0]):
            inside = rows[rows[:, 0] == each, place]
            aimed = len(inside) * network.steps[place].table[each]
            assert (np.abs(np.bincount(inside, minlength=5) - aimed) < 1 + 1e-9).all()
    assert (rows != plain).any()


def test_triples_are_left_to_chance():
    """Four fair coins, 4,000 rows: products of three are within six deviations of nothing (false alarm below 1e-8)."""
    domain, fair = toy([2] * 4), np.array([0.5, 0.5, 0.0])
    steps = tuple(Conditional(place=at, given=(), table=fair) for at in range(4))
    rows = Network(domain=domain, steps=steps, total=1.0, claim=CLAIM).draw(4000, SeededBits(9))
    signs = 1 - 2 * rows.astype(float)
    assert max(abs((signs[:, a] * signs[:, b]).mean()) for a, b in combinations(range(4), 2)) < 0.002
    for triple in combinations(range(4), 3):
        assert abs(signs[:, triple].prod(axis=1).mean()) < 6 / 4000**0.5


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_CELLS", "MOST_WORK"])
def test_where_it_is_too_much_rows_stay_as_they_were_drawn(limit, monkeypatch):
    network = star(4, 3)
    monkeypatch.setattr(drawing, limit, 2)
    limited = network.draw(300, SeededBits(5))
    monkeypatch.setattr(drawing, "exchange", lambda *_: None)
    assert (limited == network.draw(300, SeededBits(5)))[:, :3].all()
