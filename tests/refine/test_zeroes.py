"""A noisy table is mended without inventing people: coarse totals are kept, zeroes stay, nothing is negative."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent.errors import PlanError
from reticent.refine.raking import Coarsening, mend

SHAPE = (4, 3)
FINE = Coarsening(SHAPE, [None, None])
PAIRS = Coarsening(SHAPE, [(0, 0, 1, 1), None])
ALL = Coarsening(SHAPE, [(0, 0, 0, 0), (0, 0, 0)])
LADDER = (FINE, PAIRS, ALL)
NOISY = arrays(np.float64, SHAPE, elements=st.integers(-20, 60).map(float))
MASKS = arrays(np.bool_, SHAPE)


def by_loop(table: np.ndarray, step: Coarsening) -> np.ndarray:
    """The textbook collapse: go through the fine cells, add each to the coarse cell it lies in."""
    coarse = np.zeros(step.coarse_shape)
    for cell in product(*(range(length) for length in table.shape)):
        coarse[tuple(levels[place] for levels, place in zip(step.joined, cell, strict=True))] += table[cell]
    return coarse


def over_all(table: np.ndarray, step: Coarsening) -> np.ndarray:
    """The naive twin (THEORY 10.5): each coarse cell sums over all finer cells, not over those inside it."""
    return np.full(step.coarse_shape, table.sum())


@given(NOISY)
def test_a_coarse_cell_is_the_sum_of_the_finer_cells_inside_it(table):
    for step in LADDER:
        assert np.array_equal(step.collapse(table), by_loop(table, step))
        assert step.collapse(table).sum() == table.sum()
    odd = Coarsening(SHAPE, [(1, 0, 1, 0), (0, 1, 1)])  # not only neighbouring levels
    assert np.array_equal(odd.collapse(table), by_loop(table, odd))


def test_a_collapse_over_all_finer_cells_counts_people_many_times():
    table = np.arange(12.0).reshape(SHAPE)
    assert not np.array_equal(over_all(table, PAIRS), by_loop(table, PAIRS))
    assert over_all(table, PAIRS).sum() > PAIRS.collapse(table).sum() == table.sum()


@settings(max_examples=200, deadline=None)
@given(NOISY, MASKS)
def test_what_is_mended_is_not_negative_and_keeps_every_coarse_total(table, zeroes):
    made = mend(table, LADDER, zeroes=zeroes)
    assert (made.table >= 0).all() and not made.table[zeroes].any()
    known = np.where(zeroes, 0, table)
    if made.step is not None:
        step = LADDER[made.step]
        assert np.allclose(step.collapse(made.table), step.collapse(known), rtol=0, atol=1e-9)
        assert np.isclose(made.table.sum(), known.sum(), rtol=0, atol=1e-9)
    else:
        assert known.sum() < 0 and not made.table.any()


@settings(max_examples=100, deadline=None)
@given(NOISY, st.integers(0, 30))
def test_the_finest_step_that_fits_is_taken(table, least):
    made = mend(table, LADDER, least=least)
    fits = [bool((step.collapse(table) >= least).all()) for step in LADDER]
    assert made.step == (fits.index(True) if any(fits) else None)


def test_a_table_that_fits_is_left_as_it_is():
    table = np.arange(12.0).reshape(SHAPE)
    made = mend(table, LADDER)
    assert made.step == 0 and np.array_equal(made.table, table)


def test_cutting_at_zero_invents_people_and_mending_does_not():
    """The naive twin, over 400 tables of ten people in a cell with noise of scale 10: 22 more than there are.

    The mean total of a mended table is within five standard errors of the noise's own; seeded.
    """
    rng = np.random.default_rng(7)
    noise = rng.laplace(0, 10, (400, *SHAPE)) + 10
    mended = np.array([mend(each, LADDER).table.sum() for each in noise])
    cut = np.maximum(noise, 0).sum(axis=(1, 2))
    spread = noise.sum(axis=(1, 2)).std() / 20
    assert abs(mended.mean() - 120) < 5 * spread
    assert cut.mean() - 120 > 5 * spread


def test_noise_on_a_structural_zero_is_forgotten():
    zeroes = np.zeros(SHAPE, dtype=bool)
    zeroes[0] = True
    table = np.where(zeroes, -50.0, 5.0)
    made = mend(table, LADDER, zeroes=zeroes)
    assert made.step == 0 and made.table.sum() == 45


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Coarsening(SHAPE, [None]),
        lambda: Coarsening((), []),
        lambda: Coarsening(SHAPE, [(0, 0, 1), None]),
        lambda: Coarsening(SHAPE, [(0, 0, 2, 2), None]),
        lambda: Coarsening(SHAPE, [(-1, 0, 0, 0), None]),
        lambda: FINE.collapse(np.zeros((3, 4))),
        lambda: mend(np.zeros(SHAPE), ()),
        lambda: mend(np.full(SHAPE, np.nan), LADDER),
        lambda: mend(np.zeros(SHAPE), LADDER, least=-1),
        lambda: mend(np.zeros(SHAPE), LADDER, zeroes=np.zeros((3, 4), dtype=bool)),
        lambda: mend(np.zeros(SHAPE), LADDER, zeroes=np.zeros(SHAPE)),
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(PlanError):
        wrong()
