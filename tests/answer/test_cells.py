"""Rates by state from one table: shares, ratios and differences of its cells, free of charge, with intervals that hold."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.answer.cells import TwoSums
from reticent.answer.parts import CellBasis
from reticent.engine.wants import ContingencyTable, SufficientStatistics, Tallies
from reticent.errors import PlanError
from reticent.lab.noise import QuickNoise
from reticent.noise.source import SystemNoise
from reticent.refine.cell_ratio import CellSum
from reticent.refine.total import SampleSize
from reticent.release.document import document
from reticent.release.sampling import Sampled
from reticent.release.statistics import StatisticsResult, evaluate, wants_of
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


APART: dict[str, Any] = {"of": {"state": "north", "work": "yes"}, "to": {"state": "south", "work": "yes"}}
KINDS = {
    "share": RATE,
    "ratio": {"cell_ratio": "ask 0", **APART},
    "difference": {"cell_difference": "ask 0", **APART},
}
WEIGHTED = {**TABLE, "weight": "w"}


def totals(*queries: dict[str, Any], rows: list[Row] = PEOPLE, noise: Any = None, **options: Any):
    """The total intervals of the statistics after the table, and why there are none."""
    plan = plan_of(*queries, design={"design_effect": "1.5"}, **options)
    answers = answer(plan, rows, noise or ZeroNoise())
    made = document(plan, [StatisticsResult(plan=plan, answers=answers)], receipt=None, engine="")
    return made["statistics"][1:]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_cells_has_a_total_interval(kind: str):
    """Around its interval for privacy noise; without the number of respondents a difference has none, and says why."""
    (told,) = totals(TABLE, KINDS[kind], expect={"rows": 87})
    one = told["estimates"][0]
    assert "empty" not in told["total"]
    assert one["total_low"] < one["privacy_low"] and one["privacy_high"] < one["total_high"]
    (unsized,) = totals(TABLE, KINDS[kind])
    assert ("write rows under [expect]" in unsized["total"].get("empty", "")) == (kind == "difference")


def test_a_ratio_to_nobody_has_no_upper_end():
    """And no coefficient of variation: it is unreliable."""
    to_nobody = {"cell_ratio": "ask 0", "of": {"work": "yes"}, "to": {"work": "(not asked)"}}
    (told,) = totals(TABLE, to_nobody, expect={"rows": 87})
    south = next(each for each in told["estimates"] if each["cell"] == {"state": "south"})
    assert south["privacy_high"] is None and south["total_high"] is None and south["total_margin"] is None
    assert south["total_low"] is not None and south["reliability"] == "unreliable" and south["cv"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_weight_is_no_number_of_respondents(kind: str):
    """Twice the weight is no more respondents: the error of a rate is that of as many people, and needs the weight of all."""
    plain, weighted = (
        answer(plan_of(table, KINDS[kind], expect={"rows": 87}), PEOPLE, ZeroNoise())["ask 1"].estimates[0]
        for table in (TABLE, WEIGHTED)
    )
    known = SampleSize(respondents=87, weights={"w": 174.0})
    times = 4 if kind == "difference" else 1
    if kind == "ratio":
        plain, weighted = (each.carried[0] for each in (plain, weighted))
    assert weighted.sampling(known) == pytest.approx(times * plain.sampling(known))
    assert weighted.sampling(None) is None and plain.sampling(None) is not None
    (told,) = totals(WEIGHTED, KINDS[kind], expect={"rows": 87})
    assert "what its weight stands for" in told["total"]["empty"]
    assert told["estimates"][0]["total_low"] is None


def test_the_variance_of_a_difference_of_cells_is_that_of_a_multinomial_draw():
    """40,000 samples of 500: its standard error is 0.7 %, so six of them are allowed."""
    p = np.array([0.3, 0.1, 0.6])
    drawn = np.random.default_rng(1).multinomial(500, p, size=40_000)
    found = np.var(drawn[:, 0] - drawn[:, 1])
    sums = TwoSums(
        top=CellSum(value=150, cells=1),
        bottom=CellSum(value=50, cells=1),
        scale=1.0,
        step=Fraction(1),
        counted=CellBasis(rows=500),
    )
    assert sums.of_difference(None) == pytest.approx(found, rel=0.06)
    twice = replace(sums, counted=CellBasis(rows=500, wider=2.0))
    assert twice.of_difference(None) == pytest.approx(2 * sums.of_difference(None))
    assert twice.of_share(None) == pytest.approx(2 * sums.of_share(None))
    assert replace(sums, counted=CellBasis(rows=500, wider=None)).of_share(None) is None


@pytest.mark.parametrize("kind", ["ratio", "difference"])
def test_totals_of_ratios_and_differences_cover_the_population(kind: str):
    """400 simple random samples of 600 with noise at epsilon 1: 0.91 to 0.99 covered at 95 % (false alarm below 1e-3)."""
    plan = plan_of(TABLE, KINDS[kind], expect={"rows": 600}, design={"design_effect": "1"})
    (want,) = wants_of(plan)
    rng = np.random.default_rng(5)
    p = np.array([0.30, 0.05, 0.1, 0.02, 0.03, 0.15, 0.1, 0.1, 0.05, 0.0, 0.04, 0.02, 0.02, 0.01, 0.01])
    truth = 2.0 if kind == "ratio" else 600 * 0.15
    held = 0
    for _ in range(400):
        cells = tuple(int(each) for each in rng.multinomial(600, p))
        tallies = Tallies(
            statistics=SufficientStatistics(sums={}), tables={want: ContingencyTable(want=want, cells=cells)}
        )
        made = evaluate(plan, tallies, QuickNoise(rng))
        total = Sampled(plan=plan).total(plan.asks[1], made, 0)
        held += total.low <= truth <= total.high
    assert 0.91 * 400 <= held <= 0.99 * 400
