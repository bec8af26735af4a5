"""One unit for a ledger: what a claim costs in epsilon and in rho, and how a sum of rho is shown."""

from fractions import Fraction
from math import cosh, exp, log, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from reticent.errors import PlanError
from reticent.privacy.claim import SQUARED, Change, Claim, as_approximate, compose, cost, in_unit, in_words
from reticent.privacy.convert import zcdp_to_epsilon

REACH = 400


def pure(epsilon: str, **more) -> Claim:
    return Claim(measure="pure", epsilon=Fraction(epsilon), **more)


def zcdp(rho: str, **more) -> Claim:
    return Claim(measure="zcdp", rho=Fraction(rho), **more)


def laplace_law(epsilon: float, shift: int = 0) -> np.ndarray:
    """Logarithms of the masses on the integers within reach."""
    x = np.arange(-REACH, REACH + 1)
    return -epsilon * np.abs(x - shift) + log(tanh(epsilon / 2))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(logsumexp(order * p + (1 - order) * q) / (order - 1))


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", "1", "2.5"])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0, 40.0])
def test_a_pure_mechanism_keeps_the_rho_it_is_charged(epsilon, order):
    """Whole-number Laplace at one step, by its law, at five orders; the charge of continuous noise would be too small."""
    rho, e = cost(pure(epsilon), "rho"), float(epsilon)
    divergence = renyi(laplace_law(e, 1), laplace_law(e), order)
    assert divergence <= float(rho) * order * (1 + 1e-9)
    sharp = e * tanh(e / 2)
    assert divergence <= sharp * order * (1 + 1e-6)
    if order == 1.01:
        continuous = e + exp(-e) - 1
        assert divergence > continuous * order


@given(epsilon=st.floats(0.01, 5), order=st.floats(1.001, 60))
def test_no_pure_pair_has_a_larger_moment(epsilon, order):
    """The two-point law of THEORY 16.1 is the worst of all pairs, so ln cosh(u)/cosh(v) bounds every pure mechanism."""
    u, v = (order - 0.5) * epsilon, epsilon / 2
    if u > 600:
        return
    moment = log(cosh(u) / cosh(v))
    assert moment <= order * (order - 1) * epsilon * tanh(v) * (1 + 1e-9) + 1e-12
    assert moment <= order * (order - 1) * float(cost(pure(f"{epsilon:.12f}"), "rho")) * (1 + 1e-9) + 1e-9


def test_the_naive_charge_of_epsilon_over_eight_squared_is_too_small():
    """epsilon^2/8 belongs to the exponential mechanism alone; Laplace noise breaks it."""
    e, order = 1.0, 1.01
    assert renyi(laplace_law(e, 1), laplace_law(e), order) > e * e / 8 * order


@pytest.mark.parametrize(
    ("epsilon", "rho"),
    [
        ("1", "0.5"),
        ("0.5", "0.125"),
        ("0.1", "0.005"),
        ("0.000001", "0.000000000001"),
        ("0.333333", "0.055555444445"),
    ],
)
def test_a_pure_claim_costs_epsilon_squared_over_two_rounded_up(epsilon, rho):
    """The last one has 13 places and more: 0.0555554444444 ... goes up, never down."""
    assert cost(pure(epsilon), "rho") == Fraction(rho) >= Fraction(epsilon) ** 2 / 2


def test_claims_convert_one_by_one():
    """Ten pure statistics of 0.1 cost ten times 0.005, not half the square of their sum."""
    each = [in_unit(pure("0.1"), "rho") for _ in range(10)]
    assert compose(each).rho == Fraction("0.05") < Fraction(1) ** 2 / 2
    assert compose([*each, zcdp("0.02")]).rho == Fraction("0.07")
    assert SQUARED in each[0].rests_on and each[0].measure == "zcdp"


def test_a_rho_of_more_places_is_rounded_up():
    """A ledger takes decimals of 12 places."""
    claim = Claim(measure="zcdp", rho=Fraction(1, 3))
    assert cost(claim, "rho") == Fraction("0.333333333334")


def test_a_group_pays_before_it_is_converted():
    """Under replacement a pure claim doubles and a rho claim is four times as large: the same, squared over two."""
    one = in_unit(pure("0.5").under(Change.REPLACE), "rho")
    other = in_unit(pure("0.5"), "rho").under(Change.REPLACE)
    assert one.rho == other.rho == Fraction("0.5")


@pytest.mark.parametrize(
    ("claim", "unit", "said"),
    [
        (
            Claim(measure="approximate", epsilon=Fraction(1), delta=Fraction(1, 10**6)),
            "rho",
            "delta of its own",
        ),
        (Claim(measure="observed"), "rho", "promises nothing"),
        (zcdp("0.1"), "epsilon", "--rho"),
    ],
)
def test_what_does_not_add_is_refused(claim, unit, said):
    with pytest.raises(PlanError, match=said):
        cost(claim, unit)


def test_in_epsilon_nothing_changes():
    """Claims in an old ledger are what they were, object for object."""
    for claim in (pure("0.7"), Claim(measure="approximate", epsilon=Fraction(1), delta=Fraction(1, 10**9))):
        assert in_unit(claim, "epsilon") is claim and cost(claim, "epsilon") == claim.epsilon


def test_rho_is_shown_by_the_tight_conversion_rounded_up():
    """Twelve waves of 0.02, of which four count: 1.90 in place of 3.46 (THEORY 16.4)."""
    assert round(float(as_approximate(Fraction("0.08"))), 2) == 1.90
    assert round(float(as_approximate(Fraction("0.24"))), 2) == 3.46
    told = f"{float(as_approximate(Fraction('0.088'))):.4f}"
    tight = zcdp_to_epsilon(rho=Fraction("0.088"), delta=Fraction(1, 10**6))
    assert 0 <= as_approximate(Fraction("0.088")) - tight < Fraction(1, 10**4)
    assert in_words(Fraction("0.088")) == f"rho = 0.088, that is ({told}, 0.000001)-DP"
    assert in_words(Fraction(0)) == "rho = 0, that is (0, 0.000001)-DP"


def test_a_smaller_delta_shows_a_larger_epsilon():
    small, large = (as_approximate(Fraction("0.1"), Fraction(1, 10**k)) for k in (9, 3))
    assert small > large
