"""How badly a public model fits a confidential table: whole numbers, with a proved reach of one record."""

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
    total = float(model.sum())
    shares = (
        np.floor(SHARES * (model / total)).astype(np.int64) if total > 0 else np.zeros(model.shape, np.int64)
    )
    excess = int(shares.sum()) - SHARES
    if excess > 0:  # sums of doubles: never more than the whole
        shares.flat[int(shares.argmax())] -= excess
    return int(np.abs(SHARES * table - int(table.sum()) * shares).sum())


def _whole(values: Floats) -> NDArray[np.int64]:
    return np.rint(values).astype(np.int64)
