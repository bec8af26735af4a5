"""Intervals of shares and ratios of cells: their exact coverage on small tables, summed over all the noise there is."""

from functools import cache
from itertools import product
from math import inf

import numpy as np
import pytest

from reticent.refine.cell_ratio import CellSum, difference_width, ratio_interval, share_interval

SCALE, LEVEL, REACH = 0.7, 0.6, 16
COUNTS = [(0, 5), (2, 4), (5, 2)]


def law(cells: int) -> dict[int, float]:
    """Of the noise of a sum of cells, as far as it matters."""
    k = np.arange(-REACH, REACH + 1)
    one = np.exp(-np.abs(k) / SCALE) * np.tanh(1 / (2 * SCALE))
    found = one
    for _ in range(cells - 1):
        found = np.convolve(found, one, mode="same")
    return dict(zip(k.tolist(), found.tolist(), strict=True))


@cache
def released(top: int, bottom: int, cells: tuple[int, int]) -> tuple[float, float]:
    return share_interval(
        CellSum(value=top, cells=cells[0]), CellSum(value=bottom, cells=cells[1]), scale=SCALE, level=LEVEL
    )


@pytest.mark.parametrize("cells", [(1, 1), (1, 2)], ids=str)
def test_a_share_is_covered_as_often_as_stated(cells):
    """True pairs at both ends and between, every noise up to 5 scales: no less than the level, and not everything."""
    near = 3
    for x, y in COUNTS:
        noise = product(law(cells[0]).items(), law(cells[1]).items())
        held = missed = 0.0
        for (a, p), (b, q) in noise:
            if max(abs(a), abs(b)) <= near:
                low, high = released(x + a, y + b, cells)
                covers = low <= x / (x + y) <= high
                held, missed = held + p * q * covers, missed + p * q * (not covers)
        assert held >= LEVEL and missed > 0


def test_an_interval_for_one_cell_fewer_covers_less():
    """The naive twin: a sum of nine cells taken for one."""
    x = CellSum(value=900, cells=9)
    y = CellSum(value=2100, cells=1)
    naive = share_interval(CellSum(value=900, cells=1), y, scale=20.0, level=LEVEL)
    sound = share_interval(x, y, scale=20.0, level=LEVEL)
    assert sound[0] < naive[0] < 0.3 < naive[1] < sound[1]


def test_ratios_on_both_sides_of_one_are_each_others_inverse():
    one, other = CellSum(value=50, cells=2), CellSum(value=80, cells=3)
    low, high = ratio_interval(one, other, scale=SCALE, level=LEVEL)
    back, forth = ratio_interval(other, one, scale=SCALE, level=LEVEL)
    assert low < 50 / 80 < high
    assert (low, high) == pytest.approx((1 / forth, 1 / back))


def test_what_is_hardly_known_is_wide_and_never_outside():
    """Around nobody at all, and below nothing: the whole range, and no failure."""
    for x, y in product((-9, -1, 0, 1), repeat=2):
        low, high = share_interval(
            CellSum(value=x, cells=1), CellSum(value=y, cells=1), scale=20.0, level=0.95
        )
        assert (low, high) == (0, 1)
    assert ratio_interval(CellSum(value=5, cells=1), CellSum(value=0, cells=1), scale=20.0, level=0.95) == (
        0,
        inf,
    )


def test_noise_beyond_the_level_gives_a_point_and_no_error():
    low, high = share_interval(CellSum(value=-60, cells=1), CellSum(value=5, cells=1), scale=0.5, level=0.5)
    assert 0 <= low == high <= 1


def test_large_counts_are_told_sharply():
    """3,000 of 10,000 with noise of scale 2: within a thousandth; the delta rule says .0009."""
    low, high = share_interval(
        CellSum(value=3000, cells=1), CellSum(value=7000, cells=1), scale=2.0, level=0.95
    )
    assert low < 0.3 < high and high - low < 0.0018


def test_the_noise_of_a_difference_is_that_of_all_its_cells():
    assert difference_width(2, scale=3.0, level=0.95) == pytest.approx(
        difference_width(2, scale=3.0, level=0.95)
    )
    assert difference_width(8, scale=3.0, level=0.95) == pytest.approx(
        2 * difference_width(2, scale=3.0, level=0.95), rel=0.05
    )
