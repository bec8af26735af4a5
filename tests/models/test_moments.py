"""Noisy sums of products: whole steps move no further than the noise was told, roundings included."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis.strategies import fractions, integers, lists

from reticent.models.design import Bounded, RegressionDesign, Sums, products_l1, products_l2
from reticent.models.moments import UNIT, gaussian_moments, laplace_moments
from reticent.sensitivity.bounds import Neighbours
from tests.models.doubles import FrozenModelNoise

ONE = Neighbours(replaced=False, records=1)
EPSILON = Fraction(1)


def alike(people: int, columns: int) -> Sums:
    """So many people in the corner where every product is largest."""
    names = [Bounded(name=f"x{place}", low=0, high=1) for place in range(columns)]
    design = RegressionDesign(predictors=tuple(names[:-1]), response=names[-1])
    return Sums(design=design, products=((people,) * (columns + 1),) * (columns + 1))


def laplace_move(people: int, scales: list[Fraction]) -> tuple[Fraction, int]:
    """How far one more of them moves the whole steps, and what the noise was told."""
    noise = FrozenModelNoise()
    for there in (people, people + 1):
        sums = alike(there, len(scales) - 1)
        laplace_moments(sums, scales=scales, epsilon=EPSILON, neighbours=ONE, noise=noise)
    one, other = noise.calls
    return Fraction(one.distance(other)), int(one.sensitivity)


# covers T04 R03
@given(people=integers(0, 10**6), scales=lists(fractions(Fraction(1, 50), 1), min_size=2, max_size=4))
def test_one_more_in_the_corner_moves_no_further_than_declared(people: int, scales: list[Fraction]) -> None:
    moved, declared = laplace_move(people, scales)
    assert moved <= declared


@pytest.mark.parametrize("scales", [[Fraction(1, 3)] * 2, [Fraction(1, 7), Fraction(2, 5), Fraction(1, 3)]])
def test_a_bound_without_roundings_is_exceeded(scales: list[Fraction]) -> None:
    """The naive bound is that of the exact sums: each entry that is rounded adds to it, and some survey shows it."""
    naive = ceil(UNIT * products_l1(scales, neighbours=ONE))
    pairs = [laplace_move(people, scales) for people in range(60)]
    assert all(moved <= declared for moved, declared in pairs)
    assert max(moved for moved, _ in pairs) > naive


@given(people=integers(0, 10**6), columns=integers(1, 3))
def test_gaussian_sums_move_no_further_in_length(people: int, columns: int) -> None:
    """Unit columns have whole steps in the corner, so there the length is met to the last rounding of the root."""
    noise = FrozenModelNoise()
    for there in (people, people + 1):
        gaussian_moments(alike(there, columns), rho=EPSILON, neighbours=ONE, noise=noise)
    one, other = noise.calls
    moved = one.distance(other)
    assert moved <= one.sensitivity
    assert moved > floor(UNIT * products_l2(columns + 1, neighbours=ONE)) - 2
