"""Ordinal columns with positions: the statistics of the numbers that levels stand for, within their bounds."""

from fractions import Fraction
from statistics import variance
from typing import Any

import pytest

from reticent.errors import PlanError, SchemaError
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from reticent.schema.codebook import schema_from
from tests.answer.test_domains import lost
from tests.doubles import ZeroNoise
from tests.tables import ADD, REPLACE, Row, answer, book, make_plan, plain_tallies

COLUMNS: dict[str, Any] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "pay": {
        "kind": "ordinal",
        "levels": ["low", "mid", "high"],
        "bands": [0, 2, 6, 12],
        "positions": ["0.5", 4, 9],
    },
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
QUERIES: list[dict[str, Any]] = [
    {"mean": "pay"},
    {"total": "pay", "weight": "w"},
    {"variance": "pay"},
    {"median": "pay"},
    {"median": "pay", "step": "1", "weight": "w"},
    {"mean": "pay", "by": ["sex"], "weight": "w"},
    {"quantile": "pay", "at": "0.25", "step": "2", "by": ["sex"]},
]
BARS = {n: {"interval": {"epsilon": "0.5"}} for n in (4, 6)}
PEOPLE: list[Row] = [
    {"sex": sex, "pay": pay, "w": w}
    for sex, pay, w in [(0, 0, 2), (1, 2, 2), (0, 2, 1), (None, 1, 2), (1, None, 2), (0, 1, None)]
]


def planned(change: str = ADD) -> Plan:
    return make_plan(QUERIES, book(COLUMNS), change=change, asks=BARS)


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_no_neighbour_loses_more_than_the_budget(change):
    """All tables of two of six people, and everybody who comes, goes or answers otherwise."""
    plan = planned(change)
    allowed = {route.statistic.name: route.epsilon for route in plan.routes}
    most: dict[str, Fraction] = {}
    for rest in ([], PEOPLE[1:3], PEOPLE[:1]):
        for one in PEOPLE:
            for other in [[]] if change == ADD else [[each] for each in PEOPLE]:
                for a, b in (([*rest, one], [*rest, *other]), ([*rest, *other], [*rest, one])):
                    for name, loss in lost(plan, a, b).items():
                        most[name] = max(most.get(name, Fraction(0)), loss)
    assert all(most[name] <= allowed[name] for name in allowed)
    assert most["ask 1"] == 1, "attained"


def test_without_noise_they_are_those_of_the_positions():
    plan = planned()
    answers = evaluate(plan, plain_tallies(plan, PEOPLE), ZeroNoise())
    held = [Fraction(1, 2), Fraction(9), Fraction(9), Fraction(4), Fraction(4)]
    assert answers["ask 0"].estimates[0].value == sum(held) / 5
    assert answers["ask 1"].estimates[0].value == 2 * Fraction(1, 2) + 2 * 9 + 9 + 2 * 4
    assert float(answers["ask 2"].estimates[0].value) == pytest.approx(float(variance(held)), abs=0.3)
    assert answers["ask 3"].estimates[0].value == 4
    by_sex = {e.cell[0][1]: e.value for e in answers["ask 5"].estimates}
    assert by_sex["f"] == Fraction(2 * Fraction(1, 2) + 9, 3) and by_sex["m"] == 9


def test_a_banded_quantile_is_interpolated_in_its_band():
    """Ten in the first band of 2, ten in the second of 4: the quartile at 0.75 lies in the middle of the second, at 4."""
    rows: list[Row] = [{"sex": 0, "pay": n // 10, "w": 1} for n in range(20)]
    plan = make_plan([{"quantile": "pay", "at": "0.75", "step": "1"}], book(COLUMNS))
    found = evaluate(plan, plain_tallies(plan, rows), ZeroNoise())["ask 0"].estimates[0].value
    assert found in (Fraction(7, 2), Fraction(9, 2))
    assert "interpolated as if answers lay evenly within bands" in plan.asks[0].query.words(plan.schema)


def test_an_engine_gives_the_same_sums():
    """Through DuckDB, sums level by level are those of the positions."""
    plan = planned()
    rows = [
        {"sex": None if r["sex"] is None else "fm"[r["sex"]], "w": r["w"]}
        | {"pay": None if r["pay"] is None else ["low", "mid", "high"][r["pay"]]}
        for r in PEOPLE
    ]
    slow = evaluate(plan, plain_tallies(plan, PEOPLE), ZeroNoise())
    found = answer(plan, rows, ZeroNoise())
    for name, each in slow.items():
        assert [e.value for e in found[name].estimates] == [e.value for e in each.estimates]
    assert wants_of(plan)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"mean": "sex"}, "sex has levels without positions; declare them in the codebook"),
        ({"median": "pay", "step": "5"}, "a step that every band of pay is a multiple of"),
        ({"correlation": ["pay", "pay2"]}, "pay is not a number"),
    ],
)
def test_what_has_no_positions_is_refused(query, words):
    with pytest.raises(PlanError, match=words):
        make_plan([query], book(COLUMNS))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"bands": [0, 2, 6]}, "one edge more than levels"),
        ({"bands": [0, 6, 2, 12]}, "increasing edges"),
        ({"bands": [0, 2, 6, 12], "positions": [3, 4, 9]}, "outside its band"),
    ],
)
def test_bands_that_are_none_are_refused(keys, words):
    column = {"kind": "ordinal", "levels": ["low", "mid", "high"], **keys}
    with pytest.raises(SchemaError, match=words):
        schema_from({"survey": {"name": "s", "unit": "row"}, "columns": {"pay": column}})


def test_a_standard_error_of_its_own_is_refused_for_levels():
    unit = {"kind": "categorical", "role": "psu", "levels": ["1", "2", "3", "4"]}
    with pytest.raises(PlanError, match="not bought for an ordinal column"):
        make_plan([{"mean": "pay"}], book({**COLUMNS, "p": unit}), asks={0: {"sampling": {"epsilon": "1"}}})
