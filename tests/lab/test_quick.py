"""The quick noise has the laws of the exact one, can be replayed, and can never be published from."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

from reticent.lab.noise import NoNoise, QuickNoise
from reticent.noise.source import Noise, SystemNoise
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator

DRAWS = 20_000


def quick(seed: int = 5) -> QuickNoise:
    return QuickNoise(np.random.default_rng(seed))


def fits(draws: list[int], *, scale: float) -> bool:
    """The mean size of discrete Laplace noise, 2q/(1 - q^2), within five standard errors: 6e-7 a false alarm."""
    q = math.exp(-1 / scale)
    size = np.abs(np.array(draws, dtype=float))
    return abs(size.mean() - 2 * q / (1 - q * q)) < 5 * size.std() / math.sqrt(len(size))


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, "1"), (460_000, "0.075"), (2, "10")])
def test_laplace_has_the_stated_scale_and_no_other(sensitivity, epsilon):
    answers = [10**15] * DRAWS
    noisy = quick().laplace_many(answers, sensitivity=sensitivity, epsilon=Fraction(epsilon))
    draws = [noised - answer for noised, answer in zip(noisy, answers, strict=True)]
    scale = float(sensitivity / Fraction(epsilon))
    assert fits(draws, scale=scale)
    assert not fits(draws, scale=0.9 * scale) and not fits(draws, scale=1.1 * scale)
    assert abs(np.mean(draws)) < 5 * np.std(draws) / math.sqrt(DRAWS)


def permute_and_flip_law(gaps: tuple[float, float], rate: float) -> list[float]:
    """Of three candidates, the first the best: the chance of each, over which of the others fall heads."""
    p, q = (math.exp(-rate * gap) for gap in gaps)
    best = (1 - p) * (1 - q) + (p * (1 - q) + q * (1 - p)) / 2 + p * q / 3
    return [best, p * (1 - q) / 2 + p * q / 3, q * (1 - p) / 2 + p * q / 3]


def test_selection_has_the_law_of_permute_and_flip():
    """Chi-square on 2 degrees of freedom at 40: 2e-9 a false alarm. A rate without its factor 2 is rejected."""
    noise, scores = quick(), [10**20 + 7, 10**20 + 4, 10**20]
    chosen = [noise.select(scores, sensitivity=3, epsilon=Fraction(1)) for _ in range(DRAWS)]
    counts = np.bincount(chosen, minlength=3)

    def distance(rate: float) -> float:
        expected = DRAWS * np.array(permute_and_flip_law((3, 7), rate))
        return float(((counts - expected) ** 2 / expected).sum())

    assert distance(1 / 6) < 40 < distance(1 / 3)


def test_the_same_seed_gives_the_same_noise():
    one, again, other = (
        quick(s).laplace_many([0] * 50, sensitivity=9, epsilon=Fraction(1, 7)) for s in (1, 1, 2)
    )
    assert one == again != other


def test_without_noise_answers_are_themselves():
    silent = NoNoise()
    assert silent.laplace(3, sensitivity=1, epsilon=Fraction(1)) == 3
    assert silent.laplace_many([1, 2], sensitivity=1, epsilon=Fraction(1)) == [1, 2]
    assert silent.select([1, 5, 5], sensitivity=1, epsilon=Fraction(1)) == 1


def test_only_the_systems_noise_says_it_is_private():
    noises: list[Noise] = [quick(), NoNoise()]
    assert not any(noise.is_private for noise in noises)
    assert SystemNoise().is_private


def offers_noise(kind: type) -> list[str]:
    """Parameters through which somebody could hand over a noise, a generator or a seed."""
    methods = [inspect.signature(kind.__init__)]
    methods += [
        inspect.signature(m)
        for name, m in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    ]
    words = ("noise", "rng", "seed", "bits")
    return [
        p.name
        for signature in methods
        for p in signature.parameters.values()
        if p.kind is p.VAR_KEYWORD or any(w in f"{p.name} {p.annotation}".lower() for w in words)
    ]


def test_a_curator_takes_no_noise(tmp_path):
    """covers B103: not by the constructor, not by a call. A naive curator that takes one is noticed."""

    class Naive(Curator):
        def release(self, plan, survey, out, *, noise=None):  # type: ignore[no-untyped-def,override]
            """Would publish what anybody can replay."""

    assert offers_noise(Curator) == [] and offers_noise(Naive) == ["noise"]
    path = tmp_path / "ledger.db"
    Ledger.create(
        path,
        dataset="d",
        change="one respondent added or removed",
        unit="epsilon",
        budget="1",
        outputs=tmp_path,
    )
    with pytest.raises(TypeError):
        Curator(Ledger.open(path), noise=quick())  # type: ignore[call-arg]
