"""Sampling error in plans: bought, declared, told beside every number, and refused before the charge where it cannot be had."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Ledger
from reticent.refine.total import released_design_factor
from reticent.release.curator import Curator
from reticent.release.document import document
from reticent.release.release import Release
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD

UNITS = 40
BOOK: dict[str, Any] = {
    "survey": {"name": "drawn", "unit": "row"},
    "columns": {
        "p": {
            "kind": "categorical",
            "role": "psu",
            "levels": [f"u{i}" for i in range(UNITS)],
            "strata": [f"s{i // 2}" for i in range(UNITS)],
        },
        "y": {"kind": "categorical", "levels": ["no", "yes"]},
        "z": {"kind": "categorical", "levels": ["no", "yes"]},
        "x": {"kind": "integer", "bounds": [0, 100]},
        "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.5", "role": "weight"},
    },
}
ASKS: list[dict[str, Any]] = [
    {"name": "y", "query": {"proportion": "y = 'yes'"}, "epsilon": "1"},
    {"name": "z", "query": {"proportion": "z = 'yes'"}, "epsilon": "1"},
    {"name": "heavy y", "query": {"proportion": "y = 'yes'", "weight": "w"}, "epsilon": "1"},
    {"name": "spread", "query": {"variance": "x"}, "epsilon": "1"},
    {"name": "mean", "query": {"mean": "x"}, "epsilon": "1", "variance": "spread"},
    {"name": "total", "query": {"total": "x"}, "epsilon": "1"},
    {"name": "count", "query": {"count": "*", "where": "x > 50"}, "epsilon": "1"},
    {"name": "table", "query": {"table": ["y"]}, "epsilon": "1"},
    {"name": "gap", "query": {"difference": ["y", "z"]}},
    {"name": "median", "query": {"median": "x", "step": "1"}, "epsilon": "1"},
]
POOLED = {"items": ["y", "z"], "epsilon": "0.5"}


def people(size: int = 2000, seed: int = 4, deff: bool = True) -> pa.Table:
    bits = np.random.default_rng(seed)
    unit = np.repeat(np.arange(UNITS), size // UNITS)
    shift = (bits.normal(0, 0.7, UNITS) if deff else np.zeros(UNITS))[unit]
    yes, also = (bits.random(len(unit)) < 1 / (1 + np.exp(-shift - s)) for s in (0.2, -0.4))
    return pa.table(
        {
            "p": [f"u{i}" for i in unit],
            "y": np.where(yes, "yes", "no"),
            "z": np.where(also, "yes", "no"),
            "x": np.clip(np.round(50 + 10 * shift + bits.normal(0, 15, len(unit))), 0, 100).astype(int),
            "w": np.round(bits.uniform(0.5, 3, len(unit)) * 2) / 2,
        }
    )


def plan_of(asks: list[dict[str, Any]] = ASKS, book: dict[str, Any] = BOOK, **sections: Any) -> Plan:
    survey = Survey(people(), codebook=book)
    return survey.plan("r-1", epsilon="40", statistics=asks, **sections, protect={"accept_large": True})


def told(plan: Plan, rows: pa.Table, noise: Any = None, book: dict[str, Any] = BOOK) -> dict[str, Any]:
    engine = Survey(rows, codebook=book).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    made = evaluate_sampled(plan, tallies, noise or ZeroNoise())
    result = StatisticsResult(plan=plan, answers=made.answers, sampled=made.sampled)
    return document(plan, [result], receipt=None, engine="test")


def first(made: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (each for each in made["statistics"] if each["name"] == name)
    return dict(found["estimates"][0], empty=found["total"].get("empty", ""))


def test_one_factor_serves_every_statistic() -> None:
    """Shares, means with a released variance, counts, tables and differences get a total; others say why not."""
    made = told(plan_of(design=POOLED), people())
    for name in ("y", "z", "mean", "count", "table", "gap"):
        each = first(made, name)
        assert each["total_low"] < each["value"] < each["total_high"], name
        assert each["total_margin"] >= max(each["value"] - each["privacy_low"], 0) and each["cv"] > 0
        assert not each["empty"]
    empty = (
        ("total", "sampling = { epsilon"),
        ("median", "bought with its interval"),
        ("heavy y", "from items"),
    )
    for name, why in empty:
        each = first(made, name)
        assert each["total_low"] is None and each["total_margin"] is None and why in each["empty"]
    assert made["sampling"]["source"] == "bought" and made["sampling"]["design_effect"] > 2
    assert made["sampling"]["units"] == UNITS and made["sampling"]["groups"] == 20
    assert made["sampling"]["respondents"] == 2000


def test_a_factor_from_items_without_a_weight_is_not_one_for_weighted_statistics() -> None:
    """It knows nothing of unequal weights, so their totals would be too short; items with the weight give them one."""
    asks = [*ASKS, {"name": "heavy z", "query": {"proportion": "z = 'yes'", "weight": "w"}, "epsilon": "1"}]
    plain = told(plan_of(asks, design=POOLED), people())
    heavy = told(plan_of(asks, design={**POOLED, "items": ["heavy y", "heavy z"]}), people())
    assert plain["sampling"]["weights"] == {} and list(heavy["sampling"]["weights"]) == ["w"]
    for name in ("heavy y", "heavy z"):
        assert (
            first(plain, name)["total_low"] is None
            and "items with this weight" in first(plain, name)["empty"]
        )
        assert (
            first(heavy, name)["total_low"] < first(heavy, name)["value"] < first(heavy, name)["total_high"]
        )


def test_a_declared_effect_serves_weighted_statistics_where_the_mean_weight_is_expected() -> None:
    """What a weight stands for in respondents is then public. The twin that takes weight for respondents is too short by half."""
    by_region = {"proportion": "y = 'yes'", "weight": "w", "by": ["z"], "show_missing": False}
    asks = [
        ASKS[2],
        {"name": "heavy count", "query": {"count": "*", "where": "x > 50", "weight": "w"}, "epsilon": "1"},
        {"name": "domains", "query": by_region, "epsilon": "1"},
        {
            "name": "median",
            "query": {"median": "x", "step": "1", "weight": "w"},
            "epsilon": "1",
            "interval": {"epsilon": "1"},
        },
    ]
    rows = people(deff=False)
    w = rows["w"].to_numpy()
    declared: Any = {"design": {"design_effect": "2.25"}}
    expect = {"rows": len(w), "mean_weight": str(round(float(w.mean()), 6))}
    known = told(plan_of(asks, **declared, expect=expect), rows)
    share = first(known, "heavy y")
    n, p = len(w), share["value"]
    assert share["total_margin"] == pytest.approx(1.96 * 1.5 * np.sqrt(p * (1 - p) / n), rel=0.02)
    assert share["total_margin"] > 1.3 * 1.96 * 1.5 * np.sqrt(p * (1 - p) / w.sum())
    among = (rows["x"].to_numpy() > 50) @ w / w.sum()
    held = first(known, "heavy count")["total_margin"]
    assert held == pytest.approx(1.96 * 1.5 * w.sum() * np.sqrt(among * (1 - among) / n), rel=0.02)
    for each in ("domains", "median"):
        assert first(known, each)["total_low"] < first(known, each)["total_high"]
    unknown = told(plan_of(asks, **declared, expect={"rows": len(w)}), rows)
    assert first(unknown, "heavy y")["total_low"] is None
    assert "mean_weight under [expect]" in first(unknown, "heavy y")["empty"]


def test_a_mean_weight_does_not_make_a_factor_know_of_weights() -> None:
    """One that was bought from items without a weight; a design effect declared for the statistic itself holds them."""
    own = {**ASKS[2], "name": "own", "sampling": {"design_effect": "2"}}
    made = told(plan_of([*ASKS, own], design=POOLED, expect={"rows": 2000, "mean_weight": "2"}), people())
    assert first(made, "heavy y")["total_low"] is None
    assert first(made, "own")["total_low"] < first(made, "own")["value"]


def test_a_ratio_to_nobody_is_flagged_and_says_why() -> None:
    """Nobody is above 100: no interval, no coefficient of variation, and no other reason than the true one. A difference of
    nothing has an interval, and no coefficient of variation either."""
    asks = [
        {"name": "nobody", "query": {"count": "*", "where": "x > 100"}, "epsilon": "1"},
        {"name": "no one", "query": {"count": "*", "where": "x < 0"}, "epsilon": "1"},
        {"name": "ratio", "query": {"ratio": ["nobody", "no one"]}},
        {"name": "gap", "query": {"difference": ["nobody", "no one"]}},
    ]
    made = told(plan_of(asks, design={"design_effect": "2"}, expect={"rows": 2000}), people())
    ratio, gap = first(made, "ratio"), first(made, "gap")
    assert ratio["total_low"] is ratio["total_high"] is ratio["total_margin"] is ratio["cv"] is None
    assert ratio["reliability"] == "unreliable" and "may be 0" in ratio["empty"]
    assert gap["total_low"] < 0 < gap["total_high"] and gap["value"] == 0
    assert gap["cv"] is None and gap["reliability"] == "unreliable" and not gap["empty"]
    shares = told(
        plan_of([*ASKS[:2], {"name": "r", "query": {"ratio": ["y", "z"]}}], design=POOLED), people()
    )
    assert 0 < first(shares, "r")["cv"] < 0.333 and not first(shares, "r")["empty"]


def test_a_quantile_that_every_end_agrees_on_varies_by_half_a_step() -> None:
    """Of bands a median is told by a position: 40 from 40 to 40 is no coefficient of variation of 0. A median of 0 has none."""
    levels = {"kind": "ordinal", "levels": ["low", "middle", "high"], "positions": [0, 40, 100]}
    book = {**BOOK, "columns": {**BOOK["columns"], "y": levels}}
    asks = [{"name": "m", "query": {"median": "y"}, "epsilon": "2", "interval": {"epsilon": "9"}}]
    for answer, cv in (("middle", 60 / 2 / 1.959964 / 40), ("low", None)):
        rows = people()
        rows = rows.set_column(rows.column_names.index("y"), "y", pa.array([answer] * len(rows)))
        found = first(told(plan_of(asks, book=book, design={"design_effect": "2"}), rows, book=book), "m")
        assert found["total_low"] == found["total_high"] == found["value"]
        assert found["cv"] == (None if cv is None else pytest.approx(cv, abs=1e-4))
        assert (found["reliability"] is None) == (cv is None)


def test_a_clustered_survey_has_wider_totals_than_a_simple_one() -> None:
    """Without noise: by its design factor; that of a survey without clusters is 1, or near it."""
    wide, plain = (told(plan_of(design=POOLED), people(deff=deff)) for deff in (True, False))
    assert first(wide, "y")["total_margin"] > 1.5 * first(plain, "y")["total_margin"]
    assert plain["sampling"]["design_effect"] < 1.6


def test_a_statistic_may_buy_its_own() -> None:
    """A total has no other way; its cost is its own, and told."""
    asks = [{**ASKS[5], "sampling": {"epsilon": "0.25"}}, {**ASKS[0], "sampling": {"design_effect": "4"}}]
    plan = plan_of(asks)
    assert plan.cost == Fraction("2.25") and len(plan.claims) == 3
    made = told(plan, people())
    total, share = first(made, "total"), first(made, "y")
    rows = people()
    sums = np.bincount([int(u[1:]) for u in rows["p"].to_pylist()], rows["x"].to_numpy(), UNITS)
    se = float(np.sqrt(((sums[::2] - sums[1::2]) ** 2).sum()))
    assert 0.5 * se < (total["total_high"] - total["value"]) / 2.1 < 2 * se
    p, n = share["value"], 2000
    assert abs(share["total_margin"] - 1.96 * 2 * np.sqrt(p * (1 - p) / n)) < 0.01
    assert made["sampling"]["own"]["total"]["se"] > 0


def test_a_declared_effect_is_as_it_was() -> None:
    """Under [expect] or [design], the same numbers; without either no total, and the reason."""
    one = told(plan_of(ASKS[:2], expect={"design_effect": "2"}), people())
    two = told(plan_of(ASKS[:2], design={"design_effect": "2"}), people())
    none = told(plan_of(ASKS[:2]), people())
    assert one["statistics"] == two["statistics"] and one["sampling"]["source"] == "declared"
    assert first(none, "y")["total_low"] is None and "add [design]" in first(none, "y")["empty"]
    assert "sampling" not in none


def test_it_is_charged_and_written_in_every_file(tmp_path: Path) -> None:
    """Through the curator: ledger, JSON, CSV."""
    ledger = Ledger.create(tmp_path / "a.db", dataset="drawn", change=ADD, unit="epsilon", budget="40")
    survey = Survey(people(), codebook=BOOK)
    plan = survey.plan("r-1", epsilon="40", statistics=ASKS, design=POOLED, protect={"accept_large": True})
    Curator(ledger).release(plan, survey, tmp_path / "out")
    assert ledger.spent == plan.cost == Fraction("9.5")
    made = json.loads((tmp_path / "out" / "r-1.json").read_bytes())
    assert made["guarantee"]["epsilon"] == "9.5"
    lines = (tmp_path / "out" / "r-1.csv").read_text().splitlines()
    assert "privacy_low,privacy_high,total_low,total_high,total_margin,cv,reliability" in lines[0]
    assert Release.from_bytes((tmp_path / "out" / "r-1.json").read_bytes())["y"][0]["total_low"] is not None
    assert made["sampling"]["guarantees"][0]["rests_on"][0]["proof"] == "proofs/answer/design.md"


def test_an_older_release_leaves_the_new_columns_empty() -> None:
    """What a release does not tell is not made up."""
    made = told(plan_of(ASKS[:1], design={"design_effect": "2"}), people())
    made["statistics"][0]["estimates"][0] = {
        k: v for k, v in made["statistics"][0]["estimates"][0].items() if k not in ("total_low", "total_high")
    }
    line = Release(made).to_csv().decode().splitlines()[1].split(",")
    assert line[8:10] == ["", ""] and line[10] != ""


@pytest.mark.parametrize("change", [ADD, "one respondent's answers replaced"])
def test_neighbours_share_every_call(change: str) -> None:
    """Along one transcript, 12 people and each of their neighbours by removal or exchange: the distance stays within."""
    size = {"sample_size": 12} if change != ADD else {}
    book = {**BOOK, "survey": {**BOOK["survey"], **size}}
    rows = people(UNITS * 3).take(list(range(0, 120, 10)))
    asks = [*ASKS[:3], {**ASKS[5], "sampling": {"epsilon": "1"}}]
    plan = Survey(rows, codebook=book).plan(
        "r-1",
        epsilon="40",
        statistics=asks,
        design=POOLED,
        protect={"change": change, "accept_large": True},
    )

    def calls(table: pa.Table) -> list[Any]:
        engine = Survey(table, codebook=book).open()
        try:
            tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
        finally:
            engine.close()
        noise = FrozenNoise(prescribed=[(5,)] * 20)
        evaluate_sampled(plan, tallies, noise)
        return noise.calls

    here = calls(rows)
    assert sum((call.epsilon for call in here), Fraction(0)) == plan.cost
    other = people(UNITS * 3, seed=9).slice(77, 1)
    for place in range(len(rows)):
        rest = pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])
        there = calls(rest if change == ADD else pa.concat_tables([rest, other]))
        for one, two in zip(here, there, strict=True):
            assert one.parameters == two.parameters and one.distance(two) <= one.sensitivity


def test_domains_and_conditions_have_few_groups_unless_the_plan_says_more() -> None:
    """A region may lie in a quarter of the pairs: in many groups it has none, and its error comes out too small."""
    asks = [
        {**ASKS[0], "name": "all"},
        {**ASKS[0], "name": "some", "query": {"proportion": "y = 'yes'", "where": "x > 50"}},
        {**ASKS[0], "name": "each", "query": {"proportion": "y = 'yes'", "by": ["z"]}},
    ]
    asks = [{**each, "sampling": {"epsilon": "1"}} for each in asks]
    groups = []
    for design in ({}, {"design": {"groups": 16, "items": ["all"], "epsilon": "1"}}):
        own = plan_of(asks, **design).design.own
        groups.append([getattr(own[name], "own", own[name]).basis.groups for name in ("all", "some", "each")])
    assert groups == [[20, 10, 10], [16, 16, 16]]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"design": {"items": ["nobody"], "epsilon": "1"}}, "there is no statistic"),
    ({"design": {"items": ["mean"], "epsilon": "1"}}, "proportions of the plan"),
    ({"design": {"items": ["y", "y"], "epsilon": "1"}}, "each once"),
    ({"design": {"items": ["y"]}}, "is the price"),
    ({"design": {"epsilon": "1"}}, "name some"),
    ({"design": {"items": ["y", "heavy y"], "epsilon": "1"}}, "one base weight"),
    ({"design": {"items": ["y"], "epsilon": "1", "groups": 21}}, "20 pairs"),
    ({"design": {"items": ["y"], "epsilon": "1", "design_effect": "2"}}, "keep one of the two"),
    ({"design": {"items": ["y"], "epsilon": "1"}, "expect": {"design_effect": "2"}}, "keep one of the two"),
    ({"design": {"design_effect": "2"}, "expect": {"design_effect": "2"}}, "keep it here"),
    ({"design": {"design_effect": "0"}}, "from 0.01 to 1000"),
    ({"design": {"design_effect": "2"}, "expect": {"mean_weight": "5"}}, "nobody weighs more than 4"),
    ({"design": {"psu": "p"}}, "not a known key"),
]


@pytest.mark.parametrize("sections, says", BAD)
def test_bad_designs_are_refused_before_the_charge(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_of(**sections)


@pytest.mark.parametrize(
    "place, sampling, says",
    [
        (9, {"epsilon": "1"}, "counts, totals, means and proportions"),
        (0, {}, "one of the two"),
        (0, {"epsilon": "1", "design_effect": "1"}, "one of the two"),
        (0, {"epsilon": "0"}, "epsilon"),
    ],
)
def test_bad_purchases_are_refused(place: int, sampling: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_of([{**ASKS[place], "sampling": sampling}])


def test_units_must_be_declared() -> None:
    columns = {name: each for name, each in BOOK["columns"].items() if name != "p"}
    book = {**BOOK, "columns": columns}
    with pytest.raises(PlanError, match="role = 'psu'"):
        plan_of(book=book, design=POOLED)
    plan_of(book=book, design={"design_effect": "1.5"})


def test_filled_columns_are_no_items() -> None:
    """A donor's answer would stand in units of others."""
    fill = [{"method": "donors", "column": "y", "match": ["z"], "default": "no"}]
    with pytest.raises(PlanError, match="nobody filled"):
        plan_of([ASKS[0]], design={"items": ["y"], "epsilon": "1"}, impute=fill)


