"""A preview points at `by` where statistics differ only in disjoint conditions on one column, and nowhere else."""

from typing import Any

import pytest

from reticent.preview.domains import alike
from reticent.preview.products import foresee_plan
from tests.tables import make_plan


def hints(*queries: dict[str, Any]) -> list[str]:
    plan = make_plan(list(queries), epsilon="0.5")
    return [each.words() for each in alike([route.statistic for route in plan.routes], plan.schema)]


def test_the_same_mean_for_each_sex_could_be_one_statistic():
    (said,) = hints(*({"mean": "pay", "where": f"sex = '{sex}'"} for sex in "fmx"))
    assert 'by = ["sex"]' in said and "0.5 would do for all, in place of 1.5" in said


def test_ranges_that_do_not_meet_are_domains_too():
    assert hints({"count": "*", "where": "age < 20"}, {"count": "*", "where": "age >= 20"})


@pytest.mark.parametrize(
    "queries",
    [
        [{"mean": "pay", "where": "sex = 'f'"}],
        [{"mean": "pay", "where": "sex = 'f'"}, {"mean": "age", "where": "sex = 'm'"}],
        [{"count": "*", "where": "age < 30"}, {"count": "*", "where": "age >= 20"}],
        [{"count": "*", "where": "sex = 'f'"}, {"count": "*", "where": "sex in ('f', 'm')"}],
        [{"count": "*", "where": "sex = 'f'"}, {"count": "*", "where": "age < 20"}],
        [{"count": "*", "where": "sex = 'f'", "weight": "w"}, {"count": "*", "where": "sex = 'm'"}],
    ],
    ids=str,
)
def test_what_overlaps_or_differs_otherwise_is_left_alone(queries):
    assert hints(*queries) == []


def test_the_preview_says_so():
    plan = make_plan([{"count": "*", "where": "sex = 'f'"}, {"count": "*", "where": "sex = 'm'"}])
    (seen,) = foresee_plan(plan)
    assert any(isinstance(line, str) and 'by = ["sex"]' in line for line in seen.lines)
