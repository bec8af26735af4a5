"""Previews: where sampling errors come from, what a weighted mean is divided by, and a warning where noise says nothing."""

from typing import Any

import pytest

from reticent.errors import PlanError
from reticent.preview.preview import expectations
from reticent.preview.products import foresee_plan
from tests.release.test_design import ASKS, POOLED, plan_of
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


def test_the_design_is_said_in_words() -> None:
    (said,) = plan_of(design=POOLED).design.words
    assert said == "one design factor from y, z over 40 primary sampling units in 20 groups, for 0.5"
    assert "privacy noise alone" in plan_of().design.words[0]
