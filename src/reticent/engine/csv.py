"""CSV files, read so that no record can stop the reading or change another (R01).

Why not DuckDB's or Arrow's reader, and what exactly is a record: docs/decisions/0003-our-own-csv-reader.md.
"""

import csv
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from reticent.engine import csv_split
from reticent.engine.csv_split import CsvBlock, whole_lines
from reticent.errors import PlanError, ResourceError, SourceError

_CHUNK = 2 * 2**20  # bytes read at a time; the arrays made from more fall out of the cache
_CELLS = 2**21  # the most cells in one batch, so that short lines under a wide header stay small
_HEADER_BYTES = 2**20
_HEADER_COLUMNS = 10_000
_BOM = b"\xef\xbb\xbf"

_LOOKS_LIKE = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"PK\x05\x06": "an empty zip archive",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"%PDF-": "a PDF",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"PAR1\x15": "Parquet",
    b"ARROW1\x00": "an Arrow file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True, slots=True)
class CsvSource:
    """A CSV file with a header. The header is public; of the rows nothing enters an error or a log."""

    path: Path
    delimiter: bytes = b","

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in b'"\r\n\0':
            raise PlanError("the delimiter is one ASCII character other than a quote or a line end.")

    def header(self) -> tuple[str, ...]:
        """The names in the first line."""
        with self._open() as file:
            return self._header(file)

    def reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Stream the named columns as strings, from the first record on; null where nothing is written."""
        file = self._open()
        try:
            header = self._header(file)
            wanted = self._places(header, columns)
        except BaseException:
            file.close()
            raise
        schema = pa.schema([(name, pa.string()) for name in columns])
        batches = _batches(file, self.delimiter, len(header), wanted, schema)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _places(self, header: Sequence[str], columns: Sequence[str]) -> list[int]:
        place = {name: index for index, name in enumerate(header)}
        for name in columns:
            if name not in place:
                raise self._refused(f"has no column {name!r}; check the name in the codebook.")
        if not columns or len(set(columns)) < len(columns):
            raise PlanError("ask for at least one column, and for each column once.")
        return [place[name] for name in columns]

    def _header(self, file: BinaryIO) -> tuple[str, ...]:
        """Read and check the first line, leaving the file at the second."""
        line: bytes | None = None
        with suppress(OSError):
            line = file.readline(_HEADER_BYTES + len(_BOM) + 1)
        if line is None:
            raise self._refused("could not be read.")
        for magic, kind in _LOOKS_LIKE.items():
            if line.startswith(magic):
                raise self._refused(f"looks like {kind}, not like CSV; give the rows as plain CSV in UTF-8.")
        if len(line.removeprefix(_BOM)) > _HEADER_BYTES:
            raise self._refused(f"has a first line longer than {_HEADER_BYTES:,} bytes; a header is shorter.")
        if b"\0" in line:
            raise self._refused("has a NUL byte in its header; give the rows as plain CSV in UTF-8.")
        names = self._names(line.removeprefix(_BOM))
        if len(names) > _HEADER_COLUMNS:
            raise self._refused(f"has more than {_HEADER_COLUMNS:,} columns; keep the ones you need.")
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise self._refused(f"has the column {name!r} twice; rename one of them.")
            seen.add(name)
        return names

    def _names(self, line: bytes) -> tuple[str, ...]:
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if not text:
            raise self._refused("is empty or begins with an empty line; the first line names the columns.")
        names: tuple[str, ...] | None = None
        with suppress(UnicodeDecodeError, csv.Error):
            names = tuple(next(csv.reader([text.decode()], delimiter=self.delimiter.decode(), strict=True)))
        if names is None:
            raise self._refused("has a header that is not UTF-8, or whose quotes do not close.")
        return names

    def _open(self) -> BinaryIO:
        """Open a regular file, and nothing that could make us wait."""
        problem = "could not be opened; check that it exists and may be read."
        try:
            kind = stat.S_IFMT(os.stat(self.path).st_mode)
            if kind == stat.S_IFREG:
                fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                # Looked at again: the name may lead elsewhere by now.
                kind = stat.S_IFMT(os.fstat(fd).st_mode)
                if kind == stat.S_IFREG:
                    return os.fdopen(fd, "rb")
                os.close(fd)
            problem = f"is {_KINDS.get(kind, 'not a file')}; give a file."
        except FileNotFoundError:
            problem = "does not exist; check the path."
        except PermissionError:
            problem = "may not be read; check its permissions."
        except (OSError, ValueError):
            pass
        raise self._refused(problem)

    def _refused(self, problem: str) -> SourceError:
        name = "".join(c if c.isprintable() else "?" for c in str(self.path))
        return SourceError(problem, field=name)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    chunk: bytes | None = b""
    while True:
        try:
            chunk = file.read(min(_CHUNK, csv_split.LIMIT))
        except OSError:
            chunk = None
        if chunk is None:
            raise ResourceError("the data could not be read to their end; check the disk and resume.")
        if not chunk:
            return
        yield chunk


def _batches(
    file: BinaryIO, delimiter: bytes, fields: int, wanted: list[int], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Read on from the second line. An open quote at the end of a block waits for the next block."""
    with file:
        held = b""
        for lines in whole_lines(_chunks(file)):
            block = CsvBlock(held + (lines or b""), delimiter=delimiter)
            starts, ends, used = block.records(fields, is_last=lines is None)
            yield from _rows(block, starts, ends, wanted, schema)
            held = block.text[used:]
            if lines is None:
                yield pa.RecordBatch.from_arrays([pa.nulls(1, pa.string()) for _ in wanted], schema=schema)
        block = CsvBlock(held, delimiter=delimiter)
        starts, ends, _ = block.records(fields, is_last=True)
        yield from _rows(block, starts, ends, wanted, schema)


def _rows(
    block: CsvBlock,
    starts: csv_split.Positions,
    ends: csv_split.Positions,
    wanted: list[int],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    step = max(1, _CELLS // len(wanted))
    for row in range(0, len(starts), step):
        arrays = block.columns(starts[row : row + step], ends[row : row + step], wanted)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
