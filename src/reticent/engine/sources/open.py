"""Data sources: files, frames and tables. Opening one looks at its header, never at a row.

pandas and Polars choose a column's type from all of its cells, so one respondent's odd answer turns numbers into doubles,
texts or objects. What a cell means does not depend on that (T31): columns of plain types go over as they are; all others
cell by cell, as text that means the same. Nothing in a cell can raise.

Tables may stay where they are: in a PostgreSQL service or the curator's Spark session, by the name of the relation. A plan
says no more than that. Hosts, users, passwords, masters and jars never come from a plan, whose author may be hostile, nor
from an argument, which the process list shows: libpq's service file has them, or the session.
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.sources.arrow import (
    READERS,
    ArrowFile,
    ArrowRows,
    CsvFiles,
    ParquetRows,
    StatisticalFile,
    Stream,
)
from reticent.engine.sources.csv import CsvSource
from reticent.engine.sources.objects import as_texts
from reticent.errors import SourceError
from reticent.files import matching
from reticent.schema import Number, Schema
from reticent.schema.schema import PLAIN_CSV
from reticent.services import SERVICE

POSTGRES, SPARK = "postgres", "spark"
_SERVICE = re.compile(rf"postgres:{SERVICE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTable:
    """A `relation` that the `engine` of that name reads: of a `service`, or over what the curator `given`s: a connection, a
    session or its frame."""

    engine: str
    relation: str = ""
    service: str = ""
    given: Any = field(default=None, repr=False)


def relation_of(relation: str) -> tuple[str, str]:
    """Schema and name, each as it is written: capitals count, quotes are not needed."""
    found = re.fullmatch(r"([^.\x00]{1,63})[.]([^.\x00]{1,63})", relation)
    if found is None:
        raise SourceError("names a table as schema.name", field="relation")
    return found[1], found[2]


def is_remote(source: str) -> bool:
    """Whether a plan's `source` names a table elsewhere and no file."""
    return source == SPARK or _SERVICE.fullmatch(source) is not None


def located(folder: Path, source: str) -> str:
    """The `source` of a plan that stands in `folder`: a path from here, or the same words where it is elsewhere."""
    return source if is_remote(source) else str(folder / source)


def remote_table(source: str, relation: str | None) -> RemoteTable:
    """The table that a plan names, of a `source` that is remote."""
    if not relation:
        raise SourceError(
            "is no file; say which table: relation = 'schema.name' in a plan, --relation schema.name in a command",
            field="source",
        )
    engine, _, service = source.partition(":")
    return RemoteTable(engine=engine, relation=relation, service=service)


def given_table(rows: Any, relation: str | None) -> RemoteTable | None:
    """The table behind a connection, a session or a frame that the curator opened; None for any other object."""
    module = type(rows).__module__
    if module.startswith("psycopg"):
        if not relation:
            raise SourceError("is a connection; say which table: table = 'schema.name'", field="source")
        return RemoteTable(engine=POSTGRES, relation=relation, given=rows)
    if module.startswith("pyspark"):
        return RemoteTable(engine=SPARK, relation=relation or "", given=rows)
    return None


PLAIN = "biuf"  # NumPy's kinds of truth values, whole numbers and doubles


def from_pandas(frame: Any) -> pa.Table:
    """Every column by its own type, categories by their words, other objects as text."""
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise SourceError("has columns of several levels; flatten them first", field="source")
    names = [str(name) for name in frame.columns]
    if not names:
        raise SourceError("has no columns", field="source")
    if len(set(names)) < len(names):
        raise SourceError("has a column name twice", field="source")
    if set(map(str, frame.index.names)) & set(names):
        raise SourceError("has an index named like a column; reset the index", field="source")
    return pa.table({name: _array(frame.iloc[:, place]) for place, name in enumerate(names)})


def from_polars(frame: Any) -> pa.Table:
    """The columns as Polars gives them to Arrow; its columns of Python objects as text."""
    if not frame.columns:
        raise SourceError("has no columns", field="source")
    return pa.table({name: _polars_array(frame[name]) for name in frame.columns})


def _polars_array(series: Any) -> pa.Array:
    if str(series.dtype) == "Object":
        return as_texts(series.to_list())
    return series.to_arrow()


