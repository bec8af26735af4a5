"""Where rows come from: files, frames and tables. Opening a source looks at its header, never at a row."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.engine.csv import CsvSource
from reticent.engine.frames import from_pandas, from_polars
from reticent.engine.statistical import READERS
from reticent.engine.streams import ArrowFile, ArrowRows, CsvFiles, ParquetRows, StatisticalFile, Stream
from reticent.errors import SourceError
from reticent.files import matching

STATISTICAL = frozenset(READERS)


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One or more Parquet files with one header."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class DuckTable:
    """A table of a DuckDB database file, opened for reading only."""

    path: Path
    table: str


Source = ParquetFiles | DuckTable | Stream


def open_path(text: str, *, table: str | None = None) -> Source:
    """The source behind a path or a glob, judged by its ending."""
    paths = _paths(text)
    endings = {path.suffix.lower() for path in paths}
    if len(endings) > 1:
        raise SourceError("matches files of different kinds", field="source")
    ending = endings.pop()
    if ending in (".csv", ".tsv", ".txt"):
        delimiter = b"\t" if ending == ".tsv" else b","
        return CsvFiles(tuple(CsvSource(path, delimiter) for path in paths))
    if ending in (".parquet", ".pq"):
        return ParquetFiles(paths)
    if len(paths) > 1:
        raise SourceError(f"matches several {ending} files, and only one can be read", field="source")
    return _single(paths[0], ending, table)


def files_of(source: Source) -> tuple[tuple[Path, str], ...]:
    """Every file of a source and, in a database, the table; none for rows held by the caller."""
    match source:
        case CsvFiles(files=files):
            return tuple((file.path, "") for file in files)
        case ParquetFiles(paths=paths) | ParquetRows(paths=paths):
            return tuple((path, "") for path in paths)
        case DuckTable(path=path, table=table):
            return ((path, table),)
        case ArrowFile(path=path) | StatisticalFile(path=path):
            return ((path, ""),)
        case _:
            return ()


def _single(path: Path, ending: str, table: str | None) -> Source:
    if ending in (".duckdb", ".db"):
        if table is None:
            raise SourceError("is a database; say which table: table = 'people'", field="source")
        return DuckTable(path, table)
    if ending in (".arrow", ".feather", ".ipc"):
        return ArrowFile(path)
    if ending in STATISTICAL:
        return StatisticalFile(path)
    raise SourceError(
        f"has the ending {ending or 'none'}; use .csv, .parquet, .arrow, .duckdb, .sav, .dta or .sas7bdat",
        field="source",
    )


def _paths(text: str) -> tuple[Path, ...]:
    found = matching(text)
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


def open_frame(frame: Any) -> ArrowRows:
    """Rows held by the caller: a pandas or Polars frame, or an Arrow table."""
    if isinstance(frame, pa.Table):
        return ArrowRows(frame)
    if hasattr(frame, "to_arrow"):
        return ArrowRows(from_polars(frame))
    if hasattr(frame, "iloc"):
        return ArrowRows(from_pandas(frame))
    raise SourceError("is not a pandas or Polars frame, nor an Arrow table", field="source")
