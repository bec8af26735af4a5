"""Synthetic rows in a release: packed and unpacked without loss, quoted for spreadsheets, refused when tampered with."""

import csv
import io
import tracemalloc
import zlib
from base64 import b64encode
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import ReticentError
from reticent.exact import show
from reticent.privacy.claim import Claim
from reticent.release.synth_table import SynthTable, described, to_arrow, to_csv, to_parquet, unpacked
from reticent.synth.domain import HOLE, UNASKED, Rows
from tests.release.synthetic import plan
from tests.tables import book, synths_of

NASTY = ["=cmd()", "+1", "-1", "@x", "a,b", 'say "no"', "two words", "ünï"]
COLUMNS: dict[str, Any] = {
    "word": {"kind": "categorical", "levels": NASTY},
    "wide": {"kind": "integer", "bounds": [-300, 70_000]},
    "cent": {"kind": "decimal", "bounds": [-1, 1], "grid": "0.01"},
}
SYNTH = synths_of(plan({"rows": 3}, codebook=book(COLUMNS)))[0]
CLAIM = Claim(measure="pure", epsilon=Fraction(1))


def told(rows: Rows) -> dict[str, Any]:
    made = SynthTable(claim=CLAIM, respondents=7, tables=(rows,))
    return {**described(SYNTH, made, ["s.1.synth"]), "rows": len(rows["word"])}


def codes(low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(low, high), st.sampled_from([low, high, HOLE, UNASKED]))


ROW = st.tuples(codes(0, len(NASTY) - 1), codes(-300, 70_000), codes(-100, 100))


@settings(max_examples=50, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=20))
def test_what_was_packed_comes_out_again(lines: list[tuple[int, int, int]]):
    """Every code and both kinds of silence; CSV, Parquet and Arrow say the same, and the same bytes twice."""
    rows = {
        name: np.array(column, np.int64)
        for name, column in zip(COLUMNS, zip(*lines, strict=True), strict=True)
    }
    table = told(rows)
    for column, numbers in zip(table["columns"], unpacked(table), strict=True):
        size, code = column["high"] - column["low"] + 1, rows[column["name"]]
        assert ((numbers == size) == (code == HOLE)).all() and (
            (numbers == size + 1) == (code == UNASKED)
        ).all()
        assert (numbers[numbers < size] + column["low"] == code[code > UNASKED]).all()
    arrow = to_arrow(table).to_pylist()
    read = list(csv.reader(io.StringIO(to_csv(table).decode())))
    assert read[0] == list(COLUMNS) and len(read) == len(lines) + 1
    for line, row, (word, wide, cent) in zip(read[1:], arrow, lines, strict=True):
        assert row["word"] == (None if word <= UNASKED else NASTY[word])
        assert row["wide"] == (None if wide <= UNASKED else wide)
        assert row["cent"] == (None if cent <= UNASKED else cent / 100)
        assert line[1:] == ["" if row[name] is None else f"{row[name]:g}" for name in ("wide", "cent")]
    assert to_csv(table) == to_csv(table) and to_parquet(table) == to_parquet(table)
    assert pq.read_table(io.BytesIO(to_parquet(table))).to_pylist() == arrow


# covers T28
def test_words_that_a_spreadsheet_would_run_are_defused_and_numbers_are_not():
    """Every level once; the naive twin writes them as they are."""
    many = np.arange(len(NASTY))
    table = told({"word": many, "wide": many - 300, "cent": many - 100})
    lines = list(csv.reader(io.StringIO(to_csv(table).decode())))[1:]
    assert not any(line[0].startswith(("=", "+", "-", "@", "\t", "\r")) for line in lines)
    assert [line[0].removeprefix("'") for line in lines] == NASTY
    assert [line[1] for line in lines[:2]] == ["-300", "-299"]
    naive = to_arrow(table)["word"].to_pylist()
    assert any(text.startswith(("=", "+", "-", "@")) for text in naive)


@pytest.mark.parametrize(
    ("grid", "bounds"),
    [
        ("1", [-12, 12]),
        ("5", [-100, 100]),
        ("0.05", [-1, 1]),
        ("0.000001", ["-0.00001", "0.00001"]),
        ("0.00000001", ["-0.0000001", "0.0000001"]),
        ("100", [0, 10**15]),
        ("0.25", [-3, 3]),
    ],
)
def test_numbers_are_written_digit_for_digit(grid: str, bounds: list[Any]):
    """The ends, zero and their neighbours, on grids that are short, long, coarse or not a power of ten."""
    column = {"kind": "decimal", "bounds": bounds, "grid": grid}
    synth = synths_of(plan({"rows": 3, "columns": ["x"]}, codebook=book({"x": column})))[0]
    known = synth.domain.schema.coded["x"]
    codes = np.array([c for c in (known.low, known.low + 1, -1, 0, 1, known.high) if c >= known.low])
    made = SynthTable(claim=CLAIM, respondents=1, tables=({"x": codes},))
    table = {**described(synth, made, ["s.1.synth"]), "rows": len(codes)}
    written = to_csv(table).decode().split("\n")[1:-1]
    assert written == [show(int(code) * Fraction(grid), digits=18) for code in codes]


def test_one_column_of_silence_is_as_many_lines():
    synth = synths_of(plan({"rows": 3, "columns": ["word"]}, codebook=book(COLUMNS)))[0]
    rows = {"word": np.array([HOLE, 1, UNASKED])}
    table = described(synth, SynthTable(claim=CLAIM, respondents=1, tables=(rows,)), ["s.1.synth"])
    assert to_csv(table) == b'word\n""\n\'+1\n""\n'
    assert len(list(csv.reader(io.StringIO(to_csv(table).decode())))) == 4


def test_rows_that_are_not_whole_are_refused():
    """Cut off, too long (a few bytes that swell to a gigabyte stop at the size that is due), not packed at all."""
    table = told({"word": np.zeros(3, int), "wide": np.zeros(3, int), "cent": np.zeros(3, int)})
    swollen = b64encode(zlib.compress(b"0" * 10**7)).decode()
    for text in ("", "no base64!", b64encode(b"plain").decode(), table["tables"][0][:-8], swollen):
        with pytest.raises(ReticentError, match="release: holds synthetic rows that are not whole"):
            unpacked({**table, "tables": [text]})


def test_a_few_bytes_do_not_swell_beyond_the_size_that_is_due():
    """30 MB of zeroes, three rows due: no more room is taken than a small part of it. Naive code takes all."""
    table = told({"word": np.zeros(3, int), "wide": np.zeros(3, int), "cent": np.zeros(3, int)})
    packed = zlib.compress(b"0" * 30_000_000)
    peaks = []
    for read in (
        lambda: unpacked({**table, "tables": [b64encode(packed).decode()]}),
        lambda: zlib.decompress(packed),
    ):
        tracemalloc.start()
        with suppress(ReticentError):
            read()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 1_000_000 and peaks[1] >= 30_000_000


def test_no_row_is_part_of_a_repr():
    made = SynthTable(claim=CLAIM, respondents=7, tables=({"word": np.array([5])},))
    assert "tables" not in repr(made) and "array" not in repr(made)
