"""How many points each cell holds, with noise of its own."""

from fractions import Fraction

import numpy as np

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.noise.many import draw_laplace
from reticent.smallcells.points import GridPoints


def noisy_counts(points: GridPoints, *, epsilon: Fraction, bits: Bits) -> list[int]:
    """The size of every cell, empty ones too, with discrete Laplace noise of scale 1 / epsilon; it may be negative.

    Guarantee   epsilon-DP for the whole list.
    Adjacency   one point added to or removed from one cell.
    Theorem     the Laplace mechanism on the integers, in the L1 norm.
    Proof       proofs/smallcells/counts.md
    Assumes     the cells are public.
    Keeps back  nothing more: the scale is public.
    """
    if epsilon <= 0:
        raise PlanError("it must be positive.", field="count_epsilon")
    noise = draw_laplace(points.cells, scale=1 / Fraction(epsilon), bits=bits)
    return [size + more for size, more in zip(np.diff(points.starts).tolist(), noise, strict=True)]
