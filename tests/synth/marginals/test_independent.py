"""Independent histograms: replay, budgets, and the textbook answer with the noise taken out."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from reticent.privacy.claim import Change
from reticent.synth.base import FitTask, MissingMethod, Spend, SynthNoise
from reticent.synth.marginals.independent import Independent
from reticent.synth.network import Network
from tests.synth.replay import APPROXIMATE, NOT_FILLED, PURE, faults, is_drawable, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, toy


@pytest.mark.parametrize("spend", [PURE, APPROXIMATE])
@pytest.mark.parametrize("holes", NOT_FILLED)
def test_replay_on_neighbours(holes: MissingMethod, spend: Spend) -> None:  # covers T20 T27
    """43 neighbours of 40 rows with silent and unasked cells."""
    counts = random_rows(toy([2, 3, 2], universes={"b": "a = '1'"}), 40, 1)
    assert faults(Independent(), counts, holes, spend) == []


class Half(Independent):
    """The naive twin: counts a record half."""

    def fit(self, task: FitTask) -> Network:
        noise = task.noise

        class Doubled:
            bits, is_private = noise.bits, False

            def laplace_many(self, answers, *, sensitivity, epsilon):  # type: ignore[no-untyped-def]
                return noise.laplace_many([2 * a for a in answers], sensitivity=sensitivity, epsilon=epsilon)

        return Independent.fit(self, replace(task, noise=cast(SynthNoise, Doubled())))


def test_a_record_counted_twice_is_caught() -> None:
    counts = random_rows(toy([2, 3]), 10, 2)
    assert "moves further than it says" in faults(Half(), counts, MissingMethod.AVAILABLE, PURE)


@pytest.mark.parametrize("holes", [each for each in MissingMethod if each is not MissingMethod.WEIGHTED])
@pytest.mark.parametrize("spend", [PURE, APPROXIMATE])
def test_every_strategy_leaves_a_network_to_draw_from(holes: MissingMethod, spend: Spend) -> None:
    counts = random_rows(toy([2, 3, 4], universes={"c": "a = '1'"}), 300, 3)
    network = Independent().fit(
        FitTask(counts, counts.domain, holes, spend, noise=QuickSynthNoise(4), step=lambda _: None)
    )
    assert is_drawable(network)
    silent = [step.table[counts.domain.axes[step.place].silence] for step in network.steps]
    assert holes is MissingMethod.VALUES or not any(silent)
    assert str(network.claim) == str(Independent().claim(counts.domain, holes, spend))


def naive_histogram(cells: np.ndarray, answers: int) -> np.ndarray:
    """The naive twin: silence counted as the first category."""
    return np.bincount(np.where(cells == answers, 0, cells), minlength=answers) / len(cells)


def test_without_noise_it_is_the_histogram_of_available_cells() -> None:
    """60 percent of those who answered say 1; a third is silent."""
    domain = toy([2])
    counts = ArrayCounts(np.array([[0]] * 40 + [[1]] * 60 + [[2]] * 50), domain)
    network = run(Independent(), counts, MissingMethod.AVAILABLE, PURE, NoSynthNoise())
    np.testing.assert_allclose(network.steps[0].table, [0.4, 0.6, 0])
    assert network.total == pytest.approx(150)
    assert naive_histogram(counts.cells[:, 0], 2)[1] == pytest.approx(0.4)
    kept = run(Independent(), counts, MissingMethod.VALUES, PURE, NoSynthNoise())
    np.testing.assert_allclose(kept.steps[0].table, [40 / 150, 60 / 150, 50 / 150])


def test_replacing_and_groups_are_paid_for() -> None:
    """Twice the sensitivity for replaced answers, three times for three records."""
    counts = random_rows(toy([2, 2]), 10, 6)
    for change, records, sensitivity in (
        (Change.REPLACE, 1, 2),
        (Change.ADD_REMOVE, 3, 3),
        (Change.REPLACE, 3, 6),
    ):
        noise = FrozenSynthNoise()
        run(
            Independent(),
            counts,
            MissingMethod.VALUES,
            Spend(epsilon=PURE.epsilon, change=change, records=records),
            noise,
        )
        assert {met.sensitivity for met in noise.met} == {sensitivity}


def test_an_empty_table_has_a_network_too() -> None:  # covers T10
    domain = toy([2, 3])
    counts = ArrayCounts(np.zeros((0, 2), dtype=np.int64), domain)
    for holes in MissingMethod:
        assert is_drawable(run(Independent(), counts, holes, PURE, NoSynthNoise()))
