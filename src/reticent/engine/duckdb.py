"""DuckDB behind the protocol, fenced as R12 says: own connection, named files only, no extensions, locked."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine import sql, statements
from reticent.engine.fence import fenced, private_folder
from reticent.engine.points import point_tables, points
from reticent.engine.relation import Clean, needed
from reticent.engine.results import ContingencyTable, SufficientStatistics, Tallies
from reticent.engine.sources import ParquetFiles, Source
from reticent.engine.sql import Values
from reticent.engine.streams import ParquetRows, Stream
from reticent.engine.types import types_of
from reticent.engine.wants import Points, Sum, Table, Want
from reticent.errors import EngineError, SourceError
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

    def tally(self, schema: Schema, wants: Sequence[Want], repair: Repair = NO_REPAIR) -> Tallies:
        if repair.donors:
            raise NotImplementedError
        sums = [want for want in dict.fromkeys(wants) if isinstance(want, Sum)]
        tables = [want for want in dict.fromkeys(wants) if isinstance(want, Table)]
        found = self._rows_of(schema, sums)
        numbers = [int(value) for value in found[0]] if sums else []
        statistics = SufficientStatistics(sums=dict(zip(sums, numbers, strict=True)))
        clouds = [want for want in dict.fromkeys(wants) if isinstance(want, Points)]
        held = point_tables(schema, clouds, self._rows_of(schema, clouds) if clouds else {})
        return Tallies(statistics=statistics, tables=self._fill(schema, tables), points=held)

    def close(self) -> None:
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def _fill(self, schema: Schema, wants: Sequence[Table]) -> dict[Table, ContingencyTable]:
        cells = [[0] * want.size(schema) for want in wants]
        totals = statements.totals(wants)
        places = [len(wants) + totals.index(want.weight) for want in wants]
        for row in self._rows_of(schema, wants):
            for cell, table, place in zip(row, cells, places, strict=False):
                if cell is not None:
                    table[cell] = int(row[place])
        return {
            want: ContingencyTable(want=want, cells=tuple(table))
            for want, table in zip(wants, cells, strict=True)
        }

    def _rows_of(self, schema: Schema, wants: Sequence[Sum] | Sequence[Table] | Sequence[Points]) -> Any:
        """One pass over the rows for all `wants`, which are all of one kind: rows, but columns of points."""
        if not wants:
            return []
        try:
            return self._pass(self._source, schema, wants)
        except EngineError:
            if not isinstance(self._source, ParquetFiles):
                raise
        # One cell of text that is not UTF-8 stops DuckDB's reader; Arrow's goes on, and the cell is missing.
        return self._pass(ParquetRows(self._source.paths), schema, wants)

    def _pass(
        self, source: Source, schema: Schema, wants: Sequence[Sum] | Sequence[Table] | Sequence[Points]
    ) -> Any:
        values = Values()
        columns = needed(schema, wants)
        raw = [schema.columns[column].source for column in columns]
        raw += [schema.columns[schema.unit].source] if schema.unit != ROW else []
        base, names = self.base(raw, values, source)
        clean = Clean(schema, names, self.types, values)
        rows = clean.select(base, columns)
        built: Any = {Sum: statements.sums, Table: statements.tables, Points: points}[type(wants[0])]
        fetch = self.fetch_columns if isinstance(wants[0], Points) else self.fetch
        return fetch(built(clean, rows, wants), values)

    def base(
        self, headers: Sequence[str], values: Values, source: Source | None = None
    ) -> tuple[exp.Select, Mapping[str, str]]:
        """FROM the source, its columns under plain names: SQL never sees a header."""
        source = source or self._source
        if isinstance(source, Stream):
            names = {header: f"h{place}" for place, header in enumerate(headers)}
            reader = _opened(source, list(headers) or list(self.types)[:1])
            self._connection.register(ROWS, _renamed(reader, list(names.values()) or ["h0"]))
            return exp.select().from_(exp.Table(this=sql.name(ROWS))), names
        names = {header: f"h{place}" for place, header in enumerate(self.types)}
        alias = exp.TableAlias(this=sql.name("r"), columns=[sql.name(n) for n in names.values()])
        if isinstance(source, ParquetFiles):
            files = values.put([str(path) for path in source.paths])
            table = exp.Table(this=sql.call("read_parquet", files), alias=alias)
        else:
            place = {"this": exp.to_identifier(source.table, quoted=True), "db": sql.name("main")}
            table = exp.Table(**place, catalog=sql.name("held"), alias=alias)
        return exp.select().from_(table), names

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._fetched(statement, values, "fetchall")
        return rows

    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, NDArray[np.int64]]:
        """The same as arrays, for a statement that is never NULL."""
        columns: dict[str, NDArray[np.int64]] = self._fetched(statement, values, "fetchnumpy")
        return columns

    def _fetched(self, statement: exp.Select, values: Values, how: str) -> Any:
        found = None
        # What these say may hold a respondent's answer.
        with suppress(duckdb.Error, pa.ArrowException, OSError, MemoryError):
            found = getattr(self._connection.execute(statement.sql("duckdb"), values.bound), how)()
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


def _renamed(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    fields = [pa.field(name, f.type) for name, f in zip(names, reader.schema, strict=True)]
    schema = pa.schema(fields)
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)
