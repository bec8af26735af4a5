"""PrivBayes: replay, candidates, strategies, and a chain found again without noise."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.marginals import privbayes
from reticent.synth.marginals import privbayes as bayes_scores
from reticent.synth.marginals.privbayes import (
    MOST_CANDIDATES,
    PrivBayes,
    candidates,
    grouped,
    ladders,
    largest_sets,
)
from reticent.synth.network import Network
from tests.synth.replay import APPROXIMATE, NOT_FILLED, PURE, faults, is_drawable, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, sized, toy

RICH = Spend(epsilon=Fraction(50))


@pytest.mark.parametrize("spend", [RICH, APPROXIMATE])
@pytest.mark.parametrize("holes", NOT_FILLED)
def test_replay_on_neighbours(holes: MissingMethod, spend: Spend) -> None:  # covers T20 T27 T12
    """28 neighbours of 25 rows with silent and unasked cells, parents at several levels."""
    counts = random_rows(toy([2, 6, 3], universes={"c": "a = '1'"}, ordered=True), 25, 1)
    assert faults(PrivBayes(), counts, holes, spend) == []


def test_a_score_of_half_the_reach_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive twin: the reach that R has when n is public and rows are replaced, 3, on diagonal rows."""
    cells = np.array([[0, 0]] + [[1, 1]] * 19)
    counts = ArrayCounts(cells, toy([2, 2]))
    assert faults(PrivBayes(rows=20), counts, MissingMethod.VALUES, RICH) == []
    monkeypatch.setattr(privbayes, "REACH", bayes_scores.REACH - 1)
    assert "moves further than it says" in faults(PrivBayes(rows=20), counts, MissingMethod.VALUES, RICH)


class Shipped(PrivBayes):
    """The naive twin: tables are worth their noise by the number of rows held."""

    def _rows(self, search):  # type: ignore[no-untyped-def]
        return float(len(search.counts.cells))


def test_a_limit_read_off_the_rows_is_caught() -> None:
    """Nine rows just make pairs of 16 cells worth their noise of 0.12; eight do not."""
    counts = random_rows(toy([3, 3, 3]), 9, 3)
    assert "asks otherwise of a neighbour" in faults(Shipped(useful=4.63), counts, MissingMethod.VALUES, RICH)
    assert faults(PrivBayes(rows=9, useful=4.63), counts, MissingMethod.VALUES, RICH) == []


def test_the_number_of_rows_is_public_or_paid_for() -> None:
    """Declared in the plan or in the codebook it is free, but never for complete rows only."""
    counts = random_rows(toy([2, 2]), 20, 4)
    declared = ArrayCounts(counts.cells, sized(counts.domain, 20))
    for method, table, holes, calls in (
        (PrivBayes(), counts, MissingMethod.VALUES, 4),
        (PrivBayes(rows=20), counts, MissingMethod.VALUES, 3),
        (PrivBayes(), declared, MissingMethod.VALUES, 3),
        (PrivBayes(rows=20), declared, MissingMethod.COMPLETE, 4),
    ):
        noise = FrozenSynthNoise()
        run(method, table, holes, RICH, noise)
        assert len(noise.met) == calls
    with pytest.raises(PlanError):
        PrivBayes(rows=0).check(counts.domain, MissingMethod.VALUES, RICH)


@pytest.mark.parametrize("holes", list(MissingMethod))
@pytest.mark.parametrize("spend", [PURE, APPROXIMATE])
def test_every_strategy_leaves_a_network_to_draw_from(holes: MissingMethod, spend: Spend) -> None:
    counts = random_rows(toy([2, 5, 4], universes={"c": "a = '1'"}, ordered=True), 400, 5)
    calls: list[str] = []
    network = PrivBayes().fit(
        FitTask(counts, counts.domain, holes, spend, noise=QuickSynthNoise(6), step=calls.append)
    )
    assert is_drawable(network)
    assert len(calls) <= PrivBayes().rounds(counts.domain)
    silent = [step.table[..., counts.domain.axes[step.place].silence].any() for step in network.steps]
    assert holes is MissingMethod.VALUES or not any(silent)


def joint_of(network: Network) -> np.ndarray:
    """The full table of a network, by multiplying its steps."""
    shape = network.domain.shape
    made = np.ones(shape)
    for step in network.steps:
        for cell in np.ndindex(*shape):
            made[cell] *= step.table[tuple(cell[p] for p in (*step.given, step.place))]
    return made


