"""Raking: iterative proportional fitting of a noisy table to public margins. After the noise, so free of charge.

Each margin in turn is met by multiplying its cells with one factor each, round and round. The table is kept as
it was, with the factors beside it: see `groups` for margins that share axes, `halves` for those that do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from reticent.errors import PlanError
from reticent.refine.groups import group_axes
from reticent.refine.halves import Side, tree_of
from reticent.refine.margins import Floats, Margin, Mask, check_margins

Status = Literal["met", "not met", "no cells"]
FAR = 1e30  # factors beyond this are multiplied into the table, long before they could overflow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Raked:
    """A fitted table and how well it fits: `error` is the largest relative error of any total of any margin.

    `met` says that `error` is within the tolerance; `not met` that the cycles were used up before; `no cells`
    that some totals above 0 have no cell above 0 in the table given, named in `empty` as (margin, cell). In the
    last two cases `table` is the last iterate.
    """

    table: Floats = field(repr=False)
    status: Status
    cycles: int
    error: float
    empty: tuple[tuple[int, tuple[int, ...]], ...] = ()


def rake(
    table: ArrayLike,
    margins: Sequence[Margin],
    *,
    zeroes: ArrayLike | None = None,
    tolerance: float = 1e-8,
    cycles: int = 1000,
) -> Raked:
    """Fit a table without negative cells to all margins, keeping `zeroes` at 0.

    The rule to stop: after a full cycle, every total of every margin is met within `tolerance`, relatively.

    Guarantee   that of `table`, unchanged.
    Adjacency   that of `table`.
    Theorem     post-processing (THEORY 6.5); the limit is the table nearest to the one given, in the sense of
                Kullback and Leibler (Csiszar 1975).
    Proof       proofs/refine/raking.md
    Assumes     `table` is released, or could be; margins and zeroes are public.
    Keeps back  nothing.
    """
    start = _start(table)
    mask = _mask(zeroes, start.shape)
    if not (0 < tolerance < 1 and cycles >= 1):
        raise PlanError(
            "tolerance lies between 0 and 1, and at least one cycle is needed.", field="tolerance"
        )
    check_margins(margins, shape=start.shape, zeroes=mask, tolerance=tolerance)
    if mask is not None:
        start[mask] = 0.0
    return _fit(start, margins, tolerance, cycles)


def _start(table: ArrayLike) -> Floats:
    """The table as an array of doubles of our own."""
    start = np.array(table, dtype=np.float64)
    if start.ndim == 0 or start.size == 0:
        raise PlanError("it has no cells.", field="table")
    if not 0 <= start.min() <= start.max() < inf:  # which nan is not
        raise PlanError("its cells must be finite and not negative; collapse it first.", field="table")
    return start


def _mask(zeroes: ArrayLike | None, shape: tuple[int, ...]) -> Mask | None:
    if zeroes is None:
        return None
    mask = np.asarray(zeroes)
    if mask.shape != shape or mask.dtype != np.bool_:
        raise PlanError(f"they are marked by a table of truths of shape {shape}.", field="zeroes")
    return mask


def _fit(start: Floats, margins: Sequence[Margin], tolerance: float, cycles: int) -> Raked:
    groups, free = group_axes(start.shape, margins)
    tree = tree_of(groups)
    core, used, error = _core(start, tree, free), 0, inf
    empty = tuple(sorted(each for fold, sums in tree.look(core) for each in fold.empty(sums)))
    while used < cycles and error > tolerance:
        first = tree.fit(core, judge=True)
        used += 1
        if used % 4 == 1 and any(group.reach > FAR for group in groups):
            start = _multiplied(start, tree)
            core = _core(start, tree, free)
        # The first margin was met when the cycle began: worth looking at all of them now that it has ended.
        if first <= tolerance or used == cycles:
            error = max(fold.error(sums) for fold, sums in tree.look(core))
    status: Status = "no cells" if empty else "met" if error <= tolerance else "not met"
    return Raked(table=_multiplied(start, tree), status=status, cycles=used, error=error, empty=empty)


def _core(table: Floats, tree: Side, free: tuple[int, ...]) -> Floats:
    """The table with the axes that no margin speaks of summed out, group after group."""
    left = [axis for axis in range(table.ndim) if axis not in free]
    order = [left.index(axis) for group in tree.groups for axis in group.axes]
    summed = table.sum(axis=free) if free else table
    return np.ascontiguousarray(summed.transpose(order)).reshape(-1)


def _multiplied(table: Floats, tree: Side) -> Floats:
    """The table times all factors, which are 1 again afterwards."""
    order = [axis for group in tree.groups for axis in group.axes]
    factors = tree.factors().reshape([table.shape[axis] for axis in order])
    for group in tree.groups:
        group.forget()
    if order != list(range(table.ndim)):
        free = tuple(axis for axis in range(table.ndim) if axis not in order)
        factors = np.expand_dims(factors.transpose(np.argsort(order)), free)
    return np.asarray(table * factors)
