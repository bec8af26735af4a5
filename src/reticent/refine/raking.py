"""Raking: iterative proportional fitting of a noisy table to public margins. After the noise, so free of charge.

Each margin in turn is met by multiplying its cells with one factor each, round and round. The table is kept as it was, with
the factors beside it (`reticent.refine.margins`).

Negative cells and structural zeroes are mended first. A noisy count may be negative, and raking cannot use it. Setting it to
0 would raise the total each time noise was negative and never lower it. Instead the table is made coarser until no cell is
too small: a coarse cell is the sum of the finer cells inside it, and only of those. What a coarse cell holds is then shared
out inside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import PlanError
from reticent.refine.margins import Floats, Margin, Mask, Side, check_margins, group_axes, tree_of

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


Levels = Sequence[int] | None


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Coarsening:
    """A public way to join levels: for each axis, which coarse level every fine level belongs to; None joins none."""

    shape: tuple[int, ...]
    joined: tuple[NDArray[np.int64], ...] = field(repr=False)

    def __init__(self, shape: Sequence[int], joined: Sequence[Levels]) -> None:
        if len(joined) != len(shape) or not shape:
            raise PlanError(f"say for each of {len(shape)} axes which levels are joined.", field="joined")
        made = tuple(_levels(length, levels) for length, levels in zip(shape, joined, strict=True))
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "joined", made)

    @property
    def coarse_shape(self) -> tuple[int, ...]:
        return tuple(int(levels.max()) + 1 for levels in self.joined)

    def collapse(self, table: Floats) -> Floats:
        """The coarse table: every cell is the sum of the finer cells inside it."""
        if table.shape != self.shape:
            raise PlanError(f"it has shape {table.shape}, but {self.shape} is joined.", field="table")
        for axis, levels in enumerate(self.joined):
            rest = (*table.shape[:axis], int(levels.max()) + 1, *table.shape[axis + 1 :])
            coarse = np.zeros(rest)
            np.add.at(np.moveaxis(coarse, axis, 0), levels, np.moveaxis(table, axis, 0))
            table = coarse
        return table

    def expand(self, coarse: Floats) -> Floats:
        """Every fine cell with what its coarse cell holds."""
        return np.asarray(coarse[np.ix_(*self.joined)])


def _levels(length: int, levels: Levels) -> NDArray[np.int64]:
    made = np.arange(length) if levels is None else np.array(levels, dtype=np.int64)
    if made.shape != (length,) or length < 1 or set(made.tolist()) != set(range(int(made.max()) + 1)):
        raise PlanError(
            f"give each of {length} levels the number of its coarse level, 0, 1, 2, ... with none left out.",
            field="joined",
        )
    return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mended:
    """A table without negative cells. `step` is the place of the coarsening taken; None where none was coarse enough.

    In the latter case the last one is taken and coarse cells that are still negative count as 0.
    """

    table: Floats = field(repr=False)
    step: int | None


def mend(
    table: ArrayLike, ladder: Sequence[Coarsening], *, zeroes: ArrayLike | None = None, least: float = 0.0
) -> Mended:
    """Take the first coarsening whose cells all hold at least `least`, and share out what they hold.

    Fine cells of a coarse cell get its sum in proportion to their own noisy counts, as far as those are positive;
    where none is, in equal parts. Structural zeroes get nothing, and their noise is left out of the sums. Totals
    of coarse cells, and so of the table, are kept.

    Guarantee   that of `table`, unchanged.
    Adjacency   that of `table`.
    Theorem     post-processing (THEORY 6.5, 10.5): the step taken is a function of the noisy table.
    Proof       proofs/refine/zeroes.md
    Assumes     `table` is released, or could be; ladder, zeroes and `least` are public.
    Keeps back  nothing.
    """
    cells = np.array(table, dtype=np.float64)
    if not ladder or not np.isfinite(cells).all() or not least >= 0:
        raise PlanError("give a finite table, a coarsening, and a least count of 0 or more.", field="ladder")
    open_ = _open(zeroes, cells.shape)
    cells = np.where(open_, cells, 0.0)
    found = next((k for k, step in enumerate(ladder) if _fits(cells, open_, step, least)), None)
    chosen = ladder[-1 if found is None else found]
    return Mended(table=_shared(cells, open_, chosen), step=found)


def _open(zeroes: ArrayLike | None, shape: tuple[int, ...]) -> Mask:
    mask = np.zeros(shape, dtype=np.bool_) if zeroes is None else np.asarray(zeroes)
    if mask.shape != shape or mask.dtype != np.bool_:
        raise PlanError(f"they are marked by a table of truths of shape {shape}.", field="zeroes")
    return np.asarray(~mask)


def _fits(cells: Floats, open_: Mask, step: Coarsening, least: float) -> bool:
    """No coarse cell that may hold something holds too little."""
    coarse, room = step.collapse(cells), step.collapse(open_.astype(np.float64))
    return bool((coarse[room > 0] >= least).all())


def _shared(cells: Floats, open_: Mask, step: Coarsening) -> Floats:
    positive = np.maximum(cells, 0.0)
    held, room = step.collapse(positive), step.collapse(open_.astype(np.float64))
    # Equal parts where no fine cell is positive; nothing is shared out where there is no room.
    guide = np.where(step.expand(held) > 0, positive, open_.astype(np.float64))
    whole = step.expand(np.where(held > 0, held, np.maximum(room, 1.0)))
    return np.asarray(step.expand(np.maximum(step.collapse(cells), 0.0)) * (guide / whole))
