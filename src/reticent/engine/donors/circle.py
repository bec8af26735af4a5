"""The ring of donors: keyed places for labels, and rows sorted by several whole numbers with one sort of one number each.

**Places** come from a keyed polynomial over the field of p = 2^61 - 1 elements, in whole numbers. The numbers x_1, ..., x_n
of a label give z = a_0 + a_1 x_1 + ... + a_n x_n, and z gives the place c_0 + c_1 z + c_2 z^2 + c_3 z^3, all modulo p. With
coefficients drawn evenly, places of labels with different z are even and independent, any four of them (Wegman and
Carter, 1981), and two labels share a z with chance 1/p. The coefficients come from the key by SHA-256. Nothing that is
promised rests on how even the places are: only the size of the noise does. Elements are unsigned, of 64 bits, and held
below 2^61 + 8, for which 2^61 = 1 is used and no remainder is taken.

**Sorting.** The first of the numbers' bits and the row's own number share 64 bits, and those are sorted. Rows that the first
bits do not tell apart, few where they are spread evenly, are then sorted by all of theirs.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
BITS = 62  # of places, and of sums that become places
LOT = 2**21  # rows held in arrays at a time, unless one cell has more


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


Elements = NDArray[np.uint64]

HASH_BITS = 61
PRIME = 2**HASH_BITS - 1
_ALL, _BITS = np.uint64(PRIME), np.uint64(HASH_BITS)
_HALF, _LOW, _LOWER = np.uint64(31), np.uint64(2**31 - 1), np.uint64(2**30 - 1)
_AT_ONCE = 2**15  # rows whose intermediate results stay near the processor


def coefficients(key: str, count: int) -> list[int]:
    """`count` elements of the field, from the key."""
    digests = (sha256(f"{key}|{i}".encode()).digest() for i in range(count))
    return [int.from_bytes(digest) % PRIME for digest in digests]


def sums(label: Sequence[NDArray[np.int64]], start: int, by: Sequence[int]) -> Elements:
    """`start` + x_1 a_1 + ... over the numbers x of a `label`, each from 0 to 2^63 - 1, and the a in `by`."""

    def work(*numbers: Elements) -> Elements:
        found = np.full_like(numbers[0], start)
        for x, a in zip(numbers, by, strict=True):
            found = _plus(found, _times(_folded(x), np.uint64(a)))
        return found

    return _piecewise(work, *(x.view(np.uint64) for x in label))


def placed(z: Elements, number: NDArray[np.int64], by: int, c: Sequence[int]) -> NDArray[np.int64]:
    """The cubic with the coefficients `c`, the constant first, of every z + `by` number; from 0 to p - 1."""

    def work(some: Elements, times: Elements) -> Elements:
        x = _plus(some, _times(_folded(times), np.uint64(by)))
        h = np.full_like(x, c[3])
        for each in (c[2], c[1], c[0]):
            h = _plus(_times(h, x), np.uint64(each))
        return np.where(h >= _ALL, h - _ALL, h)

    return _piecewise(work, z, number.view(np.uint64)).view(np.int64)


def cubic(z: Whole, c: Sequence[int]) -> Whole:
    """The cubic with the coefficients `c`, the constant first, of every z below 2^61 + 8; from 0 to p - 1."""
    return placed(z.view(np.uint64), np.zeros_like(z), 0, c)


class Powers:
    """z, z^2 and z^3 of spots, in halves of 31 bits, from which the places of any key are made by products with constants.

    The same numbers as `cubic`. Halves are at most 2^31 and 2^30, those of a coefficient as well. So the three products of a
    kind can be added before anything is reduced: high ones to 3 2^60, middle ones to 3 2^62, low ones to 3 2^62.
    """

    def __init__(self, z: Whole) -> None:
        self._halves = np.empty((6, len(z)), np.uint64)
        for start in range(0, len(z), _AT_ONCE):
            piece = slice(start, start + _AT_ONCE)
            first = z[piece].view(np.uint64)
            second = _times(first, first)
            for power, each in enumerate((first, second, _times(second, first))):
                np.right_shift(each, _HALF, out=self._halves[2 * power, piece])
                np.bitwise_and(each, _LOW, out=self._halves[2 * power + 1, piece])

    def places(self, c: Sequence[int]) -> Whole:
        """c_0 + c_1 z + c_2 z^2 + c_3 z^3; from 0 to p - 1."""
        size = self._halves.shape[1]
        found = np.empty(size, np.uint64)
        high, middle, low, held = np.empty((4, min(size, _AT_ONCE)), np.uint64)
        for start in range(0, size, _AT_ONCE):
            out = found[start : start + _AT_ONCE]
            high, middle, low, held = (each[: len(out)] for each in (high, middle, low, held))
            self._add_up(self._halves[:, start : start + _AT_ONCE], c, high, middle, low, held)
            _reduced(high, middle, low, held, np.uint64(c[0]), out)
        return found.view(np.int64)

    @staticmethod
    def _add_up(
        halves: Elements, c: Sequence[int], high: Elements, middle: Elements, low: Elements, held: Elements
    ) -> None:
        """The sums of the three powers' products, by the halves that they are made of."""
        for power in range(3):
            z_high, z_low = halves[2 * power], halves[2 * power + 1]
            c_high, c_low = np.uint64(c[power + 1] >> 31), np.uint64(c[power + 1] & (2**31 - 1))
            kinds = [(high, z_high, c_high), (low, z_low, c_low), (middle, z_high, c_low)]
            for total, z, by in kinds:
                np.multiply(z, by, out=held if power else total)
                if power:
                    np.add(total, held, out=total)
            np.multiply(z_low, c_high, out=held)
            np.add(middle, held, out=middle)


