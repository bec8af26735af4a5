"""The CSV reader is total, and what one record does stays in that record."""

import csv
import errno
import io
import os
import re
import socket
import tempfile
import tracemalloc
from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reticent.engine.sources import csv as csv_split
from reticent.engine.sources import csv as source
from reticent.engine.sources.csv import CsvSource
from reticent.errors import PlanError, ResourceError, SourceError

NAMES = ("a", "b", "c")
HEADER = b"a,b,c\n"
Rows = list[tuple[str | None, ...]]

# Cells that try to look like structure, and bytes that try harder.
cells = st.text(
    st.sampled_from('xy1,;"\n\r é😀\x00') | st.characters(exclude_categories=["Cs"]), max_size=6
).map(lambda text: text.replace("\0", ""))
records = st.tuples(cells, cells, cells)
styles = st.sampled_from([("\r\n", csv.QUOTE_MINIMAL), ("\r\n", csv.QUOTE_ALL), ("\n", csv.QUOTE_ALL)])
soup = st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"x", b"\xff", b"\0", b'",', b'\n"'])).map(
    b"".join
)
bodies = soup | st.binary(max_size=60)


def read(data: bytes, *, names: tuple[str, ...] = NAMES, chunk: int = 2**21, limit: int = 2**24) -> Rows:
    """All rows of a file of these bytes, read with these sizes of chunk and longest record."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(data)
        file.flush()
        with patch.object(source, "_CHUNK", chunk), patch.object(csv_split, "LIMIT", limit):
            table = CsvSource(Path(file.name)).reader(names).read_all()
    table.validate(full=True)
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def written(rows: list[tuple[str, ...]], style: tuple[str, int] = ("\r\n", csv.QUOTE_MINIMAL)) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=style[0], quoting=style[1]).writerows(rows)
    return text.getvalue().encode()


def slow(body: bytes, fields: int, limit: int) -> Rows:
    """The rules again, a byte and a line at a time, as they stand in the decision."""
    lines = body.split(b"\n")
    texts = [
        None if len(line) > limit else line.decode(errors="replace").replace("\0", "�") for line in lines
    ]
    rows: Rows = []
    while texts:
        text = texts.pop(0)
        if text is None:
            rows.append((None,) * fields)
            continue
        if text.count('"') % 2:
            last = next((i for i, t in enumerate(texts) if t is None or t.count('"') % 2), None)
            if last is not None and None not in texts[: last + 1]:
                whole = "\n".join([text, *texts[: last + 1]])  # type: ignore[list-item]
                joined = whole.removesuffix("\r")
                field = r'(?:"(?:[^"]|"")*"|[^",\n]*)'
                fits = re.fullmatch(",".join([field] * fields), joined) and len(joined.encode()) <= limit
                if fits:
                    text, texts = whole, texts[last + 1 :]
        text = text.removesuffix("\r")
        if text:
            found = slow_fields(text)[:fields]
            rows.append(tuple(value or None for value in found + [""] * (fields - len(found))))
    return rows


def slow_fields(text: str) -> list[str]:
    found, at = [], 0
    while at <= len(text):
        proper = re.compile(r'"((?:[^"]|"")*)(?:"(?=,|$(?!\n))|$(?!\n))').match(text, at)
        if proper:
            found.append(proper[1].replace('""', '"'))
            at = proper.end() + 1
            continue
        quoted = re.compile(r'"(?:[^"]|"")*"').match(text, at)
        stop = text.find(",", quoted.end() if quoted else at)
        stop = len(text) if stop < 0 else stop
        found.append(text[at:stop])
        at = stop + 1
    return found


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(records, max_size=6), style=styles, chunk=st.integers(1, 40))
def test_what_a_csv_writer_wrote_is_read_back(rows, style, chunk):
    """Newlines, quotes, separators in cells: the same as Python's reader, null for empty."""
    data = written([NAMES, *rows], style)
    expected = list(csv.reader(io.StringIO(data.decode(), newline="")))[1:]
    assert read(data, chunk=chunk) == [tuple(cell or None for cell in row) for row in expected]


