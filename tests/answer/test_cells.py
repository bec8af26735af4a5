"""Rates by state from one table: shares, ratios and differences of its cells, free of charge, with intervals that hold."""

from fractions import Fraction
from typing import Any

import pytest

from reticent.errors import PlanError
from reticent.noise.source import SystemNoise
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import Row, answer, arrow, book, make_plan, tally, visible

COLUMNS: dict[str, Any] = {
    "state": {"kind": "categorical", "levels": ["north", "south"]},
    "work": {"kind": "categorical", "levels": ["yes", "sought", "no"], "universe": "age >= 15"},
    "age": {"kind": "integer", "bounds": [0, 99]},
    "w": {"kind": "integer", "bounds": [0, 4], "role": "weight"},
}
TABLE = {"table": ["state", "work"]}
RATE = {"share": "ask 0", "of": {"work": "sought"}, "among": {"work": ["yes", "sought"]}}
PEOPLE: list[Row] = [
    {"state": state, "work": work, "age": age, "w": 2}
    for state, work, age, many in [
        ("north", "yes", 40, 30),
        ("north", "sought", 40, 10),
        ("north", "no", 40, 5),
        ("south", "yes", 40, 12),
        ("south", "sought", 40, 18),
        ("south", None, 40, 3),
        (None, "yes", 40, 2),
        ("north", None, 8, 7),
    ]
    for _ in range(many)
]


def plan_of(*queries: dict[str, Any], **options: Any):
    kept = [{k: v for k, v in query.items()} for query in queries]
    free = {
        i: {"epsilon": None}
        for i, q in enumerate(kept)
        if {"share", "cell_ratio", "cell_difference"} & set(q)
    }
    return make_plan(kept, book(COLUMNS), asks=free, **options)


def told(*queries: dict[str, Any], noise: Any = None) -> list[dict[str, float]]:
    """By the names of its cell, every estimate of the statistics after the table."""
    plan = plan_of(TABLE, *queries)
    answers = answer(plan, PEOPLE, noise or ZeroNoise())
    return [
        {
            "; ".join(level for _, level in each.cell): float(each.value)
            for each in answers[f"ask {i}"].estimates
        }
        for i in range(1, len(queries) + 1)
    ]


def test_an_unemployment_rate_by_state_is_that_of_the_table():
    (rates,) = told(RATE)
    assert rates == {"north": 0.25, "south": 0.6, "(missing)": 0.0}


def test_without_a_word_a_share_is_among_those_who_answered():
    (shares,) = told({"share": "ask 0", "of": {"work": ["yes"]}})
    assert shares["north"] == pytest.approx(30 / 45) and shares["south"] == pytest.approx(12 / 30)


def test_ratios_and_differences_of_cells():
    apart = {"of": {"state": "north", "work": "yes"}, "to": {"state": "south", "work": "yes"}}
    ratio, difference, by_work = told(
        {"cell_ratio": "ask 0", **apart},
        {"cell_difference": "ask 0", **apart},
        {"cell_difference": "ask 0", "of": {"state": "north"}, "to": {"state": "south"}},
    )
    assert ratio == {"": 2.5} and difference == {"": 18}
    assert by_work == {"yes": 18, "sought": -8, "no": 5, "(missing)": -3, "(not asked)": 7}


def test_a_count_by_domain_is_a_table_too():
    plan = make_plan(
        [{"count": "*", "by": ["work", "state"]}, RATE], book(COLUMNS), asks={1: {"epsilon": None}}
    )
    rates = {e.cell: float(e.value) for e in answer(plan, PEOPLE, ZeroNoise())["ask 1"].estimates}
    assert rates[(("state", "north"),)] == 0.25


def test_nothing_is_measured_and_nothing_paid():
    alone, both = plan_of(TABLE), plan_of(TABLE, RATE)
    assert both.claim.epsilon == alone.claim.epsilon
    assert wants_of(both) == wants_of(alone)
    noise = FrozenNoise()
    text = visible(both, answer(both, PEOPLE, noise)).decode()
    assert len(noise.calls) == 1 and "state = north" in text


def test_the_interval_covers_as_often_as_it_says():
    """60 tables of true noise at epsilon 0.5, level 0.9, two rates each: 0.8 or more covered (false alarm below 1e-3)."""
    plan = plan_of(TABLE, RATE, epsilon="0.5")
    tallies, truth = tally(plan, arrow(PEOPLE, plan.schema)), {"north": 0.25, "south": 0.6}
    held = narrow = 0
    for _ in range(60):
        for each in evaluate(plan, tallies, SystemNoise())["ask 1"].estimates:
            name = each.cell[0][1]
            if name in truth:
                low, high = each.interval(Fraction(9, 10))
                held += low <= truth[name] <= high
                narrow += high - low < 0.75
    assert held >= 0.8 * 120 and narrow > 60


REFUSED = [
    ({"share": "ask 0", "of": {"work": "sought"}, "among": {"work": "yes"}}, "not among"),
    ({"share": "ask 0", "of": {"town": "x"}}, "town"),
    ({"share": "ask 0", "of": {"age": "x"}}, "no column"),
    ({"share": "ask 0", "of": {"work": "sougt"}}, "did you mean 'sought'"),
    ({"share": "ask 0", "of": {}}, "which cells"),
    ({"share": "ask 0", "of": {"work": [1]}}, "in quotes"),
    ({"share": "ask 9", "of": {"work": "yes"}}, "no statistic"),
    ({"share": ["ask 0"], "of": {"work": "yes"}}, "text in quotes"),
    ({"cell_ratio": "ask 0", "of": {"work": "yes"}}, "which cells"),
    ({"cell_ratio": "ask 0", "of": {"work": "yes"}, "to": {"state": "north"}}, "both sides"),
    ({"cell_difference": "ask 0", "of": {"work": "yes"}, "to": {"work": ["yes", "no"]}}, "both sides"),
]


@pytest.mark.parametrize(("query", "words"), REFUSED, ids=str)
def test_cells_that_are_not_there_or_stand_twice_are_refused(query, words):
    with pytest.raises(PlanError, match=words):
        plan_of(TABLE, query)


def test_a_single_estimate_has_no_cells_and_a_price_is_refused():
    with pytest.raises(PlanError, match="tables of counts"):
        plan_of({"count": "*"}, {"share": "ask 0", "of": {"work": "yes"}})
    with pytest.raises(PlanError, match="costs nothing"):
        make_plan([TABLE, RATE], book(COLUMNS))


def test_cells_that_are_not_shown_are_not_counted():
    """A share among cells of which some are left out would be the share of something else."""
    table = {"count": "*", "by": ["sex", "pay"], "bins": {"pay": [-50, 0, 150]}, "show_missing": False}
    everyone = {"sex": ["f", "m", "x", "(missing)"]}
    for of, among in ((everyone, everyone), ({"pay": "0 to 150"}, {"sex": "f"})):
        query = {"share": "ask 0", "of": {"sex": "f", **of} if of is not everyone else of, "among": among}
        with pytest.raises(PlanError, match="does not show"):
            make_plan([table, query], asks={1: {"epsilon": None}})
        make_plan([{**table, "show_missing": True}, query], asks={1: {"epsilon": None}})
    make_plan([table, {"share": "ask 0", "of": {"sex": "f"}}], asks={1: {"epsilon": None}})
