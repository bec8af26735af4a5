"""The coin audit of synthesizers that promise (1, delta), on a two-column toy, with the system's own Gaussian noise."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.synth.base import Spend
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.privbayes import PrivBayes
from tests.audit import ALARM, epsilon_at_least, threshold_events
from tests.synth.marginals.test_mst_coins import METHODS, likes

RUNS = 120
DELTA = Fraction(1, 10**6)


def shown(method: AIM | Independent | MST | PrivBayes, epsilon: int) -> float:
    """The epsilon that fresh runs show of the event which told most on other runs; too large once in 1e9."""
    draw = likes(method, Spend(epsilon=Fraction(epsilon), delta=DELTA))
    trial = [draw(b, RUNS) for b in (0, 1)]
    fresh = [draw(b, RUNS) for b in (0, 1)]

    def evidence(of: list[np.ndarray], event, alpha: float) -> float:  # type: ignore[no-untyped-def]
        seen = [int(np.count_nonzero(event(y))) for y in of]
        return epsilon_at_least((seen[0], seen[1]), (RUNS, RUNS), delta=float(DELTA), alpha=alpha)

    events = threshold_events([*trial[0], *trial[1]])
    return evidence(fresh, max(events, key=lambda event: evidence(trial, event, 0.1)), ALARM)


@pytest.mark.parametrize("method", [*METHODS, Independent(), PrivBayes()], ids=lambda each: str(each.name))
def test_coins_do_not_show_more_than_epsilon_and_delta(method):
    assert shown(method, 1) <= 1


def test_a_twin_that_spends_more_than_it_says_is_caught():
    assert shown(METHODS[0], 400) > 1
