"""Total intervals of quantiles: no respondent moves a call further than it may, and ranks are moved as Woodruff says."""

from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from reticent.answer.woodruff import RankError, end_budgets, joint_shift
from reticent.plan.plan import Plan
from reticent.refine.total import DesignFactor, SampleSize
from reticent.release.statistics import evaluate_sampled
from tests.answer.test_domains import SMALL, changes, lost
from tests.doubles import ZeroNoise
from tests.tables import ADD, REPLACE, book, make_plan, plain_tallies

QUERIES: list[dict[str, Any]] = [
    {"median": "age", "step": "1"},
    {"quantile": "pay", "at": "0.25", "step": "1", "by": ["sex"]},
]
BARS: dict[int, dict[str, Any]] = {n: {"interval": {"level": "0.9", "epsilon": "0.5"}} for n in range(2)}
DESIGN = {"design": {"design_effect": "2"}}


def planned(change: str, records: int, *, in_rho: bool = False) -> Plan:
    codebook = book(SMALL, unit="who", at_most=records) if records > 1 else book(SMALL)
    asks = {n: {"interval": {"level": "0.9", "rho": "0.5"}} for n in BARS} if in_rho else BARS
    return make_plan(QUERIES, codebook, change=change, asks=asks, in_rho=in_rho, **DESIGN)


@pytest.mark.parametrize("in_rho", [False, True], ids=["epsilon", "rho"])
@pytest.mark.parametrize(("change", "records"), [(ADD, 1), (REPLACE, 1), (ADD, 2)], ids=str)
def test_a_quantile_and_both_intervals_lose_no_more_than_their_budgets(change, records, in_rho):
    """Every neighbour of small tables, along one transcript: the choice, four ends and the size, by domain and not."""
    plan = planned(change, records, in_rho=in_rho)
    assert [part.what for part in plan.routes[0].parts][3] == "size of the subpopulation"
    assert all(len(route.parts) == 6 for route in plan.routes)
    allowed = {route.statistic.name: route.epsilon for route in plan.routes}
    for one, other in changes(change, records):
        for a, b in ((one, other), (other, one)):
            assert all(loss <= allowed[name] for name, loss in lost(plan, a, b).items())


def test_without_noise_the_ends_are_those_of_woodruff():
    """A thousand answers 0, 1, ..., 999: the ranks of a median are moved by 1.96 deft sqrt(n/4), and by the slack."""
    column = {"x": {"kind": "integer", "bounds": [0, 999]}}
    asks: dict[int, dict[str, Any]] = {0: {"epsilon": "100", "interval": {"level": "0.95", "epsilon": "800"}}}
    plan = make_plan([{"median": "x", "step": "1"}], book(column), asks=asks, **DESIGN)
    tallies = plain_tallies(plan, [{"x": n} for n in range(1000)])
    made = evaluate_sampled(plan, tallies, ZeroNoise())
    (estimate,) = made.answers["ask 0"].estimates
    low, high = estimate.total(Fraction(95, 100))  # type: ignore[misc]
    far = 1.959964 * sqrt(2) * sqrt(1000 / 4)
    assert abs(float(low) - (499.5 - far)) <= 3
    assert abs(float(high) - (499.5 + far)) <= 3
    privacy = estimate.interval(Fraction(95, 100))
    assert low < privacy[0] <= privacy[1] < high


def test_a_quantile_without_a_known_design_has_no_total_and_pays_for_none():
    plain = make_plan(QUERIES, book(SMALL), asks=BARS)
    assert all(len(route.parts) == 3 for route in plain.routes)
    weighted = make_plan([{**QUERIES[0], "weight": "w"}], book(SMALL), asks=BARS, **DESIGN)
    assert len(weighted.routes[0].parts) == 3, "what a weight stands for in respondents is not known"


def test_a_quantile_of_a_small_domain_has_ranks_of_that_domain():
    """Weight 40 of 400 that stands for 100 respondents: 10 of them, so ranks move by 40 t deft sqrt(p(1-p)/10)."""
    factor = DesignFactor(deft=2.0)
    size = SampleSize(respondents=100, weights={"w": 400.0})
    found = RankError(factor=factor, size=size, weight="w").reach(Fraction(1, 4), 40.0, Fraction(95, 100))
    assert found == pytest.approx(40 * 1.959964 * 2 * sqrt(0.1875 / 10), rel=1e-6)
    assert RankError(factor=factor, size=size).reach(Fraction(1, 4), 40.0, Fraction(95, 100)) < found


def test_the_budgets_of_an_interval_add_up():
    both, one = end_budgets(Fraction(1), has_total=True), end_budgets(Fraction(1), has_total=False)
    assert 4 * both.end + both.size == 2 * one.end == 1
    assert joint_shift(3, 4.0) == 5 and joint_shift(3, 0.0) == 3
