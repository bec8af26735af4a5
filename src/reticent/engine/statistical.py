"""SPSS, Stata and SAS files through pyreadstat (the extra `files`). Codes stay codes; labels are not applied."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.errors import SourceError

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
PIECE = 100_000


def read_labels(path: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[Any, str]]]:
    """From the header alone: types, labels and value labels by column. No row is read."""
    meta, read = None, _reader(path)
    with suppress(Exception):  # of any kind: its text may hold part of the file
        _, meta = read(str(path), metadataonly=True)
    if meta is None:
        raise SourceError(f"cannot be read as a {path.suffix.lower()} file", field="source")
    labels = {n: t or "" for n, t in zip(meta.column_names, meta.column_labels, strict=True)}
    return dict(meta.readstat_variable_types), labels, dict(meta.variable_value_labels)


def batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in pieces, every column in the type that `schema` gives it."""
    pieces = _part().read_file_in_chunks(
        _reader(path), str(path), chunksize=PIECE, usecols=schema.names, disable_datetime_conversion=True
    )
    for frame, _ in pieces:
        columns = [_array(frame[column.name], column.type) for column in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _array(series: Any, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array(series.astype("object"), type=kind, from_pandas=True)
    return pa.array(series.astype("float64"), type=kind, from_pandas=True)


def _reader(path: Path) -> Any:
    return getattr(_part(), READERS[path.suffix.lower()])


def _part() -> Any:
    try:
        import pyreadstat  # an extra
    except ImportError:
        raise SourceError("needs the extra 'files': pip install 'reticent[files]'", field="source") from None
    return pyreadstat
