"""Where rows come from: files, frames and tables. Opening a source looks at its header, never at a row."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from reticent.engine.csv import CsvSource
from reticent.errors import SourceError

STATISTICAL = {".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt"}


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One or more Parquet files with one header."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class DuckTable:
    """A table of a DuckDB database file, opened for reading only."""

    path: Path
    table: str


class Streams(Protocol):
    """Rows that arrive as Arrow batches: a fresh reader for every pass."""

    def types(self) -> dict[str, pa.DataType]: ...

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader: ...


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """One or more CSV files with one header; every cell is text."""

    files: tuple[CsvSource, ...]

    def types(self) -> dict[str, pa.DataType]:
        headers = {file.header() for file in self.files}
        if len(headers) > 1:
            raise SourceError("the files do not have the same header", field="source")
        return dict.fromkeys(headers.pop(), pa.string())

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        schema = self.files[0].reader(columns).schema

        def batches() -> Iterator[pa.RecordBatch]:
            for file in self.files:
                yield from file.reader(columns)

        return pa.RecordBatchReader.from_batches(schema, batches())


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """A table in memory."""

    table: pa.Table = field(repr=False)

    def types(self) -> dict[str, pa.DataType]:
        names = self.table.column_names
        if not names:
            raise SourceError("has no columns", field="source")
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise SourceError(f"has the column {twice!r} twice", field="source")
        return {name: _plain(self.table.schema.field(name).type) for name in names}

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        chosen = self.table.select(list(columns))
        plain = [pa.field(f.name, _plain(f.type)) for f in chosen.schema]
        batches = chosen.cast(pa.schema(plain)).to_reader(max_chunksize=1 << 17)
        return pa.RecordBatchReader.from_batches(batches.schema, map(_readable, batches))


Source = ParquetFiles | DuckTable | CsvFiles | ArrowRows


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with text that is not UTF-8 missing: an engine would refuse the whole table for one cell."""
    try:
        batch.validate(full=True)
        return batch
    except pa.ArrowInvalid:
        return pa.RecordBatch.from_arrays([_text(column) for column in batch.columns], schema=batch.schema)


def _text(column: pa.Array) -> pa.Array:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if not any(is_kind(column.type) for is_kind in kinds):
        return column
    cells = column.cast(pa.large_binary()).to_pylist()
    return pa.array([None if _is_broken(cell) else cell for cell in cells], pa.large_binary()).cast(
        column.type
    )


def _is_broken(cell: bytes | None) -> bool:
    try:
        (cell or b"").decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _plain(kind: pa.DataType) -> pa.DataType:
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def open_path(text: str, *, table: str | None = None) -> Source:
    """The source behind a path or a glob, judged by its ending."""
    paths = _paths(text)
    endings = {_ending(path) for path in paths}
    if len(endings) > 1:
        raise SourceError("matches files of different kinds", field="source")
    ending = endings.pop()
    if ending in (".duckdb", ".db"):
        if table is None:
            raise SourceError("is a database; say which table: table = 'people'", field="source")
        return DuckTable(paths[0], table)
    if ending in (".csv", ".tsv", ".txt"):
        delimiter = b"\t" if ending == ".tsv" else b","
        return CsvFiles(tuple(CsvSource(path, delimiter) for path in paths))
    if ending in (".parquet", ".pq"):
        return ParquetFiles(paths)
    if ending in (".arrow", ".feather", ".ipc"):
        return ArrowRows(_read_arrow(paths[0]))
    if ending in STATISTICAL:
        from reticent.engine.statistical import read_statistical

        return ArrowRows(read_statistical(paths[0]))
    raise SourceError(
        f"has the ending {ending or 'none'}; use .csv, .parquet, .arrow, .duckdb, .sav, .dta or .sas7bdat",
        field="source",
    )


def _ending(path: Path) -> str:
    return path.suffix.lower()


def _paths(text: str) -> tuple[Path, ...]:
    found = sorted(glob.glob(text)) if any(c in text for c in "*?[") and not os.path.exists(text) else [text]
    if not found:
        raise SourceError("matches no file", field="source")
    for path in found:
        _check_regular(path)
    return tuple(Path(path) for path in found)


def _check_regular(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        raise SourceError("does not exist or cannot be reached", field="source") from None
    if not stat.S_ISREG(mode):
        raise SourceError("is not a file (a folder, pipe or device cannot be read)", field="source")
    if not os.access(path, os.R_OK):
        raise SourceError("may not be read; check its permissions", field="source")


def _read_arrow(path: Path) -> pa.Table:
    table = None
    try:
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
    except (pa.ArrowException, OSError):
        pass  # its text may hold part of the file
    if table is None:
        raise SourceError("cannot be read as an Arrow file", field="source")
    return table


def open_frame(frame: Any) -> ArrowRows:
    """Rows held by the caller: a pandas or Polars frame, or an Arrow table."""
    if isinstance(frame, pa.Table):
        return ArrowRows(frame)
    if hasattr(frame, "to_arrow"):
        return ArrowRows(frame.to_arrow())
    if hasattr(frame, "iloc"):
        from reticent.engine.frames import from_pandas

        return ArrowRows(from_pandas(frame))
    raise SourceError("is not a pandas or Polars frame, nor an Arrow table", field="source")
