"""The coin audit of trees and rounds on a two-column toy at epsilon 1, with the system's own noise."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.synth.base import FitTask, MissingMethod, Spend, SynthesisMethod
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.mst import MST
from reticent.synth.spending import SystemSynthNoise
from tests.audit import ALARM, audit
from tests.synth.marginals.trees import joint
from tests.synth.standins import ArrayCounts, toy

RUNS = 160
DOMAIN = toy([2, 2])
ROWS = np.array([[0, 0], [1, 1], [2, 0]] * 3)
METHODS = [MST(iterations=2, merge=0), AIM(iterations=2, last=2, per_column=2, merge=0)]


def likes(method: SynthesisMethod, spend: Spend):
    """How many respondents the network puts into the first cells: of nine rows, and of one more who is there."""

    def draw(b: int, n: int) -> np.ndarray:
        counts = ArrayCounts(np.vstack([ROWS, ROWS[:1]][: 1 + b]), DOMAIN)
        noise = SystemSynthNoise()
        made = (
            method.fit(
                FitTask(counts, DOMAIN, MissingMethod.AVAILABLE, spend, noise=noise, step=lambda _: None)
            )
            for _ in range(n)
        )
        return np.array([network.total * joint(network)[0, 0] for network in made])

    return draw


@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method.name))
def test_coins_do_not_show_more_than_epsilon(method):
    """160 runs to choose an event and 160 to test it: a false alarm once in 1e9."""
    assert audit(likes(method, Spend(epsilon=Fraction(1))), epsilon=1, runs=RUNS, seed=1) > ALARM


def test_a_twin_that_spends_more_than_it_says_is_caught():
    assert audit(likes(METHODS[0], Spend(epsilon=Fraction(200))), epsilon=1, runs=RUNS, seed=2) <= ALARM
