"""The coin audit on every estimator, end to end from rows to line, at epsilon 0.5 and 1.

Two toys: nobody against one respondent at a corner, and one corner exchanged for the opposite one. The event is
chosen on separate runs among thresholds of each number of the fit and of a linear score. False alarm 1e-9 each.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from reticent.lab.papers.robust import Robust
from reticent.models.design import records
from reticent.models.fit import Estimator, SystemModelNoise
from reticent.models.privgene import PrivGene
from tests import audit
from tests.models.doubles import QuickModelNoise
from tests.models.worlds import ADD, ESTIMATORS, REPLACE, design, given
from tests.noise.seeded import IS_NIGHTLY

# covers T07

RUNS, TRIALS = (8_000, 2_000) if IS_NIGHTLY else (600, 150)
PLAN = design(1)


@lru_cache
def toys(replaced: bool):
    """Two data sets, as rows."""
    low, high = (np.array([[0.0]]), np.array([-10.0])), (np.array([[8.0]]), np.array([30.0]))
    nobody = (np.zeros((0, 1)), np.zeros(0))
    return [records(PLAN, *rows) for rows in ((low, high) if replaced else (nobody, high))]


def drawing(name: str, epsilon: Fraction, *, replaced: bool, seed: int, factor: float = 1.0):
    """draw(b, n): n fits on toy b, a row each."""
    estimator, delta = ESTIMATORS[name]
    short: dict[str, Estimator] = {"privgene": PrivGene(generations=1), "robust": Robust(rounds=1)}
    estimator = short.get(name.split()[0], estimator)
    rng = np.random.default_rng(seed)
    noise = SystemModelNoise() if IS_NIGHTLY and factor == 1.0 else QuickModelNoise(rng, factor)
    data = [given(estimator, rows) for rows in toys(replaced)]
    neighbours = REPLACE if replaced else ADD

    def draw(b: int, n: int) -> np.ndarray:
        fits = [
            estimator.fit(data[b], epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise)
            for _ in range(n)
        ]
        return np.array([[float(v) for v in (*fit.coefficients, fit.variance)] for fit in fits])

    return draw


def events(trial: list[np.ndarray]) -> list[audit.Event]:
    """Both sides of 20 quantiles of every number, and of the score that tells the two trials best apart in the mean."""
    together = np.vstack(trial)
    spread = together.std(axis=0) + 1e-12
    score = (trial[1].mean(axis=0) - trial[0].mean(axis=0)) / spread**2
    found: list[audit.Event] = []
    for way in (*np.eye(together.shape[1]), score):
        for cut in np.unique(np.quantile(together @ way, np.linspace(0.02, 0.98, 20))):
            found.append(lambda y, way=way, cut=cut: y @ way >= cut)
            found.append(lambda y, way=way, cut=cut: y @ way < cut)
    return found


def chosen(draw: audit.Draw, epsilon: float) -> audit.Event:
    """The most telling event on separate runs."""
    trial = [draw(b, TRIALS) for b in (0, 1)]

    def evidence(event: audit.Event) -> float:
        seen = [int(np.count_nonzero(event(y))) for y in trial]
        return audit.Coins(ones=seen[1], zeros=seen[0]).p_value(epsilon)

    return min(events(trial), key=evidence)


def p_value(draw: audit.Draw, epsilon: float, *, runs: int = RUNS) -> float:
    return audit.coin_audit(draw, chosen(draw, epsilon), runs=runs, seed=1).p_value(epsilon)


PURE = [name for name, (_, delta) in ESTIMATORS.items() if delta is None]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("name", PURE)
def test_no_event_tells_more_than_epsilon(name, epsilon):
    """600 runs and 300 trials (nightly 8,000 and 4,000, the system's noise); replaced at 1, added at 0.5."""
    draw = drawing(name, epsilon, replaced=epsilon == 1, seed=11)
    assert p_value(draw, float(epsilon)) > audit.ALARM


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in PURE])
def test_no_event_tells_more_than_epsilon_and_delta(name, epsilon):
    """Exact bounds on both chances, false alarm 1e-9."""
    draw = drawing(name, epsilon, replaced=True, seed=12)
    event = chosen(draw, float(epsilon))
    half = RUNS // 2
    seen = [int(np.count_nonzero(event(draw(b, half)))) for b in (0, 1)]
    delta = float(ESTIMATORS[name][1] or 0)
    for one, two in ((seen[0], seen[1]), (seen[1], seen[0])):
        found = audit.epsilon_at_least((one, two), (half, half), delta=delta, alpha=audit.ALARM)
        assert found <= float(epsilon)


@pytest.mark.parametrize("name", PURE)
def test_the_audit_sees_noise_that_is_far_too_small(name):
    """The naive twin of every estimator: a fiftieth of the noise, 400 runs."""
    draw = drawing(name, Fraction(1), replaced=True, seed=13, factor=0.02)
    assert p_value(draw, 1.0, runs=400) < audit.ALARM


def test_early_stop_catches_a_small_noise_soon():
    """Coins of the chosen event one at a time: a twentieth of the noise is caught within 400, the right noise never."""
    stops = {}
    for factor in (0.05, 1.0):
        draw = drawing("centred", Fraction(1), replaced=True, seed=14, factor=factor)
        event = chosen(draw, 1.0)
        rng = np.random.default_rng(15)
        side = int(np.count_nonzero(event(draw(1, 50))) > np.count_nonzero(event(draw(0, 50))))
        flips = rng.integers(0, 2, 400)
        made = {b: iter(event(draw(b, int((flips == b).sum())))) for b in (0, 1)}
        coins = [b == side for b in flips.tolist() if next(made[b])]
        stops[factor] = audit.early_stop(coins, epsilon=1.0, alpha=audit.ALARM)
    assert stops[0.05] is not None and stops[1.0] is None
