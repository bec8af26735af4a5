"""Rows that arrive as Arrow batches: CSV, Arrow and statistical files, and tables in memory.

`types` looks at the header only; `reader` gives a fresh pass over the rows each time it is called.

SPSS, Stata and SAS files come through pyreadstat (the extra `files`). Codes stay codes; labels are not applied. A text that
does not fit the file's code page would stop the whole reader. So rows are read as bytes, each standing for one character,
which cannot fail; then every text is decoded on its own, and one that is broken is missing, as in CSV and Parquet. Files of
the portable kind are decoded by the reader, which marks what it cannot read.
"""

import codecs
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile, read_schema

from reticent.engine.sources.csv import CsvSource
from reticent.engine.sources.objects import as_texts, moments
from reticent.errors import EngineError, SourceError

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
PIECE = 100_000
BYTES = "ISO-8859-1"  # 256 characters for 256 bytes: nothing fails and nothing is lost
MARK = "�"  # what the portable reader puts in place of a byte that is no character
UNICODE_STATA = 118  # from this release on Stata writes UTF-8


def read_header(path: Path) -> Any:
    """What the header of an SPSS, Stata or SAS file says: names, types, labels, missing values, formats. No row is read."""
    tells_missing = path.suffix.lower() in (".sav", ".zsav", ".dta", ".sas7bdat")
    return _header(path, **({"user_missing": True} if tells_missing else {}))


def types(path: Path) -> dict[str, pa.DataType]:
    """The type of every column. Stata's texts without a length are no type of ours: they cannot be read as bytes."""
    meta = _header(path)
    _code_page(path, meta)
    found = {
        n: _type(kind, meta.variable_storage_width[n]) for n, kind in meta.readstat_variable_types.items()
    }
    return {name: found[name] for name in meta.column_names}


def batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in pieces, every column in the type that `schema` gives it. A broken text is missing."""
    meta = _header(path)
    page = _code_page(path, meta)
    names, options = dict(zip(meta.column_names, meta.column_names, strict=True)), {}
    if page is not None:
        options = {"encoding": BYTES}
        names = dict(zip(meta.column_names, _header(path, **options).column_names, strict=True))
    pieces = _part().read_file_in_chunks(
        _reader(path),
        str(path),
        chunksize=PIECE,
        usecols=[names[name] for name in schema.names],
        disable_datetime_conversion=True,
        **options,
    )
    while (frame := _next(pieces)) is not None:
        columns = [_array(frame[names[column.name]], column.type, page) for column in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _next(pieces: Iterator[tuple[Any, Any]]) -> Any:
    """The next piece, None after the last. Of a failure nothing is kept: the reader's text may hold a cell."""
    piece: tuple[Any, Any] | None = None
    is_read = False
    with suppress(Exception):
        piece = next(pieces, None)
        is_read = True
    if not is_read:
        raise EngineError("the file cannot be read to its end; save it anew", field="source")
    return None if piece is None else piece[0]


def _header(path: Path, **options: Any) -> Any:
    meta, read = None, _reader(path)
    with suppress(Exception):  # of any kind: its text may hold part of the file
        _, meta = read(str(path), metadataonly=True, **options)
    if meta is None:
        raise SourceError(f"cannot be read as a {path.suffix.lower()} file", field="source")
    return meta


def _type(kind: str, width: int) -> pa.DataType:
    if kind != "string":
        return pa.float64()
    return pa.string() if width else pa.large_binary()


def _code_page(path: Path, meta: Any) -> str | None:
    """Python's name of the code page that the header declares, or of the format's own; None for portable files."""
    ending = path.suffix.lower()
    if ending == ".por":
        return None
    declared = meta.file_encoding or ("WINDOWS-1252" if _is_old_stata(path) else "UTF-8")
    for name in (declared, declared.upper().replace("WINDOWS-", "CP"), declared.replace("-", "")):
        with suppress(LookupError, ValueError):
            ascii_text = bytes(range(128))
            if ascii_text.decode(name) == ascii_text.decode("ascii"):
                return codecs.lookup(name).name
    raise SourceError("declares a code page that is not known here; save it as UTF-8", field="source")


def _is_old_stata(path: Path) -> bool:
    """Whether a Stata file is older than Unicode; its first bytes say its release."""
    if path.suffix.lower() != ".dta":
        return False
    mark = b"<stata_dta><header><release>"
    with path.open("rb") as file:
        found = file.read(len(mark) + 3)
    release = found[len(mark) :]
    return not (found.startswith(mark) and release.isdigit() and int(release) >= UNICODE_STATA)


def _array(series: Any, kind: pa.DataType, page: str | None) -> pa.Array:
    if pa.types.is_string(kind):
        return _decoded(pa.array(series.astype("object"), type=kind, from_pandas=True), page)
    return pa.array(series.astype("float64"), type=kind, from_pandas=True)


def _decoded(texts: pa.Array, page: str | None) -> pa.Array:
    """The same texts in their code page, broken ones missing. Each distinct text is looked at once."""
    if (
        pc.all(pc.string_is_ascii(texts)).as_py() is not False
    ):  # ASCII is the same in every page that is let in
        return texts
    held = texts.dictionary_encode()
    words = pa.array([_statistical_text(word, page) for word in held.dictionary.to_pylist()], type=texts.type)
    return words.take(held.indices)


def _statistical_text(word: str, page: str | None) -> str | None:
    if page is None:
        return None if MARK in word else word
    try:
        return word.encode(BYTES).decode(page)
    except UnicodeDecodeError:
        return None


def _reader(path: Path) -> Any:
    return getattr(_part(), READERS[path.suffix.lower()])


def _part() -> Any:
    try:
        import pyreadstat  # an extra
    except ImportError:
        raise SourceError("needs the extra 'files': pip install 'reticent[files]'", field="source") from None
    return pyreadstat


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
        return types(self.path)

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        types = self.types()
        schema = pa.schema([(column, types[column]) for column in columns])
        return pa.RecordBatchReader.from_batches(schema, batches(self.path, schema))


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
