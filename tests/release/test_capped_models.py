"""Capped donors beside released models: a line or means that stand in where no donor had room, and predictors that donors fill."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import Rows, Sum
from reticent.errors import PlanError
from reticent.noise.bits import SystemBits
from reticent.plan.plan import Plan
from reticent.prepare.repair import CappedDonors, Default, MatchLevel, RegressionLine, Repair, Term
from reticent.release.models import fit_models
from reticent.release.run import try_plan
from reticent.release.statistics import evaluate, wants_of
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.donors import served
from tests.answer.test_capped import COLUMNS, World, neighbours, people
from tests.answer.test_imputed import Prescribed
from tests.tables import ADD, arrow, book, make_plan

DONORS: dict[str, Any] = {
    "method": "donors",
    "column": "z",
    "match": [{"on": ["g"], "serve": 1}],
    "donors": 2,
}
LINE = {"method": "regression", "column": "y", "from": ["z"], "epsilon": "1"}
UNIT = 1 << 32


def plan_of(*imputed: dict[str, Any], queries: list[dict[str, Any]] | None = None) -> Plan:
    return make_plan(queries or [{"mean": "z"}], book(COLUMNS), repair=list(imputed), epsilon="2")


def fixed(plan: Plan, intercept: int, slope: int, column: str = "y", on: str = "z") -> Repair:
    """The repair with a line that was released: intercept + slope x code, in steps of the grid."""
    known, other = plan.schema.coded[column], plan.schema.coded[on]
    term = Term(column=on, slope=slope * UNIT, low=other.low, high=other.high, gap=other.low)
    base = (intercept + slope * other.low) * UNIT + UNIT // 2
    line = RegressionLine(column=column, low=known.low, high=known.high, base=base, terms=(term,))
    return replace(plan.repair, lines=(line,))


def test_a_default_that_is_released_is_bought_and_said():
    line = plan_of({**DONORS, "default": {"line": ["u", "g"], "epsilon": "0.5"}})
    (model,) = line.models
    assert model.stands_in and model.predictors == ("u", "g") and model.donees == 0
    assert line.cost == Fraction(5, 2) and line.claims[0].epsilon == Fraction(1, 2)
    assert "what a released model makes of u and g stood in" in line.repair_words[0]
    assert line.repair_words[1].startswith("left by donors, z was filled from a private line on u and g")
    mean = plan_of({**DONORS, "default": {"mean": "u", "epsilon": "0.5"}})
    assert mean.models[0].predictors == ("u",)
    level = plan_of({**DONORS, "column": "s", "default": {"mean": "u", "epsilon": "0.5"}})
    assert not level.models[0].draws and level.models[0].predictors == ("u",)
    for plan in (line, mean, level):
        try_plan(plan)


def test_means_of_an_ordinal_attribute_are_those_of_its_levels():
    """Formerly they lay on a line through its codes, which is what `line` is for."""
    columns = {**COLUMNS, "deg": {"kind": "ordinal", "levels": ["low", "mid", "high"]}}
    found = []
    for default in ({"mean": "deg"}, {"line": ["deg"]}):
        repair = [{**DONORS, "default": {**default, "epsilon": "0.5"}}]
        (model,) = make_plan([{"mean": "z"}], book(columns), repair=repair, epsilon="2").models
        found.append([(each.column, each.level) for each in model.features])
    assert found == [[("deg", 1), ("deg", 2)], [("deg", None)]]


REFUSED = {
    "a filled predictor": ({"line": ["z"], "epsilon": "1"}, "names z again|chain"),
    "nothing": ({"mean": "u", "line": ["u"], "epsilon": "1"}, "write mean or line"),
    "no price": ({"mean": "u"}, "epsilon"),
    "means of a number": ({"mean": "y", "epsilon": "1"}, "levels of a category"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_defaults_that_cannot_be_released_are_refused(name: str):
    default, words = REFUSED[name]
    with pytest.raises(PlanError, match=words):
        plan_of({**DONORS, "default": default})


def test_a_line_stands_in_for_those_whom_nobody_serves():
    """Without donors everybody is left to the line, of their own answers; served ones keep their donor's answer."""
    plan = plan_of({**DONORS, "default": {"line": ["u"], "epsilon": "1"}})
    repair = fixed(plan, intercept=0, slope=2, column="z", on="u")
    silent = [{**row, "z": None, "u": "in" if i % 2 else "out"} for i, row in enumerate(people(1, 8))]
    total, count = Sum(rows=Rows(), value="z", power=1), Sum(rows=Rows(answered=("z",)))
    engine = DuckDBEngine(open_frame(arrow(silent, plan.schema)), threads=1)
    found = engine.tally(plan.schema, [total, count], repair)
    assert found.statistics[count] == 8 and found.statistics[total] == 4 * 2
    one = [{**silent[0], "z": 1, "g": "a"}, {**silent[1], "g": "a"}, {**silent[2], "g": "b"}]
    engine = DuckDBEngine(open_frame(arrow(one, plan.schema)), threads=1)
    table = engine.filled(plan.schema, repair)
    assert table["z"].to_pylist() == [1, 1, 2] and table["z_filled"].to_pylist() == [False, True, True]


