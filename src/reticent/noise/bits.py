"""Fair bits, the only randomness of the library. A release takes them from the operating system."""

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Bits(Protocol):
    """A source of fresh, independent, fair bits."""

    @property
    def is_private(self) -> bool:
        """Whether nobody can foresee or replay the bits. Only such bits can stand behind a claim."""
        ...

    def take(self, n: int) -> int:
        """The next `n` bits as an integer below 2**n."""
        ...


class SystemBits:
    """The operating system's generator.

    Nothing is kept between calls, so a forked child has no state of ours to repeat.
    """

    @property
    def is_private(self) -> bool:
        """True: the kernel reseeds and never repeats."""
        return True

    def take(self, n: int) -> int:
        """`n` fresh bits from the kernel."""
        size = (n + 7) // 8
        return int.from_bytes(os.urandom(size)) >> (8 * size - n)


def below(n: int, bits: Bits) -> int:
    """An integer uniform on 0 .. n-1: draw as many bits as n-1 has, and again while it is too large."""
    if n < 1:
        raise ValueError("there is no integer from 0 below it")
    width = (n - 1).bit_length()
    while (drawn := bits.take(width)) >= n:
        pass
    return drawn


def words(n: int, bits: Bits) -> NDArray[np.uint64]:
    """`n` independent words of 64 bits."""
    return np.frombuffer(bits.take(64 * n).to_bytes(8 * n), dtype=np.uint64)