def _array(series: Any) -> pa.Array:
    if hasattr(series, "cat"):
        words = _objects(series.cat.categories)
        codes = np.asarray(series.cat.codes)
        return words.take(pa.array(codes, mask=codes < 0))
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, np.dtype) and kind not in PLAIN + "M":
        return _objects(series)
    array = _attempt(lambda: pa.array(series, from_pandas=True))
    if array is None or isinstance(array.type, pa.BaseExtensionType):  # a type without a counterpart
        return _objects(series)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _objects(series: Any) -> pa.Array:
    """Texts as they are, where there is nothing else; otherwise object by object. Both give the same text."""
    objects = np.asarray(series, dtype=object)
    silent = np.asarray(series.isna(), dtype=bool)
    array = _attempt(lambda: pa.array(objects, type=pa.large_string(), mask=silent))
    if array is not None:
        return array
    told = objects.copy()
    told[silent] = None
    return as_texts(told)


def _attempt(make: Callable[[], Any]) -> Any:
    """What `make` gives, or None: why it cannot may hold a cell."""
    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
        return make()
    return None


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


ADDRESS = re.compile(r"(^|/)postgres(ql)?:|://|\bdbname=", re.IGNORECASE)
IS_ADDRESS = (
    "looks like the address of a server; addresses, users and passwords do not belong into a plan or a command: put them into "
    "libpq's service file, and write source = 'postgres:SERVICE' and relation = 'schema.name'"
)
TEXT_FILES = (".csv", ".tsv", ".txt")


def open_source(text: str, *, table: str | None = None, schema: Schema | None = None) -> Source | RemoteTable:
    """The source behind a path or a glob, or the table elsewhere that the text names; CSV as the codebook `schema` says."""
    return remote_table(text, table) if is_remote(text) else open_path(text, table=table, schema=schema)


def check_no_address(text: str) -> None:
    """Refuse what looks like the address of a server, without repeating it: it may hold a password."""
    if ADDRESS.search(text) and not os.path.exists(text):
        raise SourceError(IS_ADDRESS, field="source")


def open_path(text: str, *, table: str | None = None, schema: Schema | None = None) -> Source:
    """The source behind a path or a glob, judged by its ending."""
    check_no_address(text)
    paths = _paths(text)
    endings = {path.suffix.lower() for path in paths}
    if len(endings) > 1:
        raise SourceError("matches files of different kinds", field="source")
    ending = endings.pop()
    if ending in TEXT_FILES:
        dialect = schema.csv if schema is not None else PLAIN_CSV
        delimiter = dialect.separator.encode() or (b"\t" if ending == ".tsv" else b",")
        numbers = _numbers(schema)
        return CsvFiles(tuple(CsvSource(path, delimiter, dialect, numbers) for path in paths))
    if ending in (".parquet", ".pq"):
        return ParquetFiles(paths)
    if len(paths) > 1:
        raise SourceError(f"matches several {ending} files, and only one can be read", field="source")
    return _single(paths[0], ending, table)


def _numbers(schema: Schema | None) -> frozenset[str]:
    """The headers of columns of numbers."""
    if schema is None:
        return frozenset()
    return frozenset(column.source for column in schema.coded.values() if isinstance(column, Number))


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
        f"has the ending {ending or 'none'}; use .csv, .tsv, .parquet, .arrow, .duckdb, {', '.join(sorted(STATISTICAL))}",
        field="source",
    )


def _paths(text: str) -> tuple[Path, ...]:
    found = matching(text)
    if not found:
        raise SourceError(f"{_named(text)} matches no file", field="source")
    for path in found:
        _check_regular(path)
    return tuple(Path(path) for path in found)


def _check_regular(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        raise SourceError(f"{_named(path)} does not exist or cannot be reached", field="source") from None
    if not stat.S_ISREG(mode):
        raise SourceError(
            f"{_named(path)} is not a file (a folder, pipe or device cannot be read)", field="source"
        )
    if not os.access(path, os.R_OK):
        raise SourceError(f"{_named(path)} may not be read; check its permissions", field="source")


def _named(path: str) -> str:
    """The file by its last part; where it lies on the machine is nobody's business."""
    return repr(os.path.basename(path.rstrip("/"))[:100])


def open_frame(frame: Any) -> ArrowRows:
    """Rows held by the caller: a pandas or Polars frame, or an Arrow table."""
    if isinstance(frame, pa.Table):
        return ArrowRows(frame)
    if hasattr(frame, "to_arrow"):
        return ArrowRows(from_polars(frame))
    if hasattr(frame, "iloc"):
        return ArrowRows(from_pandas(frame))
    raise SourceError("is not a pandas or Polars frame, nor an Arrow table", field="source")
