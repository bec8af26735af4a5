"""The certifier says yes only where brute force finds no loss above epsilon, and no where it finds one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.noise.calibrate import certify
from reticent.noise.families import Cauchy, Laplace, Lomax, Student

FAMILIES = [
    Lomax(3),
    Lomax(8),
    Student(),
    Student(Fraction(9, 2)),
    Cauchy(),
    Cauchy(Fraction(3, 2)),
    Cauchy(Fraction(3)),
]
Z = np.concatenate([[0.0], np.geomspace(1e-7, 1e7, 6001)])
LN2 = Fraction(math.log(2)).limit_denominator(10**9)


def phi(family, x):
    """The minus log densities once more, in doubles and independent of the family's own."""
    x = np.abs(x)
    match family:
        case Lomax(m=m):
            return (m + 1) * np.log1p(x)
        case Student(g=g):
            return float(g) / 2 * np.log1p(x * x)
        case Cauchy(gamma=gamma):
            return np.log1p(x ** float(gamma))


def brute(family, a, beta):
    """The worst log density ratio over a grid of (shift, drift, z), both directions and both signs of z."""
    worst = -math.inf
    for drift in np.linspace(-beta, beta, 9):
        ratio = math.exp(drift)  # S/S'
        for shift in np.linspace(-1, 1, 5) * min(1, ratio):
            for sign in (1, -1):
                loss = -drift + phi(family, ratio * sign * Z + a * shift) - phi(family, Z)
                worst = max(worst, float(np.max(loss)))
    return worst


@settings(max_examples=60, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    a=st.fractions("0.001", 8, max_denominator=10**4),
    beta=st.fractions("0.001", 2, max_denominator=10**4),
    side=st.sampled_from([-1, 1]),
)
def test_certifier_agrees_with_brute_force_on_either_side_of_the_loss(family, a, beta, side):
    """Just above the loss found on the grid it says yes, just below no. The grid is fine to 1e-5 of the loss."""
    loss = brute(family, float(a), float(beta))
    epsilon = Fraction(loss * (1 + 2e-5 * side) + 1e-9 * side)
    assert certify(family, a=a, beta=beta, epsilon=epsilon) == (side == 1)


def test_brute_force_would_notice_a_certifier_that_forgets_the_drift():
    """The naive twin: slide alone, F_0, passes what the theorem refuses."""
    a, beta, epsilon = Fraction(3, 10), Fraction(1, 4), Fraction(7, 10)
    assert certify(Cauchy(), a=a, beta=Fraction(0), epsilon=epsilon)
    assert not certify(Cauchy(), a=a, beta=beta, epsilon=epsilon) and brute(Cauchy(), 0.3, 0.25) > 0.7


SLIDE = {
    2: {"0.1": 0.099958380, "0.5": 0.494932923, "1": 0.962423650},
    3: {"0.1": 0.158656894, "0.5": 0.783648850, "1": 1.514347906},
    4: {"0.1": 0.227786548, "0.5": 1.120216711, "1": 2.142509740},
}


@pytest.mark.parametrize("gamma", SLIDE)
def test_slide_costs_are_those_printed(gamma):
    """F_0 of THEORY 9: certified half a unit of the ninth digit above, refused as much below."""
    for a, printed in SLIDE[gamma].items():
        loss, half = Fraction(f"{printed:.9f}"), Fraction(1, 2 * 10**9)
        family = Cauchy(Fraction(gamma))
        assert certify(family, a=Fraction(a), beta=Fraction(0), epsilon=loss + half)
        assert not certify(family, a=Fraction(a), beta=Fraction(0), epsilon=loss - half)


def test_equality_at_infinity_is_decided_exactly():
    """Lomax with beta = epsilon/m loses exactly epsilon far out; a hair more beta is refused."""
    a = Fraction(1, 100)
    assert certify(Lomax(8), a=a, beta=Fraction(1, 8), epsilon=Fraction(1))
    assert not certify(Lomax(8), a=a, beta=Fraction(1, 8) + Fraction(1, 10**40), epsilon=Fraction(1))


def test_no_bounded_density_survives_beta_above_epsilon():
    for family in FAMILIES:
        assert not certify(family, a=Fraction(1, 10**9), beta=Fraction(11, 10), epsilon=Fraction(1))


def test_laplace_is_for_global_bounds_only():
    one, half = Fraction(1), Fraction(1, 2)
    assert certify(Laplace(), a=half, beta=Fraction(0), epsilon=half)
    assert not certify(Laplace(), a=half + Fraction(1, 10**30), beta=Fraction(0), epsilon=half)
    assert not certify(Laplace(), a=Fraction(1, 10**9), beta=Fraction(1, 10**9), epsilon=one)


@pytest.mark.parametrize("wrong", [{"a": Fraction(0)}, {"beta": Fraction(-1)}, {"epsilon": Fraction(0)}])
def test_nonsense_is_not_certified(wrong):
    assert not certify(
        Lomax(8), **({"a": Fraction(1, 100), "beta": Fraction(1, 8), "epsilon": Fraction(1)} | wrong)
    )


def published_loss(epsilon, n=50):
    """THEORY 3.6: both sites served by the donor at 1 alone, or each by its own; count 0 against n + 1."""
    gamma = 1 + epsilon / (2 * math.log(2))
    here, there = (1 + n) / math.log(2), (1 + 2 * n) / math.log(2)
    y = np.concatenate([-np.geomspace(1e-3, 1e9, 200_001)[::-1], np.geomspace(1e-3, 1e9, 200_001)])
    log_here = -math.log(here) - np.log1p(np.abs((y - (n + 1)) / here) ** gamma)
    log_there = -math.log(there) - np.log1p(np.abs(y / there) ** gamma)
    return float(np.max(np.abs(log_here - log_there)))


LOSSES = {"0.25": "0.93777", "0.5": "0.90112", "0.75": "0.87394", "0.85": "0.86504"}


@pytest.mark.parametrize("epsilon", LOSSES)
def test_the_published_mechanism_is_rejected_where_it_is_not_private(epsilon):
    """The loss on two concrete tables, as printed, is above what is claimed; so no certificate may exist."""
    assert f"{published_loss(float(epsilon)):.5f}" == LOSSES[epsilon]
    assert float(LOSSES[epsilon]) > float(epsilon)
    gamma = 1 + Fraction(epsilon) / (2 * LN2)
    assert not certify(Cauchy(gamma), a=LN2, beta=LN2, epsilon=Fraction(epsilon))


def test_above_the_threshold_only_the_exact_analysis_saves_it():
    """Between 0.87 and 2 ln 2 the printed proof fails, yet the theorem certifies (THEORY 10.1)."""
    one = Fraction(1)
    assert certify(Cauchy(1 + one / (2 * LN2)), a=LN2, beta=LN2, epsilon=one)
    assert not certify(Cauchy(1 + Fraction("0.86") / (2 * LN2)), a=LN2, beta=LN2, epsilon=Fraction("0.86"))


def test_precision_set_elsewhere_does_not_matter():
    from flint import ctx

    with ctx.workprec(20):
        assert certify(Lomax(8), a=Fraction(1, 100), beta=Fraction(1, 8), epsilon=Fraction(1))
        assert arb(1).exp().rel_accuracy_bits() < 30
