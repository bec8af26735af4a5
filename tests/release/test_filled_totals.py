"""Total intervals of totals, counts, tables and shares of filled columns: as wide as they should be, and with a reason where empty."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.refine.total import DesignFactor, total_interval
from reticent.release.document import document
from reticent.release.run import run_plan
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey
from tests.doubles import ZeroNoise

Z = 1.959963984540054
BOOK: dict[str, Any] = {
    "survey": {"name": "filled", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "x": {"kind": "integer", "bounds": [0, 100]},
        "pay": {"kind": "integer", "bounds": [0, 100]},
        "grade": {"kind": "ordinal", "levels": ["a", "b"], "positions": [1, 2]},
        "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.5", "role": "weight"},
    },
}
DEALT = {**BOOK, "columns": {**BOOK["columns"], "dealt": {"kind": "categorical", "role": "psu", "dealt": 50}}}
DONORS = {"method": "donors", "column": "pay", "match": [{"on": ["sex"], "serve": 2}], "donors": 5}
EXPECT = {"rows": 1000, "missing": {"pay": "0.2"}}


def people(size: int = 1000, seed: int = 3) -> pa.Table:
    bits = np.random.default_rng(seed)
    pay = np.clip(np.round(bits.normal(50, 20, size)), 0, 100)
    return pa.table(
        {
            "sex": np.where(bits.random(size) < 0.5, "f", "m"),
            "x": np.clip(np.round(bits.normal(40, 10, size)), 0, 100),
            "pay": pa.array(pay, mask=bits.random(size) < 0.2),
            "grade": np.where(bits.random(size) < 0.5, "a", "b"),
            "w": np.round(bits.uniform(0.5, 3, size) * 2) / 2,
        }
    )


def plan_of(asks: list[dict[str, Any]], codebook: dict[str, Any] = BOOK, **sections: Any) -> Plan:
    given = {
        "design": {"design_effect": "1"},
        "expect": EXPECT,
        "protect": {"accept_large": True},
        **sections,
    }
    listed = [{"name": f"a{place}", "epsilon": "1000", **ask} for place, ask in enumerate(asks)]
    return Survey(people(), codebook=codebook).plan("r-1", epsilon="9000", statistics=listed, **given)


def told(plan: Plan, rows: pa.Table | None = None) -> list[dict[str, Any]]:
    engine = Survey(people() if rows is None else rows, codebook=BOOK).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    made = evaluate_sampled(plan, tallies, ZeroNoise())
    result = StatisticsResult(plan=plan, answers=made.answers, sampled=made.sampled)
    found: list[dict[str, Any]] = document(plan, [result], receipt=None, engine="test")["statistics"]
    return found


def half(one: dict[str, Any]) -> float:
    (estimate,) = one["estimates"]
    return float(estimate["total_margin"])


@pytest.mark.parametrize("weight", [{}, {"weight": "w"}])
def test_a_total_takes_the_spread_of_a_released_variance(weight: dict[str, str]) -> None:
    """Of men alone: a member's value or 0 varies among all respondents, by n Var(z) without weights (to a thousandth)."""
    among = {"where": "sex = 'm'", **weight}
    asks = [
        {"name": "spread", "query": {"variance": "x", **among}},
        {"query": {"total": "x", **among}, "variance": "spread"},
        {"name": "share", "query": {"proportion": "sex = 'm'", **weight}},
    ]
    bought = {"design": {"items": ["share"], "epsilon": "1000"}} if weight else {}
    book_units = {"unit": {"kind": "categorical", "role": "psu", "dealt": 40}} if weight else {}
    book = {**BOOK, "columns": {**BOOK["columns"], **book_units}}
    listed = [{"name": f"a{place}", "epsilon": "1000", **ask} for place, ask in enumerate(asks)]
    plan = Survey(people(), codebook=book).plan(
        "r-1",
        epsilon="9000",
        statistics=listed,
        expect=EXPECT,
        protect={"accept_large": True},
        **(bought or {"design": {"design_effect": "1"}}),
    )
    engine = Survey(people(), codebook=book).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    made = evaluate_sampled(plan, tallies, ZeroNoise())
    rows = people()
    z = np.where(np.asarray(rows["sex"].to_pylist()) == "m", rows["x"].to_numpy(), 0.0)
    w = rows["w"].to_numpy() if weight else np.ones(len(z))
    mean = (w * z).sum() / w.sum()
    exact = w.sum() ** 2 / len(z) * ((w * z**2).sum() / w.sum() - mean**2)
    sampling = made.answers["a1"].estimates[0].sampling
    assert sampling is not None
    assert sampling(made.sampled.size("a1")) == pytest.approx(exact, rel=2e-3)


