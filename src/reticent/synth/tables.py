"""Noisy tables made fit for a model: one scale for all, no negative cells, lines that sum to one. After the noise."""

import numpy as np

from reticent.synth.base import Floats
from reticent.synth.marginals.views import simplex
from reticent.synth.spending import Noisy

LEAST = 1 / 64
"""No table is scaled up further than this."""


def one_scale(noisy: Noisy, total: float) -> Noisy:
    """A table of available cells on the scale of all `total` respondents, with its own noise level.

    `noisy.cells` is a list whose last entry counts the rows that the table leaves out, as `View.parted` makes it. Raw
    tables have sums of .8 n, .64 n and so on, which no model can meet at once. The share comes from noisy numbers alone.
    """
    share = min(1.0, max(1 - noisy.cells[-1] / total, noisy.deviation / total, LEAST))
    return Noisy(cells=noisy.cells[:-1] / share, deviation=noisy.deviation / share, size=noisy.size / share)


def lines(joint: Floats) -> Floats:
    """Conditional lines of a non-negative table, its own column last; a line without mass gets the column's own shares."""
    own = joint.reshape(-1, joint.shape[-1]).sum(axis=0)
    own = own / own.sum() if own.sum() > 0 else np.full(len(own), 1 / len(own))
    sums = joint.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), own)


def nearest(cells: Floats) -> Floats:
    """The nearest table without negative cells and with the same sum."""
    return simplex(cells, float(cells.sum()))


def clipped(cells: Floats) -> Floats:
    """Negative cells set to zero, as published. Cells that nobody is in gain by it."""
    return np.maximum(cells, 0.0)
