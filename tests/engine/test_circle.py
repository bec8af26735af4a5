"""Rows are put in order, and numbered among equals, as sorting them by all of their numbers would."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from reticent.engine.donors import circle
from reticent.engine.donors.circle import BITS, lots, numbers, order_of


@pytest.mark.parametrize("seed", range(40))
def test_the_order_is_that_of_all_numbers(seed: int):
    """Few and many rows, cells and places, tied in the first bits, in all of them, or in none: a stable sort by all."""
    dice = np.random.default_rng(seed)
    rows = int(dice.choice([0, 1, 2, 50, 3_000]))
    cell = dice.integers(0, int(dice.choice([1, 40, 2**18])), rows).astype(np.int32)
    place = dice.integers(0, int(dice.choice([1, 7, 2**20, 2**BITS])), rows)
    place |= int(dice.choice([0, 2**61]))  # high bits alike
    ties = [dice.integers(0, int(dice.choice([2, 2**63 - 1])), rows) for _ in range(int(dice.integers(0, 3)))]
    found = order_of(cell, place, ties)
    meant = np.lexsort([*reversed(ties), place, cell])
    for column in (cell, place, *ties):
        assert np.array_equal(column[found], column[meant])
    assert np.array_equal(np.sort(found), np.arange(rows))


def by_first_bits(cell: Any, place: Any, ties: Any) -> Any:
    """Naive: what the first bits do not settle is left as it comes."""
    return circle._nearly(cell, place)[0]


def test_leaving_ties_as_they_come_is_caught():
    """500 rows in 2^18 cells whose places differ in the last bits only."""
    dice = np.random.default_rng(1)
    cell = np.full(500, 2**18 - 1, np.int32)
    place = dice.permutation(500)
    right, wrong = (place[order(cell, place, [])] for order in (order_of, by_first_bits))
    assert np.array_equal(right, np.arange(500))
    assert not np.array_equal(wrong, right)


SPREADS = {
    "apart": lambda words: (words[0] * 7 + words[1] % 7) * 2**55,
    "some together": lambda words: words[0] // 3,
    "all together": lambda words: 0 * words[0],
}


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
@pytest.mark.parametrize("with_lines", [False, True])
def test_equals_are_numbered_from_one_each_once(spread: Any, with_lines: bool):
    """Two thousand rows of a few dozen kinds, however badly spread; by line where there are lines."""
    dice = np.random.default_rng(2)
    words = [dice.integers(0, 6, 2_000), dice.integers(2**63 - 6, 2**63 - 1, 2_000)]
    line = dice.permutation(2_000)
    found = numbers(spread(words), words, [line] if with_lines else [])
    seen = Counter[tuple[int, ...]]()
    told = dict[tuple[int, ...], list[int]]()
    for row in np.argsort(line).tolist():
        kind = tuple(int(word[row]) for word in words)
        seen[kind] += 1
        told.setdefault(kind, []).append(int(found[row]))
    for kind, given in told.items():
        assert (given if with_lines else sorted(given)) == list(range(1, seen[kind] + 1))


def test_lots_hold_every_cell_once_and_no_more_rows_than_they_may(monkeypatch: pytest.MonkeyPatch):
    """Thirty tables of twenty cells: runs follow each other, and only a single cell passes the limit."""
    monkeypatch.setattr(circle, "LOT", 10)
    for seed in range(30):
        rows = np.random.default_rng(seed).integers(0, 14, 20)
        found = lots(np.arange(20), rows)
        assert [cell for first, last in found for cell in range(first, last + 1)] == list(range(20))
        assert all(first == last or rows[first : last + 1].sum() <= 10 for first, last in found)
        together = [rows[a : d + 1].sum() for (a, _), (_, d) in pairwise(found)]
        assert all(both > 10 for both in together)  # none could be joined with the next
    assert lots(np.zeros(0, np.int64), np.zeros(0, np.int64)) == [(0, 0)]