@settings(max_examples=600, deadline=None)
@example(body=b'"\n",\r\r', fields=2, chunk=7, limit=9)  # only the last carriage return ends the line
@given(
    body=bodies,
    fields=st.integers(1, 3),
    chunk=st.sampled_from([1, 7, 2**21]),
    limit=st.sampled_from([3, 9, 2**24]),
)
def test_every_byte_string_is_read_as_the_rules_say(body, fields, chunk, limit):
    """Total, the same in chunks of any size, and equal to the rules told slowly."""
    names = NAMES[:fields]
    header = ",".join(names).encode() + b"\n"
    assert read(header + body, names=names, chunk=chunk, limit=limit) == slow(body, fields, limit)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(records, max_size=5), extra=records, place=st.integers(0, 5))
def test_a_good_record_adds_itself_and_nothing_else(rows, extra, place):
    place = min(place, len(rows))
    longer = [*rows[:place], extra, *rows[place:]]
    before, after = read(HEADER + written(rows)), read(HEADER + written(longer))
    assert before == after[:place] + after[place + 1 :]
    assert after[place] == tuple(cell or None for cell in extra)


one_liners = st.tuples(*[cells.map(lambda text: text.replace("\n", "").replace("\r", ""))] * 3)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(one_liners, max_size=5), bad=bodies, place=st.integers(0, 5))
def test_one_line_of_anything_changes_no_other_record(rows, bad, place):  # covers B062
    """Any bytes as one line, among records that are each one line but may hold quotes and separators."""
    place, bad = min(place, len(rows)), bad.replace(b"\n", b"")
    lines = [written([row]) for row in rows]
    before = read(HEADER + b"".join(lines))
    after = read(HEADER + b"".join([*lines[:place], bad + b"\n", *lines[place:]]))
    assert len(after) == len(rows) + bool(bad.removesuffix(b"\r"))
    assert before == (after if len(after) == len(rows) else after[:place] + after[place + 1 :])


GOOD = [b"1,2,3\n", b"4,5,6\n", b"7,8,9\n"]
OPEN = b'x,"y,z\n'


def is_local(reader) -> bool:
    """Whether an unclosed quote between good lines leaves those as they were."""
    try:
        after = reader(HEADER + GOOD[0] + OPEN + GOOD[1] + GOOD[2])
        return [row for row in after if row[0] != "x"] == reader(HEADER + b"".join(GOOD))
    except (duckdb.Error, pa.ArrowInvalid):
        return False


def duckdb_reader(data: bytes) -> Rows:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(data)
        file.flush()
        lenient = "header = true, all_varchar = true, strict_mode = false, null_padding = true, ignore_errors = true"
        return duckdb.sql(f"from read_csv('{file.name}', delim = ',', quote = '\"', {lenient})").fetchall()


def arrow_reader(data: bytes) -> Rows:
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda row: "skip")
    convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.string()))
    table = pyarrow.csv.read_csv(io.BytesIO(data), parse_options=parse, convert_options=convert)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def python_reader(data: bytes) -> Rows:
    return [tuple(row) for row in csv.reader(io.StringIO(data.decode(), newline=""))][1:]


def test_the_readers_at_hand_lose_records_to_an_open_quote():  # covers B062
    assert is_local(read)
    assert not any(map(is_local, [duckdb_reader, arrow_reader, python_reader]))


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"1,2", ("1", "2", None)),  # covers B058
        (b"1,2,3,4", ("1", "2", "3")),  # covers B059
        (b",,", (None, None, None)),  # covers B061
        (b'1,"2,3', ("1", "2,3", None)),  # covers B062
        (b"1;2;3", ("1;2;3", None, None)),  # covers B063
        (b"1,caf\xe9,\xff3", ("1", "caf�", "�3")),  # covers B064
        (b"1,\xe2\x82,3", ("1", "�", "3")),
        (b"\r1,2\r3,4\r", ("\r1", "2\r3", "4")),  # covers B065
        (b'""', (None, None, None)),
        (b" ", (" ", None, None)),
        (b"1,5'10\",3", ("1", "5'10\"", "3")),
        (b'"1" x,"2""",""""', ('"1" x', '2"', '"')),
        (b"1,\x00,3\x00", ("1", "�", "3�")),
    ],
)
def test_an_odd_line_is_one_record(line, row):
    assert read(HEADER + GOOD[0] + line + b"\n" + GOOD[1]) == [("1", "2", "3"), row, ("4", "5", "6")]


