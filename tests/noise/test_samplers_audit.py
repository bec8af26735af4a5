"""The statistical helpers, tried on themselves: they keep their false alarm, and they see the planted bugs."""

import numpy as np

from reticent.lab import noise as twins
from tests import audit
from tests.noise import laws

REPEATS, AT_MOST = 300, 36
"""At alpha 0.05, more than 36 alarms in 300 have chance 5e-7."""


def test_the_coin_audit_keeps_its_false_alarm() -> None:
    """The Laplace mechanism at exactly epsilon 1, the worst event, 300 times 400 runs."""
    rng = np.random.default_rng(0)
    alarms = 0
    for seed in range(REPEATS):
        found = audit.coin_audit(
            lambda b, n: twins.laplace(rng, scale=1.0, size=n) + b, lambda y: y >= 1, runs=400, seed=seed
        )
        alarms += found.p_value(1.0) < 0.05
    assert alarms <= AT_MOST


def test_the_coin_audit_sees_one_and_a_half_times_the_loss() -> None:
    """5,135 runs catch 1.5 epsilon at epsilon 1 with chance 0.999 (THREATS part 4); here 6,000 with the event chosen."""
    rng = np.random.default_rng(1)
    found = audit.audit(
        lambda b, n: twins.laplace(rng, scale=1 / 1.5, size=n) + b, epsilon=1.0, runs=6000, seed=1
    )
    assert found < 1e-6


def test_the_chi_square_keeps_its_false_alarm() -> None:
    """300 times 2,000 right draws."""
    rng = np.random.default_rng(2)
    alarms = sum(
        audit.chi_square(twins.laplace(rng, scale=7.0, size=2000), laws.laplace(7.0)) < 0.05
        for _ in range(REPEATS)
    )
    assert alarms <= AT_MOST


def test_the_chi_square_sees_rounded_continuous_noise() -> None:
    """Continuous Laplace noise rounded to whole numbers is not the discrete law: 100,000 draws at scale 1."""
    rng = np.random.default_rng(3)
    rounded = np.floor(rng.laplace(0, 1.0, 100_000) + 0.5).astype(int)
    assert audit.chi_square(rounded, laws.laplace(1.0)) < audit.ALARM


def test_the_early_stop_keeps_its_false_alarm_and_stops_early() -> None:
    """300 runs of up to 500 coins at the very edge of the claim; then a true 2 epsilon in about 730 (THREATS part 4)."""
    rng = np.random.default_rng(4)
    q = 1 / (1 + np.exp(-1.0))
    edge = [audit.early_stop(rng.random(500) < q, epsilon=1.0, alpha=0.05) for _ in range(REPEATS)]
    assert sum(stop is not None for stop in edge) <= AT_MOST
    q2 = 1 / (1 + np.exp(-2.0))
    stops = [audit.early_stop(rng.random(4000) < q2, epsilon=1.0, alpha=1e-6) for _ in range(100)]
    assert all(stop is not None for stop in stops)
    assert np.mean([stop for stop in stops if stop]) < 730


def test_the_lower_bound_of_epsilon_keeps_its_false_alarm() -> None:
    """300 times 2,000 runs with P1 = e P0 + delta exactly; then a true epsilon of 1.5 is told from 1."""
    rng = np.random.default_rng(5)
    p0, delta = 0.2, 0.01
    runs = (2000, 2000)

    def found(epsilon: float, alpha: float) -> float:
        seen = (int(rng.binomial(2000, p0)), int(rng.binomial(2000, min(1.0, np.exp(epsilon) * p0 + delta))))
        return audit.epsilon_at_least(seen, runs, delta=delta, alpha=alpha)

    assert sum(found(1.0, 0.05) > 1.0 for _ in range(REPEATS)) <= AT_MOST
    assert found(1.5, 1e-9) > 1.0
    assert audit.epsilon_at_least((0, 0), runs, delta=0.0, alpha=0.05) == -np.inf
