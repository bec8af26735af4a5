"""Spark behind the protocol: rows of a cluster are read once, their codes staged, and only tables leave."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from reticent.engine.donors.lots import LotStaging
from reticent.engine.donors.windows import WindowedCapped
from reticent.engine.open import Nobody
from reticent.engine.protocol import CodedRows, Engine
from reticent.engine.sources.open import RemoteTable
from reticent.engine.spark.connection import SparkConnection
from reticent.engine.spark.held import ClusterRows
from reticent.engine.spark.words import SPARK
from reticent.engine.sql import build as sql
from reticent.engine.sql import keyed
from reticent.engine.sql.blocks import counted
from reticent.engine.sql.build import Sql, Values
from reticent.engine.sql.clean import Clean, RowView, needed
from reticent.engine.sql.points import GroupedPoints
from reticent.engine.sql.predict import HELD, predicted
from reticent.engine.sql.sampling import Lot
from reticent.engine.sql.tallies import Alike, coded_rows
from reticent.engine.sql_engine import SqlEngine
from reticent.engine.wants import (
    Aggregate,
    Coding,
    Key,
    Table,
    Tallies,
    check_coding,
)
from reticent.errors import PlanError
from reticent.prepare.distance import check_repair
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.schema import Schema
from reticent.schema.schema import ROW

STAGED, OWNER, CODED = "staged_", "s_owner_", "coded_"


class StagedClean(Clean):
    """Clean rows made of staged codes: those, and who a row belongs to, are columns already."""

    def _code(self, column: str) -> Sql:
        return sql.column(f"s_{column}")

    def _owner(self) -> Sql:
        return sql.column(OWNER)


def check_here(repair: Repair) -> None:
    """Refuse by name what a cluster's rows are not used for; the how-to page "Survey on Spark" has the list."""
    if repair.donors:
        raise PlanError(
            "the nearest donors (bound = 'hubs' and those for comparison) need every donor's gap on this side; on Spark leave "
            "the bound out, so that donors are capped",
            field="impute",
        )


class SparkStandIn(Nobody):
    """An engine without rows that refuses what Spark does, to try a plan on before it is charged."""

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Aggregate],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies:
        check_here(repair)
        return super().tally(schema, wants, repair, lot)

    @contextmanager
    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Iterator[CodedRows]:
        check_here(repair)
        with super().coded(schema, keys, repair, lot) as rows:
            yield rows


class SparkLots(LotStaging):
    """Records come from the cluster a lot at a time; where none will do, donors serve there by windows."""

    windows = WindowedCapped


