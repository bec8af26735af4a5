"""Rows that arrive as Arrow batches: CSV, Arrow and statistical files, and tables in memory.

`types` looks at the header only; `reader` gives a fresh pass over the rows each time it is called.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow.parquet import ParquetFile, read_schema

from reticent.engine import statistical
from reticent.engine.csv import CsvSource
from reticent.engine.objects import as_texts, moments
from reticent.errors import SourceError

BATCH = 1 << 17


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
        return _checked(self.table.schema)

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        return _plain_reader(self.table.select(list(columns)))


@dataclass(frozen=True, slots=True)
class ArrowFile:
    """An Arrow file, mapped into memory when its rows are read."""

    path: Path

    def types(self) -> dict[str, pa.DataType]:
        schema = None
        with suppress(pa.ArrowException, OSError), pa.memory_map(str(self.path)) as file:
            schema = pa.ipc.open_file(file).schema
        if schema is None:  # whatever was suppressed may quote the file
            raise SourceError("cannot be read as an Arrow file", field="source")
        return _checked(schema)

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        types = self.types()
        schema = pa.schema([(column, types[column]) for column in columns])

        def batches() -> Iterator[pa.RecordBatch]:
            table = pa.ipc.open_file(pa.memory_map(str(self.path))).read_all()
            yield from _plain_reader(table.select(list(columns)))

        return pa.RecordBatchReader.from_batches(schema, batches())


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """Parquet files read by Arrow: slower than the engine's own reader, but it does not stop at broken text."""

    paths: tuple[Path, ...]

    def types(self) -> dict[str, pa.DataType]:
        return _checked(read_schema(self.paths[0]))

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        types = self.types()
        schema = pa.schema([(column, types[column]) for column in columns])

        def batches() -> Iterator[pa.RecordBatch]:
            for path in self.paths:
                for batch in ParquetFile(path).iter_batches(batch_size=BATCH, columns=list(columns)):
                    yield from _plain_reader(pa.Table.from_batches([batch]).select(list(columns)))

        return pa.RecordBatchReader.from_batches(schema, batches())


@dataclass(frozen=True, slots=True)
class StatisticalFile:
    """An SPSS, Stata or SAS file, read in pieces. Numbers are doubles; labels are not applied."""

    path: Path

    def types(self) -> dict[str, pa.DataType]:
        return statistical.types(self.path)

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        types = self.types()
        schema = pa.schema([(column, types[column]) for column in columns])
        return pa.RecordBatchReader.from_batches(schema, statistical.batches(self.path, schema))


Stream = CsvFiles | ArrowRows | ArrowFile | ParquetRows | StatisticalFile


def _checked(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Names and plain types, or a refusal of what no engine could tell apart."""
    if not schema.names:
        raise SourceError("has no columns", field="source")
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"has the column {twice!r} twice", field="source")
    return {column.name: _plain(column.type) for column in schema}


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type in which the engine gets such a column: dictionaries unpacked, what it lacks as text or wider."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    return pa.large_string() if _is_by_cell(kind) else kind


def _is_by_cell(kind: pa.DataType) -> bool:
    """Types that are brought to text: dates, times, durations, bytes, decimals of odd shape."""
    bytes_ = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    others = (pa.types.is_temporal, pa.types.is_decimal)
    return any(is_kind(kind) for is_kind in (*bytes_, *others))


def _plain_reader(table: pa.Table) -> pa.RecordBatchReader:
    plain = pa.schema([pa.field(column.name, _plain(column.type)) for column in table.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.to_reader(max_chunksize=BATCH):
            columns = [_as_plain(column) for column in batch.columns]
            yield _readable(pa.RecordBatch.from_arrays(columns, schema=plain))

    return pa.RecordBatchReader.from_batches(plain, batches())


def _as_plain(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return _as_plain(column.dictionary).take(column.indices)
    if not _is_by_cell(column.type) or _plain(column.type) == column.type:
        return column.cast(_plain(column.type))
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        aware = getattr(column.type, "tz", None) is not None
        return pa.array(moments(column.to_numpy(zero_copy_only=False), aware=aware), pa.large_string())
    return as_texts(column)


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
    kept = [None if _is_broken(cell) else cell for cell in cells]
    return pa.array(kept, pa.large_binary()).cast(column.type)


def _is_broken(cell: bytes | None) -> bool:
    try:
        (cell or b"").decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
