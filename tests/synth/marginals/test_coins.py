"""The coin audit on a two-column toy at epsilon 1, with the system's own noise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.synth.base import FitTask, MissingMethod, Spend, SynthesisMethod
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.privbayes import PrivBayes
from reticent.synth.spending import SystemSynthNoise
from tests.audit import ALARM, audit
from tests.synth.standins import ArrayCounts, toy

RUNS = 200
ROWS = np.array([[0, 0], [1, 1], [2, 0]] * 10)
SPEND = Spend(epsilon=Fraction(1))
DOMAIN = toy([2, 2])


def totals(method: SynthesisMethod, spend: Spend):  # type: ignore[no-untyped-def]
    """How many respondents the network says there are: of thirty rows, and of one more."""

    def draw(b: int, n: int) -> np.ndarray:
        counts = ArrayCounts(np.vstack([ROWS, ROWS[:1]][: 1 + b]), DOMAIN)
        noise = SystemSynthNoise()
        fitted = (
            method.fit(
                FitTask(counts, DOMAIN, MissingMethod.AVAILABLE, spend, noise=noise, step=lambda _: None)
            )
            for _ in range(n)
        )
        return np.array([network.total for network in fitted])

    return draw


@pytest.mark.parametrize("method", [Independent(), PrivBayes()], ids=lambda method: str(method.name))
def test_coins_do_not_show_more_than_epsilon(method: SynthesisMethod) -> None:
    """200 runs to choose an event and 200 to test it: a false alarm once in 1e9."""
    assert audit(totals(method, SPEND), epsilon=1, runs=RUNS, seed=1) > ALARM


def test_a_twin_with_a_sixteenth_of_the_noise_is_caught() -> None:
    """The naive twin spends sixteen times what it says."""
    loud = replace(SPEND, epsilon=16 * SPEND.epsilon)
    assert audit(totals(Independent(), loud), epsilon=1, runs=RUNS, seed=2) <= ALARM
