"""What else stands on columns that capped donors fill: tables that add up, domains that are filled, weights, regressions, and how many were left.

Every neighbour of small surveys, through the real engine; and twins of the bounds that must be found out.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from reticent.answer.add_up import answer_tables
from reticent.engine.open import Nobody
from reticent.errors import PlanError
from reticent.plan.models import ModelRepair
from reticent.plan.plan import Plan
from reticent.plan.regression import AskedRegression, Regressions
from reticent.plan.tables import AddUpTables
from reticent.release.models import ESTIMATORS, design_of, sums_of
from reticent.release.regression import wanted_of
from reticent.release.run import try_plan
from reticent.release.statistics import evaluate
from reticent.sensitivity.bounds import Neighbours
from tests.answer.test_capped import COLUMNS, EACH, TOGETHER, World, neighbours, people, plan_of
from tests.answer.test_imputed import Prescribed
from tests.doubles import Call
from tests.tables import ADD, REPLACE, book, make_plan

CROSSED: list[dict[str, Any]] = [
    {"count": "*", "by": ["s"]},
    {"mean": "z", "by": ["s"], "weight": "w"},
    {"total": "y", "by": ["s", "g"]},
    {"variance": "y", "by": ["s"]},
    {"median": "z", "step": "1", "by": ["s"]},
    {"proportion": "y > 0", "by": ["s"]},
]


def lost(here: list[Call], there: list[Call]) -> dict[Fraction, Fraction]:
    """What all domains together lose, for each of an ask's measurements."""
    assert [call.parameters for call in here] == [call.parameters for call in there]
    found: dict[Fraction, Fraction] = {}
    for a, b in zip(here, there, strict=True):
        found[a.epsilon] = found.get(a.epsilon, Fraction(0)) + Fraction(a.distance(b), a.sensitivity)
    return found


def worst(plan: Plan, change: str, seeds: tuple[int, ...] = (1,), owners: bool = False) -> Fraction:
    world, most = World(plan), Fraction(0)
    for seed in seeds:
        rows = people(seed, 9)
        here = world.calls(rows)
        for other in neighbours(rows, people(seed + 100, 40), change, owners=owners):
            most = max([most, *lost(here, world.calls(other)).values()])
    return most


# covers T08
@pytest.mark.parametrize(("repair", "change"), [(EACH, ADD), (TOGETHER, REPLACE)], ids=["each", "together"])
def test_domains_that_donors_fill_lose_no_more_than_one_epsilon(repair: list[Any], change: str):
    """THEORY 14.3: a recipient leaves one domain and enters another."""
    for query in CROSSED:
        twice = 2 if "variance" in query else 1  # two of its three measurements may share an epsilon
        assert worst(plan_of(repair, [query], change=change), change) <= twice


def test_crossing_counted_once_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """The twin: a recipient who changes domain as if it only left."""
    monkeypatch.setattr("reticent.sensitivity.donors._crosses", lambda roles: False)
    crowded = [{"method": "donors", "column": "s", "match": [{"on": [], "serve": 2}], "donors": 1}]
    assert worst(plan_of(crowded, [CROSSED[0]]), ADD, seeds=tuple(range(1, 9))) > 1


def test_nobody_is_told_of_as_missing_where_donors_fill():
    """Cells and domains that nobody can be in hold noise alone; the others are told as before, and all are measured."""
    asked: list[dict[str, Any]] = [
        {"table": ["s", "g"]},
        {"mean": "z", "by": ["s"]},
        {"count": "*", "by": ["g", "y"], "bins": {"y": [-1, 1, 3]}},
        {"table": ["g"], "where": "s = 'p'"},
        {"share": "ask 0", "of": {"s": "p"}},
    ]
    free = {"epsilon": None}
    world, rows = World(plan_of(TOGETHER, asked, asks={4: free})), people(2, 30)
    made = evaluate(world.plan, world.tallies(rows), Prescribed(2))
    found = [[dict(each.cell) for each in made[f"ask {i}"].estimates] for i in range(len(asked))]
    assert {each["s"] for each in (*found[0], *found[1])} == {"p", "q"}
    assert {each["y"] for each in found[2]} == {"-1 to under 1", "1 to 3", "(not asked)"}
    assert all({each["g"] for each in found[i]} == {"a", "b", "(missing)"} for i in (0, 2, 3, 4))
    as_answered = World(plan_of([], asked, asks={4: free}))
    assert len(as_answered.calls(rows)) == len(world.calls(rows))
    nobody = {"share": "ask 0", "of": {"s": "(missing)"}, "among": {"s": ["(missing)", "p"]}}
    with pytest.raises(PlanError, match="donors fill s, so nobody is there") as problem:
        plan_of(TOGETHER, [asked[0], nobody], asks={1: free})
    assert problem.value.field == "statistic[1].query"


