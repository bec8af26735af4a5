"""Samplers: what they refuse, and how their scales are rounded."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.noise.laplace import add_laplace, add_laplace_many, laplace_scale
from reticent.noise.source import SystemNoise
from reticent.sensitivity.bounds import Global

ONE = Global(bound=Fraction(1))


@given(bound=st.integers(1, 10**30), epsilon=st.fractions(Fraction(1, 10**12), 10**6))
def test_laplace_scale_is_rounded_against_us(bound: int, epsilon: Fraction) -> None:
    """sensitivity / scale never exceeds epsilon, and comes within a double's last digit of it."""
    scale = Fraction(laplace_scale(Global(bound=Fraction(bound)), epsilon))
    assert epsilon * (1 - Fraction(1, 2**51)) <= bound / scale <= epsilon


def test_laplace_refuses_halves_zeros_and_floats() -> None:
    """A bound that is no whole number, an epsilon that is not positive, an answer off the grid."""
    with pytest.raises(PlanError):
        add_laplace(0, sensitivity=Global(bound=Fraction(1, 2)), epsilon=Fraction(1))
    with pytest.raises(PlanError):
        add_laplace(0, sensitivity=ONE, epsilon=Fraction(0))
    with pytest.raises(TypeError):
        add_laplace(0.5, sensitivity=ONE, epsilon=Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(PlanError):
        add_laplace(0, sensitivity=ONE, epsilon=Fraction(1, 10**400))


def test_an_answer_too_large_is_refused_without_its_value() -> None:
    """The text names the rule, never the number."""
    with pytest.raises(ValueError, match="grid steps") as caught:
        add_laplace_many([0, 2**62 + 977], sensitivity=ONE, epsilon=Fraction(1))
    assert "977" not in str(caught.value)


def test_the_system_noise_keeps_shape_and_moves_answers() -> None:
    """Length and type; 200 answers all unmoved at scale 1000 has chance below 1e-600."""
    noise = SystemNoise()
    drawn = noise.laplace_many([5] * 200, sensitivity=1000, epsilon=Fraction(1))
    assert len(drawn) == 200 and all(type(x) is int for x in drawn) and set(drawn) != {5}
    assert type(noise.laplace(5, sensitivity=1, epsilon=Fraction(1))) is int
    assert noise.select([0, 10**6], sensitivity=1, epsilon=Fraction(1)) == 1
    assert noise.is_private
