"""Previews: where sampling errors come from, what a weighted mean is divided by, and a warning where noise says nothing."""

import re
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from reticent.errors import PlanError
from reticent.preview.preview import expectations
from reticent.preview.products import foresee_plan
from tests.doubles import ZeroNoise
from tests.release.test_design import ASKS, POOLED, people, plan_of, told
from tests.release.test_factors import ASKS as WEIGHED
from tests.release.test_factors import plan_of as weighed_plan


def test_a_weighted_mean_is_divided_by_the_expected_weight() -> None:
    """Unknown without it; with it twice as narrow as with half of it."""
    margins: list[Any] = []
    for expect in ({"rows": 1000}, {"rows": 1000, "mean_weight": "1"}, {"rows": 1000, "mean_weight": "2"}):
        (found,) = expectations(plan_of(ASKS[2:3], expect=expect))
        margins.append(found.margin)
    assert margins[0] is None and margins[1] > 1.9 * margins[2] > 0
    with pytest.raises(PlanError, match="weighs on average"):
        plan_of(ASKS[:1], expect={"mean_weight": "0"})


def test_weights_to_known_totals_are_divided_by_the_population() -> None:
    """With released factors: known to the plan, so its mean has a margin."""
    found = {each.name: each for each in expectations(weighed_plan(WEIGHED[:2], expect={"rows": 1500}))}
    assert found["mean"].margin is not None and 0 < found["mean"].margin < 1


def test_an_interval_as_wide_as_the_range_is_warned_of() -> None:
    """A mean of 20 people at epsilon 0.01, and the same at 1."""
    poor = {**ASKS[4], "variance": None, "epsilon": "0.01"}
    (bad,) = expectations(plan_of([poor], expect={"rows": 20}))
    (good,) = expectations(plan_of([{**poor, "epsilon": "1"}], expect={"rows": 2000}))
    assert "as wide as the column's own range, 0 to 100" in bad.warning and not good.warning
    lines = [line for each in foresee_plan(plan_of([poor], expect={"rows": 20}), 0.0) for line in each.lines]
    assert any(isinstance(line, str) and line.startswith("warning: mean") for line in lines)


def test_a_variance_as_uncertain_as_all_it_can_be_is_warned_of() -> None:
    """At most half of the answers lie at either end, so a variance over 0 to 100 is at most 2,500."""
    asked = {"name": "spread", "query": {"variance": "x"}, "epsilon": "0.01"}
    (bad,) = expectations(plan_of([asked], expect={"rows": 20}))
    (good,) = expectations(plan_of([{**asked, "epsilon": "1"}], expect={"rows": 2000}))
    assert "as wide as the variance's own range, 0 to 2500" in bad.warning and not good.warning


def test_a_variance_is_foretold_near_the_widest_that_can_come_out() -> None:
    """Half of the answers at either end: the half-width that a release has is about what was foretold; formerly four times as
    much was, for a variance of the square of the range, which none can have."""
    asked = {"name": "spread", "query": {"variance": "x"}, "epsilon": "1"}
    plan, rows = plan_of([asked], expect={"rows": 2000}), people()
    place = rows.column_names.index("x")
    apart = rows.set_column(place, "x", [pa.array([0, 100] * 1000)])
    (made,) = told(plan, apart, ZeroNoise())["statistics"][0]["estimates"]
    (foretold,) = expectations(plan)
    assert foretold.margin is not None
    below = made["value"] - made["privacy_low"]
    assert 0.7 * below < float(foretold.margin) < 1.5 * below


def test_the_design_is_said_in_words() -> None:
    (said,) = plan_of(design=POOLED).design.words
    assert (
        said
        == "one design factor from y, z over 40 primary sampling units, their pairs dealt into 20, for 0.5"
    )
    assert "privacy noise alone" in plan_of().design.words[0]


def test_a_weighted_share_is_foretold_as_noisy_as_it_is() -> None:
    """Weights from 0 to 4 about 1.75: the margin foretold is near the half-width that a release has, at both weights.

    Formerly the bound of the weight entered twice: foretold was many times what came out.
    """
    query = {"proportion": "y = 'yes'", "weight": "w"}
    asks = [{"name": "a", "query": query, "epsilon": "0.5", "expect": {"value": "0.55"}}]
    plan = plan_of(asks, expect={"rows": 2000, "mean_weight": "1.75"})
    (found,) = expectations(plan)
    made = told(plan, people(), ZeroNoise())["statistics"][0]["estimates"][0]
    half = (made["privacy_high"] - made["privacy_low"]) / 2
    assert found.margin is not None and 0.7 * half < float(found.margin) < 1.5 * half
    weighing = found.weighing
    assert weighing is not None and (weighing.mean, weighing.bound) == (Fraction(7, 4), 4)
    assert weighing.at_mean == found.margin and weighing.at_bound < 0.6 * float(found.margin)
    (unsaid,) = expectations(plan_of(asks, expect={"rows": 2000}))
    assert unsaid.margin is None and unsaid.weighing is not None and unsaid.weighing.at_mean is None
    lines = [line for each in foresee_plan(plan_of(asks, expect={"rows": 2000}), 0.0) for line in each.lines]
    assert any(isinstance(line, str) and "say [expect] mean_weight" in line for line in lines)