def chain() -> ArrayCounts:
    """c follows b follows a; 30 percent of cells silent at random. 4,000 rows."""
    rng = np.random.default_rng(7)
    a = rng.integers(0, 2, 4000)
    b = np.where(rng.random(4000) < 0.9, a, 1 - a)
    c = np.where(rng.random(4000) < 0.9, b, 1 - b)
    cells = np.stack([a, b, c], axis=1)
    return ArrayCounts(np.where(rng.random(cells.shape) < 0.3, 2, cells), toy([2, 2, 2]))


def test_without_noise_available_cells_give_the_chain_back() -> None:
    """Pairs within .03: 4,000 rows, half of them in a pair; six deviations of a share."""
    network = run(PrivBayes(rows=4000), chain(), MissingMethod.AVAILABLE, RICH, NoSynthNoise(1))
    pair = joint_of(network).sum(axis=2)
    assert pair[0, 0] == pytest.approx(0.45, abs=0.03) and pair[0, 1] == pytest.approx(0.05, abs=0.03)
    assert pair[2].sum() == pair[:, 2].sum() == 0


def test_a_shipped_reading_of_silence_would_break_the_chain() -> None:
    """The naive twin counts silence as the first category: the same pair is off by twice that and more."""
    cells = chain().cells
    first = np.where(cells == 2, 0, cells)
    network = run(
        PrivBayes(rows=4000),
        ArrayCounts(first, toy([2, 2, 2])),
        MissingMethod.AVAILABLE,
        RICH,
        NoSynthNoise(1),
    )
    assert abs(joint_of(network).sum(axis=2)[0, 0] - 0.45) > 0.06


def feasible(domain, steps, places, cells: int, parents: int) -> set[frozenset[tuple[int, int]]]:  # type: ignore[no-untyped-def]
    """All sets of columns at levels that fit, by brute force."""
    found = set()
    for count in range(parents + 1):
        for chosen in combinations(places, count):
            for levels in product(*(range(len(steps[p])) for p in chosen)):
                if prod(steps[p][level].size for p, level in zip(chosen, levels, strict=True)) <= cells:
                    found.add(frozenset(zip(chosen, levels, strict=True)))
    return found


@pytest.mark.parametrize("cells", [1, 2, 5, 8, 12, 40])
@pytest.mark.parametrize("parents", [1, 2, 4])
def test_parent_sets_are_all_the_largest_ones(cells: int, parents: int) -> None:
    """Brute force over all sets at all levels: none can be widened by a column or made finer."""
    domain = toy([8, 2, 5, 3], ordered=True)
    steps = ladders(domain, MissingMethod.AVAILABLE)
    every = feasible(domain, steps, range(4), cells, parents)

    def is_below(one, other) -> bool:  # type: ignore[no-untyped-def]
        finer = dict(other)
        return one != other and all(p in finer and finer[p] <= level for p, level in one)

    largest = {one for one in every if not any(is_below(one, other) for other in every)}
    made = largest_sets(domain, steps, (0, 1, 2, 3), cells, 10**9, parents)
    assert {frozenset(each) for each in made} == largest
    assert len(made) == len(largest)


def test_levels_halve_and_keep_silence_and_the_unasked_apart() -> None:
    domain = toy([16, 5], universes={"a": "b = '1'"}, ordered=True)
    for holes, spare in ((MissingMethod.AVAILABLE, 1), (MissingMethod.VALUES, 2)):
        steps = ladders(domain, holes)
        assert [level.size for level in steps[0]] == [16 + spare, 8 + spare, 4 + spare, 2 + spare]
        assert [level.size for level in steps[1]] == [4 + spare, 2 + spare, 1 + spare]
        table = np.arange(18 * 6).reshape(18, 6)
        for one, other in product(*steps):
            by_side = np.zeros((one.size, other.size), dtype=np.int64)
            for (i, j), count in np.ndenumerate(table):
                if one.side.into[i] >= 0 and other.side.into[j] >= 0:
                    by_side[one.side.into[i], other.side.into[j]] += count
            assert (grouped(table, [one, other]) == by_side).all()


def test_categories_without_an_order_have_one_level() -> None:
    assert [len(steps) for steps in ladders(toy([16, 5]), MissingMethod.AVAILABLE)] == [1, 1]


def test_candidates_stay_few_by_a_public_rule() -> None:
    domain = toy([2] * 10)
    found = candidates(domain, ladders(domain, MissingMethod.AVAILABLE), tuple(range(9)), 10**9)
    assert 0 < len(found) <= MOST_CANDIDATES
    lone = candidates(domain, ladders(domain, MissingMethod.AVAILABLE), (0, 1), 1)
    assert all(one.parents == () for one in lone) and len(lone) == 8
