"""SPSS, Stata and SAS files through pyreadstat (the extra `files`). Codes stay codes; labels are not applied.

A text that does not fit the file's code page would stop the whole reader. So rows are read as bytes, each standing
for one character, which cannot fail; then every text is decoded on its own, and one that is broken is missing, as in
CSV and Parquet. Files of the portable kind are decoded by the reader, which marks what it cannot read.
"""

import codecs
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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


def read_labels(path: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[Any, str]]]:
    """From the header alone: types, labels and value labels by column. No row is read."""
    meta = _header(path)
    labels = {n: t or "" for n, t in zip(meta.column_names, meta.column_labels, strict=True)}
    return dict(meta.readstat_variable_types), labels, dict(meta.variable_value_labels)


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


def _header(path: Path, **options: str) -> Any:
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
    words = pa.array([_text(word, page) for word in held.dictionary.to_pylist()], type=texts.type)
    return words.take(held.indices)


def _text(word: str, page: str | None) -> str | None:
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
