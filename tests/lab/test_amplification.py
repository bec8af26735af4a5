"""The table of amplification: every printed number is found, and where ours differs the reason stands beside it."""

from fractions import Fraction

import pytest

from reticent.lab.experiments import amplification
from reticent.privacy.sampling import amplified


@pytest.fixture(scope="module")
def lines():
    return amplification.run(0, 0)


def test_every_item_has_its_reason_and_no_item_comes_twice(lines):
    assert len(lines) == len({line.item for line in lines}) == 22
    assert all(line.query for line in lines)


def test_what_is_said_to_be_as_printed_is(lines):
    same = [line for line in lines if line.query in (amplification.SAME, amplification.ENUMERATED)]
    assert len(same) == 15
    for line in same:
        digits = 6 if line.printed in (0.452832, 0.872412) else 9
        assert f"{line.value:.{digits}f}" == f"{line.printed:.{digits}f}", line.item


def test_ours_is_below_every_printed_one_and_the_reason_is_the_true_difference(lines):
    ours = [line for line in lines if line.query == amplification.SMALLER]
    assert len(ours) == 6
    for line in ours:
        if line.printed is not None:
            assert line.printed - line.value == pytest.approx(0.105360516, abs=2e-9)  # -log(0.9)


@pytest.mark.parametrize(("n", "size"), [(2, 1), (3, 2), (4, 1), (4, 3), (6, 2)])
def test_enumeration_attains_the_formula_and_not_the_naive_one(n, size):
    """The naive twin, rate times epsilon, is passed."""
    worst = amplification.worst_loss(n, size, 1.0)
    assert worst == pytest.approx(float(amplified(epsilon=Fraction(1), rate=Fraction(size, n))), abs=1e-11)
    assert worst > size / n + 0.01
