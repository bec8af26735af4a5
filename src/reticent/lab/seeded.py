"""Bits that can be replayed, for running the real mechanisms in a simulation. A release drawn from them is none."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class SeededBits:
    """The bits of a seeded generator. A curator draws from the system alone, so these stand behind no claim."""

    rng: np.random.Generator = field(repr=False)

    @property
    def is_private(self) -> bool:
        """False: whoever knows the seed can take the noise off again."""
        return False

    def take(self, n: int) -> int:
        """The next `n` bits, from whole bytes."""
        size = (n + 7) // 8
        return int.from_bytes(self.rng.bytes(size)) >> (8 * size - n)
