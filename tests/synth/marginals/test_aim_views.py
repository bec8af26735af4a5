"""Cells are put together and told apart again without touching who is in which column's table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.synth.base import Conditional, MissingMethod
from reticent.synth.marginals.study import merged, plain
from reticent.synth.network import simplex
from tests.synth.standins import ArrayCounts, toy

# covers T10 T12

DOMAIN = toy([3, 4], universes={"b": "a != '0'"})  # b has a cell for who was not asked


def rows(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, axis.size, n) for axis in DOMAIN.axes])


@pytest.mark.parametrize("holes", list(MissingMethod))
def test_every_row_is_in_one_cell_or_among_those_left_out(holes):
    """Each of all 24 kinds of row by itself, before and after merging."""
    view = plain(DOMAIN, holes)
    few = merged(view, [np.array([5.0, 1, 1, 9])[: view.shape[0]], np.ones(view.shape[1])], least=[2, 2])
    assert few.shape == (view.shape[0] - 1, 2)  # who was not asked stays apart
    unasked = DOMAIN.axes[1].unasked
    for a in range(DOMAIN.axes[0].size):
        for b in range(DOMAIN.axes[1].size):
            (one,) = ArrayCounts(np.array([[a, b]]), DOMAIN).count([(0, 1)])
            is_silent = a == DOMAIN.axes[0].silence or b == DOMAIN.axes[1].silence
            for each in (view, few):
                made = each.parted(one, (0, 1))
                assert max(made) == made.sum() == 1
                is_left = is_silent and holes not in (MissingMethod.VALUES, MissingMethod.WEIGHTED)
                assert made[-2:].tolist() == [is_left and b != unasked, is_left and b == unasked]


def test_silence_is_never_counted_as_an_answer():
    """The naive twin reads it as the first category: its share of that category is wrong."""
    cells = np.array([[0, 1]] + 9 * [[DOMAIN.axes[0].silence, 1]])
    (counted,) = ArrayCounts(cells, DOMAIN).count([(0,)])
    made = plain(DOMAIN, MissingMethod.AVAILABLE).table(counted, (0,))
    naive = np.bincount(np.where(cells[:, 0] == DOMAIN.axes[0].silence, 0, cells[:, 0]), minlength=3)
    assert made.tolist() == [1, 0, 0] != naive.tolist()


def test_a_merged_table_is_the_sum_of_its_cells():
    view = plain(DOMAIN, MissingMethod.VALUES)
    few = merged(view, [np.array([9.0, 1, 1, 9]), np.array([9.0, 9, 1, 1, 1, 9])], least=[2, 2])
    (counted,) = ArrayCounts(rows(200, 1), DOMAIN).count([(0, 1)])
    made = few.table(counted, (0, 1))
    assert few.shape == (3, 4) and made.sum() == 200
    assert made[2, 3] == counted[1:3, 2:5].sum() and made[0, 0] == counted[0, 0]


def test_widening_keeps_the_law_of_groups_and_splits_them_by_the_columns_own_table():
    """Lines sum to one; silence that was left out is never drawn; inside a group cells keep their proportion."""
    view = plain(DOMAIN, MissingMethod.AVAILABLE)
    few = merged(view, [np.array([9.0, 1, 3]), np.array([9.0, 9, 1, 3, 2])], least=[4, 4])
    rng = np.random.default_rng(3)
    table = rng.dirichlet(np.ones(few.shape[1]), size=few.shape[0])
    wide = few.widened(Conditional(place=1, given=(0,), table=table)).table
    assert wide.shape == DOMAIN.shape
    assert np.allclose(wide.sum(axis=1), 1) and (wide[:, DOMAIN.axes[1].silence] == 0).all()
    assert np.allclose(wide[0, :2], table[0, :2])
    assert np.allclose(wide[1, [2, 3]], table[1, 3] * np.array([1, 3]) / 4)
    assert wide[1, 5] == pytest.approx(table[1, 2])  # who was not asked, rare or not
    assert np.allclose(wide[1], wide[2])
    alone = few.widened(Conditional(place=0, given=(), table=np.array([0.25, 0.75]))).table
    assert np.allclose(alone, [0.25, 0.75 / 4, 0.75 * 3 / 4, 0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(1, 1e6))
def test_the_nearest_table_is_near(cells, total):
    """Not negative, of the right sum, and no nearer after a small move of mass between two cells."""
    table = np.array(cells)
    made = simplex(table, total)
    assert (made >= 0).all() and made.sum() == pytest.approx(total, rel=1e-6)
    for i in range(len(cells)):
        for j in range(len(cells)):
            moved = made.copy()
            step = min(1.0, moved[i])
            moved[i] -= step
            moved[j] += step
            assert ((moved - table) ** 2).sum() >= ((made - table) ** 2).sum() * (1 - 1e-9) - 1e-3
