"""Negative cells and structural zeroes of a noisy table, mended before it is raked. After the noise, free of charge.

A noisy count may be negative, and raking cannot use it. Setting it to 0 would raise the total each time noise was
negative and never lower it. Instead the table is made coarser until no cell is too small: a coarse cell is the
sum of the finer cells inside it, and only of those. What a coarse cell holds is then shared out inside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import PlanError
from reticent.refine.margins import Floats, Mask

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
