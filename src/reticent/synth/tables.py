"""Noisy tables made fit for a model: one scale for all, no negative cells, lines that sum to one. After the noise."""

import numpy as np
from numpy.typing import NDArray

from reticent.synth.base import Floats
from reticent.synth.spending import NoisyCounts

LEAST = 1 / 64
"""No table is scaled up further than this."""


def total_of(noisy: list[NoisyCounts]) -> float:
    """About how many respondents there are: every list has each of them once; the shorter, the better."""
    weights = [1 / len(each.cells) for each in noisy]
    return max(1.0, float(np.average([float(each.cells.sum()) for each in noisy], weights=weights)))


def one_scale(noisy: NoisyCounts, total: float, blocks: NDArray[np.int64]) -> NoisyCounts:
    """A table of available cells on the scale of all `total` respondents, with its own noise level.

    `noisy.cells` is a list as `View.parted` makes it: the table's cells, whose blocks are `blocks`, then for each block the
    rows left out of it. Raw tables have sums of .8 n, .64 n and so on, which no model can meet at once; and who was not asked
    cannot be silent, so each block has a share of its own. It comes from noisy numbers alone. The noise level is that
    of the block with most cells.
    """
    sizes = np.bincount(blocks)
    kept, left = noisy.cells[: len(blocks)], noisy.cells[len(blocks) :]
    widest = int(sizes.argmax())
    rows = np.bincount(blocks, weights=kept) + left
    rows[widest] = total - (rows.sum() - rows[widest])
    rows = np.maximum(rows, 1.0)
    share = np.minimum(np.maximum(1 - left / rows, np.maximum(noisy.deviation / rows, LEAST)), 1.0)
    main = float(share[widest])
    return NoisyCounts(cells=kept / share[blocks], deviation=noisy.deviation / main, size=noisy.size / main)


def lines(joint: Floats) -> Floats:
    """Conditional lines of a non-negative table, its own column last; a line without mass gets the column's own shares."""
    own = joint.reshape(-1, joint.shape[-1]).sum(axis=0)
    own = own / own.sum() if own.sum() > 0 else np.full(len(own), 1 / len(own))
    sums = joint.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), own)


def simplex(table: Floats, total: float) -> Floats:
    """The nearest table without negative cells that sums to `total`.

    Counted from the largest cell, which changes nothing and keeps a total that is small beside the noise.
    """
    apart = table - table.max()
    flat = np.sort(apart.ravel())[::-1]
    over = (np.cumsum(flat) - max(total, 1.0)) / np.arange(1, len(flat) + 1)
    cut = over[np.flatnonzero(flat > over)[-1]]
    return np.asarray(np.maximum(apart - cut, 0.0))


def nearest(cells: Floats) -> Floats:
    """The nearest table without negative cells and with the same sum."""
    return simplex(cells, float(cells.sum()))


def clipped(cells: Floats) -> Floats:
    """Negative cells set to zero, as published. Cells that nobody is in gain by it."""
    return np.maximum(cells, 0.0)
