"""Answered cells, weighted by who answers: the score's reach, lists of which a record has one entry, and MAR undone."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod
from reticent.synth.lists import as_available
from reticent.synth.marginals import weighted
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.marginals.response import SilentCounts
from reticent.synth.marginals.scores import SHARES, _halved, _least, scaled_misfit
from reticent.synth.marginals.weighted import WeightedFit
from reticent.synth.spending import Accountant
from tests.synth.marginals.trees import PLENTY, chain, table
from tests.synth.replay import APPROXIMATE, faults, random_rows, run
from tests.synth.standins import ArrayCounts, NoSynthNoise, QuickSynthNoise, toy

# covers T07 T11 T12

ONE, TWO = np.zeros(3, np.int64), np.array([0, 0, 1])
TABLES = [np.array(cells) for cells in product(range(3), repeat=3)]
MODELS = [np.array(m) for m in ([0.0, 0, 0], [1, 1, 1.0], [0.3, 2.9, 0], [1e-9, 1e9, 0.4], [0, 5.0, 0])]
WEIGHTED = MissingMethod.WEIGHTED


def scaled_by_the_sum(counts, model, blocks) -> int:
    """The naive twin: the scale is the number of rows that answered, which the record itself moves."""
    shares = np.floor(SHARES * model / max(model.sum(), 1e-300)).astype(np.int64)
    return int(np.abs(SHARES * counts - int(counts.sum()) * shares).sum())


@pytest.mark.parametrize("blocks", [ONE, TWO])
def test_one_record_moves_a_scaled_misfit_by_one_at_most(blocks):
    """All tables of up to two records in three cells, all records added, five models. The twin moves by two."""

    def farthest(score) -> int:
        return max(
            abs(score(counts + unit, model, blocks) - score(counts, model, blocks))
            for counts in TABLES
            for unit in np.eye(3, dtype=np.int64)
            for model in MODELS
        )

    assert farthest(scaled_misfit) == SHARES
    assert farthest(scaled_by_the_sum) > 1.9 * SHARES


@given(
    hnp.arrays(np.int64, 4, elements=st.integers(0, 10**6)),
    hnp.arrays(np.int64, 4, elements=st.integers(0, SHARES // 4)),
)
def test_the_least_scale_is_the_least_of_all(counts, shares):
    """Against halving over all whole scales, and against the corners of the piecewise linear sum."""
    found = _least(SHARES * counts, shares)
    most = 2 * SHARES * int(counts.sum()) // int(shares.sum()) + 1 if shares.any() else 0
    corners = [
        0,
        *(SHARES * int(c) // int(s) + d for c, s in zip(counts, shares, strict=True) if s for d in (0, 1)),
    ]
    assert found == _halved(SHARES * counts, shares, most)
    assert found == min(int(np.abs(SHARES * counts - s * shares).sum()) for s in corners)


def study(counts: ArrayCounts, noise=None, spend=PLENTY, **given) -> WeightedFit:
    accountant = Accountant(spend=spend, noise=noise or NoSynthNoise())
    return WeightedFit(counts=counts, domain=counts.domain, missing=WEIGHTED, accountant=accountant, **given)


@pytest.mark.parametrize("runs", [0, 3])
def test_every_record_is_in_exactly_one_entry_of_a_list(runs):
    """All single records of a domain with a universe and an ordered column of eight levels, put in runs or not."""
    domain = toy([8, 3], universes={"b": "a = '1' or a = '2'"}, ordered=True)
    begun = study(random_rows(domain, 200, 1), runs=runs)
    begun.start(amount=Fraction(1), merge=0)
    assert begun.tables.paired.shape[0] == (runs or 8)
    for record in product(*(range(size) for size in domain.shape)):
        alone = ArrayCounts(np.array([record]), domain)
        begun.held = {}
        begun.counts = alone
        for places in ((0,), (1,), (0, 1)):
            begun.hold([places])
            entries = begun._list(places)
            assert entries.sum() == 1 and entries.max() == 1


def test_no_record_moves_the_score_of_a_fit_further_than_its_reach():
    """All surveys of up to two records, and all records added, fallen silent or replaced: with a universe, runs, and weights.

    The weights are those of a fit in progress to other rows, where b is missing most often where a is 1.
    """
    domain = toy([4, 3], universes={"b": "a = '0' or a = '1'"}, ordered=True)
    rng, records = np.random.default_rng(1), list(product(*(range(size) for size in domain.shape)))
    a = rng.choice(4, 20_000, p=[0.5, 0.3, 0.15, 0.05])
    told = np.where(rng.random(len(a)) < np.where(a == 1, 0.6, 0.1), 3, rng.integers(0, 3, len(a)))
    rows = np.stack([a, np.where(a < 2, told, domain.axes[1].unasked)], axis=1)
    begun = study(ArrayCounts(rows, domain), runs=3)
    begun.start(amount=begun.accountant.total / 2, merge=0)
    begun.measure((0, 1), amount=begun.accountant.total / 4)
    model = begun.counted(begun.fit(iterations=50).marginal((0, 1)), (0, 1))
    relative = begun.tables.relative((0, 1))
    assert relative is not None and relative.max() > 1.3 * relative.min()

    def score(survey) -> int:
        cells = np.array([records[each] for each in survey], dtype=np.int64).reshape(-1, 2)
        begun.held, begun.counts = {}, ArrayCounts(cells, domain)
        begun.hold([(0, 1)])
        return begun.score((0, 1), model)

    every = range(len(records))
    scores = {s: score(s) for n in range(4) for s in combinations_with_replacement(every, n)}
    moves = [
        abs(scores[tuple(sorted((*s, new)))] - before)
        for s, before in scores.items()
        if len(s) < 3
        for new in every
    ]
    silent = [(records.index((4, b)), records.index((a, 3))) for a, b in records]
    hushed = [
        abs(scores[tuple(sorted((*s[1:], new)))] - before)
        for s, before in scores.items()
        if s
        for new in silent[s[0]]
    ]
    assert max(moves) == max(hushed) == begun.reach == SHARES
    replaced = [
        abs(scores[tuple(sorted((*s[1:], new)))] - before)
        for s, before in scores.items()
        if s
        for new in every
    ]
    for many in (1, 2):
        exchange = replace(PLENTY, change=Change.REPLACE, records=many)
        assert study(begun.counts, spend=exchange).reach == 2 * many * SHARES
    assert SHARES < max(replaced) <= 2 * SHARES


class Shy(WeightedFit):
    """The naive twin: states half of what a score can move."""

    @property
    def reach(self) -> int:
        return super().reach // 2


class Counting(WeightedFit):
    """The naive twin: rates by exact counts of who answered."""

    def rate(self, places):
        whole = self.held[places]
        return max(1, whole[tuple(slice(-1) for _ in places)].sum()) / max(1, whole.sum())


class Peeking(WeightedFit):
    """The naive twin: weighs by responses of the rows themselves, and not of noisy lists."""

    def fit(self, **given):
        self.tables.total = float(self.held[(0,)].sum())
        return super().fit(**given)


TWINS = {
    Shy: "moves further than it says",
    Counting: "asks otherwise of a neighbour",
    Peeking: "says more than the noise let out",
}


@pytest.mark.parametrize("twin", TWINS)
def test_the_replay_catches_naive_twins(twin, monkeypatch):
    """The library's own is in the replays of aim and mst."""
    counts = ArrayCounts(np.array([[0, 0], [0, 1], [1, 1], [2, 1], [1, 2], [0, 0]]), toy([2, 2]))
    quick = AIM(iterations=3, last=3, per_column=2, merge=0)
    assert faults(quick, counts, WEIGHTED, APPROXIMATE) == []
    monkeypatch.setattr(weighted, "WeightedFit", twin)
    assert TWINS[twin] in faults(quick, counts, WEIGHTED, APPROXIMATE)


