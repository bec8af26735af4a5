"""What no synthesizer can be asked to beat: as many rows drawn again from the truth, and the truth through bins and back.

And two ways to go wrong, for comparison: mid-points written as whole numbers, and silence counted as the first answer.
"""

import numpy as np

from reticent.lab.trials.coding import Cells, Codes, cells_of, decoded
from reticent.noise.bits import Bits
from reticent.schema import Number
from reticent.synth.domain import Domain


def bootstrap(truth: Codes, rng: np.random.Generator) -> Codes:
    """As many rows, each drawn anew from all of them."""
    return np.asarray(truth[rng.integers(0, len(truth), len(truth))])


def round_trip(truth: Codes, domain: Domain, bits: Bits) -> Codes:
    """The truth put into the bins of the domain and drawn evenly inside them again, without noise."""
    return decoded(cells_of(truth, domain), domain, bits)


def midpoints(truth: Codes, domain: Domain, *, bins: int) -> Codes:
    """The truth with every number at the middle of one of `bins` bins from bound to bound, cut to a whole code.

    These bins are (high - low) / bins wide, where the domain's hold (high - low + 1) / bins codes each: the two grids
    are shifted against each other, a little more from one bin to the next.
    """
    moved = truth.copy()
    for place, axis in enumerate(domain.axes):
        column = domain.schema.coded[axis.column]
        if isinstance(column, Number):
            width = (column.high - column.low) / bins
            codes = truth[:, place]
            bin_ = np.clip(np.floor((codes - column.low) / width), 0, bins - 1)
            middle = np.trunc(column.low + (bin_ + 0.5) * width).astype(np.int64)
            moved[:, place] = np.where(codes >= column.low, middle, codes)
    return moved


def first_for_silence(cells: Cells, domain: Domain) -> Cells:
    """Every silent cell called the first answer, as happens where the code of a missing cell is taken for a category."""
    silent = cells == np.array([axis.silence for axis in domain.axes])
    return np.where(silent, 0, cells).astype(np.int32)
