"""DuckDB behind the protocol, fenced: its words for SQL, its connection, and the engine of files and frames.

The fence (R12): an own connection, named files only, no extensions, a private spill folder, settings locked. For the types
no row is read.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.parquet import read_schema
from sqlglot import exp

from reticent.engine.donors.circle import LOT
from reticent.engine.donors.local import LocalCapped
from reticent.engine.donors.records import LINE
from reticent.engine.sources.arrow import ParquetRows, Stream
from reticent.engine.sources.open import DuckTable, ParquetFiles, Source, files_of
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import HEX_DIGITS, Dialect, Sql, Values, number
from reticent.engine.sql_engine import SqlEngine
from reticent.errors import EngineError, SourceError


class DuckDBDialect(Dialect):
    """The dialect of the embedded engine. Its `TRY_CAST` raises nothing, and its integers have 128 bits."""

    name = "duckdb"
    int_div_sign = "//"

    def wide_int(self) -> str:
        return "HUGEINT"

    def small_int(self, cells: int) -> str:
        return "UTINYINT" if cells <= 2**8 else "USMALLINT"

    def trim(self, text: Sql, blanks: str) -> Sql:
        return self.call("trim", text, exp.Literal.string(blanks))

    def full_match(self, text: Sql, pattern: str) -> Sql:
        return self.call("regexp_full_match", text, exp.Literal.string(pattern))

    def replaced(self, text: Sql, pattern: str, by: str) -> Sql:
        return self.call("regexp_replace", text, exp.Literal.string(pattern), exp.Literal.string(by))

    def try_number(self, value: Sql, to: str) -> Sql:
        return exp.TryCast(this=value, to=self.kind(to))

    def text_of(self, value: Sql, source: str) -> Sql:
        return self.cast(value, "VARCHAR") if source != "date" else self.try_number(value, "VARCHAR")

    def shown(self, x: Sql, places: int) -> Sql:
        exact = self.try_number(self.cast(x, "VARCHAR"), f"DECIMAL(38, {places})")
        empty = exp.Literal.string("")
        digits = self.call("replace", self.cast(exact, "VARCHAR"), exp.Literal.string("."), empty)
        return self.try_number(digits, self.wide_int())

    def counted(self, raw: Sql, scale: int) -> Sql:
        # 15 digits times 10^3 fit the 18 that a product of two short decimals is given; beyond, ask for more.
        power = number(10**scale)
        wide = power if scale <= 3 else self.cast(power, "DECIMAL(20, 0)")
        return self.cast(exp.Mul(this=exp.Paren(this=raw), expression=exp.Paren(this=wide)), "BIGINT")

    def is_nan(self, value: Sql) -> Sql:
        return self.call("isnan", value)

    def int_div(self, left: Sql, right: Sql, *, wide: bool = False) -> Sql:
        return exp.IntDiv(this=left, expression=right)

    def position_in(self, values: Sql, value: Sql) -> Sql:
        return self.call("list_position", values, value)

    def element_at(self, values: Sql, place: Sql) -> Sql:
        return self.call("list_extract", values, place)

    def byte_length(self, text: Sql) -> Sql:
        return self.call("strlen", text)

    def turn(self, value: str, group: str) -> Sql | None:
        return None

    def top_k(self, value: Sql, k: int) -> Sql:
        return self.call("max", value, number(k))

    def digest(self, text: Sql) -> Sql:
        return self.call("sha256", text)

    def digest60(self, digits: Sql, part: int = 0) -> Sql:
        size, start = number(HEX_DIGITS), number(1 + part * HEX_DIGITS)
        cut = self.call("substr", digits, start, size) if part else self.call("left", digits, size)
        return self.try_number(exp.DPipe(this=exp.Literal.string("0x"), expression=cut), "BIGINT")

    def line_number(self) -> Sql:
        return exp.Column(this=exp.Identifier(this="rowid", quoted=True))

    def temp_table(self, name: str, statement: str) -> str:
        return f"CREATE OR REPLACE TEMP TABLE {name} AS {statement}"


DUCKDB = DuckDBDialect()


def fenced(source: Source, spill: Path | None, threads: int, memory: str) -> Any:
    """A connection that can reach the declared files and nothing else, with its settings locked."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        },
    )
    settings: dict[str, object] = {
        "threads": threads,
        "memory_limit": memory,
        "preserve_insertion_order": False,
        "python_enable_replacements": False,
        "error_on_division_by_zero": False,
        # A Parquet file says what its lowest and highest values are. Where it is wrong, the optimiser would
        # believe it and leave out our clamps (B076).
        "disabled_optimizers": "statistics_propagation",
        "enable_progress_bar": False,
        "temp_directory": str(spill) if spill is not None else "",
    }
    for key, value in settings.items():
        connection.execute(f"SET {key} = $1", [value])
    if isinstance(source, DuckTable):
        connection.execute("ATTACH $1 AS held (READ_ONLY)".replace("$1", _quoted(str(source.path))))
    paths = source.paths if isinstance(source, ParquetFiles) else ()
    connection.execute("SET allowed_paths = $1", [[str(path) for path in paths]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _quoted(path: str) -> str:
    return DUCKDB.printed(exp.Literal.string(path))


def private_folder() -> Path:
    """A folder of our own for spilling, 0700; what a killed run of this user left behind goes first."""
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"reticent-{os.getuid()}-*"):
        process = old.name.split("-")[2]
        if not process.isdigit() or not Path(f"/proc/{process}").exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"reticent-{os.getuid()}-{os.getpid()}-", dir=root))


WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"})
UNSIGNED = frozenset(
    {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)  # UHUGEINT is summed in doubles: refused


DATES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})


def types_of(source: Source) -> dict[str, str]:
    """Header names and our word for each type: integer, float, decimal, text, boolean, date or other."""
    if isinstance(source, Stream):
        return {name: _word(_arrow_name(kind)) for name, kind in source.types().items()}
    described = None
    try:
        with fenced(source, None, 1, "256MiB") as connection:
            if isinstance(source, ParquetFiles):
                _check_headers(source)
                found = connection.execute(
                    "DESCRIBE SELECT * FROM read_parquet($1)", [[str(p) for p in source.paths]]
                )
            else:
                table = DUCKDB.printed(exp.to_identifier(source.table, quoted=True))
                found = connection.execute(f"DESCRIBE held.main.{table}")
            described = {row[0]: _word(row[1]) for row in found.fetchall()}
    except (duckdb.Error, pa.ArrowException, OSError):
        pass  # its text may quote the file
    if described is None:
        kind = "Parquet" if isinstance(source, ParquetFiles) else "a DuckDB database with that table"
        raise SourceError(f"cannot be read as {kind}", field="source")
    return described


def _check_headers(source: ParquetFiles) -> None:
    """One header for all files, no name twice. DuckDB would rename the second, and meet other files too late."""
    first, *others = (read_schema(path).remove_metadata() for path in source.paths)
    if any(other != first for other in others):
        raise SourceError("the files do not have the same header", field="source")
    twice = next((name for name in first.names if first.names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"has the column {twice!r} twice; rename one of them", field="source")


def _word(kind: str) -> str:
    kind = kind.upper()
    if kind in WHOLE | UNSIGNED:
        return "integer"
    if kind in ("FLOAT", "DOUBLE"):
        return "float"
    if kind.startswith("DECIMAL"):
        width, scale = (int(part) for part in kind.removeprefix("DECIMAL(").rstrip(")").split(","))
        return f"decimal{scale}" if width <= 15 else "decimal"
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return "text"
    if kind in DATES:
        return "date"
    return {"BOOLEAN": "boolean", '"NULL"': "text", "NULL": "text"}.get(kind, "other")


def _arrow_name(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "BIGINT"
    if pa.types.is_floating(kind):
        return "DOUBLE"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "VARCHAR"
    return {"bool": "BOOLEAN", "null": "NULL"}.get(str(kind), "other")


ROWS = "rows_"
BLOCKS, BLOCK = "blocks_", 2**20  # rows that are fetched at once
UNREAD = "the rows could not be read to the end; free memory or disk, or check that the file is whole"


class Connection:
    """What is behind the fence. Whatever fails there is told in one constant text."""

    def __init__(self, source: Source, *, threads: int | None = None, memory: str = "1GiB") -> None:
        self._source = source
        self.types: Mapping[str, str] = types_of(source)  # a header that is refused leaves no folder behind
        self._spill = private_folder()
        self._threads = threads or os.cpu_count() or 1
        self._connection = fenced(source, self._spill, self._threads, memory)

    @property
    def version(self) -> str:
        return f"duckdb {duckdb.__version__}"

    @property
    def threads(self) -> int:
        return self._threads

    @property
    def folder(self) -> Path:
        """The private one, for what does not fit into memory."""
        return self._spill

    @property
    def files(self) -> tuple[tuple[Path, str], ...]:
        """The files that rows come from and, in a database, the table; none for rows held by the caller."""
        return files_of(self._source)

    def close(self) -> None:
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

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
        numbered = exp.select(exp.Star(), sql.alias(DUCKDB.line_number(), LINE)).from_(table)
        return exp.select().from_(numbered.subquery("r")), names

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._fetched(statement, values, "fetchall")
        return rows

    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, NDArray[np.int64]]:
        """The same as arrays, for a statement that is never NULL."""
        columns: dict[str, NDArray[np.int64]] = self._fetched(statement, values, "fetchnumpy")
        return columns

    def fetch_blocks(self, statement: exp.Select, values: Values) -> list[NDArray[Any]]:
        """The same as blocks of rows, a line for each column. Made by all threads, then put away piece by piece."""
        blocks = None
        self.make(BLOCKS, DUCKDB.printed(statement, copy=False), values)
        with suppress(duckdb.Error, pa.ArrowException, OSError, MemoryError):
            found = self._connection.sql(f'SELECT * FROM "{BLOCKS}"').to_arrow_reader(BLOCK)
            blocks = [np.stack([np.from_dlpack(column) for column in batch.columns]) for batch in found]
        self.drop(BLOCKS)
        if blocks is None:
            raise EngineError(UNREAD, field="source")
        return blocks

    def in_blocks(self, statement: str, values: Values) -> Iterator[dict[str, NDArray[Any]]]:
        """The same, some lines at a time, and never all of them. One block at least, which may be empty."""
        done = False
        with suppress(duckdb.Error, pa.ArrowException, OSError, MemoryError):
            found = self._connection.sql(statement, params=values.bound).to_arrow_reader(LOT)
            yield {field.name: np.zeros(0, field.type.to_pandas_dtype()) for field in found.schema}
            for batch in found:
                named = zip(batch.schema.names, batch.columns, strict=True)
                yield {name: np.from_dlpack(column) for name, column in named}
            done = True
        if not done:
            raise EngineError(UNREAD, field="source")

    def make(self, name: str, statement: str, values: Values | None = None) -> None:
        self._run(DUCKDB.temp_table(DUCKDB.printed(sql.name(name)), statement), values)

    def give(self, name: str, table: pa.Table, *, more: bool = False) -> None:
        """`table` under that name; with `more`, behind the rows that are there."""
        given, into = (DUCKDB.printed(sql.name(each)) for each in (f"given_{name}", name))
        self._connection.register(f"given_{name}", table)
        if more:
            self._run(f"INSERT INTO {into} SELECT * FROM {given}", None)
        else:
            self.make(name, f"SELECT * FROM {given}")
        self._connection.unregister(f"given_{name}")

    def ask(self, statement: str) -> dict[str, NDArray[np.int64]]:
        """The columns of a statement without parameters that is never NULL."""
        found = self.table(statement)
        return {name: _whole(found[name]) for name in found.column_names}

    def drop(self, name: str) -> None:
        with suppress(duckdb.Error):
            self._connection.execute(f"DROP TABLE IF EXISTS {DUCKDB.printed(sql.name(name))}")

    def table(self, statement: str) -> pa.Table:
        found = None
        with suppress(duckdb.Error, pa.ArrowException, OSError, MemoryError):
            found = self._connection.sql(statement).to_arrow_table()
        if found is None:
            raise EngineError(UNREAD, field="source")
        return found

    def _fetched(self, statement: exp.Select, values: Values, how: str) -> Any:
        return self._run(DUCKDB.printed(statement, copy=False), values, how)

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


class DuckDBEngine(Connection, SqlEngine):
    """Rows in files, frames or a DuckDB table. Nothing but counts and sums over declared cells leaves it."""

    dialect = DUCKDB
    capping = LocalCapped

    def _in_order(self) -> ParquetRows | None:
        """Where rows are read from when their order matters."""
        return ParquetRows(self._source.paths) if isinstance(self._source, ParquetFiles) else None

    def _reading(self, read: Callable[[Any], Any]) -> Any:
        try:
            return read(None)
        except EngineError:
            if not isinstance(self._source, ParquetFiles):
                raise
        # One cell of text that is not UTF-8 stops DuckDB's reader; Arrow's goes on, and the cell is missing.
        return read(ParquetRows(self._source.paths))


def _whole(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Its whole numbers. `to_numpy` would load pandas, where that is installed, to ask whether it was wanted."""
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks]
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)
