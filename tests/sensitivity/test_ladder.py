"""Smooth bounds from ladders: printed vectors, the algebra, legal stops, and all small data sets by brute force."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.sensitivity import bounds as lad
from reticent.sensitivity.bounds import SLACK, Ladder, LadderLine, smooth_bound

ONE = Fraction(1)


def nine(ladder, beta):
    """The bound at the ideal beta: the slack given away for rounding is added back first."""
    return f"{float(smooth_bound(ladder, beta + SLACK).bound):.9f}"


def test_donor_vectors():
    """THEORY 3.5, U_k = 1 + V_k with V = 3,6,7,8,... and 6,7,8,9,..."""
    first = lad.listed([Fraction(4)], line=LadderLine(base=Fraction(6), slope=ONE))
    second = lad.straight(base=Fraction(7), slope=ONE)
    betas = [Fraction(1, 6), Fraction(1, 8), Fraction(1, 10)]
    assert [nine(first, b) for b in betas] == ["5.925372074", "6.230406265", "6.703200460"]
    assert [nine(second, b) for b in betas] == ["7.000000000", "7.059975221", "7.408182207"]
    with ctx.workprec(100):
        drift = ball(smooth_bound(second, betas[0]).bound) / ball(smooth_bound(first, betas[0]).bound)
        assert drift <= ball(betas[0]).exp() and drift > ball(betas[0]).exp() * (1 - 1e-9)  # attained


def test_vectors_without_recipients():
    nobody = lad.straight(base=ONE, slope=ONE)
    printed = {6: "2.607589251", 8: "3.334896157", 10: "4.065696597", 60: "22.443728676"}
    assert {n: nine(nobody, Fraction(1, n)) for n in printed} == printed


def test_vectors_of_naive_model_imputation():
    """THEORY 7.2, U_k = n_mis + 1 + k."""
    printed = {0: "2.607589251", 3: "4.299187863", 10: "11.000000000", 100: "101.000000000"}
    assert {n: nine(lad.straight(base=n + ONE, slope=ONE), Fraction(1, 6)) for n in printed} == printed


@settings(max_examples=50, deadline=None)
@given(base=st.integers(1, 300), n=st.integers(2, 200))
def test_bound_is_above_the_ideal_one_by_less_than_the_slack_allows(base, n):
    """Against the maximum over 3,000 rungs at 200 bits: S <= S~ <= (1 + 2^-35) S at beta - 2^-34."""
    beta = Fraction(1, n)
    ours = smooth_bound(lad.straight(base=Fraction(base), slope=ONE), beta).bound
    with ctx.workprec(200):
        best = max(range(3000), key=lambda k: float(ball(-beta * k).exp()) * (base + k))
        ideal = max(ball(-(beta - SLACK) * k).exp() * (base + k) for k in (max(best - 1, 0), best, best + 1))
        assert ideal <= ball(ours) <= ideal * (1 + ball(Fraction(1, 2**35)))


def test_stopping_at_saturation_is_what_the_lines_forbid():
    """Rungs flat for a while, then rising: a search that stops where they stop growing is low."""
    plateau = lad.listed([ONE] * 30, line=LadderLine(base=Fraction(10), slope=ONE))
    assert smooth_bound(plateau, Fraction(1, 60)).bound > 20


def test_a_line_that_still_rises_stops_nothing():
    """U_k = k: the line is at 0 to begin with, and the bound is the peak of k e^(-k/8), 8/e at k = 8."""
    assert nine(lad.straight(base=Fraction(0), slope=ONE), Fraction(1, 8)) == "2.943035529"


def test_search_evaluates_no_rung_it_need_not():
    asked = []

    def rung(k):
        asked.append(k)
        return Fraction(5)

    smooth_bound(Ladder(rung=rung, lines=(LadderLine(base=Fraction(5)),)), Fraction(1, 10))
    assert asked == [0, 1] or asked == [0]


@st.composite
def ladders(draw):
    """A few rungs, then a line above them."""
    rungs = draw(st.lists(st.integers(0, 40), max_size=6))
    slope = draw(st.integers(0, 5))
    base = max([draw(st.integers(1, 20)), *(u - slope * k for k, u in enumerate(rungs))])
    return lad.listed(
        [Fraction(u) for u in rungs], line=LadderLine(base=Fraction(base), slope=Fraction(slope))
    )


@settings(max_examples=80, deadline=None)
@given(one=ladders(), other=ladders(), start=st.integers(0, 8))
def test_algebra_works_rung_by_rung_and_its_lines_lie_above(one, other, start):
    u, w = one.rung, other.rung
    above = lad.greatest(one, other)
    for made, meant in (
        (lad.least(one, other), lambda k: min(u(k), w(k))),
        (above, lambda k: max(u(k), w(k))),
        (lad.total(one, other), lambda k: u(k) + w(k)),
        (one.scaled(Fraction(7, 3)), lambda k: u(k) * 7 / 3),
        (lad.mixture(one, above, start=start), lambda k: u(k) if k < start else max(u(k), w(k))),
    ):
        assert made.lines and all(made.rung(k) == meant(k) for k in range(60))
        assert all(line.at(k) >= meant(k) for line in made.lines for k in range(60))
        ideal = max(math.exp(-0.3 * k) * meant(k) for k in range(200))
        assert math.isclose(smooth_bound(made, Fraction(3, 10)).bound, ideal, rel_tol=1e-8)


def test_ladder_without_a_line_and_beta_without_room_are_refused():
    doubling = Ladder(rung=lambda k: Fraction(2**k))
    with pytest.raises(PlanError):
        smooth_bound(doubling, ONE)
    for beta in (SLACK, Fraction(0), Fraction(-1), 0.1):
        with pytest.raises(PlanError):
            smooth_bound(lad.constant(ONE), beta)


def test_nothing_moves_still_gives_a_positive_bound_and_an_end():
    flat = Ladder(rung=lambda k: Fraction(0), lines=(LadderLine(base=ONE, slope=ONE),))
    assert 0 < smooth_bound(flat, Fraction(1, 4)).bound < Fraction(1, 2**60)


def test_bound_keeps_its_value_out_of_sight():
    assert "101" not in repr(smooth_bound(lad.constant(Fraction(101)), ONE))
    assert "101" not in repr(lad.constant(Fraction(101)))


def test_a_line_that_falls_is_no_line():
    with pytest.raises(ValueError, match="does not fall"):
        LadderLine(base=ONE, slope=Fraction(-1))


# ---- covers T19: every data set of 5 values out of 5, with and without missing values ----

WHOLE, HOLED = (0, 1, 2, 3, 4), (None, 0, 1, 2, 3)
TOP = 4
BETAS = [Fraction("0.05"), Fraction("0.3"), Fraction(1)]


def observed(data):
    return sorted(x for x in data if x is not None)


def holes(data):
    return sum(x is None for x in data)


def median(data):
    """Lower median of the observed values, 0 when there is none."""
    x = observed(data)
    return x[(len(x) - 1) // 2] if x else 0


def filled(data):
    return [median(data) if x is None else x for x in data]


def window(data):
    """U_k = x_(i+k+1) - x_(i-k-1) about the median's place i, 0 below the sample and TOP above it."""
    x = observed(data)
    i = (len(x) - 1) // 2

    def at(j):
        return 0 if j < 0 else TOP if j >= len(x) else x[j]

    return Ladder(
        rung=lambda k: Fraction(at(i + k + 1) - at(i - k - 1)), lines=(LadderLine(base=Fraction(TOP)),)
    )