def test_an_expected_size_is_of_respondents_and_an_expected_weight_of_weight() -> None:
    """A weighted share of 500 respondents, of their 875 of weight, and by mistake of 500 of weight: formerly the first
    was taken for the last."""
    query = {"proportion": "y = 'yes'", "weight": "w"}
    margins = []
    for said in ({"size": 500}, {"weight": 875}, {"weight": "500"}):
        ask = {"name": "a", "query": query, "epsilon": "0.5", "expect": {"value": "0.55", **said}}
        (found,) = expectations(plan_of([ask], expect={"rows": 2000, "mean_weight": "1.75"}))
        margins.append(found.margin)
    assert margins[0] == margins[1] == margins[2] * Fraction(500, 875)


@pytest.mark.parametrize(
    ("query", "more", "words"),
    [
        ({"mean": "x", "weight": "w"}, {"size": 500}, "write size = { weight = ... }"),
        ({"mean": "x"}, {"size": {"weight": 500}}, "write size = 2000"),
        ({"mean": "x"}, {"size": 0}, "whole number from 1"),
        ({"mean": "x", "weight": "w"}, {"size": {"weights": 500}}, "did you mean 'weight'"),
        ({"mean": "x"}, {"expect": {"value": 1, "weight": 5}}, "write size"),
        ({"mean": "x", "weight": "w"}, {"expect": {"value": 1, "weight": 5, "size": 2}}, "keep one"),
        ({"mean": "x", "weight": "w"}, {"expect": {"value": 1, "weight": 0}}, "above 0"),
    ],
)
def test_sizes_say_whether_they_are_respondents_or_weight(query: Any, more: Any, words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        plan_of([{"name": "a", "query": query, "epsilon": "1", **more}])


def test_a_public_weight_is_divided_by() -> None:
    ask = {"name": "a", "query": {"mean": "x", "weight": "w"}, "epsilon": "1", "size": {"weight": 3500}}
    plan = plan_of([ask])
    assert [part.what for part in plan.routes[0].parts] == ["centred sum"]
    assert "divided by a public weight of 3,500" in plan.asks[0].query.words(plan.schema)


@pytest.mark.parametrize("weight", [None, "w"])
def test_a_mean_is_foretold_as_noisy_as_it_is(weight: str | None) -> None:
    """At an expected value it is near; without one the answer is taken at its farthest from the centre, four times too wide."""
    weighted = {"weight": weight} if weight else {}
    ask = {"name": "a", "query": {"mean": "x", **weighted}, "epsilon": "0.5"}
    rows = {"rows": 2000, "mean_weight": "1.75"}
    plan = plan_of([{**ask, "expect": {"value": "52"}}], expect=rows)
    (found,), (farthest,) = expectations(plan), expectations(plan_of([ask], expect=rows))
    made = told(plan, people(), ZeroNoise())["statistics"][0]["estimates"][0]
    half = (made["privacy_high"] - made["privacy_low"]) / 2
    assert found.margin is not None and 0.7 * half < float(found.margin) < 1.5 * half
    assert farthest.margin is not None and float(farthest.margin) < 4 * half


def test_a_weighted_median_is_foretold_in_weight() -> None:
    """Formerly in steps of the weight's grid. Twice the ranks, since weights reach 4 and not 2, of the median without weight."""
    query = {"median": "x", "step": "1"}
    plain, heavy = (
        expectations(plan_of([{"name": "a", "query": {**query, **more}, "epsilon": "0.5"}]))[0]
        for more in ({}, {"weight": "w"})
    )
    assert plain.margin is not None and heavy.margin is not None
    assert 3.5 * plain.margin < heavy.margin < 4.5 * plain.margin
    assert (plain.how, heavy.how) == ("in ranks", "in weight")


def test_an_interval_of_a_median_that_would_hold_everything_is_warned_of() -> None:
    """At epsilon 0.01 for the interval its ends move by thousands of ranks; at 10 by a few."""
    found = []
    for epsilon in ("0.01", "10"):
        ask = {"name": "a", "query": {"median": "x", "step": "1"}, "epsilon": "0.5"}
        plan = plan_of([{**ask, "interval": {"epsilon": epsilon}}], expect={"rows": 2000})
        found.append(expectations(plan)[0].warning)
    assert "lowest to the highest candidate" in found[0] and not found[1]


def test_a_domain_is_foretold_at_an_even_share_or_at_its_own_size() -> None:
    query = {"proportion": "y = 'yes'", "by": ["z"], "show_missing": False}
    ask = {"name": "a", "query": query, "epsilon": "0.5"}
    (even,) = expectations(plan_of([ask], expect={"rows": 3000}))
    (said,) = expectations(plan_of([{**ask, "expect": {"value": "1", "size": 1000}}], expect={"rows": 3000}))
    assert even.how == "even domains" and said.how == "at size"
    assert even.margin == said.margin, "two levels and a domain for those who did not say"


def test_released_factors_are_foretold_at_the_mean_weight() -> None:
    """Formerly as if everybody weighed as much as the bound: many times too narrow. Told beside what a release has."""
    asks = [{**WEIGHED[1], "expect": {"value": "0.5"}}]
    expect = {"rows": 1500, "mean_weight": "1.5"}
    plan = weighed_plan(asks, expect=expect)
    (found,) = expectations(plan)
    assert found.weighing is not None and found.margin is not None and found.how == "by factors"
    heaviest = plan.schema.weight("w", field="w").upper if "w" in plan.schema.coded else Fraction(1)
    assert float(found.margin) == pytest.approx(
        float(found.weighing.at_bound * heaviest / Fraction(3, 2)), rel=0.05
    )