# covers T08
def test_a_released_default_moves_nobody_else():
    """Every neighbour, the line given: the bound is that of a public default."""
    plan = plan_of(
        {**DONORS, "default": {"line": ["u"], "epsilon": "1"}},
        queries=[{"total": "z"}, {"count": "*", "where": "z > 0"}],
    )
    worst = _moved(plan, fixed(plan, 0, 2, column="z", on="u"))
    assert 0 < worst <= 1


def _moved(plan: Plan, repair: Repair, seeds: tuple[int, ...] = (1, 2, 3)) -> Fraction:
    world, most = World(plan), Fraction(0)

    def calls(rows: Any) -> Any:
        world.engine._source = open_frame(arrow(rows, plan.schema))
        noise = Prescribed(2)
        evaluate(plan, world.engine.tally(plan.schema, wants_of(plan), repair), noise)
        return noise.calls

    for seed in seeds:
        rows = people(seed, 9)
        here = calls(rows)
        for other in neighbours(rows, [], ADD, owners=False):
            for a, b in zip(here, calls(other), strict=True):
                most = max(most, Fraction(a.distance(b), a.sensitivity))
    return most


def test_what_is_predicted_from_filled_columns_is_bounded_too(monkeypatch: pytest.MonkeyPatch):
    """A donee's prediction moves with its predictor. The twin that forgets it is found out."""
    queries = [{"total": "y"}, {"count": "*", "where": "y > 0"}]
    plan = plan_of({**DONORS, "match": [{"on": [], "serve": 2}]}, LINE, queries=queries)
    assert plan.repair.filled() == {"z", "y"} and served(plan.repair, ["y"]) == 2
    (model,) = plan.models
    assert (model.donees, model.rings) == (2, 2)
    assert model.neighbours(Neighbours()) == Neighbours(replaced=True, records=3 * 2)
    assert ("capped rings", "proofs/engine/capped.md") in model.claim(plan.change).rests_on
    assert plan.routes[0].parts[0].bound == 3 + 4 * 2
    repair = fixed(plan, -1, 2)
    assert 0 < _moved(plan, repair) <= 1
    monkeypatch.setattr(Repair, "reach", lambda self, group: frozenset(group.columns))
    naive = plan_of({**DONORS, "match": [{"on": [], "serve": 2}]}, LINE, queries=queries)
    assert _moved(naive, repair, seeds=tuple(range(1, 7))) > 1


def test_a_model_is_fitted_to_the_completions_of_all_rings():
    plan = plan_of(DONORS, LINE)
    engine = DuckDBEngine(open_frame(arrow(people(2, 40), plan.schema)), threads=1)
    noise = Prescribed(0)
    made = fit_models(plan, engine, None, noise=noise, bits=SystemBits())
    assert made.claims(plan) == [plan.models[0].claim(plan.change)]
    assert made.repair.lines and made.repair.capped
    try_plan(plan)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(PlanError, match="that of z is made of y, which donors fill or decide"):
        plan_of({**DONORS, "default": {"line": ["y"], "epsilon": "1"}}, LINE)
    with pytest.raises(PlanError, match="z is matched on y, which is imputed itself"):
        plan_of({**DONORS, "match": ["y"]}, LINE)
    with pytest.raises(PlanError, match="filled by donors and by a model"):
        plan_of(DONORS, {**LINE, "column": "z", "from": ["y"]})
    with pytest.raises(PlanError, match="draws about a model"):
        plan_of(DONORS, {**LINE, "fill": "drawn"})
    with pytest.raises(PlanError, match="nearest donors and models"):
        plan_of({"method": "donors", "bound": "hubs", "column": "z", "match": ["g"]}, LINE)
    with pytest.raises(PlanError, match="draws about a line"):
        Repair(
            capped=(
                CappedDonors(
                    columns=("z",), levels=(MatchLevel(),), defaults=(Default(code=0, looks=("u",)),)
                ),
            ),
            lines=(
                RegressionLine(column="y", low=-1, high=3, base=0, terms=(), draw=lambda n: None),  # type: ignore[arg-type,return-value]
            ),
        )
