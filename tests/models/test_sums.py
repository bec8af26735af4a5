"""Sums of products: exact, in any order, from arrays as from the engine, whatever a cell holds."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from reticent.engine.wants import Rows, SufficientStatistics
from reticent.errors import PlanError
from reticent.models.design import Bounded, Records, RegressionDesign, codes, from_engine, records, wants
from tests.models.worlds import design, some_rows

# covers T03 T04 T06


def slow(plan: RegressionDesign, rows: Records) -> list[list[int]]:
    full = [(1, *map(int, row)) for row in rows.z]
    size = len(plan.columns) + 1
    return [[sum(row[i] * row[j] for row in full) for j in range(size)] for i in range(size)]


@pytest.mark.parametrize("high", [50, 2**20, 2**40])
def test_sums_are_those_of_whole_numbers(high):
    """Three widths, so that doubles, 64-bit integers and Python's are each taken; any order of rows."""
    columns = [Bounded(name=n, low=-3, high=high) for n in "ab"]
    plan = RegressionDesign(predictors=(columns[0],), response=columns[1])
    rng = np.random.default_rng(3)
    x, y = rng.integers(-3, high + 1, (200, 1)), rng.integers(-3, high + 1, 200)
    rows = records(plan, x, y)
    exact = rows.sums().products
    assert [list(row) for row in exact] == slow(plan, rows)
    order = rng.permutation(200)
    assert records(plan, x[order], y[order]).sums().products == exact


def test_a_sum_in_doubles_would_move_with_the_order():
    """The naive twin of the test above: products of wide columns summed in doubles."""
    rng = np.random.default_rng(4)
    x = rng.integers(-(2**40), 2**40, 200).astype(float)
    made = {float(np.add.reduce((x * x)[rng.permutation(200)])) for _ in range(50)}
    assert len(made) > 1


@pytest.mark.parametrize("intercept", [True, False])
def test_the_engine_s_sums_give_the_same_table(intercept):
    """Sums of codes, expanded, against sums of z."""
    plan = design(3, intercept=intercept)
    x, y = some_rows(plan, 40)
    code = {c.name: codes(v, c)[0] for c, v in zip(plan.columns, (*x.T, y), strict=True)}

    def total(want):
        made = np.ones(40, dtype=np.int64)
        if want.value:
            made = code[want.value] ** want.power
        return int((made * code[want.other] if want.other else made).sum())

    rows = Rows()
    statistics = SufficientStatistics(sums={want: total(want) for want in wants(plan, rows)})
    assert from_engine(plan, rows, statistics) == records(plan, x, y).sums()


POISON = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, None, "word", "=1+1", True, 10**400]


@pytest.mark.parametrize("poison", POISON, ids=repr)
def test_any_value_is_clamped_or_does_not_count(poison):
    """One cell of poison in a predictor and in the response: entries stay within their widths, nothing is raised."""
    plan = design(2)
    x, y = some_rows(plan, 5)
    for place in ("x", "y"):
        bad_x, bad_y = x.astype(object), y.astype(object)
        if place == "x":
            bad_x[2, 1] = poison
        else:
            bad_y[2] = poison
        rows = records(plan, bad_x, bad_y)
        assert len(rows.z) in (4, 5)
        assert all(np.abs(rows.z[:, j]).max() <= w for j, w in enumerate(plan.widths[1:]))


def test_a_clamp_that_lets_nan_pass_is_refuted():
    """The naive twin: min and max keep NaN."""
    assert np.isnan(np.clip(np.nan, 0, 1))
    code, answered = codes(np.array([np.nan, 3.0]), Bounded(name="a", low=0, high=9))
    assert answered.tolist() == [False, True] and code.tolist() == [0, 3]


def test_frames_and_lists_are_read_as_arrays():
    plan = design(2)
    x, y = some_rows(plan, 6)
    frame = pd.DataFrame(x)
    assert records(plan, frame.to_numpy(), y.tolist()).sums() == records(plan, x, y).sums()


def test_confidential_values_are_not_printed():
    plan = design(1)
    rows = records(plan, *some_rows(plan, 6))
    assert "products" not in repr(rows.sums()) and "z=" not in repr(rows)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Bounded(name="a", low=1, high=1),
        lambda: Bounded(name="a", low=0, high=1, grid=Fraction(0)),
        lambda: RegressionDesign(predictors=(), response=Bounded(name="a", low=0, high=1), intercept=False),
        lambda: RegressionDesign(
            predictors=(Bounded(name="a", low=0, high=1),), response=Bounded(name="a", low=0, high=1)
        ),
        lambda: design(1, size=0),
        lambda: RegressionDesign(
            predictors=(Bounded.between("b", Fraction(1), Fraction(2)),),
            response=Bounded(name="a", low=0, high=1),
            intercept=False,
        ),
        lambda: records(design(2), np.zeros((3, 1)), np.zeros(3)),
    ],
)
def test_designs_that_make_no_sense_are_refused(made):
    with pytest.raises(PlanError):
        made()
