"""One integer leaves: coarse steps are the nearest ones, and move no further than the noise is told."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from reticent.answer.count import covering
from reticent.answer.parts import FINE, measure
from reticent.sensitivity.bounds import Global
from tests.doubles import FrozenNoise, ZeroNoise

Rounding = Callable[[int, int], int]
SHIFTS = [0, 1, 2, 5]


def bound_of(shift: int) -> int:
    """The least bound that is counted in steps of 2^shift."""
    return 2 ** (FINE + shift - 1) if shift else 2**FINE - 1


def ours(exact: int, shift: int) -> int:
    """The coarse steps that an integer is measured in, the noise taken out."""
    bound = Global(bound=Fraction(bound_of(shift)))
    made = measure(exact, "total", bound=bound, grid=Fraction(1), epsilon=Fraction(1), noise=ZeroNoise())
    assert made.part.unit == 2**shift and made.part.is_coarse == (shift > 0)
    return made.steps


def rounded_down(exact: int, shift: int) -> int:
    """The naive one: what a shift of bits gives."""
    return exact >> shift


def off(rounding: Rounding, shift: int) -> tuple[Fraction, Fraction]:
    """The least and the largest error over every remainder, on both sides of zero, as parts of a step."""
    step = 2**shift
    errors = [Fraction(rounding(x, shift) * step - x, step) for x in range(-3 * step, 3 * step + 1)]
    return min(errors), max(errors)


def nearest(shift: int) -> tuple[Fraction, Fraction]:
    """A half goes up, so that one remainder has no other to set it off."""
    half = Fraction(1, 2) if shift else Fraction(0)
    return -half + Fraction(1, 2**shift) if shift else -half, half


# covers R03
@pytest.mark.parametrize("shift", SHIFTS)
def test_an_integer_is_counted_in_the_nearest_coarse_steps(shift: int) -> None:
    """No remainder is more than half a step off, which is what the error bar adds, and they lean to neither side."""
    least, most = off(ours, shift)
    half = Fraction(1, 2) if shift else 0
    assert -half <= least <= most <= half
    assert shift == 0 or least == -most + Fraction(
        1, 2**shift
    )  # a half goes up, so one remainder is unpaired


@pytest.mark.parametrize("shift", SHIFTS[1:])
def test_rounding_down_is_rejected(shift: int) -> None:
    assert off(rounded_down, shift) != nearest(shift)


# covers R03
@given(exact=integers(-(2**80), 2**80), shift=integers(1, 40))
def test_the_interval_holds_what_was_rounded(exact: int, shift: int) -> None:
    """Without noise, however small the level: the half step alone covers."""
    bound = Global(bound=Fraction(bound_of(shift)))
    made = measure(
        exact, "total", bound=bound, grid=Fraction(1, 4), epsilon=Fraction(10**9), noise=ZeroNoise()
    )
    assert made.part.half_width(Fraction(1, 100)) == 0
    low, high = covering(made)(Fraction(1, 100))
    assert low <= Fraction(exact, 4) <= high


# covers T07 T20
@given(exact=integers(-(2**70), 2**70), moved=integers(-(2**30), 2**30), shift=integers(0, 12))
def test_coarse_steps_move_no_further_than_the_noise_is_told(exact: int, moved: int, shift: int) -> None:
    """A move within the bound is a move within the declared steps; one step fewer would not do."""
    most = bound_of(shift) + 1  # not a whole number of steps once there are any
    moved = max(-most, min(most, moved))
    noise = FrozenNoise()
    for each in (exact, exact + moved):
        measure(
            each, "x", bound=Global(bound=Fraction(most)), grid=Fraction(1), epsilon=Fraction(1), noise=noise
        )
    one, other = noise.calls
    assert one.parameters == other.parameters
    assert one.distance(other) <= one.sensitivity == ceil(Fraction(most, made_unit(most)))


def made_unit(bound: int) -> int:
    """The step for a bound: halved until it has at most twenty binary digits."""
    unit = 1
    while bound // unit >= 2**FINE:
        unit *= 2
    return unit


def test_the_declared_steps_are_reached() -> None:
    """Two integers a bound apart, of which one just rounds up: a sensitivity rounded down is exceeded."""
    most = bound_of(3) + 1
    noise = FrozenNoise()
    for each in (3, 3 + most):
        measure(
            each, "x", bound=Global(bound=Fraction(most)), grid=Fraction(1), epsilon=Fraction(1), noise=noise
        )
    one, other = noise.calls
    assert one.distance(other) == one.sensitivity > most // made_unit(most)
