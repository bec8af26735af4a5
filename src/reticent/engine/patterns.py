"""CONFIDENTIAL: which answers go missing together, for the curator who runs `check`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import needed
from reticent.engine.duckdb import DuckDBEngine
from reticent.engine.relation import Clean
from reticent.engine.sources import Source
from reticent.engine.sql import Sql
from reticent.engine.wants import Rows, Sum
from reticent.prepare.donors import NO_REPAIR
from reticent.schema import Schema

MOST_COLUMNS = 40
MASK = "mask_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """How often each set of columns is missing together, most frequent first. Nothing here is ever published."""

    columns: tuple[str, ...]
    counts: tuple[tuple[frozenset[str], int], ...] = field(repr=False)

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.counts)

    def share(self, *names: str) -> float:
        """The share of rows on which all of `names` are missing."""
        hit = sum(count for missing, count in self.counts if missing.issuperset(names))
        return hit / self.rows if self.rows else 0.0

    def correlation(self, one: str, other: str) -> float:
        """The correlation of two missingness flags; 0 where either never varies."""
        a, b, both = self.share(one), self.share(other), self.share(one, other)
        spread = sqrt(a * (1 - a) * b * (1 - b))
        return (both - a * b) / spread if spread else 0.0


def patterns(engine: DuckDBEngine, schema: Schema, columns: Sequence[str]) -> Patterns:
    """The patterns over `columns` (at most forty), by one pass over the rows."""
    chosen = tuple(columns)[:MOST_COLUMNS]

    def counted(clean: Clean, rows: exp.Select) -> exp.Select:
        query = sql.select([sql.alias(mask_of(clean, chosen), MASK)], rows)
        query = sql.select([sql.column(MASK), exp.Count(this=exp.Star())], query)
        return query.group_by(sql.column(MASK))

    found = sorted(read(engine, schema, chosen, counted), key=lambda row: (-row[1], row[0]))
    return Patterns(columns=chosen, counts=tuple((_names(chosen, mask), count) for mask, count in found))


def read(
    engine: DuckDBEngine,
    schema: Schema,
    columns: Sequence[str],
    build: Callable[[Clean, exp.Select], exp.Select],
) -> list[tuple[Any, ...]]:
    """What a statement over the clean rows of `columns` gives, read as a tally would read them."""
    every = needed(schema, [Sum(rows=Rows(known=tuple(columns)))])

    def fetched(source: Source) -> list[tuple[Any, ...]]:
        clean, rows = engine._clean(source, schema, every, NO_REPAIR)
        return engine.fetch(build(clean, rows), clean.values)

    found: list[tuple[Any, ...]] = engine._reading(fetched)
    return found


def mask_of(clean: Clean, columns: Sequence[str]) -> Sql:
    """The pattern of a row as a number: bit i where column i is missing."""
    mask: Sql = sql.cast(sql.number(0), "BIGINT")
    for place, column in enumerate(columns):
        bit = sql.case([(clean.missing(column), sql.number(2**place))], sql.number(0))
        mask = sql.plus(mask, bit)
    return mask


def _names(columns: Sequence[str], mask: int) -> frozenset[str]:
    return frozenset(column for place, column in enumerate(columns) if mask >> place & 1)
