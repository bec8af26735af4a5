"""A hint in a refusal is one that works: taken as it is written, the plan is accepted."""

import re
import tomllib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.query.written import like_bins
from reticent.release.survey import Survey
from reticent.schema.codebook import schema_from


def planned(query: dict[str, Any], low: Any = 0, high: Any = 200_000, grid: str = "1") -> Plan:
    columns = {"pay": {"kind": "decimal", "bounds": [low, high], "grid": grid}}
    book = {"survey": {"name": "x", "unit": "row"}, "columns": columns}
    asked = [{"name": "a", "query": query, "epsilon": "1"}]
    return Survey("rows.csv", codebook=book).plan("r", epsilon="1", statistics=asked)


def refusal(query: dict[str, Any]) -> str:
    with pytest.raises(PlanError) as refused:
        planned(query)
    return str(refused.value)


@given(low=integers(-1000, 1000), steps=integers(1, 3000), grid=sampled_from(["1", "0.5", "0.01", "5"]))
def test_bins_over_a_columns_own_range_are_accepted(low: int, steps: int, grid: str) -> None:
    lower = low * Fraction(grid)
    bounds = [str(float(lower)), str(float(lower + steps * Fraction(grid)))]
    columns = {"pay": {"kind": "decimal", "bounds": bounds, "grid": grid}}
    schema = schema_from({"survey": {"name": "x", "unit": "row"}, "columns": columns})
    said = like_bins(schema.number("pay", field="pay"))
    bins = tomllib.loads(f"bins = {said}", parse_float=str)["bins"]
    assert planned({"table": ["pay"], "bins": bins}, *bounds, grid)


@pytest.mark.parametrize("query", [{"table": ["pay"]}, {"table": ["pay"], "bins": 3}])
def test_a_table_of_a_number_is_told_bins_of_its_range(query: dict[str, Any]) -> None:
    assert "bins = { pay = [0, 50000, 100000, 150000, 200000] }" in refusal(query)


def test_a_quantile_is_told_a_step_that_works() -> None:
    (step,) = re.findall(r'step = "([0-9.]+)"', refusal({"median": "pay"}))
    assert planned({"median": "pay", "step": step})


def test_a_centre_is_told_the_bounds() -> None:
    assert "the bounds of pay, 0 to 200000" in refusal({"mean": "pay", "centre": "900000"})
