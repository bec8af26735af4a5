"""The sides of a table: which columns it is over, how numbers are cut into bins, and what its cells are called.

Cells are declared: the levels or bins of each column, one for a missing answer, and one for "not asked" where the column
has a universe. No row has been seen.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

from reticent.engine.wants import Key, has_universe
from reticent.exact import show
from reticent.schema import Levels, Number, Schema

MISSING, NOT_ASKED = "(missing)", "(not asked)"
BinEdges = tuple[tuple[str, tuple[Fraction, ...]], ...]
Cell = tuple[tuple[str, str], ...]
"""The names of a cell's sides, by column."""


def may_hold(cell: Cell, filled: Collection[str]) -> bool:
    """Whether anybody can be in a cell once some columns are `filled`: nobody's answer is missing there any more."""
    return not any(name in filled and side == MISSING for name, side in cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Columns, each once, and the edges of the bins of those that are numbers."""

    columns: tuple[str, ...]
    bins: BinEdges = ()

    def keys(self, schema: Schema) -> tuple[Key, ...]:
        """The sides as an engine is asked for them."""
        return tuple(self.key(schema, name) for name in self.columns)

    def key(self, schema: Schema, name: str) -> Key:
        column = schema.coded[name]
        edges = dict(self.bins).get(name, ())
        starts = tuple(int(edge / column.grid) for edge in edges[:-1]) if isinstance(column, Number) else ()
        return Key(column=name, starts=starts, silent=True)

    def labels(self, schema: Schema, name: str) -> tuple[str, ...]:
        """The cells of one side, in order."""
        column = schema.coded[name]
        if isinstance(column, Levels):
            answers = column.levels
        else:
            edges = dict(self.bins)[name]
            answers = tuple(f"{show(a)} to under {show(b)}" for a, b in pairwise(edges))
            answers = (*answers[:-1], f"{show(edges[-2])} to {show(edges[-1])}")
        silent = (MISSING, NOT_ASKED) if has_universe(schema, name) else (MISSING,)
        return (*answers, *silent)

    def cells(self, schema: Schema) -> list[Cell]:
        """Every cell by the names of its sides, in the order of the table."""
        return list(
            product(*([(name, label) for label in self.labels(schema, name)] for name in self.columns))
        )

    def size(self, schema: Schema) -> int:
        """How many cells there are."""
        cells = 1
        for key in self.keys(schema):
            cells *= key.size(schema)
        return cells
