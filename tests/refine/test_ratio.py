"""The interval of a quotient holds whatever rounding can have made of its two parts, exactly; without the half steps it does not."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import isclose

import pytest
from hypothesis import given
from hypothesis.strategies import fractions, integers

from reticent.refine.pivot import NoisyValue, quotient_interval

WIDE = 1000.0
LEVEL = 0.5
FAINT = 2.0**-40
"""A scale so small that next to half a step the noise is none. Some noise there must be."""

Interval = tuple[float, float]
Rule = Callable[..., Interval]


def without_blur(top: NoisyValue, bottom: NoisyValue, **limits: float) -> Interval:
    """The naive one: as if published numbers had not been rounded."""
    return quotient_interval(replace(top, blur=0.0), replace(bottom, blur=0.0), **limits)


def without_top(top: NoisyValue, bottom: NoisyValue, **limits: float) -> Interval:
    return quotient_interval(replace(top, blur=0.0), bottom, **limits)


def without_bottom(top: NoisyValue, bottom: NoisyValue, **limits: float) -> Interval:
    return quotient_interval(top, replace(bottom, blur=0.0), **limits)


def published(value: Fraction, step: int) -> NoisyValue:
    """A number rounded to the nearest whole `step`, with next to no noise."""
    rounded = step * round(value / step)
    return NoisyValue(value=float(rounded), scale=FAINT, blur=step / 2)


def holds(rule: Rule, top: Fraction, bottom: Fraction, step: int, other: int) -> bool:
    """Whether the interval made of two rounded numbers holds the quotient of the exact ones."""
    low, high = rule(published(top, step), published(bottom, other), level=LEVEL, low=-WIDE, high=WIDE)
    return low <= float(top / bottom) <= high


PARTS = fractions(-500, 500, max_denominator=8)
COUNTS = fractions(40, 500, max_denominator=8)


@given(top=PARTS, bottom=COUNTS, step=integers(1, 64), other=integers(1, 32))
def test_the_interval_holds_the_quotient_of_what_was_rounded(
    top: Fraction, bottom: Fraction, step: int, other: int
) -> None:
    """Both parts rounded to coarse steps: the true quotient is inside, whatever the remainders."""
    assert holds(quotient_interval, top, bottom, step, other)


AWAY = [
    # 8 (m + 1/2) is rounded by half a step, 8 m by none.
    pytest.param(without_blur, Fraction(100), Fraction(100), id="no half steps"),
    pytest.param(without_top, Fraction(100), Fraction(96), id="none for the numerator"),
    pytest.param(without_bottom, Fraction(96), Fraction(100), id="none for the denominator"),
]


@pytest.mark.parametrize(("rule", "top", "bottom"), AWAY)
def test_an_interval_without_half_steps_is_rejected(rule: Rule, top: Fraction, bottom: Fraction) -> None:
    """Each half step by itself: where only that part was rounded, the quotient falls outside without it."""
    moved = [(top + a, bottom + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert all(holds(quotient_interval, *each, 8, 8) for each in moved)
    assert not all(holds(rule, *each, 8, 8) for each in moved)


@pytest.mark.parametrize(
    ("value", "size", "blur", "other"), [(120, 200, 3, 5), (-120, 200, 3, 5), (7, 50, 0, 8)]
)
def test_the_half_steps_are_counted_once(value: int, size: int, blur: float, other: float) -> None:
    """The far end is where both parts were rounded in its disfavour: (|T| + h) / (s - h'), and no farther."""
    low, high = quotient_interval(
        NoisyValue(value=value, scale=FAINT, blur=blur),
        NoisyValue(value=size, blur=other),
        level=LEVEL,
        low=-WIDE,
        high=WIDE,
    )
    far = max(abs(low), abs(high))
    assert isclose(far, (abs(value) + blur) / (size - other), rel_tol=1e-9)


@pytest.mark.parametrize("blur", [4.0, 32.0])
def test_half_steps_add_to_the_reach_of_the_noise(blur: float) -> None:
    """With a public denominator: Laplace's own width -b ln(1 - level), and half a step."""
    top = NoisyValue(value=500.0, scale=10.0, blur=blur)
    low, high = quotient_interval(top, NoisyValue(value=100.0), level=0.9, low=-WIDE, high=WIDE)
    reach = top.width(0.9) + blur
    assert isclose(low, (500 - reach) / 100, rel_tol=1e-9) and isclose(
        high, (500 + reach) / 100, rel_tol=1e-9
    )