class SparkEngine(SparkConnection, SqlEngine):
    """Rows of a Spark cluster. What leaves it is of a size that the codebook settles, or a slice or lot of at most a fixed one.

    The codes of all declared columns are staged by the first reading, so that every statement sees the same rows.
    """

    dialect = SPARK
    capping = SparkLots
    points = GroupedPoints()

    def __init__(self, source: RemoteTable) -> None:
        super().__init__(source)
        self._staged: Schema | None = None
        self._coded = 0

    def stand_in(self) -> Engine | None:
        return SparkStandIn()

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Aggregate],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies:
        check_here(repair)
        return super().tally(schema, wants, repair, lot)

    @contextmanager
    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> Iterator[CodedRows]:
        """CONFIDENTIAL: the rows as cells of `keys`, in a table of the cluster. Forgotten at the end."""
        check_here(repair)
        if repair != NO_REPAIR:
            check_repair(repair, schema)
        coding = Coding(keys=tuple(keys))
        check_coding(coding, schema, repair)
        self._coded += 1
        name = f"{CODED}{self._coded}_"
        with self._rows(schema, coding, repair, lot) as (cells, rows, values):
            self.make(name, self.printed(coded_rows(cells, rows, coding)), values)
            held = ClusterRows(self, name, sizes=coding.sizes(schema), silences=coding.silences(schema))
            try:
                yield held
            finally:
                held.close()

    @contextmanager
    def _rows(
        self, schema: Schema, coding: Coding, repair: Repair, lot: Lot | None
    ) -> Iterator[tuple[RowView, exp.Select, Values]]:
        """The repaired rows, for as long as something is made of them."""
        columns = needed(schema, [coding], repair) if lot is None else schema.in_universe_order
        if repair.capped:
            with self._capping(schema, replace(repair, rings=1), lot=lot) as capped:
                yield capped.cells, capped.rows(), Values()
        elif any(line.draw for line in repair.lines):
            with self._drawn(schema, columns, repair, lot) as (cells, rows):
                yield cells, rows(), Values()
        else:
            clean, rows_ = self._clean(None, schema, columns, repair, lot=lot)
            yield clean, rows_, clean.values

    @contextmanager
    def _drawing(
        self, schema: Schema, wants: Sequence[Aggregate], repair: Repair, lot: Lot | None
    ) -> Iterator[Callable[[Alike], Any]]:
        columns = needed(schema, wants, repair) if lot is None else schema.in_universe_order
        with self._drawn(schema, columns, repair, lot) as (cells, rows):
            yield lambda some: self._answers(cells, rows(), some)

    @contextmanager
    def _drawn(
        self, schema: Schema, columns: Sequence[str], repair: Repair, lot: Lot | None
    ) -> Iterator[tuple[RowView, Callable[[], exp.Select]]]:
        """The rows with a keyed draw for each line that draws, in a table; and what fills them. Dropped at the end."""
        clean, rows = self._clean(None, schema, columns, Repair(edits=repair.edits), lot=lot)
        seen = keyed.seen_by(clean, columns)
        made = keyed.labelled(SPARK, rows, seen, keyed.key_of(repair.lines), clean.values)
        try:
            self.give(keyed.NORMAL, keyed.normal_table())
            self.make(HELD, self.printed(keyed.drawn(clean, made, repair.lines)), clean.values)
            yield clean, lambda: self._filled(clean, columns, repair)
        finally:
            self.drop(HELD)
            self.drop(keyed.NORMAL)

    def _filled(self, cells: RowView, columns: Sequence[str], repair: Repair) -> exp.Select:
        draws = {p: sql.column(f"z{p}") for p, line in enumerate(repair.lines) if line.draw is not None}
        names = [*keyed.seen_by(cells, columns), *(each.copy() for each in draws.values())]
        held = exp.select(*names).from_(exp.Table(this=sql.name(HELD)))
        return predicted(cells, held, repair.lines, columns, draws=draws)

    def _answers(self, cells: RowView, rows: exp.Select, wants: Alike, values: Values | None = None) -> Any:
        if isinstance(wants[0], Table):
            tables = [want for want in wants if isinstance(want, Table)]
            return counted(self.fetch, cells, rows, tables, values or Values())
        return super()._answers(cells, rows, wants, values)

    def _clean(
        self,
        source: Any,
        schema: Schema,
        columns: Sequence[str],
        repair: Repair,
        keep: Sequence[str] = (),
        lot: Lot | None = None,
    ) -> tuple[Clean, exp.Select]:
        self._stage(schema)
        values = Values()
        clean = StagedClean(schema, {}, {}, values, SPARK, edits=repair.edits, keep=keep, lot=lot)
        rows = clean.select(exp.select().from_(exp.Table(this=sql.name(STAGED))), columns)
        if repair.lines and not repair.capped:  # after donors, lines follow them
            rows = predicted(clean, rows, repair.lines, columns, keep=clean.keep)
        return clean, rows

    def _stage(self, schema: Schema) -> None:
        """The codes of every declared column, once for a codebook."""
        if self._staged == schema:
            return
        values, made = Values(), schema.computed
        columns = [column for column in schema.in_universe_order if column not in made]
        raw = [schema.columns[column].source for column in columns]
        raw += [schema.columns[schema.unit].source] if schema.unit != ROW else []
        base, names = self.base(list(dict.fromkeys(raw)), values)
        clean = Clean(schema, names, self.types, values, SPARK)
        codes = [sql.alias(SPARK.cast(clean._code(c), "BIGINT"), f"s_{c}") for c in columns]
        owner = [sql.alias(clean._owner(), OWNER)] if schema.unit != ROW else []
        self.stage(STAGED, base.select(*codes, *owner), values)
        self._staged = schema
