"""Moments and estimates are exact whatever the size of the grid."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.smallcells import points as module
from reticent.smallcells.estimators import CellMean, Predict, Slope, estimates
from reticent.smallcells.points import GridPoints, moments
from tests.smallcells.squares import COMB, ESTIMATORS, PLAIN, QUARTER, points, refit, spots

CELL = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=7)


def test_the_printed_vectors():
    """THEORY 8.6: means, spread, slope and prediction."""
    of = moments(points([PLAIN], 10, 10))
    assert [int(of.n[0]), int(of.x[0]), int(of.y[0])] == [6, 28, 23]
    assert Fraction(int(of.q[0]), 600) == Fraction(34, 75)  # 0.453333333
    assert round(float(estimates(Slope(), of).of(0)), 9) == 0.742647059
    assert round(float(estimates(QUARTER, of).of(0)), 9) == 0.222426471
    comb = moments(points([COMB], 19, 20))
    assert estimates(Slope(), comb).of(0) == Fraction(35, 100)
    assert estimates(QUARTER, comb).of(0) == Fraction(3875, 10000)


@given(cells=st.lists(CELL, max_size=5), estimator=st.sampled_from(ESTIMATORS))
def test_estimates_equal_a_refit_in_rationals(cells, estimator):
    """Every cell, empty and flat ones too; and the nearest step of a grid is nearest."""
    found = estimates(estimator, moments(points(cells, 7, 5)))
    slow = [refit(estimator, spots(cell, 7, 5)) for cell in cells]
    assert [found.of(g) for g in range(len(cells))] == slow
    grid = Fraction(3, 1000)
    steps = found.steps(grid, instead=Fraction(1, 2))
    for step, exact in zip(steps, slow, strict=True):
        apart = step * grid - (Fraction(1, 2) if exact is None else exact)
        assert -grid / 2 < apart <= grid / 2


def test_sums_pass_sixty_four_bits_unharmed():  # covers T05
    """The finest grid: the naive sum of products turns negative."""
    top = 1 << 31
    cell = [(top - i, top - 2 * i) for i in range(9)] + [(0, 0)]
    of = moments(points([[], cell, [], cell], top, top))
    exact = sum(x * y for x, y in cell)
    assert list(of.xy) == [0, exact, 0, exact]
    assert int(of.q[1]) == 10 * sum(x * x for x, _ in cell) - sum(x for x, _ in cell) ** 2
    with np.errstate(over="ignore"):
        naive = np.sum(np.array([x * y for x, y in cell], dtype=np.int64))
    assert int(naive) != exact


def test_a_grid_too_fine_is_refused_before_anything_is_summed():
    with pytest.raises(PlanError, match="coarser"):
        moments(points([PLAIN], module.MOST_STEPS + 1, 10))


def test_points_show_nothing_and_keep_their_rules():  # covers T14
    """No code in the repr; offsets, lengths and bounds are checked."""
    good = points([PLAIN], 10, 10)
    assert "array" not in repr(good) and "array" not in repr(moments(good))
    for broken in (
        {"starts": np.array([0, 5], dtype=np.int64)},
        {"starts": np.array([1, 6], dtype=np.int64)},
        {"starts": np.array([0, 7, 6], dtype=np.int64)},
        {"x": good.x + 2},
        {"y": good.y - 2},
        {"y": good.y[1:]},
        {"x": good.x.astype(np.float64)},
        {"x_steps": 0},
    ):
        fields = {name: getattr(good, name) for name in ("starts", "x", "y", "x_steps", "y_steps")}
        with pytest.raises(ValueError):
            GridPoints(**{**fields, **broken})


def test_a_prediction_stays_within_the_bounds():
    with pytest.raises(PlanError, match="within the bounds"):
        Predict(at=Fraction(5, 4))
    assert estimates(CellMean(), moments(points([[]], 3, 3))).of(0) is None
