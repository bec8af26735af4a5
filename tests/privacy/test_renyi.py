"""Poisson-sampled noisy sums: the vectors, brute force in both directions, exact deltas, and the twins that spend more."""

from fractions import Fraction
from math import comb, erfc, exp, log, log1p, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.privacy.convert import zcdp_to_epsilon
from reticent.privacy.renyi import ORDERS, multiplier_within, sampled_divergence, sampled_epsilon

# covers T21 T24 T25

DELTA = Fraction(1, 10**6)
ORDER = (2, 4, 8)
# deviation, move, rate: for orders 2, 4 and 8 the formula (which is `added`, discrete), and what brute force gives for the
# record removed (discrete), added (rounded), removed (rounded)
VECTORS = {
    (2, 2, "0.1"): (
        (".017036863", ".011475655", ".016504089", ".011226255"),
        (".058672607", ".019288034", ".055546421", ".018926063"),
        ("1.3783614", ".029850215", "1.3178666", ".029393579"),
    ),
    (4, 4, "0.02"): (
        (".00068707664", ".0006058073", ".00068148133", ".00060152518"),
        (".0015376088", ".0011313192", ".0015230669", ".0011238641"),
        (".012118787", ".0020164515", ".011212034", ".0020045501"),
    ),
    (3, 2, "0.5"): (
        (".13094569", ".095825858", ".12955675", ".095062099"),
        (".33662654", ".16239366", ".33231957", ".16128447"),
        ("1.0403442", ".24992336", "1.0265381", ".24857618"),
    ),
}


def discrete(sigma: float, at: np.ndarray) -> np.ndarray:
    """Logarithms of the discrete Gaussian on `at`."""
    found = -(at**2) / (2 * sigma**2)
    return found - np.logaddexp.reduce(found)


def rounded(sigma: float, at: np.ndarray) -> np.ndarray:
    """Logarithms of the normal, rounded to whole numbers: differences of what lies beyond, so that tails keep their digits."""
    far = np.abs(at)
    ends = [[erfc((x + half) / (sigma * sqrt(2))) for x in far] for half in (-0.5, 0.5)]
    return np.log(np.subtract(*ends) / 2)


