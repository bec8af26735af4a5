"""Means, lines, correlations and propensity: right where the textbook says, and not fooled by right margins."""

import numpy as np
import pytest

from reticent.lab.judge.distances import bootstrap
from reticent.lab.judge.estimates import correlation_error, line, means
from reticent.lab.judge.propensity import propensity
from reticent.schema.codebook import schema_from
from reticent.synth.domain import HOLE, UNASKED

SCHEMA = schema_from(
    {
        "survey": {"name": "toy", "unit": "row"},
        "columns": {
            "x": {"kind": "integer", "bounds": [-10_000, 10_000]},
            "y": {"kind": "integer", "bounds": [-10_000, 10_000]},
            "z": {"kind": "categorical", "levels": ["a", "b", "c"]},
        },
    }
)
COLUMNS = ("x", "y", "z")


def toy(seed: int, rows: int = 4_000, slope: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1000, rows)
    y = slope * x + rng.normal(0, 500, rows)
    return np.stack([x.round(), y.round(), rng.integers(0, 3, rows)], axis=1).astype(np.int64)


def test_a_mean_that_moves_is_in_error_by_its_move():
    """In standard deviations of the truth; the interval of so many rows no longer holds it."""
    truth = toy(1)
    moved = truth + np.array([300, 0, 0])
    found = means(truth, moved, SCHEMA, COLUMNS)
    assert found.names == ("x", "y") and abs(found.errors[0] - 300 / truth[:, 0].std()) < 1e-12
    assert found.covered == 0.5 and abs(found.error - found.errors[0] / 2) < 1e-12


def test_cells_without_an_answer_are_no_numbers():
    """Naive twin: the codes of holes and of the unasked would be a mean of minus ten to the fifteenth."""
    truth = toy(2)
    holed = truth.copy()
    holed[::7, 0], holed[1::7, 0] = HOLE, UNASKED
    assert abs(means(truth, holed, SCHEMA, COLUMNS).errors[0]) < 0.1
    assert abs(holed[:, 0].mean()) > 1e15


def test_a_line_is_found_again_and_its_interval_covers_at_its_level():
    """200 tables of 400 rows about one large truth: fewer than 176 intervals of 95 %, or all of them, has chance below 1e-4."""
    truth = toy(3, rows=100_000)
    found = [line(truth, toy(s, rows=400), SCHEMA, COLUMNS, target="y", given=["x"]) for s in range(10, 210)]
    assert 176 <= sum(f.covered for f in found) < 200
    steep = line(truth, toy(4, slope=0.8), SCHEMA, COLUMNS, target="y", given=["x"])
    assert steep.covered == 0 and abs(steep.errors[0] * truth[:, 1].std() / truth[:, 0].std() - 0.3) < 0.05


@pytest.mark.parametrize(("steps", "covers"), [(1.9, True), (2.02, False)])
def test_an_interval_is_as_wide_as_the_textbook_says(steps, covers):
    """1.96 standard errors either way: of a mean, and of the slope of a line through one column."""
    truth = toy(6)
    error = truth.std(axis=0) / len(truth) ** 0.5
    moved = truth + np.round(steps * error * [1, 1, 0]).astype(np.int64)
    assert means(truth, moved, SCHEMA, COLUMNS).covered == covers
    x, y = (truth[:, place] - truth[:, place].mean() for place in (0, 1))
    slope = (x @ y) / (x @ x)
    off = (((y - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x)) ** 0.5
    turned = truth.copy()
    turned[:, 1] = np.round(truth[:, 1] + steps * off * x)
    assert line(truth, turned, SCHEMA, COLUMNS, target="y", given=["x"]).covered == covers


def test_correlations_tell_right_margins_from_right_pairs():
    truth, rng = toy(5), np.random.default_rng(0)
    shuffled = np.stack([rng.permutation(column) for column in truth.T], axis=1)
    exact = abs(
        np.corrcoef(truth[:, 0], truth[:, 1])[0, 1] - np.corrcoef(shuffled[:, 0], shuffled[:, 1])[0, 1]
    )
    assert abs(correlation_error(truth, shuffled, SCHEMA, COLUMNS) - exact) < 1e-12
    assert correlation_error(truth, truth[::-1], SCHEMA, COLUMNS) < 1e-12
    assert correlation_error(truth, np.zeros_like(truth), SCHEMA, COLUMNS) > 0.5  # no spread, no correlation


def test_correlations_that_err_either_way_do_not_make_up_for_each_other():
    """Three columns, one pair too close by as much as another is too far."""
    columns = {name: {"kind": "integer", "bounds": [-1, 1]} for name in "xyz"}
    schema = schema_from({"survey": {"name": "toy", "unit": "row"}, "columns": columns})
    one, other = np.array([-1, -1, 1, 1] * 5), np.array([-1, 1, -1, 1] * 5)
    truth, made = np.stack([one, one, other], axis=1), np.stack([one, other, one], axis=1)
    assert correlation_error(truth, made, schema, ("x", "y", "z")) == pytest.approx(2 / 3)


def test_propensity_is_about_one_where_both_are_drawn_alike():
    """Six terms, five pairs of samples: 25 times the mean ratio is chi-square of 25; outside these ends its chance is below 1e-4."""
    ratios = [propensity(toy(s), toy(s + 50), SCHEMA, COLUMNS).ratio for s in range(5)]
    assert 0.05 < np.mean(ratios) < 2.8


def test_propensity_sees_what_margins_do_not_show(census, shuffled):
    """Naive twin: without products shuffled columns cannot be told from the truth at all."""
    same = bootstrap(census.codes, np.random.default_rng(1))
    judged = propensity(census.codes, shuffled, census.schema, census.columns)
    assert judged.ratio > 20 and propensity(census.codes, same, census.schema, census.columns).ratio < 3
    assert judged.error <= 0.25


def test_propensity_survives_rows_that_are_all_alike_and_levels_on_one_side():
    truth = toy(6, rows=500)
    for made in (np.zeros_like(truth), truth * np.array([1, 1, 0])):
        found = propensity(truth, made, SCHEMA, COLUMNS)
        assert 0 < found.error <= 0.2500001 and found.ratio > 1


@pytest.mark.parametrize("place", [0, 1])
def test_errors_do_not_depend_on_the_order_of_rows(place):
    truth, made = toy(7), toy(8)
    assert np.isclose(
        means(truth, made, SCHEMA, COLUMNS).errors[place],
        means(truth[::-1], made[::-1], SCHEMA, COLUMNS).errors[place],
    )
