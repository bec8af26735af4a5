"""Whole trainings over Poisson samples, audited from outside: 2,000 with a canary among blank rows, 2,000 without.

The door is what a training gives away: its last weights. The event that speaks most for the canary is chosen on one half of
the trainings and counted on the other; a lower bound of epsilon, wrong with chance 1e-6, must not pass the claim.
"""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from reticent.privacy.renyi import sampled_epsilon
from reticent.synth.base import MissingMethod, Spend
from reticent.synth.learned.descent import Pace, descend, starting
from reticent.synth.learned.gradient import LENGTH, ChainGradient, ChainLayout
from reticent.synth.learned.training import PoissonSample, SampledSteps
from reticent.synth.marginals.study import plain
from reticent.synth.spending import Accountant
from tests.audit import epsilon_at_least
from tests.synth.standins import ArrayCounts, QuickSynthNoise, toy

# covers T21 T25 T27

DOMAIN = toy([3, 3, 2])
LAYOUT = ChainLayout.of(plain(DOMAIN, MissingMethod.AVAILABLE))
SHARES = [np.full(size, 1 / size) for size in (3, 3, 2)]
BLANK = np.array([[axis.silence for axis in DOMAIN.axes]] * 20)
CANARY = np.vstack([BLANK, [[0, 1, 1]]])
SAMPLE = PoissonSample(rate=Fraction(1, 20), steps=30)
SPEND = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))
PACE = Pace(steps=30, momentum=0.0, averaged=1 / 30)
RATE = 0.05
RUNS = 2_000


class Everybody(ArrayCounts):
    """Twin: every row in every step, accounted as a sample."""

    def sampled_sum(self, work, rate, bits):
        return self.summed(work)


class Weak(QuickSynthNoise):
    """Twin: a tenth of the noise."""

    def gaussian_many(self, answers, *, sensitivity, rho):
        return super().gaussian_many(answers, sensitivity=sensitivity, rho=100 * rho)


def trained(cells: np.ndarray, seed: int, rows=ArrayCounts, noise=QuickSynthNoise) -> np.ndarray:
    """The last weights of one training."""
    accountant = Accountant(spend=SPEND, noise=noise(seed))
    paid = SampledSteps(
        rows=rows(cells, DOMAIN), accountant=accountant, sample=SAMPLE, length=LENGTH, step=lambda _: None
    )
    start = starting(LAYOUT, SHARES)
    scale = np.ones(LAYOUT.parameters)
    return descend(
        lambda weights: paid.noisy(ChainGradient(layout=LAYOUT, weights=weights)), scale, start, RATE, PACE
    )


def least_epsilon(runs: int = RUNS, **twin) -> float:
    """What the trainings show: the event is a half-line of the weights' distance from the start along the canary's vector."""
    weights = np.rint(starting(LAYOUT, SHARES) * 256).astype(np.int64)
    way = ArrayCounts(CANARY, DOMAIN).summed(ChainGradient(layout=LAYOUT, weights=weights)) / LENGTH
    found = [
        np.array([trained(cells, [seed, place], **twin) @ -way for seed in range(runs)])
        for place, cells in enumerate((BLANK, CANARY))
    ]
    chosen, judged = ([each[part::2] for each in found] for part in (0, 1))

    def shown(runs: list[np.ndarray], cut: float, alpha: float) -> float:
        seen = tuple(int((each > cut).sum()) for each in runs)
        sizes = tuple(len(each) for each in runs)
        return epsilon_at_least(seen, sizes, delta=float(SPEND.delta), alpha=alpha)

    cut = max(np.quantile(chosen[1], np.linspace(0.02, 0.98, 49)), key=partial(shown, chosen, alpha=0.1))
    return shown(judged, cut, 1e-6)


def test_trainings_show_no_more_than_is_claimed() -> None:
    accountant = Accountant(spend=SPEND, noise=QuickSynthNoise(0))
    paid = SampledSteps(
        rows=ArrayCounts(BLANK, DOMAIN),
        accountant=accountant,
        sample=SAMPLE,
        length=LENGTH,
        step=lambda _: None,
    )
    claim = sampled_epsilon(
        rho=Fraction(0), steps=30, rate=SAMPLE.rate, multiplier=paid.multiplier, delta=SPEND.delta
    )
    assert 0.9 < claim <= 1
    assert least_epsilon() < claim


@pytest.mark.parametrize(
    ("runs", "twin"),
    [(500, {"rows": Everybody}), (RUNS, {"noise": Weak})],
    ids=["every row in every step", "a tenth of the noise"],
)
def test_the_audit_rejects_its_twins(runs: int, twin) -> None:
    """Even a tenth of the noise takes as many trainings: a canary is in one step of twenty alone."""
    assert least_epsilon(runs, **twin) > 1