def refill(data):
    """One respondent can move every filled cell and their own."""
    return lad.straight(base=holes(data) + ONE, slope=ONE)


def doubling(data):
    return Ladder(rung=lambda k: Fraction((holes(data) + 1) * 2**k))


STATISTICS = {
    "count": (lambda d: sum(x >= 2 for x in observed(d)), lambda d: lad.constant(ONE)),
    "sum": (lambda d: sum(observed(d)), lambda d: lad.constant(Fraction(TOP))),
    "median": (median, window),
    "count after filling": (
        lambda d: sum(x >= 2 for x in filled(d)),
        lambda d: lad.least(refill(d), doubling(d)),
    ),
    "sum after filling": (lambda d: sum(filled(d)), lambda d: refill(d).scaled(Fraction(TOP))),
    "sum plus median": (
        lambda d: sum(observed(d)) + median(d),
        lambda d: lad.total(lad.constant(Fraction(TOP)), window(d)),
    ),
    "greater": (median, lambda d: lad.greatest(window(d), lad.constant(ONE))),
    "mixture": (median, lambda d: lad.mixture(window(d), lad.constant(Fraction(TOP)), start=2)),
}


def data_sets(domain, size=5):
    return list(combinations_with_replacement(domain, size))


def neighbours(data, domain):
    key = domain.index
    longer = [tuple(sorted((*data, value), key=key)) for value in domain]
    shorter = [data[:i] + data[i + 1 :] for i in range(len(data))]
    return set(longer + shorter)


def local(query, data, domain):
    return max(abs(query(data) - query(other)) for other in neighbours(data, domain))


def rough_pairs(bound, domain, beta):
    """Neighbouring pairs, one of them of size 5, between which `bound` drifts by more than e^beta."""
    most = ball(beta).exp()
    return [
        (x, y)
        for x in data_sets(domain)
        for y in neighbours(x, domain)
        if not (bound(x) <= most * bound(y) and bound(y) <= most * bound(x))
    ]


# covers T19
@pytest.mark.parametrize("beta", BETAS, ids=str)
@pytest.mark.parametrize("domain", [WHOLE, HOLED], ids=["whole", "holed"])
@pytest.mark.parametrize("name", STATISTICS)
def test_bound_covers_local_sensitivity_and_drifts_by_at_most_e_beta(name, domain, beta):
    query, ladder = STATISTICS[name]
    assert len(data_sets(domain)) == 126

    @cache
    def bound(data):
        return ball(smooth_bound(ladder(data), beta).bound)

    assert all(bound(data) >= local(query, data, domain) for data in data_sets(domain))
    assert not rough_pairs(bound, domain, beta)


# covers T19
@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_the_naive_twin_is_caught(beta):
    """Local sensitivity in place of a smooth bound drifts too fast, for the median at every beta."""
    query, _ = STATISTICS["median"]
    assert rough_pairs(lambda data: ball(local(query, data, WHOLE)), WHOLE, beta)
    query, _ = STATISTICS["count after filling"]
    assert rough_pairs(lambda data: ball(local(query, data, HOLED)), HOLED, beta)


# covers T19
def test_bounds_forgotten_is_caught():
    """A window that leaves out the declared bounds beyond the sample is too small."""

    def unbounded(data):
        x = observed(data)
        i = (len(x) - 1) // 2
        return x[min(i + 1, len(x) - 1)] - x[max(i - 1, 0)]

    assert any(
        unbounded(data) < local(median, data, WHOLE) for data in data_sets(WHOLE, 1) + data_sets(WHOLE, 2)
    )


# covers T19
def test_the_first_rung_alone_is_caught():
    """Stopping after U_0 = n_mis + 1, because it covers, is not smooth."""
    assert rough_pairs(lambda data: ball(holes(data) + 1), HOLED, Fraction("0.05"))