def pair(law, sigma: float, move: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws of one number with and without the record, in logarithms, over all that matters."""
    at = np.arange(-30 * sigma, 30 * sigma + 1).astype(float)
    without, there = law(sigma, at), law(sigma, at - move)
    return np.logaddexp(log(1 - rate) + without, log(rate) + there), without


def divergence(one: np.ndarray, other: np.ndarray, order: int) -> float:
    return float(np.logaddexp.reduce(order * one + (1 - order) * other)) / (order - 1)


def agrees(value: float, printed: str) -> bool:
    """To the digits that are printed."""
    digits = len(printed.replace(".", "").lstrip("0"))
    return f"{value:.{digits - 1}e}" == f"{float(printed):.{digits - 1}e}"


@pytest.mark.parametrize("place", range(3), ids=[f"order {order}" for order in ORDER])
@pytest.mark.parametrize("setting", VECTORS, ids=str)
def test_vectors_of_both_laws_in_both_directions(setting, place: int) -> None:
    """The formula is the divergence of the added record for the discrete law, and above the other three."""
    sigma, move, rate = setting
    order, printed = ORDER[place], VECTORS[setting][place]
    bound = float(sampled_divergence(order, rate=Fraction(rate), multiplier=Fraction(sigma, move)).mid())
    assert agrees(bound, printed[0])
    found = []
    for law in (discrete, rounded):
        added, without = pair(law, sigma, move, float(rate))
        found += [divergence(added, without, order), divergence(without, added, order)]
    assert [agrees(*each) for each in zip(found, printed, strict=True)] == [True] * 4
    assert max(found[1:]) < bound


@given(st.floats(1, 1e6), st.fractions(Fraction(1, 1000), Fraction(999, 1000)), st.floats(1, 60))
def test_the_lemma_of_the_removed_record(ratio: float, rate: Fraction, order: float) -> None:
    """G >= 0: a pair of points where the record makes one side `ratio` times as likely; in logarithms, to 1e-9."""
    q = float(rate)
    a, c = log1p(q * (ratio - 1)), log1p(q * (1 / ratio - 1))
    up = np.logaddexp(order * a, log(ratio) + order * c)
    down = np.logaddexp((1 - order) * a, log(ratio) + (1 - order) * c)
    assert up >= down - 1e-9


def losses(rate: float, multiplier: float, *, removed: bool, step: float = 1e-3) -> np.ndarray:
    """The law of one step's privacy loss on a grid, rounded down: what is computed from it is below the truth."""
    at = np.linspace(-12 * multiplier, 12 * multiplier + 1, 400_001)
    width = at[1] - at[0]
    without = np.exp(-(at**2) / (2 * multiplier**2)) * width / (multiplier * sqrt(2 * np.pi))
    there = np.exp(-((at - 1) ** 2) / (2 * multiplier**2)) * width / (multiplier * sqrt(2 * np.pi))
    added = (1 - rate) * without + rate * there
    one, other = (without, added) if removed else (added, without)
    place = np.floor(np.log(one / other) / step).astype(int)
    found = np.zeros(40_001)
    np.add.at(found, np.clip(place, -20_000, 20_000) + 20_000, one)
    return found


def delta_of(rate: float, multiplier: float, steps: int, epsilon: float, *, removed: bool) -> float:
    """The delta of so many steps at epsilon, by the convolution of their losses: an accountant that shares no line with ours."""
    one = losses(rate, multiplier, removed=removed)
    size = 1 << (steps * 40_000).bit_length()
    whole = np.fft.irfft(np.fft.rfft(one, size) ** steps, size)
    loss = (np.arange(size) - 20_000 * steps) * 1e-3
    return float((np.maximum(whole, 0) * np.maximum(0, 1 - np.exp(epsilon - loss))).sum())


@pytest.mark.parametrize(("rate", "steps"), [("0.05", 30), ("0.2", 10), ("0.5", 3)])
def test_delta_is_at_most_what_is_claimed(rate: str, steps: int) -> None:
    """In both directions against the convolution; and no more than half as much again above it, so the claim is no empty one."""
    epsilon = Fraction(1)
    multiplier = multiplier_within(
        epsilon=epsilon, delta=DELTA, rho=Fraction(0), steps=steps, rate=Fraction(rate)
    )
    for removed in (False, True):
        assert delta_of(float(rate), float(multiplier), steps, 1.0, removed=removed) < DELTA
    assert delta_of(float(rate), float(multiplier) / 1.3, steps, 1.0, removed=False) > DELTA


@pytest.mark.parametrize("missing", ["0.1", "0.2", "0.3"])
def test_sampling_those_who_answered_at_a_higher_rate_spends_more(missing: str) -> None:
    """The naive twin: a batch of fixed size from those who answered, accounted as if from everybody. 1,600 steps of 23 in 30,000."""
    rate, epsilon = Fraction(23, 30_000), Fraction("0.9")
    at = {"rho": Fraction(0), "steps": 1_600, "delta": DELTA}
    multiplier = multiplier_within(epsilon=epsilon, rate=rate, **at)
    assert sampled_epsilon(rate=rate, multiplier=multiplier, **at) <= epsilon
    seen = sampled_epsilon(rate=rate / (1 - Fraction(missing)), multiplier=multiplier, **at)
    assert seen > epsilon * (1 + Fraction(missing) / 4)


def test_every_row_in_every_step_accounted_as_a_sample_spends_more() -> None:
    """The naive twin of T21: noise for samples, and no samples."""
    multiplier = multiplier_within(
        epsilon=Fraction(1), delta=DELTA, rho=Fraction(0), steps=100, rate=Fraction(1, 50)
    )
    whole = zcdp_to_epsilon(rho=100 / (2 * multiplier**2), delta=DELTA)
    assert whole > 10


@settings(max_examples=30)  # each is a search among certified divergences
@given(
    st.fractions(Fraction(1, 500), Fraction(1, 2)),
    st.integers(1, 500),
    st.fractions(Fraction(1, 5), Fraction(4)),
    st.fractions(Fraction(0), Fraction(1, 50)),
)
def test_the_multiplier_is_certified_and_nearly_the_least(rate, steps, epsilon, rho) -> None:
    """What zCDP mechanisms cost beside the steps is in it; a thousandth less noise would not do."""
    given_ = {"rho": rho, "steps": steps, "rate": rate, "delta": DELTA}
    if sampled_epsilon(multiplier=Fraction(10**6), **given_) > epsilon:
        with pytest.raises(PlanError, match="too small for so many steps"):
            multiplier_within(epsilon=epsilon, **given_)
        return
    found = multiplier_within(epsilon=epsilon, **given_)
    assert sampled_epsilon(multiplier=found, **given_) <= epsilon
    if found > Fraction(1, 5):
        assert sampled_epsilon(multiplier=found * Fraction(999, 1000), **given_) > epsilon


def test_a_step_with_everybody_is_the_gaussian_mechanism() -> None:
    """As the rate goes to one the formula goes to alpha/(2 s^2), from below."""
    for order in ORDERS[:8]:
        near = float(sampled_divergence(order, rate=Fraction(999_999, 10**6), multiplier=Fraction(3)).mid())
        assert 0.999 * order / 18 < near < order / 18


def test_numbers_that_are_no_rate_are_refused() -> None:
    for rate, multiplier in (
        (Fraction(0), Fraction(1)),
        (Fraction(1), Fraction(1)),
        (Fraction(1, 2), Fraction(0)),
    ):
        with pytest.raises(PlanError, match="a rate lies between"):
            sampled_epsilon(rho=Fraction(0), steps=1, rate=rate, multiplier=multiplier, delta=DELTA)


def test_the_sum_is_that_of_the_docstring() -> None:
    """Term by term in doubles."""
    q, s, order = 0.3, 2.0, 5
    terms = [
        comb(order, i) * (1 - q) ** (order - i) * q**i * exp(i * (i - 1) / (2 * s * s))
        for i in range(order + 1)
    ]
    found = float(sampled_divergence(order, rate=Fraction(3, 10), multiplier=Fraction(2)).mid())
    assert found == pytest.approx(log(sum(terms)) / (order - 1), rel=1e-12)
