"""What PrivBayes chooses by: the reach of its scores, attained and never exceeded."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.synth.marginals.privbayes import REACH, dependence
from reticent.synth.marginals.privbayes_printed import FINE, _floor, information, information_reach

Score = Callable[[np.ndarray], Fraction | int]


def tables(cells: int, rows: int) -> Iterator[tuple[int, ...]]:
    """All ways to put at most `rows` rows into so many cells."""
    if cells == 0:
        yield ()
        return
    for here in range(rows + 1):
        for rest in tables(cells - 1, rows - here):
            yield (here, *rest)


def exact(table: np.ndarray) -> Fraction:
    """2 n R as a fraction."""
    n, r, s = int(table.sum()), table.sum(axis=1), table.sum(axis=0)
    if n == 0:
        return Fraction(0)
    return sum(
        (abs(int(table[i, j]) - Fraction(int(r[i]) * int(s[j]), n)) for i, j in np.ndindex(*table.shape)),
        Fraction(0),
    )


def moves(score: Score, shape: tuple[int, int], rows: int) -> list[Fraction | int]:
    """Of every small table, how far each further record moves its score."""
    found = []
    for cells in tables(shape[0] * shape[1], rows):
        table = np.array(cells).reshape(shape)
        here = score(table)
        for place in np.ndindex(*shape):
            more = table.copy()
            more[place] += 1
            found.append(abs(score(more) - here))
    return found


def test_a_record_moves_the_score_by_less_than_four() -> None:
    """Every table of 2 by 2 with up to 12 rows and of 2 by 3 with up to 5: strictly, before rounding down."""
    assert max(moves(exact, (2, 2), 12)) < REACH
    assert max(moves(exact, (2, 3), 5)) < REACH


def test_the_reach_is_attained_once_rounded() -> None:
    """Diagonal tables of 20 rows: from 3 to 7. So a reach of 3 would be refused, and of 4 is kept."""
    here, there = dependence(np.diag([1, 19])), dependence(np.diag([2, 19]))
    assert there - here == REACH
    assert max(moves(dependence, (2, 2), 12)) <= REACH


def divided(table: np.ndarray) -> Fraction:
    """The naive twin: R itself, in thousandths. With 1,000 rows expected, its published reach would be near 3."""
    n = int(table.sum())
    return exact(table) * Fraction(1000, 2 * n) if n else Fraction(0)


def test_dividing_by_a_confidential_n_moves_further() -> None:
    """Tables of up to four rows: the reach of R depends on the rows that are held, not on those expected."""
    assert max(moves(divided, (2, 2), 4)) > 100


@given(st.lists(st.integers(0, 1000), min_size=6, max_size=6), st.integers(0, 5))
def test_no_record_moves_larger_tables_further(cells: list[int], at: int) -> None:
    table = np.array(cells).reshape(2, 3)
    more = table.copy()
    more.ravel()[at] += 1
    assert abs(exact(more) - exact(table)) < REACH
    assert abs(dependence(more) - dependence(table)) <= REACH
    assert dependence(table) == exact(table) // 1


def test_huge_tables_are_scored_exactly() -> None:
    """Beyond 2**30 rows the products leave 64 bits: whole numbers of any size take over."""
    table = np.diag([2**31, 2**33 + 5])
    assert dependence(table) == exact(table) // 1


def test_independence_scores_nothing() -> None:
    assert dependence(np.outer([1, 2, 3], [4, 5])) == 0
    assert dependence(np.zeros((2, 2), dtype=np.int64)) == 0


def replaced(shape: tuple[int, int], n: int) -> int:
    """The furthest one replaced row moves the information of n rows, over all tables."""
    worst = 0
    for cells in tables(shape[0] * shape[1], n):
        if sum(cells) != n:
            continue
        table = np.array(cells).reshape(shape)
        for a, b in product(np.ndindex(*shape), repeat=2):
            if a != b and table[a]:
                other = table.copy()
                other[a] -= 1
                other[b] += 1
                worst = max(worst, abs(information(other) - information(table)))
    return worst


@pytest.mark.parametrize(("shape", "n"), [((3, 3), 2), ((3, 3), 3), ((2, 2), 7)])
def test_a_replaced_row_moves_information_within_the_printed_bound(shape: tuple[int, int], n: int) -> None:
    """All tables with n rows, all replacements."""
    assert replaced(shape, n) <= information_reach(n, [shape])


def test_the_printed_bound_is_attained() -> None:
    """n = 7: from four and four around a corner to a corner of its own; half of it would be refused."""
    # Row (x, y) alone in its cell of a cross with four in its line and four in its column, against alone altogether.
    table = np.array([[1, 3, 0], [3, 0, 0], [0, 0, 0]])
    other = np.array([[0, 3, 0], [3, 0, 0], [0, 0, 1]])
    moved = abs(information(other) - information(table)) / 2**FINE
    bound = 2 * log2(4) + 6 * log2(8 / 6)
    assert moved == pytest.approx(bound, abs=1e-4)
    assert moved > information_reach(7, [(3, 3)]) / 2 / 2**FINE


@given(st.integers(0, 10**7))
def test_rounded_logarithms_are_below_the_exact_by_less_than_a_step(k: int) -> None:
    near = k * log2(k) * 2**FINE if k else 0.0
    assert abs(_floor(k) - near) <= 1 + 1e-12 * near
    assert _floor(2**20) == 20 * 2**20 * 2**FINE
