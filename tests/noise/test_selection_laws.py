"""Selection has the stated probabilities, and they keep epsilon; with the naive variants that do not."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from reticent.lab import noise as twins
from reticent.noise.selection import exponential, permute_and_flip
from reticent.noise.source import SystemNoise
from tests.audit import ALARM, audit
from tests.noise.seeded import chosen_bits


def exponential_law(scores: Any, rate: float) -> Any:
    """In proportion to exp(rate * score)."""
    weight = np.exp(rate * (np.asarray(scores) - max(scores)))
    return weight / weight.sum()


def flip_law(scores: Any, rate: float) -> Any:
    """The integral of p_i * prod_{j != i} (1 - p_j v) over v in [0, 1], term by term (proofs/noise/selection.md)."""
    p = np.exp(rate * (np.asarray(scores, dtype=float) - max(scores)))
    law = []
    for i in range(len(p)):
        product = np.polynomial.Polynomial([1.0])
        for j in range(len(p)):
            if j != i:
                product = product * np.polynomial.Polynomial([1.0, -p[j]])
        law.append(p[i] * product.integ()(1.0))
    return np.array(law)


LAWS = [
    (permute_and_flip, flip_law, twins.permute_and_flip),
    (exponential, exponential_law, twins.exponential),
]
EACH = pytest.mark.parametrize(("mechanism", "law", "twin"), LAWS, ids=["flip", "exponential"])


def pearson(chosen: Any, law: Any) -> float:
    expected = len(chosen) * law
    seen = np.bincount(chosen, minlength=len(law))
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(law) - 1))


@EACH
@pytest.mark.parametrize("scores", [[0, 0], [3, 1, 4, 1, 5], [7] * 6, [0, 1, 2, 3, 4, 5, 6]], ids=str)
def test_choices_have_the_stated_probabilities(mechanism, law, twin, scores: list[int]) -> None:  # covers T18
    """8,000 choices; ties come out even; the floating-point twin has the same law."""
    bits = chosen_bits(31)
    chosen = [mechanism(scores, sensitivity=1, epsilon=Fraction(1), bits=bits) for _ in range(8000)]
    stated = law(scores, 0.5)
    assert stated.sum() == pytest.approx(1) and pearson(chosen, stated) > ALARM
    assert pearson(twin(np.random.default_rng(0), scores, rate=0.5, size=8000), stated) > ALARM
    if len(set(scores)) > 1:
        assert pearson(chosen, law(scores, 1.0)) < ALARM


@EACH
@pytest.mark.parametrize("monotone", [False, True])
def test_the_exact_loss_stays_within_epsilon(mechanism, law, twin, monotone: bool) -> None:  # covers T18
    """All moves of four scores by -1, 0, 1 (monotone: by 0, 1); without halving, the free moves exceed epsilon."""
    moves = np.array(list(itertools.product((0, 1) if monotone else (-1, 0, 1), repeat=4)))

    def worst(rate: float) -> float:
        loss = 0.0
        for scores in ([0, 0, 0, 0], [2, 1, 0, 0], [5, 0, 5, 0], [0, 0, 0, 9]):
            here = np.log(law(scores, rate))
            loss = max(loss, *(np.abs(np.log(law(scores + move, rate)) - here).max() for move in moves))
        return loss

    assert worst(1.0 if monotone else 0.5) <= 1.0 + 1e-9
    if not monotone:
        assert worst(1.0) > 1.4


@EACH
def test_a_missing_factor_of_two_fails_the_coin_audit(mechanism, law, twin) -> None:  # covers T07 T18
    """Nine scores rise while one falls, epsilon 1, 6,000 runs: `monotone` claimed where it is not true is caught."""
    data = [[0] + [1] * 9, [1] + [0] * 9]
    bits = chosen_bits(32)

    def draw(monotone: bool) -> Any:
        return lambda b, n: np.array(
            [
                mechanism(data[b], sensitivity=1, epsilon=Fraction(1), monotone=monotone, bits=bits)
                for _ in range(n)
            ]
        )

    first = [lambda y: y == 0]
    assert audit(draw(False), epsilon=1.0, runs=6000, seed=1, events=first) > ALARM
    assert audit(draw(True), epsilon=1.0, runs=6000, seed=2, events=first) < ALARM


def test_the_system_noise_selects_by_permute_and_flip() -> None:
    """6,000 choices at epsilon 1 and sensitivity 2, on the system's generator; epsilon 2 is another law."""
    scores = [0, 2, 5, 7]
    chosen = [SystemNoise().select(scores, sensitivity=2, epsilon=Fraction(1)) for _ in range(6000)]
    assert pearson(chosen, flip_law(scores, 0.25)) > ALARM
    assert pearson(chosen, flip_law(scores, 0.5)) < ALARM


def test_softmax_without_the_maximum_removed_breaks_at_the_edges() -> None:  # covers T18
    """The naive twin: exp overflows, and nothing can be chosen."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.exp(np.array([1e300, 0.0, -1e300]))
        naive = weight / weight.sum()
    assert np.isnan(naive).any()
    scores = [10**300, 0, -(10**300)]
    for mechanism, _, _ in LAWS:
        assert mechanism(scores, sensitivity=1, epsilon=Fraction(1), bits=chosen_bits(33)) == 0
