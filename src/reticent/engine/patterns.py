"""CONFIDENTIAL: which answers go missing together, for the curator who runs `check`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import needed
from reticent.engine.duckdb import DuckDBEngine
from reticent.engine.relation import Clean
from reticent.engine.sql import Sql, Values
from reticent.engine.wants import Rows, Sum
from reticent.schema import Schema
from reticent.schema.codebook import ROW

MOST_COLUMNS = 40


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
    values = Values()
    every = needed(schema, [Sum(rows=Rows(known=chosen))])
    headers = [schema.columns[column].source for column in every]
    headers += [schema.columns[schema.unit].source] if schema.unit != ROW else []
    base, names = engine.base(headers, values)
    clean = Clean(schema, names, engine.types, values)
    rows = clean.select(base, every)
    mask: Sql = sql.cast(sql.number(0), "BIGINT")
    for place, column in enumerate(chosen):
        bit = sql.case([(clean.missing(column), sql.number(2**place))], sql.number(0))
        mask = sql.plus(mask, bit)
    query = sql.select([exp.alias_(mask, "mask_", quoted=True)], rows)
    counted = sql.select([sql.column("mask_"), exp.Count(this=exp.Star())], query)
    counted = counted.group_by(sql.column("mask_"))
    found = sorted(engine.fetch(counted, values), key=lambda row: (-row[1], row[0]))
    return Patterns(columns=chosen, counts=tuple((_names(chosen, mask), count) for mask, count in found))


def _names(columns: Sequence[str], mask: int) -> frozenset[str]:
    return frozenset(column for place, column in enumerate(columns) if mask >> place & 1)
