"""Rows as zeroes and ones: where each answer of each column stands in one long line (one-hot encoding). Public throughout."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.engine.protocol import Cells
from reticent.synth.base import Floats
from reticent.synth.domain import Domain
from reticent.synth.marginals.study import View

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHot:
    """The layout of a row: a place for every group of every column, and none for a cell that has no part.

    Parameters
    ----------
    lines : for every column and cell its place in the long line, -1 for none
    sizes : how many groups each column has
    cells : for every column the cell of each group
    silence : for every column the cell of a missing answer
    """

    lines: Whole = field(repr=False)
    sizes: tuple[int, ...]
    cells: tuple[Whole, ...] = field(repr=False)
    silence: tuple[int, ...]

    @classmethod
    def of(cls, domain: Domain, view: View) -> "OneHot":
        """The layout of a view; what it leaves out has no place."""
        sizes = tuple(side.size for side in view.sides)
        lines = np.full((len(sizes), max(len(side.into) for side in view.sides)), -1, dtype=np.int64)
        for place, (side, start) in enumerate(zip(view.sides, _starts(sizes), strict=True)):
            lines[place, : len(side.into)] = np.where(side.into < 0, -1, side.into + start)
        cells = tuple(np.asarray(side.within.argmax(axis=1), dtype=np.int64) for side in view.sides)
        return cls(lines=lines, sizes=sizes, cells=cells, silence=tuple(a.silence for a in domain.axes))

    @property
    def width(self) -> int:
        """How long the line is."""
        return sum(self.sizes)

    @property
    def parts(self) -> list[slice]:
        """The places of each column."""
        return [
            slice(start, start + size) for start, size in zip(_starts(self.sizes), self.sizes, strict=True)
        ]

    @property
    def into(self) -> Whole:
        """For every column and cell its group, -1 for none."""
        starts = np.array(_starts(self.sizes), dtype=np.int64)[:, None]
        return np.where(self.lines < 0, -1, self.lines - starts)

    @property
    def mask_lines(self) -> Whole:
        """For every column and cell: the column's number where the answer is missing, else -1. What a mask critic reads."""
        made = np.full_like(self.lines, -1)
        made[np.arange(len(self.silence)), list(self.silence)] = np.arange(len(self.silence))
        return made

    def rows(self, groups: Whole, missing: Flags | None = None) -> Cells:
        """Cells as the engine holds them, a line for each column; of answers that are missing the cell of silence."""
        made = np.stack([cells[groups[:, place]] for place, cells in enumerate(self.cells)])
        if missing is not None:
            made = np.where(missing.T, np.array(self.silence)[:, None], made)
        return made.astype(np.uint16)

    def ones(self, groups: Whole, missing: Flags | None = None) -> Floats:
        """The long lines; all zero in columns where the answer is missing."""
        made = np.zeros((len(groups), self.width))
        kept = np.ones(groups.shape, dtype=bool) if missing is None else ~missing
        rows, places = np.nonzero(kept)
        made[rows, np.array(_starts(self.sizes))[places] + groups[rows, places]] = 1.0
        return made


def _starts(sizes: tuple[int, ...]) -> list[int]:
    return [sum(sizes[:place]) for place in range(len(sizes))]
