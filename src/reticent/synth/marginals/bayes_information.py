"""Mutual information in whole numbers, and how far one replaced row can move it."""

from collections.abc import Iterable
from functools import lru_cache
from math import ceil

import numpy as np
from flint import arb, ctx

from reticent.privacy.convert import ball_up
from reticent.synth.base import Counted

FINE = 20
"""Scores are in steps of 2**-FINE of a bit times n."""


def information(table: Counted) -> int:
    """n times the mutual information between the last side of a table and the others, in bits, up to rounding.

    sum f(c) - sum f(r) - sum f(s) + f(n) with f(k) = floor(2**20 k log2 k).

    Guarantee   moves by at most `information_reach`.
    Adjacency   one of n rows replaced, n public.
    Theorem     Zhang and others 2017, the bound on mutual information; proved anew.
    Proof       proofs/synth/marginals/privbayes_printed.md
    Assumes     every row is in exactly one cell of `table`, before and after.
    Keeps back  the score.
    """
    joint = table.reshape(-1, table.shape[-1])
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    return _sum(joint.ravel()) - _sum(rows) - _sum(columns) + _floor(int(joint.sum()))


def information_reach(n: int, shapes: Iterable[tuple[int, int]]) -> int:
    """How far one replaced row of `n` can move the score of any table of these shapes (lines, own cells).

    2**20 (2 log2((n + 1)/2) + (n - 1) log2((n + 1)/(n - 1))), rounded up, and one for every rounding.
    """
    with ctx.workprec(256):
        m = arb(n)
        exact = 2 * ((m + 1) / 2).log() + ((m - 1) * ((m + 1) / (m - 1)).log() if n > 1 else arb(0))
        steps = ceil(ball_up(exact / arb(2).log() * 2**FINE))
    return steps + max(lines * own + lines + own + 1 for lines, own in shapes)


def _sum(counts: Counted) -> int:
    values, times = np.unique(counts, return_counts=True)
    return sum(_floor(v) * t for v, t in zip(values.tolist(), times.tolist(), strict=True))


@lru_cache(maxsize=1 << 18)
def _floor(k: int) -> int:
    """floor(2**20 k log2 k), decided by balls narrow enough. A whole logarithm is taken exactly."""
    if k < 2:
        return 0
    if k & (k - 1) == 0:
        return (k * (k.bit_length() - 1)) << FINE
    precision = 128
    while True:
        with ctx.workprec(precision):
            exact = arb(k) * arb(k).log() / arb(2).log() * 2**FINE
            low = exact.floor().unique_fmpz()
        if low is not None:
            return int(low)
        precision *= 2
