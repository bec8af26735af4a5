"""What is told of binned numbers in differences and regressions: exact means where residuals were measured, else midpoints, by name."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.synth.answer import AT_MIDPOINTS, answered
from reticent.synth.lists import Lists
from reticent.synth.questions import read_question
from tests.synth.standins import NoSynthNoise, QuickSynthNoise
from tests.synth.test_direct import NONE, ask, fitted, vector, village

GAP = {"difference": "hours", "between": ["sex = 'm'", "sex = 'f'"]}
SLOPE = {"regression": "hours", "on": "sex = 'm'"}
STARTS = (0, 13, 25, 38, 50, 63, 75, 88)
"""Where the eight bins of `village` begin."""


def without_residuals(lists: Lists) -> Lists:
    bare = tuple(replace(each, sums=NONE, sum_deviations=NONE) for each in lists.lists)
    return replace(lists, lists=bare)


def midpoints(hours: np.ndarray) -> np.ndarray:
    ends = np.append(STARTS[1:], 100) - 1
    return ((np.array(STARTS) + ends) / 2)[np.searchsorted(STARTS, hours, side="right") - 1]


def no_rows() -> dict[str, np.ndarray]:
    raise AssertionError("the tables have a number, and rows are not looked at")


def test_a_difference_without_residuals_is_that_of_midpoints():
    """The naive twin, which tells the first group's mean alone, is off by thirty hours."""
    domain, counts, (sex, _, hours) = village(3_000, 1)
    lists = without_residuals(fitted(counts, domain, NoSynthNoise()).lists)
    (told,) = answered(read_question(GAP, domain), lists, no_rows)
    middle = midpoints(hours)
    assert told.words.endswith(AT_MIDPOINTS) and told.low is None and not told.is_model_only
    assert told.estimate == pytest.approx(middle[sex == 1].mean() - middle[sex == 0].mean(), abs=1e-6)
    assert abs(told.estimate - middle[sex == 1].mean()) > 30


def shifts(rows: int, seed: int):
    """Most women work 36 hours and most men 40: bins whose midpoints are 12.5 apart."""
    domain, counts, (sex, _, _) = village(rows, seed)
    usual = np.random.default_rng(seed).random(rows) < 0.9
    hours = np.where(usual, np.where(sex == 1, 40, 36), np.arange(rows) % 100)
    cells = counts.cells.copy()
    cells[:, 2], cells[:, 3] = np.searchsorted(STARTS, hours, side="right") - 1, hours
    return domain, replace(counts, cells=cells), sex, hours


def test_a_slope_on_a_filter_is_the_difference_of_means():
    """Of the numbers themselves; at the midpoints of bins it is another number, and says so."""
    domain, counts, sex, hours = shifts(3_000, 1)
    lists = fitted(counts, domain, NoSynthNoise()).lists
    (slope,), (gap,) = ask(lists, SLOPE), ask(lists, GAP)
    assert slope.estimate == pytest.approx(np.polyfit(sex, hours, 1)[0], abs=1e-6)
    assert (slope.estimate, slope.noise, slope.sampling) == pytest.approx(
        (gap.estimate, gap.noise, gap.sampling)
    )
    assert "midpoints" not in slope.words
    (bare,) = ask(without_residuals(lists), SLOPE)
    assert bare.words.endswith(AT_MIDPOINTS)
    assert bare.estimate == pytest.approx(np.polyfit(sex, midpoints(hours), 1)[0], abs=1e-6)
    assert bare.estimate > slope.estimate + 5


@pytest.mark.parametrize(
    ("raw", "is_of_midpoints"),
    [
        ({"regression": "sex = 'm'", "on": "hours"}, True),
        ({"logistic": "sex = 'm'", "on": "hours"}, True),
        ({"regression": "hours", "on": "hours < 38"}, True),
        ({"regression": "hours", "on": ["sex = 'm'", "region = 's'"]}, True),
        ({"logistic": "sex = 'm'", "on": "region = 's'"}, False),
        ({"regression": "sex = 'm'", "on": ["region = 's'", "region = 'n'"]}, False),
        ({"mean": "hours"}, False),
    ],
)
def test_an_interval_about_midpoints_says_so(raw, is_of_midpoints):
    domain, counts, _ = village(3_000, 1)
    for told in ask(fitted(counts, domain, QuickSynthNoise(1)).lists, raw):
        assert told.low is not None
        assert told.words.endswith(AT_MIDPOINTS) == is_of_midpoints


def test_only_the_interval_lacks_where_a_complex_design_is_not_known():
    """The estimate is the tables' own, with the noise it has, and no synthetic row is looked at."""
    question = read_question({"proportion": "a = '0'"}, vector().domain)
    (told,), (known,) = (
        answered(question, vector(is_complex=True), no_rows),
        answered(question, vector(), no_rows),
    )
    assert (told.estimate, told.noise) == (known.estimate, known.noise)
    assert told.low is told.high is told.sampling is told.standard_error is None
    assert "design effect" in told.reason and not told.is_model_only and told.columns == ("a",)


def test_exact_slopes_hold_and_midpoints_do_not():
    """120 surveys of 2,000: intervals at 95 % hold 104 times or more (chance of a false alarm 0.0002); at midpoints never."""
    domain, _, sex, hours = shifts(400_000, 0)
    truth = hours[sex == 1].mean() - hours[sex == 0].mean()
    held, twin = 0, 0
    for run in range(120):
        lists = fitted(shifts(2_000, 20_000 + run)[1], domain, QuickSynthNoise(seed=run)).lists
        (slope,), (bare,) = ask(lists, SLOPE), ask(without_residuals(lists), SLOPE)
        held += slope.low <= truth <= slope.high
        twin += bare.low <= truth <= bare.high
    assert held >= 104
    assert twin < 12
