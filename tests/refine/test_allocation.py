"""The better of the joint table and its margins is measured, and no margin of a table that is asked for."""

from math import inf, sqrt

import pytest

from reticent.refine.allocation import choose_tables, largest, mean_variance
from reticent.refine.combination import NoiseLaw
from reticent.refine.residuals import Agreement, Measured

PAIRS = ((0, 1), (1, 2), (0, 2))


def laplace(k: int) -> float:
    """Standard deviation of continuous Laplace noise at epsilon 1/k; the law is taken for its variance alone."""
    return sqrt(2) * k


THEORY = [
    ((8, 5, 10), PAIRS, 14.1, True),
    ((4, 2, 9), PAIRS, 7.0, True),
    ((10, 6, 8, 3), ((0, 1), (1, 2), (2, 3)), 65, False),
]


@pytest.mark.parametrize(("shape", "asked", "variance", "is_joint"), THEORY)
def test_the_choice_is_that_of_the_statement(shape, asked, variance, is_joint):
    """THEORY 15.3: the full table at epsilon where it is better, else the margins at epsilon/k each."""
    joint = Agreement(
        shape, (Measured(axes=tuple(range(len(shape))), scale=laplace(1), law=NoiseLaw.GAUSSIAN),)
    )
    assert mean_variance(joint, asked) == pytest.approx(variance, rel=0.01)
    chosen = choose_tables(shape, asked, scale=laplace, law=NoiseLaw.GAUSSIAN)
    assert (len(chosen.measured) == 1) is is_joint
    other = Agreement(shape, tuple(Measured(axes=a, scale=laplace(3), law=NoiseLaw.GAUSSIAN) for a in asked))
    assert mean_variance(chosen, asked) == min(mean_variance(joint, asked), mean_variance(other, asked))


def test_a_margin_of_a_table_is_not_measured_by_itself():
    asked = [(0,), (0, 1), (1,), (1, 2), (0, 1)]
    assert largest(asked) == ((0, 1), (1, 2))
    chosen = choose_tables((30, 20, 30), asked, scale=lambda k: float(k))
    assert [table.axes for table in chosen.measured] == [(0, 1), (1, 2)]


def test_asking_for_margins_too_never_costs():
    """The naive twin, a share for each of six margins, has 1.2 times the variance even after least squares."""
    shape, asked = (10, 6, 8), [(0,), (1,), (2,), *PAIRS]
    chosen = choose_tables(shape, asked, scale=lambda k: sqrt(k), law=NoiseLaw.GAUSSIAN)
    naive = Agreement(shape, tuple(Measured(axes=a, scale=sqrt(6), law=NoiseLaw.GAUSSIAN) for a in asked))
    assert mean_variance(naive, asked) > 1.2 * mean_variance(chosen, asked)


def test_one_table_is_measured_whole():
    chosen = choose_tables((4, 5), [(0, 1)], scale=lambda k: float(k))
    assert [table.axes for table in chosen.measured] == [(0, 1)]


def test_a_joint_table_that_is_too_large_is_no_choice():
    shape = (200, 100, 100)
    chosen = choose_tables(shape, PAIRS, scale=lambda k: 1.0 if k == 1 else 1e6)
    assert len(chosen.measured) == 3
    assert mean_variance(chosen, PAIRS) < inf
