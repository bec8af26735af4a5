"""The families have the moments, constants and distribution functions printed in THEORY 2 and 9."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.families import Cauchy, Laplace, Lomax, Student, cdf

HEAVY = [
    Lomax(3),
    Lomax(8),
    Student(),
    Student(Fraction(11, 2)),
    Cauchy(),
    Cauchy(Fraction(3, 2)),
    Cauchy(Fraction(5, 2)),
]
KAPPA = {"1.5": "0.793700526", "2": "1.000000000", "2.5": "1.275424501", "3": "1.587401052"}
KAPPA |= {"3.5": "1.924167449", "4": "2.279507057", "5": "3.031433133", "6": "3.823622457"}
CONSTANT = {"1.5": "0.206748336", "2": "0.318309886", "2.5": "0.378413364", "3": "0.413496672"}
CONSTANT |= {"3.5": "0.435513208", "4": "0.450158158", "5": "0.467744642", "6": "0.477464829"}
MEAN = {"2.5": "1.618033989", "3": "1.000000000", "3.5": "0.801937736", "4": "0.707106781"}
MEAN |= {"5": "0.618033989", "6": "0.577350269"}
VARIANCE = {"3.5": "1.801937736", "4": "1.000000000", "5": "0.618033989", "6": "0.500000000"}


def nine(value: arb) -> str:
    return f"{float(value):.9f}"


@pytest.mark.parametrize(
    ("printed", "method"),
    [
        (KAPPA, Cauchy.steepest),
        (CONSTANT, Cauchy.constant),
        (MEAN, Cauchy.mean_size),
        (VARIANCE, Cauchy.variance),
    ],
)
def test_cauchy_numbers_are_those_printed(printed, method):
    for gamma, digits in printed.items():
        assert nine(method(Cauchy(Fraction(gamma)))) == digits


def test_distribution_functions_are_those_printed():
    at = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)]
    assert [nine(cdf(Cauchy(), ball(x))) for x in at] == [
        "0.545014916",
        "0.722359246",
        "0.890274963",
        "0.994471668",
    ]
    assert [nine(cdf(Student(), ball(x))) for x in at] == [
        "0.563241348",
        "0.774907572",
        "0.909154943",
        "0.993076584",
    ]
    assert [nine(cdf(Lomax(8), ball(x))) for x in at[:3]] == ["0.766746310", "0.980490779", "0.998046875"]


@pytest.mark.parametrize(
    "x", [Fraction(-3), Fraction(-1, 7), Fraction(1, 100), Fraction(1, 2), Fraction(2), Fraction(40)]
)
def test_incomplete_beta_agrees_with_the_closed_forms_for_four(x):
    """THEORY 2.3 and 2.4 print both distribution functions in elementary terms."""
    with ctx.workprec(200):
        z, r, pi = ball(x), arb(2).sqrt(), arb.pi()
        student = arb(1) / 2 + (z / (1 + z * z) + z.atan()) / pi
        logs = ((z * z + r * z + 1) / (z * z - r * z + 1)).log() / (4 * pi)
        cauchy = arb(1) / 2 + logs + ((r * z + 1).atan() + (r * z - 1).atan()) / (2 * pi)
        assert abs(cdf(Student(), z) - student) < 1e-30 and abs(cdf(Cauchy(), z) - cauchy) < 1e-30


@pytest.mark.parametrize("family", HEAVY)
def test_density_is_the_slope_of_the_distribution_function(family):
    """Ties phi to tail: minus the log of the density differs from phi by one constant at all points."""
    with ctx.workprec(200):
        h = arb(2) ** -60
        offsets = []
        for x in (arb(1) / 4, arb(1), arb(3), arb(20)):
            density = (family.tail(x - h) - family.tail(x + h)) / (4 * h)
            offsets.append(family.phi(x) + density.log())
        assert all(abs(offset - offsets[0]) < 1e-25 for offset in offsets)


@pytest.mark.parametrize("family", HEAVY)
def test_slope_bend_and_fold_belong_to_phi(family):
    """Difference quotients, and the identity the certifier folds the tail by."""
    with ctx.workprec(200):
        h = arb(2) ** -60
        for x in (arb(1) / 5, arb(1), arb(7)):
            assert abs((family.phi(x + h) - family.phi(x - h)) / (2 * h) - family.slope(x)) < 1e-25
            assert abs((family.slope(x + h) - family.slope(x - h)) / (2 * h) - family.bend(x)) < 1e-25
            assert abs(family.phi(x) - ball(family.exponent) * x.log() - family.phi(1 / x)) < 1e-40


@pytest.mark.parametrize("family", HEAVY)
def test_balls_that_touch_zero_hold_every_value_inside(family):
    box = arb(0).union(arb(1) / 8)
    for x in (arb(0), arb(1) / 64, arb(1) / 8):
        assert family.phi(box).contains(family.phi(x).mid()) and family.slope(box).contains(
            family.slope(x).mid()
        )


def test_lomax_and_student_spread():
    assert (
        Lomax(8).variance().contains(ball(Fraction(1, 21)).mid())
        and float(Student(Fraction(7)).variance()) == 0.25
    )
    assert float(Laplace().variance()) == 2 and math.isclose(float(Laplace().tail(arb(2))), math.exp(-2))


@pytest.mark.parametrize(
    ("family", "parameter"),
    [
        (Lomax, 2),
        (Lomax, 2.5),
        (Lomax, 10**7),
        (Student, Fraction(3)),
        (Student, 4.0),
        (Cauchy, Fraction(1)),
        (Cauchy, 1.5),
    ],
)
def test_parameters_outside_the_theorem_are_refused(family, parameter):
    with pytest.raises(PlanError):
        family(parameter)


def test_moments_that_do_not_exist_are_refused():
    with pytest.raises(PlanError):
        Cauchy(Fraction(3)).variance()
    with pytest.raises(PlanError):
        Cauchy(Fraction(2)).mean_size()
