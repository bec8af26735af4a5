"""Suppression: what it withholds, how it bends a slope, and why it hides nobody."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.papers.suppress import (
    FewEvents,
    FewRespondents,
    Published,
    binned_scatter,
    newcomer,
    scatters,
    suppress,
    worked_example,
)
from reticent.smallcells.estimators import CellMean
from tests.smallcells.squares import points


def test_the_rules_withhold_what_they_say():
    """Figure 3: one to four events withheld, none kept; and the plain threshold on respondents."""
    events, sizes = np.arange(7), np.array([3, 9, 9, 9, 9, 9, 12])
    assert FewEvents().keeps(sizes, events).tolist() == [True, False, False, False, False, True, True]
    assert FewRespondents(least=9).keeps(sizes, events).tolist() == [False] + [True] * 6
    cells = [[(0, 0)] * 5, [(0, 1)] * 2 + [(0, 0)] * 3, [(0, 1)] * 5, []]
    found = suppress(points(cells, 1, 1), CellMean(), FewEvents())
    assert found == (Fraction(0), None, Fraction(1), None)


def world(cells: int = 4000, seed: int = 3):
    """Cells of 10 to 100 people; the rate rises from 2 % to 10 % with x."""
    rng = np.random.default_rng(seed)
    x, sizes = rng.uniform(0, 1, cells), rng.integers(10, 101, cells)
    return x, sizes, rng.binomial(sizes, 0.02 + 0.08 * x)


def test_withholding_small_counts_bends_the_slope():
    """Exact expectation: a rate kept only when its count is 0 or above 4 rises more steeply than the rate does."""
    x, sizes, events = world()
    everything, kept = scatters(x, sizes, events, FewEvents())
    assert everything.cells == 4000 and kept.cells == int(FewEvents().keeps(sizes, events).sum()) < 4000
    # The slope of all cells is unbiased for 0.08: within 6 standard errors, false alarm below 1e-8.
    spread = np.sqrt((0.06 * 0.94 / sizes).mean() / (4000 * x.var()))
    assert abs(everything.slope - 0.08) < 6 * spread
    assert kept.slope - everything.slope > 6 * spread
    noisy = events / sizes + np.random.default_rng(1).laplace(scale=1 / sizes)
    assert abs(binned_scatter(x, noisy).slope - 0.08) < 6 * np.sqrt(
        spread**2 + (2 / sizes**2).mean() / (4000 * x.var())
    )


def test_bins_hold_equal_numbers_of_cells():
    made = binned_scatter(np.arange(40.0), 2 * np.arange(40.0), bins=4)
    assert made.x == (4.5, 14.5, 24.5, 34.5) and made.y == (9, 29, 49, 69) and made.slope == 2
    with pytest.raises(PlanError):
        binned_scatter(np.ones(5), np.ones(5))
    with pytest.raises(PlanError):
        scatters(np.arange(2.0), np.array([0, 1]), np.array([0, 1]), FewEvents())


def test_150_people_then_151_tell_the_answer_of_one():
    """The differencing attack, exactly, for every answer the last person could give; noise of 1/N would stop it."""
    first = [Fraction(i % 7, 7) for i in range(150)]
    for answer in (Fraction(0), Fraction(2, 7), Fraction(1)):
        before, after, told = worked_example([*first, answer], FewRespondents(least=100))
        assert (before.people, after.people) == (150, 151) and told == answer
    with pytest.raises(PlanError, match="withholds"):
        worked_example(first[:50], FewRespondents(least=100))
    with pytest.raises(PlanError, match="one person more"):
        newcomer(Published(people=5, mean=Fraction(1)), Published(people=7, mean=Fraction(1)))
