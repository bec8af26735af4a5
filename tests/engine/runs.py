"""Folds and engines that are watched: how much of the points is held at once, in batches and in cells."""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.engine.wants import PointTable

Cell = tuple[tuple[int, int], ...]


def cells_of(table: PointTable) -> list[Cell]:
    """The points of a table or of a run, cell by cell."""
    pairs = list(zip(table.x.tolist(), table.y.tolist(), strict=True))
    return [tuple(pairs[a:b]) for a, b in zip(table.starts[:-1], table.starts[1:], strict=True)]


@dataclass(eq=False)
class Watched:
    """Keeps the cells of each run. `lines` are those of every batch, `held` those of the batches that were there with a run."""

    blocks: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    def watch(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """The same blocks, one at a time, each looked after without being held."""
        for block in blocks:
            self.blocks.append(weakref.ref(block))
            self.lines.append(block.shape[1])
            yield block
            del block

    def of(self, cells: PointTable) -> list[Cell]:
        both = zip(self.blocks, self.lines, strict=True)
        self.held.append(sum(lines for block, lines in both if block() is not None))
        return cells_of(cells)

    def joined(self, parts: Sequence[list[Cell]]) -> list[list[Cell]]:
        return list(parts)


def lines_of(numbers: Sequence[int]) -> Any:
    """Numbers as lines in order, each once."""
    place, many = np.unique(np.array(numbers, np.int64), return_counts=True)
    return np.stack([place, many.astype(np.int64)])