@pytest.mark.parametrize("place", ["p", "s"])
def test_units_that_donors_give_are_refused(place: str) -> None:
    """One answer would put many records into other units: of twelve rows, more than three times the bound."""
    columns = {name: dict(each) for name, each in BOOK["columns"].items()}
    if place == "s":
        columns["p"] = {"kind": "categorical", "role": "psu", "levels": ["1", "2"]}
        columns["s"] = {"kind": "categorical", "role": "stratum", "levels": ["n", "o"]}
    book, first = {**BOOK, "columns": columns}, "n" if place == "s" else "u0"
    fill = [{"method": "donors", "column": place, "match": ["z"], "default": first}]
    with pytest.raises(PlanError, match=f"rests on {place}, .* filled"):
        plan_of([ASKS[0]], book, design={"items": ["y"], "epsilon": "1"}, impute=fill)
    with pytest.raises(PlanError, match=f"rests on {place}, .* filled"):
        plan_of([{**ASKS[0], "sampling": {"epsilon": "1"}}], book, impute=fill)
    plan_of([ASKS[0]], book, design={"design_effect": "1.5"}, impute=fill)


def test_a_release_tells_its_design_factor_again() -> None:
    """Bought, declared, or none: what was used is what is read back, to the digits that are told."""
    plan = plan_of(design=POOLED)
    made = told(plan, people())
    found = released_design_factor(made)
    assert found is not None and found.source == "bought"
    assert found.effect == pytest.approx(made["sampling"]["design_effect"])
    assert found.df == pytest.approx(made["sampling"]["degrees_of_freedom"])
    declared = released_design_factor(told(plan_of(design={"design_effect": "1.5"}), people()))
    assert declared is not None and declared.effect == pytest.approx(1.5) and declared.df == float("inf")
    assert released_design_factor(told(plan_of(ASKS[:1]), people())) is None
