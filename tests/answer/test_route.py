"""An ask knows its own way: one choice, from public words, and everything else follows from it."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from reticent.answer.copies import CopiesRoute
from reticent.answer.correlation import CorrelationRoute
from reticent.answer.donors import DonorsRoute
from reticent.answer.parts import HiddenScale, is_as_planned
from reticent.answer.route import route_of
from reticent.answer.route_weighted import WeightedRoute
from reticent.answer.statistic import PublicRoute, Statistic
from reticent.answer.value_ladder import LengthRoute
from reticent.engine.open import Nobody
from reticent.engine.wants import Ring
from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.plan.statistics import claim_of, claim_of_parts
from reticent.query.base import RowQuery, Subpopulation
from reticent.query.filled import check
from reticent.query.kinds import KINDS
from reticent.release import run
from reticent.release.run import try_plan
from reticent.release.statistics import ran_as_planned
from reticent.schema import Schema
from tests.answer import test_bars as donors
from tests.answer.weighing import weighted_plan
from tests.release import test_model_copies as copies
from tests.tables import ADD, REPLACE, answers_of, every_plan, make_plan

BARS = {place: "0.5" for place in range(len(donors.KINDS))}


def plans(change: str) -> dict[str, Plan]:
    """The four ways, with intervals bought wherever one can be."""
    return {
        "public": every_plan(change=change),
        "correlation": make_plan([{"correlation": ["age", "pay"]}], change=change),
        "donors": donors.plan_of(donors.KINDS, BARS, epsilon="2", change=change),
        "known totals": weighted_plan(change=change),
        "copies": copies.plan_of(change=change),
    }


@pytest.fixture(scope="module", params=[ADD, REPLACE])
def ran(request) -> list[tuple[Plan, dict[str, Any]]]:
    """Every plan with what it measures on nobody: the number of calls, their prices and their noise are the plan's."""
    return [(plan, answers_of(run.run_plan(plan, Nobody(), None))) for plan in plans(request.param).values()]


def test_a_route_measures_exactly_its_parts(ran):
    """Names, noises and prices in this order; a bound may be smaller than planned, never larger."""
    for plan, answers in ran:
        for route in plan.routes:
            found = answers[route.statistic.name].parts
            assert is_as_planned(found, route.parts)
            assert [type(part) for part in found] == [type(part) for part in route.parts]
            bounds = [
                (a, b) for a, b in zip(found, route.parts, strict=True) if not isinstance(b, HiddenScale)
            ]
            assert all(a.bound <= b.bound for a, b in bounds)


def test_parts_add_up_to_the_price_and_the_claims_agree(ran):
    """Planned from public numbers and added up from what was run: the same epsilon, and the same theorems."""
    for plan, answers in ran:
        claims = iter(plan.claims[len(plan.models) :])
        for route in plan.routes:
            ask = route.statistic
            assert sum((part.epsilon for part in route.parts), Fraction(0)) == route.epsilon
            assert route.epsilon == ask.epsilon + ask.bar
            claim = claim_of(route, plan.change)
            assert claim == claim_of_parts(route, answers[ask.name].parts, plan.change)
            assert (claim is None) == (not route.parts)
            assert claim is None or claim == next(claims)
        assert next(claims, None) is None


def test_the_way_is_chosen_from_public_words():
    """Donors and copies only where an ask rests on a filled column; known totals where the ask says so."""
    made = plans(ADD)
    others = DonorsRoute | CopiesRoute | WeightedRoute
    assert not any(isinstance(route, others) for route in made["public"].routes)
    assert all(isinstance(route, WeightedRoute) for route in made["known totals"].routes)
    kinds = [type(route) for route in made["donors"].routes]
    assert kinds == [DonorsRoute] * 6 + [CorrelationRoute]
    kinds = [type(route) for route in made["copies"].routes]
    assert kinds[:4] == [CopiesRoute] * 4 and CopiesRoute not in kinds[4:]
    plain = donors.plan_of([{"mean": "z"}, {"correlation": ["y", "z"]}], {})
    assert isinstance(plain.routes[0], PublicRoute)
    rings = [[want for want in route.aggregates if isinstance(want, Ring)] for route in plain.routes]
    assert rings[0] == [] and rings[1]


