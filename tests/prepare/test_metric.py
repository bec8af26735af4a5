"""The distance that donors are matched by: what the codebook declares, and cells as a table numbers them."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent.engine.wants import Rows, Table, keys_of
from reticent.errors import PlanError
from reticent.prepare.distance import MOST, distances_of
from reticent.prepare.repair import Donors, Match, Metric
from reticent.schema import Schema
from reticent.schema.codebook import schema_from

COLUMNS: dict[str, dict[str, Any]] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "school": {"kind": "ordinal", "levels": ["none", "some", "all"]},
    "rooms": {"kind": "ordinal", "levels": ["1", "2", "9"], "positions": [1, 2, 9]},
    "age": {"kind": "integer", "bounds": [0, 99]},
    "mood": {"kind": "integer", "bounds": [-2, 2]},
    "job": {"kind": "categorical", "levels": ["yes", "no"], "universe": "age >= 15"},
    "wage": {"kind": "integer", "bounds": [0, 1_000_000]},
}
SCHEMA: Schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": COLUMNS})


def donors(*near: Match, metric: Metric = Metric.DECLARED) -> Donors:
    return Donors(column="wage", near=near, defaults=(0,), metric=metric)


def between(given: Donors) -> np.ndarray:
    found = distances_of(given, SCHEMA)
    return np.array([found.row(cell) for cell in range(found.cells)])


def test_cells_are_those_of_the_table_over_the_keys():
    """Every attribute kind: the domain is as large as the table that the engine numbers cells by."""
    for near in product(
        [Match(column="sex"), Match(column="job")],
        [Match(column="mood"), Match(column="age", starts=(0, 18, 65))],
    ):
        given = donors(*near)
        assert distances_of(given, SCHEMA).cells == Table(rows=Rows(), keys=keys_of(given)).size(SCHEMA)


def test_each_kind_has_its_distance():
    """Categories differ or not; scales have steps, positions where declared; silence is as far as can be."""
    assert between(donors(Match(column="sex"))).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert between(donors(Match(column="school")))[0].tolist() == [0, 1, 2, 2]
    assert between(donors(Match(column="rooms")))[0].tolist() == [0, 1, 8, 8]
    assert between(donors(Match(column="mood")))[4].tolist() == [4, 3, 2, 1, 0, 4]
    assert between(donors(Match(column="age", starts=(0, 18, 65))))[1].tolist() == [1, 0, 1, 2]
    assert between(donors(Match(column="job")))[0].tolist() == [0, 1, 1, 1]


def test_weights_are_kept_exactly():
    """A third for one attribute and a half for the other: 2 and 3 on the common scale."""
    given = donors(Match(column="sex", weight=Fraction(1, 3)), Match(column="job", weight=Fraction(1, 2)))
    assert between(given)[0].tolist() == [0, 3, 3, 3, 2, 5, 5, 5, 2, 5, 5, 5]


def test_the_published_distance_codes_what_is_not_a_number():
    """Squares: 2 for a mismatch, (p - q)^2 between numbers, the farthest square for silence."""
    given = donors(Match(column="sex"), Match(column="mood"), metric=Metric.ONE_HOT)
    assert between(given)[0].tolist() == [0, 1, 4, 9, 16, 16] + [2, 3, 6, 11, 18, 18] * 2


@pytest.mark.parametrize(
    "near",
    [
        [Match(column="wage")],
        [Match(column="age"), Match(column="age"), Match(column="age")],
        [Match(column="sex", weight=Fraction(0))],
        [Match(column="shoe")],
        [],
    ],
    ids=["too many codes", "too many cells", "no weight", "no column", "nothing"],
)
def test_what_cannot_be_matched_on_is_refused_with_a_way_out(near: list[Match]):
    with pytest.raises(PlanError, match=r"match"):
        distances_of(donors(*near), SCHEMA)
    assert MOST >= 57_600


def test_the_published_distance_has_no_weights():
    with pytest.raises(PlanError, match="weights"):
        distances_of(donors(Match(column="sex", weight=Fraction(2)), metric=Metric.ONE_HOT), SCHEMA)
