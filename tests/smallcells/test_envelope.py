"""The envelope lies on or above every cell's local sensitivity, within its group."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.observed import envelope
from tests.smallcells.squares import QUARTER, points

SIZES = (3, 4, 4, 8, 8, 8, 20, 0, 1)
GROUPS = np.array([0, 0, 1, 1, 2, 2, 2, 0, 1], dtype=np.int64)


def table():
    rng = np.random.default_rng(3)
    return points([[(int(a), int(b)) for a, b in rng.integers(0, 10, (n, 2))] for n in SIZES], 9, 9)


LOCAL = local_sensitivity(table(), QUARTER)
COUNTS = np.array(SIZES, dtype=np.int64)
USED = [g for g in range(len(SIZES)) if not np.isnan(LOCAL[g])]


def test_chi_over_n_covers_every_cell_and_touches_one():
    """Exact rationals; chi is a decimal of nine places."""
    found = envelope(LOCAL, COUNTS)
    (chi,) = found.chi
    assert [g for g, bound in enumerate(found.bounds) if bound] == USED
    assert all(found.bounds[g].bound == chi / SIZES[g] >= Fraction(LOCAL[g]) for g in USED)
    assert chi - max(SIZES[g] * Fraction(LOCAL[g]) for g in USED) <= Fraction(2, 10**9)
    assert (chi * 10**9).denominator == 1


def test_groups_have_their_own_chi():
    """Each is what its cells alone would give; the naive maximum over all is larger for some."""
    found = envelope(LOCAL, COUNTS, groups=GROUPS)
    for group in range(3):
        inside = group == GROUPS
        assert found.chi[group] == envelope(LOCAL[inside], COUNTS[inside]).chi[0]
    assert max(found.chi) == envelope(LOCAL, COUNTS).chi[0] and len(set(found.chi)) == 3
    assert all(found.bounds[g].bound == found.chi[GROUPS[g]] / SIZES[g] for g in USED)


def test_cells_of_one_size_may_use_their_own_maximum():
    """It covers each of them and is below chi / N; where all sizes are equal the two agree."""
    found, general = envelope(LOCAL, COUNTS, equal_sizes=True), envelope(LOCAL, COUNTS)
    for g in USED:
        alike = [h for h in USED if SIZES[h] == SIZES[g]]
        assert found.bounds[g].bound == Fraction(max(LOCAL[h] for h in alike)) <= general.bounds[g].bound
    same = np.full(5, 8, dtype=np.int64)
    local = np.array([0.1, 0.3, 0.2, 0.25, 0.05])
    bounds = [envelope(local, same, equal_sizes=is_equal).bounds for is_equal in (True, False)]
    assert all(0 <= b.bound - a.bound <= Fraction(1, 10**9) for a, b in zip(*bounds, strict=True))


def test_small_cells_can_be_left_out():
    found = envelope(LOCAL, COUNTS, least=8)
    assert [g for g, bound in enumerate(found.bounds) if bound] == [g for g in USED if SIZES[g] >= 8]
    assert found.chi[0] == envelope(LOCAL[3:7], COUNTS[3:7]).chi[0]
    empty = envelope(LOCAL, COUNTS, least=99, groups=GROUPS, equal_sizes=True)
    assert empty.chi == (0, 0, 0) and not any(empty.bounds)


@pytest.mark.parametrize("how", [{"least": 0}, {"groups": GROUPS[1:]}, {"groups": GROUPS - 1}])
def test_what_is_declared_wrongly_is_refused(how):
    with pytest.raises(PlanError):
        envelope(LOCAL, COUNTS, **how)
