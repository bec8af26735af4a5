"""How far one respondent moves the sums: brute force over extreme points, with the constants of THEORY 7.3."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from reticent.models import design as moves
from reticent.models.design import records
from reticent.models.moments import UNIT
from reticent.models.sums import eigenvalue_bound, least_eigenvalue
from reticent.sensitivity.bounds import Neighbours
from tests.models.worlds import ADD, REPLACE, design, extremes, some_rows

LEVELS = (-1.0, -0.5, 0.0, 0.5, 1.0)


def weighted(z: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """(a_i^2 z_i^2, 2 a_i a_j z_i z_j), for many rows at once."""
    i, j = np.triu_indices(len(scales))
    return np.where(i == j, 1, 2) * scales[i] * scales[j] * z[:, i] * z[:, j]


def furthest(z: np.ndarray, scales: np.ndarray, *, replaced: bool) -> float:
    """The largest L1 distance over all pairs of rows, or from nothing."""
    made = weighted(z, scales)
    others = made if replaced else np.zeros((1, made.shape[1]))
    return max(float(np.abs(made - other).sum(axis=1).max()) for other in [*others, np.zeros(made.shape[1])])


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_functional_mechanism_needs_d_plus_one_squared(d, neighbours):
    """THEORY 7.3: attained, add/remove and replace alike, over all pairs of a grid. The usual 2(d+1)^2 is twice that."""
    levels = LEVELS if d < 3 else (-1.0, 0.0, 1.0)
    z = np.array(list(product(levels, repeat=d + 1)))
    bound = moves.products_l1([Fraction(1)] * (d + 1), neighbours=neighbours)
    assert bound == (d + 1) ** 2
    assert furthest(z, np.ones(d + 1), replaced=neighbours.replaced) == pytest.approx(float(bound))


@pytest.mark.parametrize("scales", [(0.5, 1, 1), (0.25, 1, 2, 1), (1, 3, 0.5)])
def test_a_scale_for_each_column_keeps_the_bound(scales):
    """Replace, over all pairs of a grid; a bound less one part in a hundred is refuted."""
    z = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(scales))))
    bound = float(moves.products_l1([Fraction(a) for a in scales], neighbours=REPLACE))
    moved = furthest(z, np.array(scales, dtype=float), replaced=True)
    assert moved <= bound + 1e-12
    assert moved > 0.99 * bound  # the naive twin: anything smaller


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_euclidean_bound_covers_all_pairs(m):
    z = np.array(list(product((-1.0, 0.0, 1.0), repeat=m)))
    i, j = np.triu_indices(m)
    made = z[:, i] * z[:, j]
    apart = max(float(np.sqrt(((made - other) ** 2).sum(axis=1)).max()) for other in made)
    alone = float(np.sqrt((made**2).sum(axis=1)).max())
    assert alone == pytest.approx(float(moves.products_l2(m, neighbours=ADD)))
    assert alone <= apart <= float(moves.products_l2(m, neighbours=REPLACE))
    assert apart > float(moves.products_l2(m, neighbours=ADD)) or m == 2  # add/remove's bound would not do


@pytest.mark.parametrize("neighbours", [ADD, REPLACE, Neighbours(records=3)])
def test_the_gradient_bound_is_attained(neighbours):
    one, two = moves.gradient(3, Fraction(1, 2), neighbours=neighbours)
    term = np.array([0.5, -0.5, 0.5])
    moved = term * (neighbours.records * (2 if neighbours.replaced else 1))
    assert np.abs(moved).sum() == float(one)
    assert np.linalg.norm(moved) == pytest.approx(float(two))


@pytest.mark.parametrize(
    "square", [Fraction(2), Fraction(0), Fraction(1, 10**9), Fraction(10**9 + 1), Fraction(9)]
)
def test_roots_are_rounded_up(square):
    root = moves.root_up(square)
    assert root**2 > square or square == root == 0
    assert (root - Fraction(1, 2**39)) ** 2 <= square + Fraction(1, 2**70) or root < Fraction(1, 2**39)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_the_smallest_eigenvalue_moves_no_further_than_stated(neighbours):
    """Every extreme row exchanged or added in small data; and it is the eigenvalue, to a step."""
    plan = design(2)
    x, y = some_rows(plan, 7)
    base = records(plan, x, y).sums()
    found = least_eigenvalue(base)
    gram = np.array([[float(v) for v in row] for row in base.ordinary()[0]])
    assert found / UNIT == pytest.approx(np.linalg.eigvalsh(gram)[0], abs=1e-5)
    kept = slice(0, -1) if neighbours.replaced else slice(None)
    bound = eigenvalue_bound(3, neighbours=neighbours)
    for row in extremes(plan):
        other = records(plan, np.vstack([x[kept], row[:-1]]), np.append(y[kept], row[-1])).sums()
        assert abs(least_eigenvalue(other) - found) <= bound
