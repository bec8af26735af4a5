"""The better of the joint table and its margins is measured, and no margin of a table that is asked for."""

from fractions import Fraction
from math import inf, sqrt

import pytest

from reticent.refine.allocation import choose_tables, largest, mean_variance, measured_apart, shares_of
from reticent.refine.combination import NoiseLaw
from reticent.refine.residuals import Agreement, Measured

PAIRS = ((0, 1), (1, 2), (0, 2))


def laplace(axes: tuple[int, ...], share: Fraction) -> float:
    """Scale of Laplace noise at a share of epsilon 1/1000: so large that its lattice is not seen."""
    return 1000 / float(share)


def gauss(axes: tuple[int, ...], share: Fraction) -> float:
    """Sigma at a share of rho 1/2."""
    return 1 / sqrt(share)


THEORY = [
    ((8, 5, 10), PAIRS, 14.1, True),
    ((4, 2, 9), PAIRS, 7.0, True),
    ((10, 6, 8, 3), ((0, 1), (1, 2), (2, 3)), 65, False),
]


@pytest.mark.parametrize(("shape", "asked", "variance", "is_joint"), THEORY)
def test_the_choice_is_that_of_the_statement(shape, asked, variance, is_joint):
    """THEORY 15.3: the full table at epsilon where it is better, else the margins at epsilon/k each."""
    joint = measured_apart(shape, [tuple(range(len(shape)))], scale=laplace)
    assert mean_variance(joint, asked) / 1e6 == pytest.approx(variance, rel=0.01)
    chosen = choose_tables(shape, asked, scale=laplace)
    assert (len(chosen.measured) == 1) is is_joint
    other = measured_apart(shape, asked, scale=laplace)
    assert mean_variance(chosen, asked) == min(mean_variance(joint, asked), mean_variance(other, asked))


def test_a_margin_of_a_table_is_not_measured_by_itself():
    asked = [(0,), (0, 1), (1,), (1, 2), (0, 1)]
    assert largest(asked) == ((0, 1), (1, 2))
    chosen = choose_tables((30, 20, 30), asked, scale=lambda axes, share: 1 / float(share))
    assert [table.axes for table in chosen.measured] == [(0, 1), (1, 2)]


def test_asking_for_margins_too_never_costs():
    """The naive twin, a share for each of six margins, has 1.2 times the variance even after least squares."""
    shape, asked = (10, 6, 8), [(0,), (1,), (2,), *PAIRS]
    chosen = choose_tables(shape, asked, scale=gauss, law=NoiseLaw.GAUSSIAN)
    naive = Agreement(shape, tuple(Measured(axes=a, scale=sqrt(6), law=NoiseLaw.GAUSSIAN) for a in asked))
    assert mean_variance(naive, asked) > 1.2 * mean_variance(chosen, asked)


def test_one_table_is_measured_whole():
    chosen = choose_tables((4, 5), [(0, 1)], scale=lambda axes, share: 1 / float(share))
    assert [table.axes for table in chosen.measured] == [(0, 1)]


def test_a_joint_table_that_is_too_large_is_no_choice():
    shape = (200, 100, 100)
    chosen = choose_tables(shape, PAIRS, scale=lambda axes, share: 1.0 if share == 1 else 1e6)
    assert len(chosen.measured) == 3
    assert mean_variance(chosen, PAIRS) < inf


def test_shares_of_rho_go_with_the_root_of_the_cells_and_are_the_best():
    """No other split of rho has a smaller sum of variances; shares are rationals that add up to 1."""
    cells = [40, 50, 800]
    shares = shares_of(cells, NoiseLaw.GAUSSIAN)
    assert sum(shares) == 1 and all(share > 0 for share in shares)

    def noise(split):
        return sum(n / float(share) for n, share in zip(cells, split, strict=True))

    for i, j in ((0, 1), (1, 2), (2, 0)):
        for step in (Fraction(1, 50), Fraction(-1, 50)):
            moved = list(shares)
            moved[i] += step
            moved[j] -= step
            assert noise(shares) < noise(moved)
    assert shares_of(cells, NoiseLaw.LAPLACE) == (Fraction(1, 3),) * 3


def test_rooted_shares_tell_more_than_even_ones_after_agreement():
    """Three margins of very unequal length, rho 1/2."""
    shape, asked = (40, 30, 3), PAIRS
    rooted = measured_apart(shape, asked, scale=gauss, law=NoiseLaw.GAUSSIAN)
    even = Agreement(shape, tuple(Measured(axes=a, scale=sqrt(3), law=NoiseLaw.GAUSSIAN) for a in asked))
    assert mean_variance(rooted, asked) < 0.9 * mean_variance(even, asked)
