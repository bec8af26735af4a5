"""Raking a fitted model: the margins are met, odds ratios stay, what cannot be stays empty; a shift by sums would not do."""

import numpy as np
import pytest

from reticent.synth.graph.estimate import NoisyTable, Zeroes, estimate
from reticent.synth.graph.rake import raked


def model(zeroes=()):
    dice = np.random.default_rng(1)
    pairs = {(0, 1): dice.integers(50, 200, (3, 2)), (1, 2): dice.integers(50, 200, (2, 4))}
    scale = {places: 1000 * table / table.sum() for places, table in pairs.items()}
    tables = [NoisyTable(places=places, table=table, deviation=3.0) for places, table in scale.items()]
    return estimate((3, 2, 4), tables, total=1000.0, iterations=400, zeroes=zeroes)


def odds(table):
    return table[1:, 1] * table[0, 0] / (table[1:, 0] * table[0, 1])


def test_margins_are_met_and_odds_ratios_stay():
    before, shares = model(), np.array([0.1, 0.2, 0.7])
    after = raked(before, (3, 2, 4), {(0,): shares})
    assert after.marginal((0,)) == pytest.approx(1000 * shares, abs=1e-3)
    assert odds(after.marginal((0, 1))) == pytest.approx(odds(before.marginal((0, 1))), rel=1e-6)
    joint, plain = after.marginal((0, 1, 2)), before.marginal((0, 1, 2))
    ratio = (shares * 1000 / before.marginal((0,)))[:, None, None]
    assert joint == pytest.approx(plain * ratio, rel=1e-5)  # chances given the column of the margin stay


def test_two_margins_one_of_a_pair_that_the_model_has_not():
    pair = np.array([[0.05, 0.1, 0.1, 0.05], [0.1, 0.2, 0.0, 0.1], [0.1, 0.1, 0.05, 0.05]])
    margins = {(1,): np.array([0.3, 0.7]), (0, 2): pair}
    after = raked(model(), (3, 2, 4), margins)
    assert after.marginal((1,)) == pytest.approx([300, 700], abs=1e-3)
    assert after.marginal((0, 2)) == pytest.approx(1000 * pair, abs=1e-3)


def test_what_cannot_be_stays_empty():
    allowed = np.ones((3, 2), dtype=bool)
    allowed[0, 1] = False
    zero = [Zeroes(places=(0, 1), allowed=allowed)]
    after = raked(model(zero), (3, 2, 4), {(0,): np.array([0.5, 0.25, 0.25])}, zero)
    assert after.marginal((0, 1))[0, 1] == 0
    assert after.marginal((0,)) == pytest.approx([500, 250, 250], abs=1e-3)


def test_margins_that_contradict_each_other_end_all_the_same():
    pair = np.full((3, 2), 1 / 6)
    after = raked(model(), (3, 2, 4), {(0,): np.array([0.1, 0.2, 0.7]), (0, 1): pair})
    assert after.marginal((0, 1)).sum() == pytest.approx(1000)
