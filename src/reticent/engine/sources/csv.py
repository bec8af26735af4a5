"""CSV files, read so that no record can stop the reading or change another (R01).

A block is some whole lines of the file; lines become records and records fields, for every byte string, and without a
loop over records. All positions are offsets into the block, one per record, in file order. Why not DuckDB's or Arrow's
reader, and what exactly is a record: docs/decisions/0003-our-own-csv-reader.md.
"""

import csv
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.engine.sources.dialect import plain_numbers, transcoded
from reticent.errors import PlanError, ResourceError, SourceError
from reticent.schema.schema import PLAIN_CSV, CsvDialect

Positions = NDArray[np.int64]
Flags = NDArray[np.bool_]

LIMIT = 16 * 2**20  # bytes of the longest line, and of the longest record that runs over several
QUOTE, NEWLINE, RETURN = b'"\n\r'


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Group chunks, none above the limit, into whole lines; None stands for one line over the limit."""
    rest, over = b"", False
    for chunk in chunks:
        first = chunk.find(b"\n")
        if first < 0:
            over = over or len(rest) + len(chunk) > LIMIT
            rest = b"" if over else rest + chunk
            continue
        if over or len(rest) + first > LIMIT:
            yield None
            rest, over, chunk = b"", False, chunk[first + 1 :]
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield clean(rest + chunk[:cut])
        rest = chunk[cut:] if cut else rest + chunk
    if over:
        yield None
    elif rest:
        yield clean(rest + b"\n")


def clean(lines: bytes) -> bytes:
    """Replace what is not UTF-8, and NUL, by U+FFFD.

    Separators, quotes and newlines are ASCII, and ASCII ends every broken sequence: the harm stays in its field.
    """
    try:
        lines.decode()
    except UnicodeDecodeError:
        lines = lines.decode(errors="replace").encode()
    return lines.replace(b"\0", "\ufffd".encode())


@dataclass(frozen=True, slots=True)
class Field:
    """One field of each record: its text, whether it stood in quotes, and where the next one begins."""

    start: Positions
    stop: Positions
    quoted: Flags
    after: Positions


class CsvBlock:
    """Some whole lines, with the places of their separators and quotes."""

    def __init__(self, text: bytes, *, delimiter: bytes) -> None:
        self.text, self.delimiter = text, delimiter[0]
        self.bytes = np.frombuffer(text, np.uint8)
        # One more at the end, so that looking for the next separator always finds one.
        self.delimiters = np.append(np.flatnonzero(self.bytes == self.delimiter), len(text))
        has_quote = b'"' in text
        self.quotes = np.flatnonzero(self.bytes == QUOTE) if has_quote else np.empty(0, np.int64)
        self.runs, self.closes = _closing_quotes(self.quotes, len(text))

    def records(self, fields: int, *, is_last: bool) -> tuple[Positions, Positions, int]:
        """Where records start and stop, and how many bytes they use up; an undecided open quote is left over."""
        newlines = np.flatnonzero(self.bytes == NEWLINE)
        starts = np.append(0, newlines + 1)[:-1]
        ends = newlines - ((newlines > starts) & (self.bytes[newlines - 1] == RETURN))
        used = len(self.text)
        if len(self.quotes):
            odd = np.flatnonzero(np.diff(np.searchsorted(self.quotes, newlines), prepend=0) & 1)
            first, last = self._joined(odd, starts, ends, fields)
            if not is_last and len(odd) and odd[-1] not in last[-1:] and used - starts[odd[-1]] <= LIMIT:
                used = int(starts[odd[-1]])
            ends[first] = ends[last]
            inside = np.zeros(len(starts) + 1, np.int64)
            inside[first + 1] += 1
            inside[last + 1] -= 1
            starts = np.where(np.cumsum(inside[:-1]), ends, starts)
        is_record = (starts < ends) & (starts < used)
        return starts[is_record], ends[is_record], used

    def _joined(
        self, odd: Positions, starts: Positions, ends: Positions, fields: int
    ) -> tuple[Positions, Positions]:
        """First and last lines of the records that run over several lines.

        In a well-formed record quotes are even, and a quote is open where an odd number stands before: so such a
        record begins at a line with an odd number and ends at the next one. Pairs are taken from the left.
        """
        first, last = odd[:-1], odd[1:]
        fits = (ends[last] - starts[first] <= LIMIT) & self.well_formed(starts[first], ends[last], fields)
        place = np.arange(len(fits))
        before = np.maximum.accumulate(np.where(fits, -1, place))
        taken = fits & ((place - before) % 2 == 1)
        return first[taken], last[taken]

    def well_formed(self, starts: Positions, ends: Positions, fields: int) -> Flags:
        """Whether each stretch is one record as RFC 4180 has it, with exactly this many fields."""
        good, at = np.ones(len(starts), np.bool_), starts
        for _ in range(fields):
            good &= at <= ends
            if not good.any():
                return good
            field = self.field(at, ends)
            bare = np.searchsorted(self.quotes, field.start) == np.searchsorted(self.quotes, field.stop)
            good &= np.where(field.quoted, field.stop < ends, bare)
            at = field.after
        return good & (at > ends)

    def field(self, at: Positions, ends: Positions) -> Field:
        """The field of each record that begins at `at`; past the end of the record it is empty."""
        start = np.minimum(at, ends)
        quoted = self.bytes[start] == QUOTE
        opened, bare = np.flatnonzero(quoted), np.flatnonzero(~quoted)
        stop = np.empty_like(start)
        stop[bare] = self._next_delimiter(start[bare], ends[bare])
        stop[opened] = np.minimum(self.closes[np.searchsorted(self.runs, start[opened])], ends[opened])
        halt = np.minimum(stop + quoted, ends)
        # Text between the closing quote and the separator: the field is kept as it is written.
        odd = opened[((halt < ends) & (self.bytes[halt] != self.delimiter))[opened]]
        quoted[odd] = False
        stop[odd] = halt[odd] = self._next_delimiter(halt[odd], ends[odd])
        return Field(start + quoted, stop, quoted, halt + 1)

    def _next_delimiter(self, at: Positions, ends: Positions) -> Positions:
        stop: Positions = np.minimum(self.delimiters[np.searchsorted(self.delimiters, at)], ends)
        return stop

    def columns(self, starts: Positions, ends: Positions, wanted: Sequence[int]) -> list[pa.Array]:
        """The wanted fields of the records, one array of strings each; empty is null."""
        counts = np.searchsorted(self.quotes, ends) - np.searchsorted(self.quotes, starts)
        rows = np.flatnonzero(counts)
        walked = dict(self._walk(starts[rows], ends[rows], frozenset(wanted))) if len(rows) else {}
        rank = np.searchsorted(self.delimiters, starts)
        arrays = []
        for column in wanted:
            start, stop = self._plain(starts, ends, rank, column)
            quoted = np.zeros(len(starts), np.bool_)
            if column in walked:
                field = walked[column]
                start[rows], stop[rows], quoted[rows] = field.start, field.stop, field.quoted
            arrays.append(self._strings(start, stop, quoted))
        return arrays

    def _walk(
        self, starts: Positions, ends: Positions, wanted: frozenset[int]
    ) -> Iterator[tuple[int, Field]]:
        """Field by field through records that hold quotes, all records at once."""
        at = starts
        for column in range(max(wanted) + 1):
            field = self.field(at, ends)
            at = field.after
            if column in wanted:
                yield column, field

    def _plain(
        self, starts: Positions, ends: Positions, rank: Positions, column: int
    ) -> tuple[Positions, Positions]:
        """A field of records without quotes, where every separator counts."""
        top = len(self.delimiters) - 1
        stop = np.minimum(self.delimiters[np.minimum(rank + column, top)], ends)
        if column == 0:
            return starts.copy(), stop
        return np.minimum(self.delimiters[np.minimum(rank + column - 1, top)] + 1, ends), stop

    def _strings(self, start: Positions, stop: Positions, quoted: Flags) -> pa.Array:
        """Cut the text at both edges of every field and take every other piece."""
        edges = np.column_stack((start, stop)).astype(np.int32).ravel()
        pieces = _array(pa.string(), len(edges) - 1, None, edges, self.text)
        values = pieces.take(_array(pa.int64(), len(start), _bits(start < stop), np.arange(0, len(edges), 2)))
        if not quoted.any():
            return values
        plain = pc.replace_substring(values, '""', '"')
        return pc.if_else(_array(pa.bool_(), len(quoted), None, _bits(quoted)), plain, values)


def _array(kind: pa.DataType, length: int, *buffers: object) -> pa.Array:
    # `pa.array` would import pandas, to ask whether it was given any.
    return pa.Array.from_buffers(kind, length, [b if b is None else pa.py_buffer(b) for b in buffers])


def _bits(flags: Flags) -> NDArray[np.uint8]:
    return np.packbits(flags, bitorder="little")


def _closing_quotes(quotes: Positions, nowhere: int) -> tuple[Positions, Positions]:
    """Each run of adjacent quotes: where it starts, and where a field opened by its first quote would close.

    An even run opens and closes by itself, what is between being doubled quotes. An odd one leaves the field open
    until the last quote of the next odd run.
    """
    is_first = np.diff(quotes, prepend=-2) > 1
    starts = quotes[is_first]
    stops = quotes[np.append(is_first[1:], True)] if len(quotes) else quotes
    is_odd = (stops - starts) % 2 == 0
    odd_stops = np.append(stops[is_odd], nowhere)
    return starts, np.where(is_odd, odd_stops[np.cumsum(is_odd)], stops) if len(quotes) else stops


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
    dialect: CsvDialect = PLAIN_CSV
    numbers: frozenset[str] = frozenset()

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
        batches = _batches(file, self.delimiter, len(header), wanted, schema, self.dialect.encoding)
        return pa.RecordBatchReader.from_batches(schema, map(self._in_plain_numbers, batches))

    def _in_plain_numbers(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns of numbers written as everywhere else."""
        if not self.dialect.has_numbers or not self.numbers & set(batch.schema.names):
            return batch
        pairs = zip(batch.schema.names, batch.columns, strict=True)
        cells = [
            plain_numbers(column, self.dialect) if name in self.numbers else column for name, column in pairs
        ]
        return pa.RecordBatch.from_arrays(cells, schema=batch.schema)

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
        line = transcoded(line, self.dialect.encoding)
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
            raise self._refused(
                "has a header that is not UTF-8, or whose quotes do not close; where it has another code page, say so in "
                'the codebook: [survey.csv] encoding = "cp1252".'
            )
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
            chunk = file.read(min(_CHUNK, LIMIT))
        except OSError:
            chunk = None
        if chunk is None:
            raise ResourceError("the data could not be read to their end; check the disk and resume.")
        if not chunk:
            return
        yield chunk


def _batches(
    file: BinaryIO,
    delimiter: bytes,
    fields: int,
    wanted: list[int],
    schema: pa.Schema,
    encoding: str = "utf-8",
) -> Iterator[pa.RecordBatch]:
    """Read on from the second line. An open quote at the end of a block waits for the next block."""
    with file:
        held = b""
        for lines in whole_lines(transcoded(chunk, encoding) for chunk in _chunks(file)):
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
    starts: Positions,
    ends: Positions,
    wanted: list[int],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    step = max(1, _CELLS // len(wanted))
    for row in range(0, len(starts), step):
        arrays = block.columns(starts[row : row + step], ends[row : row + step], wanted)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
