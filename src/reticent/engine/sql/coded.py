"""Rows as cells of several keys, a byte or two each: the statement that a table of many margins starts from."""

from dataclasses import dataclass

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.clean import RowView
from reticent.engine.sql.tallies import cell_of
from reticent.engine.wants import Rows, Table
from reticent.errors import PlanError
from reticent.prepare.repair import Repair
from reticent.schema import Schema

MOST_COLUMNS = 1_000
EVERY_ROW = Rows()
MOST_CELLS = 2**16  # of one column: more do not fit in two bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding(Table):
    """For every row its cell in each key. Answers come first, then silence, then those who were not asked."""

    rows: Rows = EVERY_ROW

    def sizes(self, schema: Schema) -> tuple[int, ...]:
        return tuple(key.size(schema) for key in self.keys)

    def silences(self, schema: Schema) -> tuple[int, ...]:
        """The number of the silent cell of each key."""
        return tuple(key.answers(schema) for key in self.keys)


def check_coding(coding: Coding, schema: Schema, repair: Repair) -> None:
    """Refuse from public numbers what cannot be coded, or what nothing is proved for."""
    if not 1 <= len(coding.keys) <= MOST_COLUMNS:
        raise PlanError(f"rows are coded by 1 to {MOST_COLUMNS} columns", field="columns")
    for key in coding.keys:
        if not key.silent:
            raise PlanError(f"{key.column} has no cell for missing values; give it one", field="columns")
        if key.size(schema) > MOST_CELLS:
            raise PlanError(f"{key.column} has more than {MOST_CELLS:,} cells; bin it", field="columns")
    if repair.donors:
        raise PlanError(
            "the nearest donors do not go together with counting rows as cells: one answer may stand in several rows, and "
            "nothing here bounds how many; leave missing values to the synthesizer, which fills them after the noise, or "
            "leave bound = 'hubs' out, so that donors are capped",
            field="impute",
        )


def coded_rows(cells: RowView, rows: exp.Select, coding: Coding) -> exp.Select:
    """One row for each row: its cell in every key, never NULL."""
    keys = coding.keys
    widest = max(key.size(cells.schema) for key in keys)
    kind = cells.dialect.small_int(widest)
    found = [
        sql.alias(cells.dialect.cast(cell_of(cells, (key,)), kind), f"k{place}")
        for place, key in enumerate(keys)
    ]
    return sql.select(found, rows)
