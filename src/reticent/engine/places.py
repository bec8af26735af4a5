"""Places on the ring: a keyed polynomial over the field of p = 2^61 - 1 elements, in whole numbers.

The numbers x_1, ..., x_n of a label give z = a_0 + a_1 x_1 + ... + a_n x_n, and z gives the place
c_0 + c_1 z + c_2 z^2 + c_3 z^3, all modulo p. With coefficients drawn evenly, places of labels with different z
are even and independent, any four of them (Wegman and Carter, 1981), and two labels share a z with chance 1/p. The
coefficients come from the key by SHA-256. Nothing that is promised rests on how even the places are: only the
size of the noise does. A digest of every record's text would do as well, at several times the cost.

Elements are unsigned, of 64 bits, and held below 2^61 + 8, for which 2^61 = 1 is used and no remainder is taken.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

Elements = NDArray[np.uint64]

BITS = 61
PRIME = 2**BITS - 1
_ALL, _BITS = np.uint64(PRIME), np.uint64(BITS)
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
