"""Scores: how badly a public model fits a confidential table. Each a whole number, with a proved reach of one record."""

import numpy as np
from numpy.typing import NDArray

from reticent.synth.base import Counted, Floats

UNIT = 16
"""Steps to one record in `distance`."""
SHARES = 1 << 20
"""Steps to the whole in `misfit`."""


def distance(table: Counted, model: Floats) -> int:
    """The sum of |count - model| over cells, in steps of 1/UNIT, the model rounded to such steps first.

    A model that noise has made so large that the sum would leave 64 bits is cut to what fits.

    Guarantee   moves by at most UNIT.
    Adjacency   one record added or removed.
    Theorem     one cell moves by one; the model is public and stays.
    Proof       proofs/synth/marginals/aim.md
    Assumes     one record is in at most one cell of `table`; `model` was made of released numbers.
    Keeps back  the distance.
    """
    most = 2.0**62 / max(1, model.size)
    return int(np.abs(UNIT * table - _whole(np.clip(UNIT * model, -most, most))).sum())


def misfit(table: Counted, model: Floats) -> int:
    """The sum of |count - (sum of counts) share| over cells, in steps of 1/SHARES, shares of the model rounded down.

    For tables of available cells: no model can meet their different sums, and none of these need be known.

    Guarantee   moves by at most 2 SHARES.
    Adjacency   one record added or removed, or one that changes its cell, or falls silent, or speaks.
    Theorem     a record moves the list by e_x - share, whose lengths are at most one each.
    Proof       proofs/synth/marginals/aim.md
    Assumes     one record is in at most one cell of `table`; `model` was made of released numbers.
    Keeps back  the misfit, and how many rows the table holds.
    """
    return int(np.abs(SHARES * table - int(table.sum()) * _shares(model)).sum())


def scaled_misfit(table: Counted, model: Floats, blocks: NDArray[np.int64]) -> int:
    """The sum of |count - scale share| over cells in steps of 1/SHARES, at the scale that makes it least, block by block.

    For tables of answered cells whose sums are confidential: the scale is no number that a record moves, but the best of
    all whole numbers. `blocks` has the block of each cell, in order.

    Guarantee   moves by at most SHARES.
    Adjacency   one record added or removed, or one that falls silent, or speaks.
    Theorem     for every fixed scale one term moves by at most SHARES; so does the least over scales.
    Proof       proofs/synth/marginals/weighted.md
    Assumes     one record is in at most one cell of `table`; `model` was made of released numbers.
    Keeps back  the misfit, the scales, and how many rows the table holds.
    """
    cells, flat = table.ravel(), model.ravel()
    return sum(
        _least(SHARES * cells[blocks == block], _shares(flat[blocks == block]))
        for block in range(int(blocks.max()) + 1)
    )


def _least(counts: Counted, shares: NDArray[np.int64]) -> int:
    """The least of sum |counts - s shares| over whole s from 0 up, exactly.

    It is convex in s: what is least among neighbours on both sides is least of all. The weighted median of counts/shares
    in doubles is within a step or two of that; where it is not, halving finds it.
    """
    whole = int(shares.sum())
    # Beyond twice sum(counts)/sum(shares) it exceeds its value at 0.
    most = 2 * int(counts.sum()) // whole + 1 if whole else 0
    near = min(_median(counts, shares), most)
    tried = np.arange(max(0, near - 2), near + 3)
    found = np.abs(counts - tried[:, None] * shares).sum(axis=1)
    best = int(found.argmin())
    if 0 < best < len(tried) - 1 or (best == 0 and tried[0] == 0):
        return int(found[best])
    return _halved(counts, shares, most)


def _median(counts: Counted, shares: NDArray[np.int64]) -> int:
    """About where the sum is least."""
    held = shares > 0
    if not held.any():
        return 0
    ratios, weights = counts[held] / shares[held], shares[held]
    order = np.argsort(ratios)
    reached = np.cumsum(weights[order])
    return int(ratios[order][int(np.searchsorted(reached, reached[-1] / 2))])


def _halved(counts: Counted, shares: NDArray[np.int64], most: int) -> int:
    def at(s: int) -> int:
        return int(np.abs(counts - s * shares).sum())

    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle) <= at(middle + 1) else (middle + 1, high)
    return at(low)


def _shares(model: Floats) -> NDArray[np.int64]:
    """A model's shares in steps of 1/SHARES, rounded down; never more than the whole together."""
    total = float(model.sum())
    shares = (
        np.floor(SHARES * (model / total)).astype(np.int64) if total > 0 else np.zeros(model.shape, np.int64)
    )
    excess = int(shares.sum()) - SHARES
    if excess > 0:  # sums of doubles
        shares.flat[int(shares.argmax())] -= excess
    return shares


def _whole(values: Floats) -> NDArray[np.int64]:
    return np.rint(values).astype(np.int64)