def test_all_pairs_replayed_on_neighbours():
    domain = toy([2, 3], universes={"b": "a = '1'"})
    method = AllPairs(residuals=False, iterations=3, last=3)
    assert faults(method, random_rows(domain, 9, 1), WEIGHTED, APPROXIMATE) == []


def by_schooling(rows: int, seed: int, *, universe: bool = False) -> tuple[ArrayCounts, np.ndarray]:
    """a is complete, b follows a, c follows b; b and c are left out three times as often where a is high. And the truth."""
    universes = {"c": "a != '3'"} if universe else None
    domain = toy([4, 3, 2], universes=universes)
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    b = np.where(rng.random(rows) < 0.7, np.minimum(a, 2), rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.8, b % 2, rng.integers(0, 2, rows))
    truth = np.stack([a, b, np.where(a == 3, 3, c) if universe else c], axis=1)
    chance = np.where(a >= 2, 0.6, 0.2)[:, None] * np.array([0, 1, 1])
    silence = [axis.silence for axis in domain.axes]
    is_lost = (rng.random(truth.shape) < chance) & (truth < [axis.answers for axis in domain.axes])
    return ArrayCounts(np.where(is_lost, silence, truth), domain), truth


def off(network, truth, pair) -> float:
    (counted,) = ArrayCounts(truth, network.domain).count([pair])
    return float(np.abs(table(network, pair) - counted / len(truth)).sum()) / 2