def test_filled_totals_counts_and_tables_are_widened_as_shares_are() -> None:
    """(1 + f/r)/(1 - f) at f = 1/5 and five donors is 1.3; the twin without it is what complete rows would have."""
    asks = [
        {"name": "spread", "query": {"variance": "pay"}},
        {"query": {"total": "pay"}, "variance": "spread"},
        {"query": {"count": "*", "where": "pay < 40"}},
        {"query": {"table": ["pay"], "bins": {"pay": [0, 40, 100]}}},
    ]
    spread, total, count, table = told(plan_of(asks, impute=[DONORS]))
    n, rows = 1000, 1.3
    variance, estimate = spread["estimates"][0]["value"], total["estimates"][0]["value"]
    assert half(total) == pytest.approx(Z * sqrt(rows * n * variance), rel=0.01)
    value = count["estimates"][0]["value"]
    complete = Z * sqrt(value * (1 - value / n))
    assert half(count) == pytest.approx(sqrt(rows) * complete, rel=0.02) and half(count) > 1.1 * complete
    assert table["estimates"][0]["total_margin"] == pytest.approx(half(count), rel=0.01)
    for each in (total, count, table):
        assert "has nothing to do with the answer" in each["total"]["meaning"]
        assert "taken as fixed by the design" in each["total"]["meaning"]
    assert "missing values filled" in table["interval"]["meaning"] and estimate > 0


