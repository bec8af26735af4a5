"""Capped donors in arrays, whatever engine has the records: runs of whole first cells, each served by itself where that will do.

A run holds at most a few million records. At levels whose cells are whole within every run, recipients are served while the
run is at hand; for the others all records are read once more (`GroupFill`). Where runs come from, where gifts go and what the
engine is given in the end are told by `local.py` for records on this side, by `lots.py` for those of a server.
"""

from abc import abstractmethod
from collections.abc import Mapping
from math import prod

import numpy as np

from reticent.engine.donors.capped import CappedStaging, capped_domains
from reticent.engine.donors.circle import LOT, Whole, lots
from reticent.engine.donors.filling import EVERY_CELL
from reticent.engine.donors.levels import CellColumn, Gifts, GroupFill
from reticent.engine.donors.records import Packing
from reticent.engine.protocol import Tables
from reticent.engine.wants import Key, level_keys
from reticent.prepare.repair import CappedDonors, Repair
from reticent.schema import Schema

FIRST = "cell0"


class RunStaging(CappedStaging):
    """Capped donors who serve in local arrays, a run of whole cells at a time.

    Guarantee   as `CappedStaging`, whatever the runs.
    Adjacency   one record added or removed.
    Theorem     THEORY 11.2.
    Proof       proofs/engine/capped.md
    Assumes     levels and defaults speak of no column that donors fill; the key is not a function of the rows.
    Keeps back  all of it until noise is added.
    """

    def __init__(self, tables: Tables, schema: Schema, packing: Packing, repair: Repair) -> None:
        super().__init__(tables, schema, packing, repair)
        self._sizes, self._together = dict[str, Whole](), 1
        self._fills = list[GroupFill]()

    @abstractmethod
    def _gifts(self, number: int, ring: int) -> Gifts:
        """Where what a ring gives to a group of columns goes."""

    @property
    def partitions(self) -> list[tuple[Key, ...]]:
        """Those whose cells are kept of every record; cells of the first, side by side, make those of some others."""
        domains = capped_domains(self.repair)
        return [each for place, each in enumerate(domains) if not place or self._width(each) is None]

    def _runs_of(self, records: int) -> list[tuple[int, int]]:
        """Runs of first cells that hold few enough records, neighbours that make one coarser cell together where that can be.

        Where coarser levels only give up the last attributes, their cells are neighbouring first cells. Sizes are known.
        """
        if records <= LOT:
            return [EVERY_CELL]
        widths = {self._width(each) for each in capped_domains(self.repair)}
        small = [each for each in widths if each and (each == 1 or self._first(each).max() <= LOT)]
        self._together = width = max(small)
        sizes = self._first(width)
        runs = lots(np.arange(len(sizes)), sizes)
        return [(low * width, (high + 1) * width - 1) for low, high in runs]

    def _groups(self, runs: int) -> list[GroupFill]:
        """The levels and gifts of all groups, by so many runs."""
        return [
            self._group(number, group, at_once=runs == 1) for number, group in enumerate(self.repair.capped)
        ]

    def _group(self, number: int, group: CappedDonors, *, at_once: bool) -> GroupFill:
        """A group's levels and gifts. Levels from the first have whole cells within every run; all have where there is one."""
        names = "|".join(group.columns)
        widths = [self._width(level_keys(level)) for level in group.levels]
        within = [at_once or (width is not None and width <= self._together) for width in widths]
        return GroupFill(
            group,
            cells=[self._cell(level_keys(level)) for level in group.levels],
            digits={
                f"y{self.columns.index(name)}": self.packing.digits[name].answers for name in group.columns
            },
            keys=lambda level, ring: f"{self.repair.key}|{names}|level {level}|ring {ring}",
            whole=within.index(False) if False in within else len(within),
            gifts=[self._gifts(number, ring) for ring in range(self.repair.rings)],
        )

    def _first(self, width: int) -> Whole:
        """How many records so many neighbouring first cells have."""
        return CellColumn(FIRST, width).sizes(self._sizes)

    def _width(self, keys: tuple[Key, ...]) -> int | None:
        """How many first cells make up a cell of a partition, side by side; None where they are not side by side."""
        first = capped_domains(self.repair)[0]
        if first[: len(keys)] != keys:
            return None
        return prod(key.size(self.schema) for key in first[len(keys) :])

    def _cell(self, keys: tuple[Key, ...]) -> CellColumn:
        """Where the cells of a partition are: in a column of their own, or neighbouring first cells."""
        if (width := self._width(keys)) is not None:
            return CellColumn(FIRST, width)
        return CellColumn(f"cell{self.partitions.index(keys)}")

    def _count(self, people: Mapping[str, Whole]) -> None:
        """How many records each cell has, by the name of its partition."""
        for name in (each for each in people if each.startswith("cell")):
            more, known = np.bincount(people[name]), self._sizes.get(name, np.zeros(0, np.int64))
            longer = max(len(more), len(known))
            self._sizes[name] = np.pad(more, (0, longer - len(more))) + np.pad(
                known, (0, longer - len(known))
            )