@pytest.mark.parametrize("universe", [False, True])
@pytest.mark.parametrize("method", [AIM(per_column=8, last=600), MST(), AllPairs(residuals=False)])
def test_silence_that_follows_another_answer_does_no_harm(method, universe):
    """Without noise: available cells are off by more than a twentieth, weighted ones by chance and smoothing alone."""
    counts, truth = by_schooling(40_000, 5, universe=universe)
    made, biased = (
        run(method, counts, missing, PLENTY, NoSynthNoise())
        for missing in (WEIGHTED, MissingMethod.AVAILABLE)
    )
    measured = {each.places for each in made.lists.lists if len(each.places) == 2}
    assert max(off(biased, truth, pair) for pair in measured) > 0.05
    assert max(off(made, truth, pair) for pair in measured) < 0.02


def test_where_silence_follows_nothing_weighted_cells_are_available_cells():
    """Noise and all: no pair is seen to matter, and the same noise gives nearly the same table."""
    counts = chain(toy([3, 3]), 20_000, 4, silent=0.2)
    one, other = (
        run(MST(iterations=300), counts, missing, APPROXIMATE, QuickSynthNoise(3))
        for missing in (WEIGHTED, MissingMethod.AVAILABLE)
    )
    assert np.abs(table(one, (0, 1)) - table(other, (0, 1))).sum() < 0.02


def test_lists_of_those_who_answered_are_the_lists_of_available_cells():
    """Without noise: the same answered cells, the same rows left out by block, the same total."""
    counts, _ = by_schooling(3_000, 6, universe=True)
    method = AllPairs(residuals=False, iterations=2, last=2)
    ours, usual = (
        run(method, counts, missing, PLENTY, NoSynthNoise()).lists
        for missing in (WEIGHTED, MissingMethod.AVAILABLE)
    )
    found = as_available(ours)
    for one, other in zip(found.lists, usual.lists, strict=True):
        assert one.places == other.places
        assert np.array_equal(one.cells, other.cells) and np.array_equal(one.left, other.left)
    assert found.total == usual.total
    assert all(np.array_equal(a, b) for a, b in zip(found.groups, usual.groups, strict=True))


def test_noise_alone_is_no_difference_between_levels():
    """1,000 columns of ten levels with the same rate: at most 6 % look different, and one with a slope does, unshrunk."""
    rng, found = np.random.default_rng(1), 0
    asked, rate, noise = np.full(10, 2000.0), 0.2, 40.0
    for _ in range(1000):
        silent = rng.binomial(2000, rate, 10) + rng.normal(0, noise, 10)
        counts = SilentCounts(silent=silent, noise=noise**2, asked=asked, spread=np.zeros(10))
        found += counts.differences() is not None
    assert found < 60  # the chance of 2 deviations is 3.5 %; 60 of 1,000 is past 1e-4
    slope = np.linspace(0.1, 0.3, 10)
    seen = SilentCounts(silent=slope * 2000, noise=noise**2, asked=asked, spread=np.zeros(10)).differences()
    assert np.allclose(seen.less, slope - 0.2) and (seen.kept > 0.8).all()


def test_clustered_silence_is_no_difference_of_those_who_were_not_asked():
    """A third of the rows leave out half of b and c, whatever the answers; a = 3 is not asked c, so cannot be silent on it.

    The naive twin compares the unasked with those who answered c, and sees them answer b less.
    """
    rng, rows = np.random.default_rng(7), 40_000
    domain = toy([4, 3, 2], universes={"c": "a != '3'"})
    a, b = rng.integers(0, 4, rows), rng.integers(0, 3, rows)
    truth = np.stack([a, b, np.where(a == 3, 3, rng.integers(0, 2, rows))], axis=1)
    lost = (rng.random(rows) < 1 / 3)[:, None] & (rng.random((rows, 3)) < [0, 0.5, 0.5])
    silence = np.array([axis.silence for axis in domain.axes])
    counts = ArrayCounts(np.where(lost & (truth < [4, 3, 2]), silence, truth), domain)
    begun = study(counts)
    begun.start(amount=begun.accountant.total / 2, merge=0)
    begun.measure((1, 2), amount=begun.accountant.total / 4)
    found = begun.tables._silent_counts((1, 2), 1, 2)
    assert found.differences() is None
    assert replace(found, is_compared=None).differences() is not None


def test_methods_without_pairs_refuse_and_say_what_to_use():
    with pytest.raises(PlanError, match="goes with mst, aim and pairs"):
        Independent().check(toy([2, 2]), WEIGHTED, APPROXIMATE)


def test_a_long_number_is_counted_in_runs_of_about_as_many_rows():
    domain = toy([40, 2], ordered=True)
    begun = study(chain(domain, 20_000, 9), runs=8)
    begun.start(amount=begun.accountant.total / 2, merge=0)
    into = begun.tables.paired.sides[0].into[:40]
    assert begun.view.shape == (40, 2) and begun.tables.paired.shape == (8, 2)
    assert (np.diff(into) >= 0).all() and np.ptp(np.bincount(into)) <= 1
