"""Distances between cells: exact, additive over attributes, and the published one in its own order."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.prepare.distance import (
    FARTHEST,
    MOST_VALUES,
    Distances,
    distances,
    mismatch,
    one_hot_euclidean,
    scaled,
)

F = Fraction


def attribute(draw):
    weight = F(draw(st.integers(0, 6)), draw(st.integers(1, 5)))
    if draw(st.booleans()):
        n = draw(st.integers(1, 4))
        return mismatch(n, weight=weight), lambda i, j: weight * (i != j), n
    at = draw(st.lists(st.fractions(-3, 3, max_denominator=4) | st.none(), min_size=1, max_size=4))
    known = [p for p in at if p is not None]
    span = (max(known) - min(known)) if known else F(0)

    def between(i, j):
        if i == j:
            return F(0)
        if at[i] is None or at[j] is None:
            return weight
        return weight * abs(at[i] - at[j]) / (span or 1)

    return scaled(at, weight=weight), between, len(at)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_integers_are_the_declared_rationals_on_one_scale(data):
    """All pairs of cells of random domains: proportional to the sum of the attributes' distances, so ties are ties."""
    made = [attribute(data.draw) for _ in range(data.draw(st.integers(1, 3)))]
    d = distances([each for each, _, _ in made])
    cells = list(product(*(range(n) for _, _, n in made)))
    meant = {
        (c, t): sum((f(i, j) for (_, f, _), i, j in zip(made, cells[c], cells[t], strict=True)), F(0))
        for c in range(len(cells))
        for t in range(len(cells))
    }
    rows = [d.row(c) for c in range(d.cells)]
    scales = {F(int(rows[c][t])) / value for (c, t), value in meant.items() if value}
    assert len(scales) <= 1 and all(rows[c][t] == 0 for (c, t), value in meant.items() if not value)
    assert max(int(row.max()) for row in rows) <= d.farthest and d.cells == len(cells)


def test_scaled_difference_mismatch_and_not_stated():
    age = scaled([20, 25, 40, None], weight=F(2))
    d = distances([age, mismatch(2, weight=F(1, 2))])
    # In steps of 1/2: 2 |20 - 25|/20 = 1/2, the whole span is 2, and "not stated" is 2 from every age.
    assert d.row(0).tolist() == [0, 1, 1, 2, 4, 5, 4, 5]
    assert d.row(7)[7] == 0 and d.shape == (4, 2)


def test_grouped_values_may_be_at_no_distance():
    assert distances([scaled([0, 0, 5])]).row(0).tolist() == [0, 0, 1]
    assert distances([mismatch(3, weight=F(0))]).farthest == 0


def test_published_distance_is_in_the_order_of_euclid_after_one_hot():
    """Every pair of a domain with two coded attributes and a number, against the vectors themselves."""
    at = [0, 1, 4]
    d = one_hot_euclidean([3, 2, at])
    cells = list(product(range(3), range(2), range(3)))
    code = np.array([[*np.eye(3)[i], *np.eye(2)[j], at[k]] for i, j, k in cells])
    for c in range(d.cells):
        assert np.allclose(np.sqrt(d.row(c)), np.linalg.norm(code - code[c], axis=1))


def test_a_grain_rounds_each_attribute_and_keeps_ties_exact():
    third = scaled([0, 1, 3], weight=F(1))
    assert distances([third], grain=F(1, 10)).row(0).tolist() == [0, 3, 10]
    fine = scaled([0, 1, 10**9], weight=F(1))
    with pytest.raises(PlanError, match="grain"):
        distances([fine])
    assert distances([fine], grain=F(1, 1000)).farthest == 1


def test_too_many_values_negative_weights_and_wrong_tables_are_refused():
    for make in (
        lambda: distances([]),
        lambda: mismatch(0),
        lambda: mismatch(MOST_VALUES + 1),
        lambda: mismatch(2, weight=F(-1)),
        lambda: mismatch(2).rounded(F(0)),
        lambda: distances([mismatch(2, weight=F(FARTHEST)), mismatch(2)]),
        lambda: scaled([F(1, 3**20), F(1, 2**40), 1]),
    ):
        with pytest.raises(PlanError):
            make()
    for table in (np.ones((2, 2), np.uint16), np.zeros((1, 2), np.uint16), np.zeros((2, 2), np.int64)):
        with pytest.raises(ValueError, match="distance"):
            Distances(tables=(table,))


def test_the_table_of_all_pairs_is_never_made():
    """A domain of 57,600 cells: its tables hold a few hundred numbers."""
    shape = (12, 2, 8, 5, 6, 10)
    d = distances([mismatch(n) for n in shape])
    assert d.cells == math.prod(shape) == 57_600
    assert sum(table.size for table in d.tables) < 1000
    assert d.row(57_599)[0] == 6
