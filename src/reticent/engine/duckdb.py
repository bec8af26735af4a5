"""DuckDB behind the protocol, fenced as R12 says: own connection, named files only, no extensions, locked."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql
from reticent.engine.cells import Cells, needed
from reticent.engine.fence import fenced, private_folder
from reticent.engine.holding import Holding, check_rings, domains_of
from reticent.engine.labels import LINE, labelled
from reticent.engine.lots import Lot
from reticent.engine.packing import Packing
from reticent.engine.predict import HELD, Drawn, numbered, predicted
from reticent.engine.relation import Clean
from reticent.engine.results import Tallies
from reticent.engine.rings import PEOPLE
from reticent.engine.sources import ParquetFiles, Source
from reticent.engine.sql import Values
from reticent.engine.streams import ParquetRows, Stream
from reticent.engine.tallying import Alike, statement, tallied
from reticent.engine.types import types_of
from reticent.engine.wants import Points, Ring, Want
from reticent.errors import EngineError, SourceError
from reticent.prepare.checks import check_repair
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.schema import Levels, Schema
from reticent.schema.codebook import ROW

ROWS = "rows_"
UNREAD = "the rows could not be read to the end; free memory or disk, or check that the file is whole"


class DuckDBEngine:
    """Rows in files, frames or a DuckDB table. Nothing but counts and sums over declared cells leaves it."""

    def __init__(self, source: Source, *, threads: int | None = None, memory: str = "1GiB") -> None:
        self._source = source
        self.types = types_of(source)  # a header that is refused leaves no folder behind
        self._spill = private_folder()
        self._connection = fenced(source, self._spill, threads or os.cpu_count() or 1, memory)

    @property
    def version(self) -> str:
        return f"duckdb {duckdb.__version__}"

    def check(self, schema: Schema) -> None:
        for column in schema.columns.values():
            if column.source not in self.types:
                raise SourceError(
                    f"the data have no column {column.source!r}; set its source to the header in the file",
                    field=f"columns.{column.name}",
                )
            kind = self.types[column.source]
            numeric = not isinstance(column, Levels) and column.name != schema.unit
            if kind == "other" or (numeric and kind == "boolean"):
                raise SourceError(
                    "has a type that this column cannot have; store it as text or number",
                    field=f"columns.{column.name}",
                )

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Want],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies:
        check_repair(repair, schema)
        rings = [want for want in dict.fromkeys(wants) if isinstance(want, Ring)]
        check_rings(rings, repair)
        if repair.donors:
            columns = needed(schema, wants, repair) if lot is None else schema.in_universe_order
            with self._holding(schema, columns, repair, lot=lot) as held:
                found = held.fill(rings)
                return tallied(
                    schema, wants, lambda some: self._answers(held.cells, held.rows(), some), found
                )
        if any(line.draw for line in repair.lines):
            with self._drawing(schema, wants, repair, lot) as answers:
                return tallied(schema, wants, answers, {})
        return tallied(schema, wants, lambda some: self._pass(schema, some, repair, lot), {})

    def filled(self, schema: Schema, repair: Repair) -> pa.Table:
        """CONFIDENTIAL, for the curator: all rows as codes after `repair`, in the source's order, with a mark
        `<column>_filled` for each column that donors fill."""
        check_repair(repair, schema)
        with self._holding(schema, schema.in_universe_order, repair, keep=(LINE,)) as held:
            held.fill([])
            return self._table(sql.text(held.marked()))

    def close(self) -> None:
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def _pass(self, schema: Schema, wants: Alike, repair: Repair, lot: Lot | None = None) -> Any:
        """One pass over the rows for `wants`, which are all of one kind."""
        columns = needed(schema, wants, repair) if lot is None else schema.in_universe_order

        def read(source: Source) -> Any:
            clean, rows = self._clean(source, schema, columns, repair, lot=lot)
            return self._answers(clean, rows, wants, clean.values)

        return self._reading(read)

    def _answers(self, cells: Cells, rows: exp.Select, wants: Alike, values: Values | None = None) -> Any:
        fetch = self.fetch_columns if isinstance(wants[0], Points) else self.fetch
        return fetch(statement(cells, rows, wants), values or Values())

    @contextmanager
    def _drawing(
        self, schema: Schema, wants: Sequence[Want], repair: Repair, lot: Lot | None
    ) -> Iterator[Callable[[Alike], Any]]:
        """The rows with their draws in tables, read once, dropped at the end."""
        columns = needed(schema, wants, repair) if lot is None else schema.in_universe_order
        drawn = Drawn(self, repair.lines)

        def read(source: Source) -> Cells:
            clean, rows = self._clean(source, schema, columns, Repair(edits=repair.edits), lot=lot)
            self.make(HELD, sql.text(numbered(rows)), clean.values)
            return clean

        try:
            cells = self._reading(read)
            drawn.draw()
            yield lambda some: self._answers(cells, drawn.rows(cells, columns), some)
        finally:
            drawn.drop()

    @contextmanager
    def _holding(
        self,
        schema: Schema,
        columns: Sequence[str],
        repair: Repair,
        keep: Sequence[str] = (),
        lot: Lot | None = None,
    ) -> Iterator[Holding]:
        """The clean rows in a table, read once, dropped at the end."""
        packing = Packing(schema, columns)

        def read(source: Source) -> None:
            clean, rows = self._clean(source, schema, columns, repair, keep, lot)
            people = labelled(clean, rows, packing, domains_of(repair), repair.key, clean.keep)
            self.make(PEOPLE, sql.text(people), clean.values)

        held = Holding(self, schema, packing, repair)
        try:
            self._reading(read)
            yield held
        finally:
            held.drop()

    def _reading(self, read: Callable[[Source], Any]) -> Any:
        try:
            return read(self._source)
        except EngineError:
            if not isinstance(self._source, ParquetFiles):
                raise
        # One cell of text that is not UTF-8 stops DuckDB's reader; Arrow's goes on, and the cell is missing.
        return read(ParquetRows(self._source.paths))

    def _clean(
        self,
        source: Source,
        schema: Schema,
        columns: Sequence[str],
        repair: Repair,
        keep: Sequence[str] = (),
        lot: Lot | None = None,
    ) -> tuple[Clean, exp.Select]:
        values = Values()
        raw = [schema.columns[column].source for column in columns]
        raw += [schema.columns[schema.unit].source] if schema.unit != ROW else []
        if LINE in keep and isinstance(source, ParquetFiles):
            source = ParquetRows(source.paths)  # in the order of the file
        base, names = self.base(raw, values, source, line=LINE in keep)
        clean = Clean(schema, names, self.types, values, edits=repair.edits, keep=keep, lot=lot)
        rows = clean.select(base, columns)
        return clean, predicted(clean, rows, repair.lines, columns, keep=clean.keep)

    def base(
        self, headers: Sequence[str], values: Values, source: Source | None = None, *, line: bool = False
    ) -> tuple[exp.Select, Mapping[str, str]]:
        """FROM the source, its columns under plain names: SQL never sees a header. With `line`, lines have numbers."""
        source = source or self._source
        if isinstance(source, Stream):
            names = {header: f"h{place}" for place, header in enumerate(headers)}
            reader = _opened(source, list(headers) or list(self.types)[:1])
            self._connection.register(ROWS, _renamed(reader, list(names.values()) or ["h0"], line=line))
            return exp.select().from_(exp.Table(this=sql.name(ROWS))), names
        names = {header: f"h{place}" for place, header in enumerate(self.types)}
        alias = exp.TableAlias(this=sql.name("r"), columns=[sql.name(n) for n in names.values()])
        if isinstance(source, ParquetFiles):
            files = values.put([str(path) for path in source.paths])
            table = exp.Table(this=sql.call("read_parquet", files), alias=alias)
        else:
            place = {"this": exp.to_identifier(source.table, quoted=True), "db": sql.name("main")}
            table = exp.Table(**place, catalog=sql.name("held"), alias=alias)
        if not line:
            return exp.select().from_(table), names
        numbered = exp.select(exp.Star(), sql.alias(sql.column("rowid"), LINE)).from_(table)
        return exp.select().from_(numbered.subquery("r")), names

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._fetched(statement, values, "fetchall")
        return rows

    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, NDArray[np.int64]]:
        """The same as arrays, for a statement that is never NULL."""
        columns: dict[str, NDArray[np.int64]] = self._fetched(statement, values, "fetchnumpy")
        return columns

    def make(self, name: str, statement: str, values: Values | None = None) -> None:
        self._run(f"CREATE OR REPLACE TEMP TABLE {sql.name(name).sql('duckdb')} AS {statement}", values)

    def give(self, name: str, table: pa.Table) -> None:
        self._connection.register(f"given_{name}", table)
        self.make(name, f"SELECT * FROM {sql.name(f'given_{name}').sql('duckdb')}")
        self._connection.unregister(f"given_{name}")

    def ask(self, statement: str) -> dict[str, NDArray[np.int64]]:
        found: dict[str, NDArray[np.int64]] = self._run(statement, None, "fetchnumpy")
        return found

    def drop(self, name: str) -> None:
        with suppress(duckdb.Error):
            self._connection.execute(f"DROP TABLE IF EXISTS {sql.name(name).sql('duckdb')}")

    def _table(self, statement: str) -> pa.Table:
        found = None
        with suppress(duckdb.Error, pa.ArrowException, OSError, MemoryError):
            found = self._connection.sql(statement).to_arrow_table()
        if found is None:
            raise EngineError(UNREAD, field="source")
        return found

    def _fetched(self, statement: exp.Select, values: Values, how: str) -> Any:
        return self._run(sql.text(statement), values, how)

    def _run(self, statement: str, values: Values | None, how: str = "fetchall") -> Any:
        found = None
        # What these say may hold a respondent's answer.
        with suppress(duckdb.Error, pa.ArrowException, OSError, MemoryError):
            found = getattr(self._connection.execute(statement, values.bound if values else None), how)()
        if found is None:
            raise EngineError(UNREAD, field="source")
        return found


def _opened(source: Stream, columns: Sequence[str]) -> pa.RecordBatchReader:
    """A reader of the columns. The file was there for the check; why it is not now, its error may not say."""
    reader = None
    with suppress(SourceError, pa.ArrowException, OSError):
        reader = source.reader(columns)
    if reader is None:
        raise EngineError(UNREAD, field="source")
    return reader


def _renamed(
    reader: pa.RecordBatchReader, names: Sequence[str], *, line: bool = False
) -> pa.RecordBatchReader:
    fields = [pa.field(name, f.type) for name, f in zip(names, reader.schema, strict=True)]
    fields += [pa.field(LINE, pa.int64())] * line
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in reader:
            last = first + len(batch)
            lines = [pa.array(np.arange(first, last, dtype=np.int64))] * line
            yield pa.RecordBatch.from_arrays([*batch.columns, *lines], schema=schema)
            first = last

    return pa.RecordBatchReader.from_batches(schema, batches())