def _reduced(
    high: Elements, middle: Elements, low: Elements, held: Elements, start: np.uint64, out: Elements
) -> None:
    """`start` + high 2^62 + middle 2^31 + low modulo p, where 2^62 is 2, 2^61 is 1 and 2^30 2^31 is 1; into `out`."""
    np.right_shift(low, _BITS, out=out)
    np.bitwise_and(low, _ALL, out=low)
    np.add(out, low, out=out)
    np.left_shift(high, np.uint64(1), out=high)
    np.add(out, high, out=out)
    np.right_shift(middle, np.uint64(30), out=held)
    np.add(out, held, out=out)
    np.bitwise_and(middle, _LOWER, out=middle)
    np.left_shift(middle, _HALF, out=middle)
    np.add(out, middle, out=out)
    np.add(out, start, out=out)
    np.right_shift(out, _BITS, out=held)
    np.bitwise_and(out, _ALL, out=out)
    np.add(out, held, out=out)
    np.subtract(out, _ALL, out=out, where=out >= _ALL)


def spots(z: Elements, number: Whole, by: int) -> Whole:
    """z + `by` number, from 0 to p - 1: one for each label, from which places of any key are made."""

    def work(some: Elements, times: Elements) -> Elements:
        found = _plus(some, _times(_folded(times), np.uint64(by)))
        return np.where(found >= _ALL, found - _ALL, found)

    return _piecewise(work, z, number.view(np.uint64)).view(np.int64)


def _piecewise(work: Callable[..., Elements], *columns: Elements) -> Elements:
    found = np.empty_like(columns[0])
    for start in range(0, len(found), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        found[piece] = work(*(column[piece] for column in columns))
    return found


def _folded(x: Elements) -> Elements:
    """The same modulo p: 2^61 is 1 there."""
    return (x & _ALL) + (x >> _BITS)


def _plus(a: Elements, b: Elements | np.uint64) -> Elements:
    return _folded(a + b)


def _times(a: Elements, b: Elements | np.uint64) -> Elements:
    """a b, from halves of 31 bits: a b = high 2^62 + middle 2^31 + low, where 2^62 is 2 and 2^30 2^31 is 1."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    middle = a_low * b_high + a_high * b_low
    crossed = (middle >> np.uint64(30)) + ((middle & _LOWER) << _HALF)
    return _folded(((a_high * b_high) << np.uint64(1)) + crossed + a_low * b_low)
