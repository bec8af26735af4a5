"""AIM: replay on neighbours, naive twins, amounts round by round, and all pairs with the noise taken out."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.synth.base import FitTask, MissingMethod
from reticent.synth.graph.tree import tree_cells
from reticent.synth.marginals import weighted
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.privbayes import PrivBayes
from reticent.synth.marginals.scores import SHARES, misfit
from reticent.synth.marginals.study import MarginalFit
from reticent.synth.spending import Accountant
from tests.synth.marginals.trees import PLENTY, chain, faults_when_replaced, table
from tests.synth.replay import APPROXIMATE, COUNTED, PURE, faults, is_drawable, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, spent, toy

# covers T07 T11 T12 T20 T27

QUICK = AIM(iterations=3, last=3, per_column=2, merge=0)
SPENDS = [PURE, APPROXIMATE]
DOMAIN = toy([2, 3], universes={"b": "a = '1'"})


@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("holes", COUNTED)
def test_replay_on_neighbours(holes, spend):
    """Each of 9 records removed, three added; records replaced, which meet the bound and do not pass it."""
    counts = random_rows(DOMAIN, 9, 1)
    assert faults(QUICK, counts, holes, spend) == []
    found, most = faults_when_replaced(QUICK, counts, holes, spend)
    assert found == [] and 0.99 < most <= 1


class Shy(MarginalFit):
    """The naive twin: one record moves a misfit by one and not by two."""

    @property
    def reach(self) -> int:
        return super().reach // 2


class Scaled(MarginalFit):
    """The naive twin of available cells: rates, and so weights, from exact counts."""

    def rate(self, places):
        table = self.view.table(self.held[places], places)
        return max(1, table.sum()) / max(1, self.held[places].sum())


class Peeking(MarginalFit):
    """The naive twin: trusts a column more where somebody is in every cell."""

    def start(self, **given):
        MarginalFit.start(self, **given)
        for place, one in enumerate(self.measured):
            if self.held[(place,)].all():
                self.measured[place] = replace(one, deviation=1e-3)


TWINS = {
    Shy: {"moves further than it says"},
    Scaled: {"asks otherwise of a neighbour"},
    Peeking: {"says more than the noise let out", "asks otherwise of a neighbour"},
}


@pytest.mark.parametrize("twin", TWINS)
def test_the_replay_catches_naive_twins(twin, monkeypatch):
    counts = ArrayCounts(np.array([[0, 0], [0, 1], [1, 1], [2, 1], [1, 2], [0, 0]]), toy([2, 2]))
    assert faults(QUICK, counts, MissingMethod.AVAILABLE, APPROXIMATE) == []
    monkeypatch.setattr(weighted, "MarginalFit", twin)
    assert TWINS[twin] & set(faults(QUICK, counts, MissingMethod.AVAILABLE, APPROXIMATE))


@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_everything_is_spent_and_nothing_more(columns, spend):
    """In at most as many rounds as were planned, none of them smaller than planned."""
    noise, calls = FrozenSynthNoise(), []
    domain = toy([2] * columns)
    method = AIM(iterations=3, last=3)
    method.fit(
        FitTask(
            random_rows(domain, 30, 2), domain, MissingMethod.AVAILABLE, spend, noise=noise, step=calls.append
        )
    )
    total = PURE.epsilon if not spend.delta else Fraction(24355970359, 10**12)
    cost = spent(noise.met, pure=not spend.delta)
    assert total - Fraction(len(noise.met), 10**10) < cost <= total
    assert len(calls) <= method.per_column * columns
    least = method.measuring * total / (method.per_column * columns)
    assert all(met.amount >= least for met in noise.met if met.kind != "choose")


def test_amounts_grow_when_a_table_tells_nothing_new():
    """Rows without any dependence, no noise: the model is right from the start, so amounts double until the end."""
    counts = ArrayCounts(np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 50), toy([2, 2]))
    noise = FrozenSynthNoise(script=[tuple([100] * 2)] * 2)
    run(AIM(per_column=16, merge=0), counts, MissingMethod.COMPLETE, APPROXIMATE, noise)
    amounts = [met.amount for met in noise.met if met.kind == "gaussian"][2:]
    assert [b / a for a, b in pairwise(amounts[:4])] == [2, 2, 2]


def test_without_noise_all_pairs_are_as_counted():
    """3,000 rows of three columns, where no pair is independent of the others; silence counts as a value."""
    counts = chain(toy([2, 3, 3]), 3000, 3, silent=0.2)
    network = run(AIM(per_column=8, last=3000), counts, MissingMethod.VALUES, PLENTY, NoSynthNoise())
    pairs = list(combinations(range(3), 2))
    for pair, counted in zip(pairs, counts.count(pairs), strict=True):
        assert np.allclose(table(network, pair), counted / 3000, atol=3e-3)


def test_without_noise_available_cells_keep_their_shape_on_one_scale():
    """Half of the cells of one column silent, few of the others: no table pulls the rest to its own sum."""
    counts = chain(toy([2, 3, 3]), 4000, 4, silent=0.1)
    counts.cells[::2, 1] = 3
    network = run(AIM(per_column=8, last=3000), counts, MissingMethod.AVAILABLE, PLENTY, NoSynthNoise())
    for pair in combinations(range(3), 2):
        (both,) = counts.count([pair])
        shape = both[:-1, :-1] / both[:-1, :-1].sum()
        made = table(network, pair)
        assert np.abs(made[:-1, :-1] - shape).sum() < 0.04
        assert made[-1].sum() == made[:, -1].sum() == 0
    # The naive twin fits raw counts, of which no model meets all sums.
    sums = [counts.count([(place,)])[0][:-1].sum() for place in range(3)]
    assert max(sums) > 1.5 * min(sums) and network.total == pytest.approx(4000)


def asked(rows: int, seed: int, *, silent: float) -> ArrayCounts:
    """Four ages; the first two are not asked for b and c. b repeats the age, c repeats b, mostly; some answers are missing."""
    domain = toy([4, 2, 2], universes={"b": "a = '2' or a = '3'", "c": "a = '2' or a = '3'"})
    rng = np.random.default_rng(seed)
    a = rng.choice(4, rows, p=[0.1, 0.2, 0.3, 0.4])
    b, c = (np.where(rng.random(rows) < 0.8, a % 2, 1 - a % 2) for _ in range(2))
    cells = np.stack([a, np.where(a < 2, 3, b), np.where(a < 2, 3, c)], axis=1)
    silence = [axis.silence for axis in domain.axes]
    is_silent = (rng.random(cells.shape) < silent) & (cells < [4, 3, 3])
    return ArrayCounts(np.where(is_silent, silence, cells), domain)


@pytest.mark.parametrize(
    "method", [AIM(per_column=8, last=3000), MST(), PrivBayes(rows=20_000), Independent()]
)
def test_who_was_not_asked_is_not_overcounted(method):
    """30 % of the cells of those who were asked are missing. Of all 30 % were not asked; of the cells that are there, 38 %."""
    counts = asked(20_000, 8, silent=0.3)
    network = run(method, counts, MissingMethod.AVAILABLE, PLENTY, NoSynthNoise())
    for place in (1, 2):
        (one,) = counts.count([(place,)])
        assert one[3] / (one[3] + one[:2].sum()) > 0.36  # the naive twin: shares of the cells that are there
        assert table(network, (place,))[3] == pytest.approx(0.3, abs=0.012)


def test_a_right_model_fits_available_cells_though_the_unasked_are_never_silent():
    """Chance leaves a few cells a few dozen rows apart; the naive twin, without who can be silent, misses thousands."""
    whole, counts = (asked(20_000, 8, silent=silent) for silent in (0.0, 0.3))
    accountant = Accountant(spend=PLENTY, noise=NoSynthNoise())
    study = MarginalFit(
        counts=counts, domain=counts.domain, missing=MissingMethod.AVAILABLE, accountant=accountant
    )
    study.start(amount=accountant.total, merge=0)
    for pair in [(0, 1), (1, 2)]:
        study.hold([pair])
        model = study.view.table(whole.count([pair])[0], pair).astype(float)
        naive = misfit(study.view.table(study.held[pair], pair), model)
        assert study.score(pair, model) < 500 * SHARES
        assert naive > 1500 * SHARES


@pytest.mark.parametrize("holes", [MissingMethod.AVAILABLE, MissingMethod.VALUES, MissingMethod.COMPLETE])
@pytest.mark.parametrize("method", [QUICK, MST(iterations=3, merge=0)])
def test_what_the_codebook_rules_out_has_no_chance(method, holes):
    """Noise of deviation 100 and more on 300 rows, and few passes: no child gets an answer all the same."""
    counts = asked(300, 9, silent=0.2)
    network = run(method, counts, holes, APPROXIMATE, QuickSynthNoise(4))
    for place in (1, 2):
        made = table(network, (0, place))
        assert made[:2, :3].sum() < 1e-12 and made[2:4, 3].sum() < 1e-12
        assert made[:2, 3].sum() > 0 and made[2:4, :2].sum() > 0


def test_the_model_stays_as_small_as_it_was_told(monkeypatch):
    """Four columns of four levels: 60 cells have room for a chain of three pairs, and for no circle."""
    sets = []

    class Noting(MarginalFit):
        def measure(self, places, *, amount):
            sets.append(places)
            return MarginalFit.measure(self, places, amount=amount)

    monkeypatch.setattr(weighted, "MarginalFit", Noting)
    counts = chain(toy([4, 4, 4, 4]), 2000, 5)
    for most in (60, 1000):
        sets.clear()
        run(AIM(most_cells=most, per_column=4), counts, MissingMethod.COMPLETE, PLENTY, NoSynthNoise())
        assert any(len(each) == 2 for each in sets)
        assert (tree_cells((4, 4, 4, 4), sets) <= 60) == (most == 60)


@pytest.mark.parametrize("holes", list(MissingMethod))
@pytest.mark.parametrize("spend", SPENDS)
def test_every_strategy_leaves_a_network_to_draw_from(holes, spend):
    domain = toy([2, 3, 2], universes={"b": "a = '1'"})
    calls = []
    network = AIM(iterations=5, last=5).fit(
        FitTask(
            random_rows(domain, 300, 5), domain, holes, spend, noise=QuickSynthNoise(6), step=calls.append
        )
    )
    assert is_drawable(network) and len(calls) <= AIM().rounds(domain)
    assert network.claim == AIM().claim(domain, holes, spend)


def test_shuffled_rows_change_nothing():
    counts = random_rows(DOMAIN, 40, 7)
    turned = ArrayCounts(counts.cells[::-1].copy(), DOMAIN)
    one, two = (
        run(QUICK, each, MissingMethod.AVAILABLE, APPROXIMATE, FrozenSynthNoise())
        for each in (counts, turned)
    )
    assert all(np.array_equal(a.table, b.table) for a, b in zip(one.steps, two.steps, strict=True))


def test_settings_that_cannot_end_or_choose_are_refused():
    for setting in ({"per_column": 1}, {"grow": 1}, {"measuring": Fraction(1)}, {"measuring": Fraction(0)}):
        with pytest.raises(PlanError):
            AIM(**setting)