class Tables(World):
    """Calls to the noise of `[[tables]]`."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        (product,) = (each for each in plan.products if isinstance(each, AddUpTables))
        (self.asked,) = product.tables
        self.wants = list(self.asked.wants(plan.schema, plan.neighbours))

    def calls(self, rows: Any) -> list[Call]:
        noise, plan = Prescribed(2), self.plan
        answer_tables(self.asked, self.tallies(rows), noise, schema=plan.schema, neighbours=plan.neighbours)
        return noise.calls


def tables_plan(repair: list[Any], change: str = ADD, **keys: Any) -> Plan:
    section = {"name": "t", "margins": [["s", "g"], ["u"]], "whole": False, **keys}
    more = {"in_rho": True} if "rho" in keys else {}
    return make_plan([], book(COLUMNS), change=change, repair=repair, tables=[section], **more)


def distances(plan: Plan, change: str, seeds: tuple[int, ...] = (1,)) -> Fraction:
    """The largest move of a table over its bound."""
    world, most = Tables(plan), Fraction(0)
    for seed in seeds:
        rows = people(seed, 10)
        here = world.calls(rows)
        for other in neighbours(rows, people(seed + 100, 40), change, owners=False):
            for a, b in zip(here, world.calls(other), strict=True):
                most = max(most, Fraction(a.distance(b)) / Fraction(a.sensitivity))
    return most


@pytest.mark.parametrize(
    ("change", "price"), [(ADD, {"rho": "0.1"}), (REPLACE, {"epsilon": "1"})], ids=["rho", "epsilon"]
)
def test_tables_that_add_up_move_no_farther_than_their_bound(change: str, price: dict[str, str]):
    """THEORY 11.3 (b): 1 + 2T over the cells, or sqrt((1+T)^2 + T^2) in length; what nobody fills keeps its own."""
    assert distances(tables_plan(TOGETHER, change, **price), change) <= 1


def test_bounds_of_tables_that_add_up():
    plan = tables_plan(TOGETHER, epsilon="1", add_up=False)  # tau is 2 + 1 for s, in three rings
    asked = Tables(plan).asked
    parts = asked.parts(plan.schema, plan.neighbours)
    assert [part.bound for part in parts] == [7, 1] and {part.unit for part in parts} == {Fraction(1, 3)}
    in_rho = Tables(tables_plan(TOGETHER, rho="0.1", add_up=False)).asked
    lengths = [float(part.bound) for part in in_rho.parts(plan.schema, plan.neighbours)]
    assert lengths == pytest.approx([5, 1], abs=1e-5)
    assert "missing values of s filled from donors" in asked.words()
    assert ("capped rings", "proofs/engine/capped.md") in asked.claim(plan.change, plan.schema).rests_on


def test_whole_tables_of_fractions_hold_the_truth():
    """Counts over three completions are fractions: an interval cut to whole numbers would lose them."""
    plan = tables_plan(TOGETHER, epsilon="1", whole=True)
    world = Tables(plan)
    rows = people(7, 60)
    tallies = world.tallies(rows)
    assert tallies.fractions is not None
    made = answer_tables(world.asked, tallies, Prescribed(0), schema=plan.schema, neighbours=plan.neighbours)
    (want, *_) = (each for each in world.wants if each.keys[0].column == "s")
    truth = [Fraction(cell, 3) for cell in tallies.fractions.tables[want].cells]
    assert any(each.denominator > 1 for each in truth)
    for line, exact in zip(made.margins[0], truth, strict=False):
        assert line.low <= exact <= line.high and line.low == int(line.low)


def lines_plan(repair: list[Any], change: str = ADD, **keys: Any) -> Plan:
    section = {"name": "line", "y": "y", "x": ["z", "g"], "epsilon": "1", **keys}
    return make_plan([], book(COLUMNS), change=change, repair=repair, regression=[section])


def line_of(plan: Plan) -> AskedRegression:
    (product,) = (each for each in plan.products if isinstance(each, Regressions))
    return product.lines[0]


class Lines(World):
    """Calls to the noise of one line over the completions of all rings."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.wants = [want for want in wanted_of(line_of(plan), plan.schema).values() if want]

    def calls(self, rows: Any) -> list[Call]:
        asked, noise, schema = line_of(self.plan), Prescribed(2), self.plan.schema
        tallies = self.tallies(rows)
        found = (tallies.fractions or tallies).statistics
        sums = sums_of(design_of(asked.model, schema), wanted_of(asked, schema), found)
        fitted_for = asked.neighbours(self.plan.neighbours)
        estimator = ESTIMATORS[asked.model.estimator]()
        estimator.fit(sums, epsilon=Fraction(1), neighbours=fitted_for, noise=noise)
        return noise.calls


