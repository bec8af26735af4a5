"""Compiled counts of rows in the cells of a table. Whoever calls sees to it that every cell is within its side."""

import numba
import numpy as np
from numpy.typing import NDArray

Counted = NDArray[np.int64]


def tally(columns: NDArray[np.int32], sizes: tuple[int, ...]) -> Counted:
    """How many rows are in each cell; `columns` has a line for every side of the table."""
    return _tally(columns, np.array(sizes, dtype=np.int64)).reshape(sizes)


@numba.njit(nogil=True)
def _tally(columns: NDArray[np.int32], sizes: NDArray[np.int64]) -> Counted:
    found = np.zeros(sizes.prod(), dtype=np.int64)
    for row in range(columns.shape[1]):
        cell = 0
        for side in range(len(sizes)):
            cell = cell * sizes[side] + columns[side, row]
        found[cell] += 1
    return found
