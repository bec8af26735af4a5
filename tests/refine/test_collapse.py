"""Collapsing by noisy counts: the floor, and that nothing but the noisy counts decides."""

import math
from fractions import Fraction

import pytest

from reticent.errors import PlanError
from reticent.prepare.strata import Order, outward, separate
from reticent.refine.collapse import collapse, least_count, least_members

F = Fraction


def test_least_members_are_the_printed_ones():
    """THEORY 6.5a."""
    assert [least_members(F(1, n)) for n in (8, 16, 32)] == [28, 69, 165]


@pytest.mark.parametrize("beta", [F(1, 100), F(1, 8), F(1, 2), F(2, 3), F(7, 10), F(3)], ids=str)
def test_from_the_least_on_the_bound_is_the_weight_itself(beta):
    """N e^(-beta (n-1)) <= N/n from n_min on, and not just before it. One member satisfies it too: a trap."""

    def holds(n):
        return math.exp(-beta * (n - 1)) <= 1 / n

    least = least_members(beta)
    assert all(holds(n) for n in range(least, least + 3000))
    assert least == 2 or not holds(least - 1)
    assert holds(1) and least > 1


def test_bins_are_put_together_until_every_noisy_count_is_enough():
    """At epsilon 1 and beta 1/8 a noisy count of 31 is enough and 30 is not."""
    assert least_count(beta=F(1, 8), epsilon=F(1)) == 31
    start = separate([F(n) for n in (1, 2, 3, 4, 5)])
    made = collapse(start, outward(5), [31, 30, 500, -4, 40], beta=F(1, 8), epsilon=F(1))
    assert made.bins == (0, 0, 1, 1, 2) and made.totals == (3, 7, 5)


def test_without_anything_to_join_a_small_bin_stays():
    start = separate([F(1)] * 3)
    made = collapse(start, Order(merges=((0, 1),)), [1, 2, 3], beta=F(1, 8), epsilon=F(1))
    assert made.bins == (0, 0, 1)


def test_what_does_not_fit_is_refused():
    start = separate([F(1)] * 3)
    for beta, epsilon in ((F(0), F(1)), (F(1, 8), F(0))):
        with pytest.raises(PlanError):
            collapse(start, outward(3), [1, 2, 3], beta=beta, epsilon=epsilon)
    with pytest.raises(ValueError, match="each bin"):
        collapse(start, outward(3), [1, 2], beta=F(1, 8), epsilon=F(1))