@pytest.mark.parametrize("field", ["what", "mechanism", "epsilon", "proof"])
def test_what_was_planned_otherwise_than_it_ran_is_seen(field):
    """Each word of a measurement counts, and so does a measurement more or less; a smaller bound is as planned."""
    plan = every_plan()
    answers = answers_of(run.run_plan(plan, Nobody(), None))
    count, top = answers["ask 6"].parts

    def holds(*parts: Any) -> bool:
        return ran_as_planned(plan, {**answers, "ask 6": replace(answers["ask 6"], parts=parts)})

    other = Fraction(1, 7) if field == "epsilon" else "another"
    assert holds(count, top) and holds(replace(count, bound=count.bound / 2), top)
    assert not holds(replace(count, **{field: other}), top)
    assert not holds(top) and not holds(count, count, top) and not holds(top, count)
    assert not holds(replace(count, epsilon=top.epsilon), replace(top, epsilon=count.epsilon))


def test_a_run_is_compared_with_its_plan(monkeypatch):
    """Where prices add up and a measurement is another than planned, a plan is refused before anything is charged."""
    plan = make_plan([{"count": "*"}])
    naive = type(plan.routes[0])
    honest = naive.measured

    def relabelled(self, context):
        made = honest(self, context)
        return replace(made, parts=tuple(replace(part, what="something else") for part in made.parts))

    try_plan(plan)
    monkeypatch.setattr(naive, "measured", relabelled)
    with pytest.raises(PlanError, match="would run otherwise"):
        try_plan(plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(RowQuery):
    """A kind that nobody has proved anything of, and that says as little as a kind can."""

    column: str

    @property
    def values(self) -> frozenset[str]:
        return frozenset({self.column})

    def words(self, schema: Schema) -> str:
        return "mode"


def test_a_kind_that_says_nothing_is_refused_where_donors_fill_its_column():
    """To forget a word must not let donors' answers through with noise of public scale."""
    plan = donors.plan_of([{"count": "*"}], {})
    for column, is_filled in (("y", True), ("z", False)):
        query = Mode(column=column, among=Subpopulation())
        if is_filled:
            with pytest.raises(PlanError, match="no theorem bounds this"):
                check(query, plan.schema, plan.repair)
        else:
            check(query, plan.schema, plan.repair)
        asked = Statistic(name="mode", query=query, epsilon=Fraction(1), written={})
        with pytest.raises(TypeError, match="no route"):
            route_of(asked, plan.setting)


def test_kinds_without_a_shape_are_refused_where_donors_fill_and_where_totals_are_known():
    with pytest.raises(PlanError, match="filled by donors"):
        donors.plan_of([{"table": ["g", "y"], "bins": {"y": [0, 5, 10]}}], {})
    (route,) = donors.plan_of([{"median": "y", "step": "1"}], {}).routes
    assert isinstance(route, LengthRoute)  # a bound of its own
    for query in ({"median": "pay", "step": "10"}, {"variance": "pay"}, {"correlation": ["age", "pay"]}):
        with pytest.raises(PlanError, match="weighted to known totals"):
            weighted_plan(queries=[{**query, "weight": "poststratified"}], asks={})


def test_every_kind_has_its_keys_and_no_key_is_two_kinds():
    keys = [key for kind in KINDS for key in kind.KEYS]
    assert len(keys) == len(set(keys)) and all(kind.KEYS for kind in KINDS)


def test_what_is_expected_speaks_of_what_is_published():
    """A third of a survey, by lot: its counts are multiplied by three, and so is the noise to expect, donors or not."""
    query = [{"count": "*", "where": "y > 4"}, {"mean": "z"}]
    third = {"partition": {"name": "thirds", "pieces": 3, "piece": 1}, "expect": {"rows": 90}}
    for repair in (donors.DONORS, []):
        whole = donors.plan_of(query, {}, repair=repair, expect={"rows": 30})
        piece = donors.plan_of(query, {}, repair=repair, **third)
        (count, mean), (of_whole, mean_of_whole) = (
            [route.expect() for route in plan.routes] for plan in (piece, whole)
        )
        assert float(count.margin) == pytest.approx(3 * float(of_whole.margin))
        assert [each.sd for each in count.assumed] == pytest.approx(
            [3 * each.sd for each in of_whole.assumed]
        )
        assert mean.margin == mean_of_whole.margin


def test_the_epsilon_for_a_target_is_that_of_the_number_itself():
    """What an interval over copies is bought with does not enter the noise of the number."""
    expected = {"expect": {"value": "100", "size": 200}}
    bought, plain = (
        copies.plan_of(queries=[{"mean": "y"}], asks={0: {**expected, **bar}}) for bar in (copies.BARS[0], {})
    )
    assert bought.routes[0].epsilon_for(0.05) == plain.routes[0].epsilon_for(0.05) > 0
