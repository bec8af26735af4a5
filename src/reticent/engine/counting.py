"""Compiled loops over rows of cells. They are given cells that lie within their tables; whoever calls sees to it."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Cells = NDArray[np.uint8] | NDArray[np.uint16]

STRETCH = 8192  # rows of one column: a pair of them and its table stay in the nearest cache


def compiled(function: F) -> F:
    """The same function as machine code, which other threads need not wait for."""
    return cast(F, numba.njit(nogil=True)(function))


class Sets(NamedTuple):
    """Sets of columns in flat arrays: set t has `places[firsts[t]:firsts[t + 1]]`, its table begins at `starts[t]`."""

    places: Whole
    sizes: Whole
    firsts: Whole
    starts: Whole


@compiled
def count_pair(one: Cells, other: Cells, size: int, table: Whole) -> None:
    """Add one to the cell of every row."""
    width = np.uint64(size)
    for i in range(len(one)):
        table[np.uint64(one[i]) * width + np.uint64(other[i])] += 1


@compiled
def count_set(block: Cells, places: Whole, sizes: Whole, start: int, end: int, table: Whole) -> None:
    """The same for any number of columns, the last fastest."""
    for i in range(start, end):
        cell = np.int64(0)
        for k in range(len(places)):
            cell = cell * sizes[k] + np.int64(block[places[k], i])
        table[cell] += 1


@compiled
def count_block(block: Cells, sets: Sets, totals: Whole) -> None:
    """Add the rows of a block, a line for each column, to the tables of all sets: every stretch is read once."""
    rows = block.shape[1]
    for start in range(0, rows, STRETCH):
        end = min(rows, start + STRETCH)
        for t in range(len(sets.firsts) - 1):
            first, last = sets.firsts[t], sets.firsts[t + 1]
            places, sizes = sets.places[first:last], sets.sizes[first:last]
            table = totals[sets.starts[t] : sets.starts[t + 1]]
            if len(places) == 2:
                count_pair(block[places[0], start:end], block[places[1], start:end], sizes[1], table)
            else:
                count_set(block, places, sizes, start, end, table)


@compiled
def draw_cells(sums: Floats, lines: Whole, uniforms: Floats, out: Whole) -> None:
    """For each row a cell of its line: the first whose running sum is above uniform times the line's total.

    A cell of chance 0 has the sum of the one before and is passed over; the last of positive chance ends the line.
    """
    for r in range(len(lines)):
        line = sums[lines[r]]
        total = line[len(line) - 1]
        at, cell = uniforms[r] * total, 0
        while line[cell] <= at and line[cell] < total:
            cell += 1
        out[r] = cell
