"""Bits that repeat, for tests. A release drawn from them is no release."""

import hashlib
import os
from dataclasses import dataclass

from reticent.noise.bits import Bits, SystemBits

IS_NIGHTLY = os.environ.get("RETICENT_NIGHTLY") == "1"


@dataclass
class SeededBits:
    """SHAKE-256 of the seed and a counter, read as one long string of bits."""

    seed: int
    is_private: bool = False

    def __post_init__(self) -> None:
        self._block, self._held, self._count = 0, 0, 0

    def take(self, n: int) -> int:
        """The next `n` bits of the string."""
        while self._count < n:
            size = max(1 << 12, (n - self._count + 7) // 8)
            fresh = hashlib.shake_256(f"{self.seed}/{self._block}".encode()).digest(size)
            self._held = self._held << (8 * size) | int.from_bytes(fresh)
            self._block, self._count = self._block + 1, self._count + 8 * size
        self._count -= n
        drawn, self._held = self._held >> self._count, self._held & ((1 << self._count) - 1)
        return drawn


def chosen_bits(seed: int) -> Bits:
    """Seeded bits in the ordinary suite; the system's in the nightly one (RETICENT_NIGHTLY=1)."""
    return SystemBits() if IS_NIGHTLY else SeededBits(seed)
