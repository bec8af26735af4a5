"""Distances are what their definition says, by another way of counting, and refuse cells that are none."""

from itertools import combinations

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.judge.distances import by_column, distances
from reticent.lab.trials.tables import cells_of


def slow(first: np.ndarray, second: np.ndarray, k: int) -> float:
    """The same by dictionaries of rows."""
    found = []
    for places in combinations(range(first.shape[1]), k):
        shares: dict[tuple[int, ...], float] = {}
        for rows, sign in ((first, 1), (second, -1)):
            for row in rows[:, places].tolist():
                shares[tuple(row)] = shares.get(tuple(row), 0) + sign / len(rows)
        found.append(sum(map(abs, shares.values())) / 2)
    return float(np.mean(found))


def test_distances_equal_their_definition(census):
    """All pairs and triples of eleven columns, sides of different length."""
    first, second = census.cells()[:300], census.cells()[300:500]
    found = distances(first, second, census.domain())
    assert all(abs(found[k] - slow(first, second, k)) < 1e-12 for k in (1, 2, 3))
    assert found[1] < found[2] < found[3]


def test_rows_are_at_no_distance_from_themselves_in_any_order(census):
    cells = census.cells()
    assert set(distances(cells, cells[::-1], census.domain()).values()) == {0.0}


def test_right_margins_alone_are_at_no_1_way_distance(census, shuffled):
    """What a 1-way distance cannot see, a 2-way distance does."""
    found = distances(census.cells(), cells_of(shuffled, census.domain()), census.domain())
    assert found[1] == 0 and found[2] > 0.1


def test_silence_and_not_being_asked_are_cells_of_their_own(census):
    """Naive twin: calling them the first answer moves rows that no answer moved."""
    domain, cells = census.domain(), census.cells()
    marital = domain.columns.index("marital")
    unasked = cells[:, marital] == domain.axes[marital].unasked
    naive = cells.copy()
    naive[unasked, marital] = 0
    assert by_column(cells, naive, domain)["marital"] == unasked.mean() > 0.1


def test_fewer_bins_are_never_further_apart(census):
    """One bin for two of sixteen: merging cells can only bring two tables together."""
    fine, coarse = census.domain(16), census.domain(8)
    half = len(census.codes) // 2
    pairs = [
        distances(cells_of(census.codes[:half], d), cells_of(census.codes[half:], d), d, ways=(1, 2))
        for d in (fine, coarse)
    ]
    assert all(pairs[1][k] <= pairs[0][k] for k in (1, 2))


@pytest.mark.parametrize("cell", [-1, 99])
def test_a_cell_outside_the_domain_is_refused(census, cell):
    """It would be counted as a cell of another line."""
    bad = census.cells().copy()
    bad[7, 2] = cell
    with pytest.raises(PlanError):
        distances(census.cells(), bad, census.domain())
    with pytest.raises(PlanError):
        distances(census.cells(), census.cells()[:, 1:], census.domain())
    with pytest.raises(PlanError):
        distances(census.cells(), census.cells()[:0], census.domain())