def farthest(estimator: str, change: str, seeds: tuple[int, ...] = (1,)) -> Fraction:
    """The largest move of any measurement of a line over its bound, one transcript for all neighbours."""
    world, most = Lines(lines_plan(TOGETHER, change, estimator=estimator)), Fraction(0)
    for seed in seeds:
        rows = people(seed, 10)
        here = world.calls(rows)
        for other in neighbours(rows, people(seed + 100, 40), change, owners=False):
            for a, b in zip(here, world.calls(other), strict=True):
                assert a.parameters == b.parameters
                most = max(most, Fraction(a.distance(b)) / Fraction(a.sensitivity))
    return most


# covers T08
@pytest.mark.parametrize(
    ("estimator", "change"), [("centred", ADD), ("functional", REPLACE), ("privgene", ADD)]
)
def test_sums_of_a_regression_move_as_far_as_the_change_it_is_fitted_for(estimator: str, change: str):
    """Over the completions of all rings, through every call to the noise that each estimator makes."""
    assert 0 < farthest(estimator, change) <= 1


def test_a_regression_fitted_for_ones_own_row_alone_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """The twin: rows of others left out of the change that the line is fitted for."""
    plain = ModelRepair.neighbours
    monkeypatch.setattr(ModelRepair, "neighbours", lambda self, own: plain(replace(self, donees=0), own))
    assert farthest("centred", ADD, seeds=tuple(range(1, 7))) > 1


def test_what_a_regression_is_fitted_for():
    """Sums of products move as far for an exchanged row as for one that comes; other estimators count it twice."""
    asked = line_of(lines_plan(TOGETHER))
    assert (asked.donees, asked.model.rings) == (2 + 3, 3)
    assert asked.neighbours(Neighbours(records=2)) == Neighbours(replaced=True, records=2 * 6 * 3)
    other = line_of(lines_plan(TOGETHER, estimator="output"))
    assert other.neighbours(Neighbours()) == Neighbours(records=11 * 3)
    assert asked.neighbours(Neighbours(replaced=True)) == Neighbours(replaced=True, records=11 * 3)
    plain = line_of(lines_plan([]))
    assert plain.neighbours(Neighbours()) == Neighbours() and plain.donees == 0
    with pytest.raises(PlanError, match="nobody's is missing any more"):
        lines_plan(TOGETHER, where="s is missing")
    try_plan(lines_plan(TOGETHER))


WEIGHT = {
    "by": [{"column": "u", "missing": "in"}],
    "totals": [{"u": "in", "total": 500}, {"u": "out", "total": 100}],
    "factors": {"epsilon": "1"},
}


