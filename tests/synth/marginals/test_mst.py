"""MST: replay on neighbours, naive twins, and the textbook tree with the noise taken out."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.synth.base import FitTask, MissingMethod
from reticent.synth.marginals import weighted
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.study import MarginalFit
from tests.synth.marginals.trees import PLENTY, chain, faults_when_replaced, table
from tests.synth.replay import APPROXIMATE, COUNTED, PURE, faults, is_drawable, random_rows, run
from tests.synth.standins import FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, spent, toy

# covers T07 T11 T12 T20 T27

QUICK = MST(iterations=5, merge=0)  # so few rows would all be put together
SPENDS = [PURE, APPROXIMATE]
DOMAIN = toy([2, 3, 2], universes={"b": "a = '1'"})


@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("holes", COUNTED)
def test_replay_on_neighbours(holes, spend):
    """Each of 12 records removed, three added; records replaced, which meet the bound and do not pass it."""
    counts = random_rows(DOMAIN, 12, 1)
    assert faults(QUICK, counts, holes, spend) == []
    found, most = faults_when_replaced(QUICK, counts, holes, spend)
    assert found == [] and 0.99 < most <= 1


def test_replay_where_cells_are_put_together():
    """A column of four levels, two of them rare, at an epsilon that tells them apart from noise."""
    counts = chain(toy([2, 2]), 30, 8)
    counts.cells[:3, 1] = 2  # silence stays; the first three rows fall silent
    spend = replace(APPROXIMATE, epsilon=Fraction(40))
    for merge in (3.0, 30.0):
        assert faults(MST(iterations=5, merge=merge), counts, MissingMethod.VALUES, spend) == []


class Shy(MarginalFit):
    """The naive twin: states half of what a score can move."""

    @property
    def reach(self) -> int:
        return super().reach // 2


class Exact(MarginalFit):
    """The naive twin: compares with the product of exact tables, scaled to the exact number of rows."""

    def score(self, places, model):
        ones = [self.view.table(self.held[(place,)], (place,)) for place in places]
        return super().score(places, np.outer(*ones) / max(1, ones[0].sum()))


class Counting(MarginalFit):
    """The naive twin: the exact number of rows as the total."""

    def start(self, **given):
        MarginalFit.start(self, **given)
        self.total = float(self.held[(0,)].sum())


TWINS = {
    Shy: "moves further than it says",
    Exact: "moves further than it says",
    Counting: "says more than the noise let out",
}


@pytest.mark.parametrize("twin", TWINS)
def test_the_replay_catches_naive_twins(twin, monkeypatch):
    monkeypatch.setattr(weighted, "MarginalFit", twin)
    assert TWINS[twin] in faults(QUICK, random_rows(toy([2, 2]), 12, 1), MissingMethod.COMPLETE, APPROXIMATE)


@pytest.mark.parametrize("spend", SPENDS)
def test_a_third_each(spend):
    """Columns, choices and pairs take a third each, up to the rounding of roots."""
    noise = FrozenSynthNoise()
    run(QUICK, random_rows(DOMAIN, 20, 2), MissingMethod.AVAILABLE, spend, noise)
    kinds = [met.kind for met in noise.met]
    pure = not spend.delta
    assert [kind == "choose" for kind in kinds] == [False] * 3 + [True] * 2 + [False] * 2
    parts = [spent(noise.met[a:b], pure=pure) for a, b in ((0, 3), (3, 5), (5, 7))]
    assert parts[0] == parts[2] and parts[0] - Fraction(1, 10**9) < parts[1] <= parts[0]


@pytest.mark.parametrize("holes", [MissingMethod.COMPLETE, MissingMethod.VALUES])
def test_without_noise_it_is_the_chow_liu_tree_of_the_chain(holes):
    """3,000 rows: neighbouring pairs are as counted, and the far ends follow from them."""
    counts = chain(toy([2, 3, 3]), 3000, 3)
    network = run(MST(), counts, holes, PLENTY, NoSynthNoise())
    one, two, far = (t / 3000 for t in counts.count([(0, 1), (1, 2), (0, 2)]))
    assert np.allclose(table(network, (0, 1)), one, atol=1e-3)
    assert np.allclose(table(network, (1, 2)), two, atol=1e-3)
    implied = one @ (two / np.maximum(two.sum(axis=1, keepdims=True), 1e-12))
    assert np.allclose(table(network, (0, 2)), implied, atol=2e-3)
    assert not np.allclose(table(network, (0, 2)), far.sum(axis=1)[:, None] * far.sum(axis=0), atol=2e-2)


def test_without_noise_available_cells_give_the_shape_of_those_who_answered_both():
    """A third of the cells silent: tables of different sums are met at once, on one scale."""
    counts = chain(toy([2, 3, 3]), 4000, 4, silent=1 / 3)
    network = run(MST(), counts, MissingMethod.AVAILABLE, PLENTY, NoSynthNoise())
    for pair in ((0, 1), (1, 2)):
        (both,) = counts.count([pair])
        shape = both[:-1, :-1] / both[:-1, :-1].sum()
        made = table(network, pair)
        assert np.abs(made[:-1, :-1] - shape).sum() < 0.02  # columns alone have more rows, and a say too
        assert made[-1].sum() == made[:, -1].sum() == 0
    assert network.total == pytest.approx(4000)


@pytest.mark.parametrize("holes", list(MissingMethod))
@pytest.mark.parametrize("spend", SPENDS)
def test_every_strategy_leaves_a_network_to_draw_from(holes, spend):
    counts = random_rows(DOMAIN, 300, 5)
    calls = []
    network = QUICK.fit(FitTask(counts, DOMAIN, holes, spend, noise=QuickSynthNoise(6), step=calls.append))
    assert is_drawable(network) and len(calls) <= QUICK.rounds(DOMAIN)
    assert network.claim == QUICK.claim(DOMAIN, holes, spend)


def test_columns_without_a_pair_are_measured_with_all_there_is():
    for domain, method in ((toy([3]), QUICK), (toy([3, 3]), replace(QUICK, most_cells=8))):
        noise = FrozenSynthNoise()
        network = run(method, random_rows(domain, 10, 7), MissingMethod.AVAILABLE, PURE, noise)
        assert spent(noise.met, pure=True) == 1 and is_drawable(network)
