"""Scores move by no more than they say, and by as much."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reticent.synth.marginals.scores import SHARES, UNIT, distance, misfit
from reticent.synth.marginals.study import candidates, pairs
from tests.synth.standins import toy

# covers T07 T11 T12

TABLES = [np.array(cells) for cells in product(range(3), repeat=3)]
MODELS = [
    np.array(cells)
    for cells in ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.3, 2.9, 0.0], [1e-9, 1e9, 0.4], [0.0, 5.0, 0.0])
]


def neighbours(table: np.ndarray) -> list[np.ndarray]:
    """One record more, in each cell."""
    return [table + unit for unit in np.eye(table.size, dtype=np.int64)]


def farthest(score) -> int:
    return max(
        abs(score(other, model) - score(table, model))
        for table in TABLES
        for other in neighbours(table)
        for model in MODELS
    )


def scaled_by_its_own_sum(table: np.ndarray, model: np.ndarray) -> int:
    """The naive twin: available rows blown up to the model's total by their exact number."""
    return int(np.abs(UNIT * table * model.sum() / max(1, table.sum()) - UNIT * model).sum())


def test_one_record_moves_a_distance_by_one_and_a_misfit_by_two_at_most():
    """All tables of up to two records in each of three cells, all neighbours, five models; the bound is attained."""
    assert farthest(distance) == UNIT
    assert 1.99 * SHARES < farthest(misfit) <= 2 * SHARES
    assert farthest(scaled_by_its_own_sum) > 10 * UNIT


def test_a_record_that_changes_or_falls_silent_moves_a_misfit_by_two_at_most():
    """So replacing needs no more than adding."""
    for table, model in product(TABLES, MODELS):
        near = neighbours(table)
        far = [abs(misfit(a, model) - misfit(b, model)) for a in [*near, table] for b in near]
        assert max(far) <= 2 * SHARES


@given(
    hnp.arrays(np.int64, (2, 3), elements=st.integers(0, 50)),
    hnp.arrays(np.float64, (2, 3), elements=st.floats(0, 1e6)),
    st.integers(0, 5),
)
def test_the_bounds_hold_for_any_model(table, model, cell):
    more = table.copy()
    more.ravel()[cell] += 1
    assert abs(distance(more, model) - distance(table, model)) <= UNIT
    assert abs(misfit(more, model) - misfit(table, model)) <= 2 * SHARES


def test_a_model_in_proportion_has_no_misfit_whatever_share_of_rows_is_there():
    """Where a distance sees the missing rows."""
    model = np.array([[30.0, 10.0], [20.0, 40.0]])
    table = np.array([[15, 5], [10, 20]])
    assert misfit(table, model) <= 50 * table.size
    assert distance(table, model) == 50 * UNIT


def test_every_pair_within_the_limit_is_wanted_and_every_column_may_be_measured():
    domain = toy([2, 3, 9])  # with silence: 3, 4, 10 cells
    assert pairs(domain) == ((0, 1), (0, 2), (1, 2))
    assert pairs(domain, most=30) == ((0, 1), (0, 2))
    made = {each.places: each.weight for each in candidates(pairs(domain, most=30), 3)}
    assert made == {(0,): 2, (1,): 1, (2,): 1, (0, 1): 3, (0, 2): 3}


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_weights_are_sums_of_overlaps(columns):
    """A pair overlaps itself twice and each of its neighbours once; a column each of its pairs."""
    domain = toy([2] * columns)
    for each in candidates(pairs(domain), columns):
        alone = max(1, columns - 1)
        assert each.weight == (alone if len(each.places) == 1 else 2 * columns - 2)
