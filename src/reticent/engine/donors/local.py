"""Donors matched in local arrays: records are fetched some cells at a time, placed and matched, and what came of it given back.

What is held at a time has a limit, unless one cell holds more.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from reticent.engine.donors.circle import LOT, lots
from reticent.engine.donors.filling import GAPS, ID, PACKED, PEOPLE, TAKEN, TIED, DonorSql, quietly
from reticent.engine.donors.matching import ClassTable, MatchPlan, offers
from reticent.engine.donors.records import labelled
from reticent.engine.protocol import Tables

EVERY_CELL = (0, 2**31 - 1)


class LocalMatcher:
    """The matcher of an engine that may send its records."""

    def place(self, tables: Tables, words: Sequence[str], key: str) -> None:
        """PEOPLE: the records in PACKED, which is dropped, with their places."""
        first_id = 0
        for part, (first, last) in enumerate(runs_of(tables)):
            found = tables.ask(f"SELECT * FROM {PACKED} WHERE cell0 BETWEEN {first} AND {last}")
            placed = quietly(labelled, found, words, key)
            tables.give(PEOPLE, _identified(placed, first_id), more=part > 0)
            first_id += len(placed)
        tables.drop(PACKED)

    def match(self, tables: Tables, column: DonorSql, plan: MatchPlan, classes: ClassTable) -> None:
        """TAKEN, TIED and GAPS: what donors offer to the recipients who visit their cells."""
        for part, cells in enumerate(lots(np.arange(len(classes.donors)), plan.rows(classes))):
            lines = tables.ask(column.lines(far=plan.far, cells=cells))
            met = quietly(offers, lines, column.order, column.digit.answers, plan)
            for name, table in ((TAKEN, met.taken), (TIED, met.tied), (GAPS, met.gaps)):
                tables.give(name, table, more=part > 0)


def _identified(people: pa.Table, first: int) -> pa.Table:
    """The records with numbers of their own, from `first` on: a name to join by, which says nothing else."""
    return people.append_column(ID, pa.array(np.arange(first, first + len(people), dtype=np.int64)))


def runs_of(tables: Tables) -> list[tuple[int, int]]:
    """All cells at once where records are few; else runs of cells that hold few enough."""
    (records,) = tables.ask(f"SELECT count(*) AS n FROM {PACKED}")["n"]
    if records <= LOT:
        return [EVERY_CELL]
    found = tables.ask(f"SELECT cell0 AS cell, count(*) AS n FROM {PACKED} GROUP BY cell0")
    return lots(found["cell"], found["n"])