def test_an_empty_line_is_no_record_even_in_a_table_of_one_column():  # covers B060
    assert read(HEADER + b"\n\r\n" + GOOD[0] + b"\n") == [("1", "2", "3")]
    assert read(b'a\n\n1\n\n""\n', names=("a",)) == [("1",), (None,)]


@pytest.mark.parametrize(
    "data",
    [
        b"c,b,a\n3,2,1\n",
        b"a,b,c\r\n1,2,3\r\n",
        b"\xef\xbb\xbfa,b,c\n1,2,3\n",
        b"a,b,c\n1,2,3",
        b'"a","b","c"\n1,2,3\n',
        b"a,more,b,c\n1,x,2,3\n",
    ],
)
def test_spellings_of_one_table_are_one_table(data):  # covers B071
    assert read(data) == [("1", "2", "3")]


def test_a_line_over_the_limit_is_one_record_of_nulls_in_bounded_memory(tmp_path):  # covers B074
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.write(HEADER + b'1,"2,3\n')
        for _ in range(64):
            file.write(b'",x\0' * 2**18)
        file.write(b'\n4,5,6"\n')
    tracemalloc.start()
    rows = CsvSource(path).reader(NAMES).read_all().to_pylist()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [row["c"] for row in rows] == [None, None, '6"'] and [row["a"] for row in rows] == ["1", None, "4"]
    assert peak < 48 * 2**20


def test_pairs_of_open_quotes_are_joined_from_the_top():
    """Each line could close the one before it or open the next; the reading is stated, not left to chance."""
    assert read(b"a,b\n" + b'1,"\n' * 3, names=("a", "b")) == [("1", "\n1,"), ("1", None)]
    assert read(b"a,b\n" + b'1,"\n' * 4, names=("a", "b")) == [("1", "\n1,")] * 2


def test_an_open_quote_holds_back_no_more_than_the_longest_record():
    sizes: list[int] = []
    real = csv_split.CsvBlock

    def block(text: bytes, **options: bytes) -> csv_split.CsvBlock:
        sizes.append(len(text))
        return real(text, **options)  # type: ignore[arg-type]

    with patch.object(source, "CsvBlock", block):
        rows = read(HEADER + OPEN + GOOD[0] * 2000, chunk=100, limit=1000)
    assert len(rows) == 2001 and max(sizes) <= 1000 + 2 * 100


def test_short_lines_under_a_wide_header_come_in_small_batches(tmp_path):
    path, names = tmp_path / "wide.csv", [f"c{i}" for i in range(2000)]
    path.write_bytes(",".join(names).encode() + b"\n" + b"1\n" * 2500)
    sizes = [batch.num_rows for batch in CsvSource(path).reader(names)]
    assert sum(sizes) == 2500 and max(sizes) * len(names) <= source._CELLS