def test_weights_to_known_totals_go_with_capped_donors():
    """THEORY 14.5: every neighbour, with factors released before, and the largest weight they give."""
    queries = [
        {"mean": "z", "weight": "poststratified"},
        {"median": "z", "step": "1", "weight": "poststratified"},
        {"table": ["s"], "weight": "poststratified"},
        {"count": "*", "where": "s = 'p'", "weight": "poststratified", "by": ["g"]},
    ]
    plan = make_plan(queries, book(COLUMNS), repair=TOGETHER, weight=WEIGHT, epsilon="2")
    world = World(plan)
    assert plan.weight is not None and plan.weight.factors is not None and plan.weight.factors.rings == 3
    rows = people(1, 10)
    here = world.calls(rows)
    for other in neighbours(rows, [], ADD, owners=False):
        for a, b in zip(here, world.calls(other), strict=True):  # the same factors are prescribed
            assert a.parameters == b.parameters and a.distance(b) <= a.sensitivity
    try_plan(plan)


@pytest.mark.parametrize(
    "query",
    [
        {"count": "*", "where": "s = 'p'", "by": ["g"]},
        {"mean": "z", "by": ["g"]},
        {"median": "z", "step": "1", "by": ["g"]},
        {"mean": "y", "by": ["s"]},
    ],
    ids=["filled members", "filled values", "median", "a filled domain"],
)
def test_domains_of_filled_answers_with_released_factors_lose_no_more_than_one_epsilon(query: dict[str, Any]):
    """THEORY 14.2, 14.3 and 14.5 together: losses added up over domains, the factors given."""
    asked = {**query, "weight": "poststratified"}
    plan = make_plan([asked], book(COLUMNS), repair=TOGETHER, weight=WEIGHT, epsilon="2")
    assert 0 < worst(plan, ADD) <= 1
    try_plan(plan)


def test_weights_that_donors_would_move_are_refused():
    with pytest.raises(PlanError, match="factors = "):
        make_plan(
            [{"mean": "z", "weight": "poststratified"}],
            book(COLUMNS),
            repair=TOGETHER,
            weight={k: v for k, v in WEIGHT.items() if k != "factors"},
        )
    filled = {
        **WEIGHT,
        "by": [{"column": "s", "missing": "p"}],
        "totals": [{"s": "p", "total": 5}, {"s": "q", "total": 5}],
    }
    with pytest.raises(PlanError, match="factor would be that of another bin"):
        make_plan([{"mean": "z", "weight": "poststratified"}], book(COLUMNS), repair=TOGETHER, weight=filled)


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_the_number_of_unserved_moves_by_tau(change: str):
    """THEORY 11.3 (f)."""
    crowded = [{"method": "donors", "column": "y", "match": [{"on": [], "serve": 2}], "donors": 2}]
    plan = plan_of(crowded, [{"unserved": "y"}], change=change)
    (part,) = plan.routes[0].parts
    assert part.bound == (2 if change == ADD else 4) and part.unit == Fraction(1, 2)
    most = worst(plan, change, seeds=(1, 2))
    assert 0 < most <= 1


def test_the_number_of_unserved_is_that_of_the_default():
    """Against the definition: recipients whom the completed rows give the default, which nobody answers."""
    donors = {"method": "donors", "column": "z", "match": [{"on": ["g"], "serve": 1}], "donors": 1}
    plan = plan_of([donors], [{"unserved": "z"}, {"count": "*", "where": "z = 1"}])
    world, rows = World(plan), [row for row in people(4, 60)]
    tallies = world.tallies(rows)
    (count,) = tallies.statistics.sums.values()
    assert tallies.unserved["z"] == count > 0  # answers are 0 or 2, and 1 is the middle of the bounds
    with pytest.raises(PlanError, match="capped donors do not fill g"):
        try_plan(plan_of([donors], [{"unserved": "g"}]))
    with pytest.raises(PlanError, match="names a column that donors fill"):
        plan_of([donors], [{"unserved": "nobody"}])
    try_plan(plan)
    assert Nobody().tally(plan.schema, world.wants, plan.repair).unserved == {"z": 0}
