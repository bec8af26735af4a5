"""Rows put in order by several whole numbers, with one sort of one number for each.

The first of the numbers' bits and the row's own number share 64 bits, and those are sorted. Rows that the
first bits do not tell apart, few where they are spread evenly, are then sorted by all of theirs.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
BITS = 62  # of places, and of sums that become places
LOT = 2**22  # rows held in arrays at a time, unless one cell has more


def order_of(major: NDArray[np.integer], minor: Whole, ties: Sequence[Whole]) -> Whole:
    """The rows by `major`, by `minor`, which is below 2^BITS, and by each of `ties`. None is below 0."""
    order, prefix, at = _nearly(major, minor)
    among = order[at]
    by = [*(each[among] for each in reversed(ties)), minor[among], prefix]
    order[at] = among[np.lexsort(by)]
    return order


def numbers(spread: Whole, equal: Sequence[Whole], line: Sequence[Whole] = ()) -> Whole:
    """A running number from 1 among rows that agree in all of `equal`, by `line` where it is given.

    `spread` is a function of `equal`, so that rows that agree are found side by side when sorted by it.
    """
    found = np.ones(len(spread), np.int64)
    order, prefix, at = _nearly(np.zeros(len(spread), np.int64), spread)
    among = order[at]
    new = _begins(among, equal)
    # Rows that share a prefix and are not equal, by chance, are few; only they, and lines, have to be sorted.
    start = np.append(True, prefix[1:] != prefix[:-1])[: len(prefix)]
    run = np.cumsum(start)
    mixed = np.ones(len(among), np.bool_) if line else np.isin(run, run[new & ~start])
    some = among[mixed]
    among[mixed] = some[np.lexsort([*(each[some] for each in (*line, *equal)), run[mixed]])]
    new = _begins(among, equal) if mixed.any() else new
    place = np.arange(len(among))
    found[among] = place - np.maximum.accumulate(np.where(new, place, 0)) + 1
    return found


def _begins(rows: Whole, equal: Sequence[Whole]) -> NDArray[np.bool_]:
    """Where a row differs in some of `equal` from the row before it."""
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.logical_or.reduce([(held := each[rows])[1:] != held[:-1] for each in equal])
    return new


def lots(cell: Whole, rows: Whole) -> list[tuple[int, int]]:
    """The first and last cells of runs that hold at most LOT of the `rows` each, or one cell; at least one run."""
    sizes = np.bincount(cell, weights=rows).astype(np.int64)  # below 2^53: exact
    upto, found, first = np.cumsum(sizes), list[tuple[int, int]](), 0
    while first < len(sizes) or not found:
        before = int(upto[first - 1]) if first else 0
        last = max(first, int(np.searchsorted(upto, before + LOT, side="right")) - 1)
        found.append((first, last))
        first = last + 1
    return found


def _nearly(major: NDArray[np.integer], minor: Whole) -> tuple[Whole, NDArray[np.uint64], Whole]:
    """The rows by major and the first bits of minor; and the prefix and places of those that these do not settle."""
    index, span = len(major).bit_length(), int(major.max(initial=0)).bit_length()
    room = min(BITS, 64 - index - span)
    key = major.astype(np.uint64) << np.uint64(room)
    key |= (minor >> (BITS - room)).view(np.uint64)
    key <<= np.uint64(index)
    key |= np.arange(len(key), dtype=np.uint64)
    key.sort()
    order = (key & np.uint64(2**index - 1)).view(np.int64)
    key >>= np.uint64(index)
    same = np.zeros(len(key) + 1, np.bool_)
    same[1:-1] = key[1:] == key[:-1]
    at = np.flatnonzero(same[1:] | same[:-1])
    return order, key[at], at