def test_duckdb_takes_the_stream_with_all_its_odd_bytes(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(HEADER + b'1,\0,\xff\n"x\ny",,""\n')
    stream = CsvSource(path).reader(("b", "a", "c"))
    assert stream.schema.names == ["b", "a", "c"]
    with duckdb.connect() as connection:
        rows = connection.sql("select a, b, c from stream").fetchall()
    assert rows == [("1", "�", "�"), ("x\ny", None, None)]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),  # covers B067
        (b"\n1,2,3\n", "empty"),
        (b"a,b,a\n", "'a' twice"),  # covers B070
        (b"a,b\xff\n", "UTF-8"),
        (b'a,"b\n1,2\n', "quotes"),
        (b"a,b\0\n", "NUL"),
        (",".join(map(str, range(200_000))).encode(), "longer than"),  # covers B074
        (",".join(map(str, range(10_001))).encode(), "10,000 columns"),
        ("a,b\n".encode("utf-16"), "UTF-16"),  # covers B072
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\x80\x04\x95\n", "pickle"),
        (b"%PDF-1.7\n", "PDF"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"\x1f\x8b\x08\x00", "gzip"),  # covers B073
        (b"PK\x03\x04\x14\n", "zip"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh91AY&SY", "bzip2"),
    ],
)
def test_what_is_not_a_header_is_refused_by_the_name_of_the_file(tmp_path, data, says):
    path = tmp_path / "survey.csv"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=says) as refusal:
        CsvSource(path).header()
    assert refusal.value.status == 2 and refusal.value.field == str(path)


def test_a_sparse_file_without_a_header_is_refused_at_once(tmp_path):  # covers B074
    path = tmp_path / "sparse.csv"
    path.touch()
    os.truncate(path, 40 * 2**30)
    with pytest.raises(SourceError, match="first line"):
        CsvSource(path).header()


@pytest.mark.parametrize("name", ["d", "A", "1"])
def test_a_column_that_is_not_there_is_named(tmp_path, name):  # covers B070
    path = tmp_path / "survey.csv"
    path.write_bytes(HEADER + GOOD[0])
    with pytest.raises(SourceError, match=f"no column '{name}'"):
        CsvSource(path).reader(["a", name])
    for columns in ([], ["a", "a"]):
        with pytest.raises(PlanError):
            CsvSource(path).reader(columns)


def test_what_is_not_a_file_is_refused_and_never_waited_for(tmp_path, monkeypatch):  # covers B066
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket.csv")
    os.symlink("loop.csv", "loop.csv")
    kinds = {"pipe.csv": "pipe", "socket.csv": "socket", ".": "folder", "/dev/zero": "device"}
    for name, says in {**kinds, "none.csv": "exist", "loop.csv": "opened", "a\0b": "opened"}.items():
        with pytest.raises(SourceError, match=says):
            CsvSource(Path(name)).reader(NAMES)
    listener.close()


def test_a_link_is_followed_and_a_closed_door_is_named(tmp_path, monkeypatch):
    path, link = tmp_path / "survey.csv", tmp_path / "link.csv"
    path.write_bytes(HEADER)
    link.symlink_to(path)
    assert CsvSource(link).header() == NAMES
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError()))
    with pytest.raises(SourceError, match="permissions"):
        CsvSource(path).header()


class Failing(io.BytesIO):
    """A file whose disk fails after the header."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, "secret")


def test_a_disk_that_fails_midway_says_the_same_for_all_data(tmp_path, monkeypatch):
    path = tmp_path / "survey.csv"
    path.write_bytes(HEADER)
    monkeypatch.setattr(os, "fdopen", lambda fd, _: os.close(fd) or Failing(HEADER + GOOD[0]))
    with pytest.raises(ResourceError, match="could not be read to their end") as refusal:
        CsvSource(path).reader(NAMES).read_all()
    assert refusal.value.status == 4 and "secret" not in str(refusal.value)


def test_each_call_reads_afresh_and_another_delimiter_may_be_named(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_bytes(b"a;b\n1,5;2\n")
    there = CsvSource(path, delimiter=b";")
    assert there.reader(["a"]).read_all() == there.reader(["a"]).read_all()
    assert there.reader(["a"]).read_all().to_pylist() == [{"a": "1,5"}]
    for delimiter in (b"", b"::", b'"', b"\n", b"\xe9"):
        with pytest.raises(PlanError):
            CsvSource(path, delimiter=delimiter)