def test_tables_that_add_up_are_widened_where_a_filled_column_decides() -> None:
    tables = [
        {
            "name": "t",
            "margins": [["pay", "sex"]],
            "bins": {"pay": [0, 40, 100]},
            "epsilon": "5000",
            "level": 0.95,
        }
    ]
    plans = [
        plan_of([], tables=tables, impute=[DONORS], expect=expect)
        for expect in (EXPECT, {"rows": 1000}, {"rows": 1000, "missing": {"pay": "0.000001"}})
    ]
    engine = Survey(people(), codebook=BOOK).open()
    try:
        filled, unsaid, twin = (
            run_plan(plan, engine, None).to_document(plan, receipt=None, engine="test")["tables"][0]
            for plan in plans
        )
    finally:
        engine.close()

    def lines(found: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
        return {tuple(line["cell"].values()): line for line in found["margins"][0]["lines"]}

    wide, thin = lines(filled), lines(twin)
    cell, sex = ("0 to under 40", "f"), ("(all)", "f")
    assert wide[cell]["total_margin"] == pytest.approx(sqrt(1.3) * thin[cell]["total_margin"], rel=0.05)
    assert wide[sex]["total_margin"] == pytest.approx(thin[sex]["total_margin"], rel=0.02)
    assert "missing = { ... }" in unsaid["total"]["empty"] and "empty" not in filled["total"]


def test_total_intervals_stay_where_answers_can_lie_and_are_whole_for_counts() -> None:
    """A share of hardly anybody, filled and not; counts of respondents."""
    asks = [
        {"query": {"proportion": "pay < 3"}},
        {"query": {"proportion": "x < 14"}},
        {"query": {"count": "*", "where": "x < 40"}},
        {"query": {"count": "*", "where": "pay < 0"}},
    ]
    for one in told(plan_of(asks, impute=[DONORS]))[:2]:
        (found,) = one["estimates"]
        assert 0 <= found["total_low"] <= found["value"] <= found["total_high"] <= 1
    count, nobody = told(plan_of(asks, impute=[DONORS]))[2:]
    ends = [count["estimates"][0][key] for key in ("total_low", "total_high", "total_margin")]
    assert all(float(end).is_integer() for end in ends)
    assert nobody["estimates"][0]["value"] == 0 and nobody["estimates"][0]["reliability"] == "unreliable"


def test_nought_is_unreliable_unless_it_is_known() -> None:
    given: Any = {"factor": DesignFactor(deft=1), "level": 0.95, "limits": (0.0, None)}
    unknown = total_interval(0.0, privacy=(-3, 3), noise_sd=1.0, variance=4.0, **given)
    known = total_interval(0.0, privacy=(0, 0), noise_sd=0.0, variance=0.0, **given)
    assert unknown.reliability == "unreliable" and known.reliability is None


@pytest.mark.parametrize(
    ("ask", "sections", "words"),
    [
        (
            {"query": {"mean": "x"}},
            {"codebook": DEALT},
            'name it with variance = "its name"; or give the statistic sampling',
        ),
        ({"query": {"mean": "x"}}, {}, 'name it with variance = "its name"'),
        ({"query": {"mean": "grade"}}, {}, 'name it with variance = "its name"'),
        ({"query": {"total": "pay"}}, {"impute": [DONORS]}, 'name it with variance = "its name"'),
        ({"query": {"unserved": "pay"}}, {"impute": [DONORS]}, "not of a population"),
        ({"query": {"count": "*"}}, {"expect": {}}, "write rows under [expect]"),
        ({"query": {"count": "*", "weight": "w"}}, {}, "what its weight stands for"),
        ({"query": {"proportion": "pay < 9"}}, {"impute": [DONORS], "expect": {}}, "missing = { ... }"),
        ({"query": {"variance": "x"}}, {}, "fourth moments"),
    ],
)
def test_an_empty_total_says_what_to_write(ask: Any, sections: Any, words: str) -> None:
    (found,) = told(plan_of([ask], **sections))
    assert words in found["total"]["empty"] and found["estimates"][0]["total_low"] is None
    if "sampling" not in words:
        assert "sampling = " not in found["total"]["empty"]


def test_a_variance_of_which_noise_left_nothing_gives_no_total() -> None:
    """Everybody alike: the noise of the mean alone stood under the heading of both. The interval for noise stays."""
    asks = [{"name": "spread", "query": {"variance": "x"}}, {"query": {"mean": "x"}, "variance": "spread"}]
    alike = people().set_column(1, "x", pa.array([40] * 1000))
    found, other = told(plan_of(asks), alike)[1], told(plan_of(asks))[1]
    (estimate,) = found["estimates"]
    assert estimate["total_low"] is None and estimate["privacy_low"] is not None
    assert "more epsilon" in found["total"]["empty"] and "empty where that is 0" in found["total"]["meaning"]
    assert other["estimates"][0]["total_margin"] > 0 and "empty" not in other["total"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({"query": {"mean": "x"}, "variance": "spread"}, "of another column"),
        ({"query": {"proportion": "x > 3"}, "variance": "spread"}, "goes with a mean or a total"),
        ({"query": {"total": "pay", "where": "sex = 'f'"}, "variance": "spread"}, "of other respondents"),
        ({"query": {"total": "pay"}, "variance": "gone"}, "stands above"),
    ],
)
def test_a_variance_is_of_the_column_it_stands_for(ask: Any, words: str) -> None:
    asks = [{"name": "spread", "query": {"variance": "pay"}}, ask]
    with pytest.raises(PlanError, match=words):
        plan_of(asks)
    assert plan_of([asks[0], {"query": {"total": "pay"}, "variance": "spread"}]).cost == Fraction(2000)
