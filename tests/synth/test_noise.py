"""The noise of synthesizers: private, fresh, and made of the proved samplers."""

from fractions import Fraction

import pytest

from reticent.errors import PlanError
from reticent.synth.base import SynthNoise
from reticent.synth.spending import SystemSynthNoise


def test_the_system_noise_is_private_and_moves_answers() -> None:
    """200 cells, scale 50: all untouched with chance below 2^-600 each way."""
    noise: SynthNoise = SystemSynthNoise()
    assert noise.is_private and noise.bits.is_private
    cells = [7] * 200
    assert noise.laplace_many(cells, sensitivity=50, epsilon=Fraction(1)) != cells
    assert noise.gaussian_many(cells, sensitivity=50, rho=Fraction(1, 2)) != cells
    # Two candidates alike, 100 choices: only one of them ever chosen with chance 2^-99.
    chosen = {noise.choose([3, 3], sensitivity=1, epsilon=Fraction(1)) for _ in range(100)}
    assert chosen == {0, 1}


def test_what_promises_nothing_is_refused() -> None:
    noise = SystemSynthNoise()
    with pytest.raises(PlanError):
        noise.laplace_many([1], sensitivity=1, epsilon=Fraction(0))
    with pytest.raises(PlanError):
        noise.gaussian_many([1], sensitivity=1, rho=Fraction(0))
    with pytest.raises(PlanError):
        noise.choose([1], sensitivity=1, epsilon=Fraction(0))
