"""An odd row changes nothing that anybody sees, and counts as the table says: missing or clamped."""

import csv
import io
import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame, open_path
from reticent.engine.wants import Rows, Sum
from reticent.schema.bind import Is
from reticent.schema.codebook import read_schema
from tests.badinput.house import CODEBOOK, GOOD, HEADER, House, bare, rows
from tests.badinput.oddrows import CATEGORIES, LINES, NUMBERS, RENTS, Odd
from tests.engine.carriers import readings

CELLS = (*NUMBERS, *CATEGORIES)
PLACES = {"age": 0, "rent": 1, "sex": 2, "weight": 3}


def line_with(odd: Odd) -> str:
    """A good line but for one cell, quoted as CSV wants it."""
    cells = GOOD.split(",")
    cells[PLACES[odd.column]] = odd.text
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().removesuffix("\n")


def visible(house: House) -> tuple:
    """What the world sees of a release: status, streams, files, charge."""
    seen = house.release()
    out = bare(seen.out.replace(str(house.folder), ""))
    return seen.status, out, seen.err, house.made(), house.spent


def release_of(folder: Path, data: bytes) -> tuple:
    house = House(folder)
    house.rows.write_bytes(data)
    return visible(house)


@cache
def good_release() -> tuple:
    with tempfile.TemporaryDirectory() as folder:
        return release_of(Path(folder), ("\n".join([HEADER, *rows(), GOOD, ""])).encode())


def with_line(line: bytes) -> bytes:
    """Good lines on both sides of an odd one."""
    lines = [HEADER.encode(), *(row.encode() for row in rows())]
    return b"\n".join([*lines[:40], line, *lines[40:], b""])


def test_a_good_row_is_released(tmp_path):
    status, _, err, files, spent = good_release()
    assert (status, err, spent) == (0, "", 20)
    assert set(files) == {"town-1.csv", "town-1.json"}


# covers T13 R01
@pytest.mark.parametrize("odd", [*(o for o in NUMBERS if o.column == "age"), *CATEGORIES], ids=str)
def test_an_odd_cell_is_released_like_a_good_one(tmp_path, odd):
    assert release_of(tmp_path, with_line(line_with(odd).encode())) == good_release()


@pytest.mark.parametrize(("entry", "line"), [(e, text) for e, text, _ in LINES], ids=[e for e, _, _ in LINES])
def test_an_odd_line_is_released_like_a_good_one(tmp_path, entry, line):
    assert release_of(tmp_path, with_line(line)) == good_release()


def strict_release(connection: duckdb.DuckDBPyConnection, path: Path, data: bytes) -> tuple:
    """The naive twin: DuckDB's own reader and strict casts, its message passed on."""
    path.write_bytes(data)
    try:
        made = connection.execute(
            "SELECT sum(least(greatest(age::INTEGER, 0), 99)) >= 0, list(DISTINCT sex ORDER BY sex) "
            "FROM read_csv($1, all_varchar = true, header = true)",
            [str(path)],
        ).fetchall()
    except duckdb.Error as problem:
        return 1, [], str(problem)
    return 0, made, ""


def test_strict_casts_and_domains_from_the_rows_show_the_odd_row(tmp_path):
    """The same comparison rejects code that casts strictly and lists the levels it finds."""
    lines = {o.entry: line_with(o).encode() for o in CELLS if o.column in ("age", "sex")}
    with duckdb.connect() as connection:
        good = strict_release(connection, tmp_path / "rows.csv", with_line(GOOD.encode()))
        seen = {
            entry: strict_release(connection, tmp_path / "rows.csv", with_line(line))
            for entry, line in lines.items()
        }
    assert good[0] == 0
    shown = {entry for entry, result in seen.items() if result != good}
    assert len(shown) >= 40, sorted(set(lines) - shown)
    assert {"B001", "B004", "B009", "B012", "B014", "B022", "B036", "B039", "B043", "B051"} <= shown


# The level of tallies: one row, held by every kind of source.


@cache
def schema():
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(CODEBOOK)
        file.flush()
        return read_schema(Path(file.name))


def codes(source, columns=("age", "rent", "sex")) -> list[int | None]:
    """The codes of the one row of a source; None where there is none."""
    engine = DuckDBEngine(source, threads=1)
    try:
        engine.check(schema())
        counts = {c: Sum(rows=Rows(where=Is(c, "answered"))) for c in columns}
        sums = {c: Sum(rows=Rows(answered=(c,)), value=c, power=1) for c in columns}
        found = engine.tally(schema(), [*counts.values(), *sums.values()]).statistics
    finally:
        engine.close()
    return [found[sums[c]] if found[counts[c]] else None for c in columns]


def as_csv(odd: Odd, folder: Path):
    path = folder / "one.csv"
    path.write_text(HEADER + "\n" + line_with(odd) + "\n", encoding="utf-8", newline="")
    return open_path(str(path))


def table_with(odd: Odd) -> pa.Table:
    cells = dict(zip(PLACES, GOOD.split(","), strict=True)) | {odd.column: odd.text}
    return pa.table({name: pa.array([cell], pa.string()) for name, cell in cells.items()})


def as_parquet(odd: Odd, folder: Path):
    pq.write_table(table_with(odd), folder / "one.parquet")
    return open_path(str(folder / "one.parquet"))


def as_pandas(odd: Odd, folder: Path):
    return open_frame(table_with(odd).to_pandas().astype(object))


@pytest.mark.parametrize(
    ("odd", "source"),
    [
        (odd, source)
        for odd in CELLS
        for source in ((as_csv, as_parquet) if odd.column == "rent" else (as_csv, as_parquet, as_pandas))
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_an_odd_cell_has_the_code_of_the_table(tmp_path, odd, source):
    expected = {"age": 34, "rent": 841, "sex": 0} | {odd.column: odd.code}
    assert codes(source(odd, tmp_path)) == list(expected.values())


GOODS = {"age": [34, 35, 36], "rent": [420.5, 0.25, 7.75], "sex": ["f", "m", "f"], "weight": [1.25, 1.0, 2.0]}


def frame_with(odd: Odd, kind: str) -> pd.DataFrame:
    """Good answers of their own types, and behind them the odd one: pandas gives the whole column another type."""
    last = {name: cells[0] for name, cells in GOODS.items()} | {odd.column: odd.text}
    return pd.DataFrame({name: [*cells, last[name]] for name, cells in GOODS.items()}).astype(
        {odd.column: kind}
    )


# covers T31 B001-B055
@pytest.mark.parametrize("odd", CELLS, ids=str)
def test_an_odd_cell_behind_good_ones_in_a_frame(odd):
    """Good cells keep the codes that a frame without the odd one gives them; the odd cell has that of the table."""
    kept = {"age": [34, 35, 36], "rent": [841, 1, 16], "sex": [0, 1, 0]}[odd.column]
    for kind in ("object", "category"):
        source = open_frame(frame_with(odd, kind))
        column = schema().columns[odd.column]
        assert readings(source, column, [odd.column])[odd.column] == [*kept, odd.code]


def by_float(text: str, low: int, high: int) -> int | None:
    """The naive twin: read with float(), clamp with min and max."""
    return int(max(low, min(high, float(text))))


def test_reading_with_float_fails_the_table():
    wrong = Counter()
    for odd in (o for o in NUMBERS if o.column == "age"):
        try:
            agrees = by_float(odd.text, 0, 99) == odd.code
        except (ValueError, OverflowError):
            agrees = False  # it stops, and so tells that the row is there
        wrong[odd.entry] += not agrees
    missed = {entry for entry, count in wrong.items() if count}
    assert {"B001", "B002", "B004", "B020", "B023", "B028", "B029"} <= missed
    assert len(missed) >= 23  # exponents, B025 and B038, are read as numbers


@pytest.mark.parametrize(
    ("number", "code"),
    [  # covers B013
        ("9007199254740990", 2**53 - 2),
        ("9007199254740991", 2**53 - 1),
        ("9007199254740992", 2**53),
        ("9007199254740993", 2**53),
        ("-9007199254740991", -(2**53) + 1),
    ],
)
def test_digits_are_compared_and_not_doubles(tmp_path, number, code):
    house = House(tmp_path)
    house.edit_codebook("bounds = [0, 99]", f"bounds = [{-(2**53)}, {2**53}]")
    wide = read_schema(house.codebook)
    house.fill([f"{number},1,f,1"])
    engine = DuckDBEngine(open_path(str(house.rows)), threads=1)
    want = Sum(rows=Rows(answered=("age",)), value="age", power=1)
    assert engine.tally(wide, [want]).statistics[want] == code
    engine.close()


# covers B011 B038
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1e2", 200),
        ("1.25e1", 25),
        ("1E+1", 20),
        ("5e-1", 1),
        ("-1e1", -20),
        ("1e309", RENTS[1]),
        ("-1e309", RENTS[0]),
        ("1e", None),
        ("e5", None),
        ("0.25", 1),
        ("0.24", 0),
        ("-0.25", 0),
        ("-0.26", -1),
        (".5", 1),
        ("5.", 10),
        ("+5", 10),
        ("--5", None),
        ("nan(1)", None),
        ("infin", None),
    ],
)
def test_decimals_round_half_up_and_read_exponents(tmp_path, text, code):
    assert codes(as_csv(Odd("", "rent", text, code), tmp_path))[1] == code


@pytest.mark.parametrize(("entry", "line", "expected"), LINES, ids=[e for e, _, _ in LINES])
def test_an_odd_line_loses_its_own_fields_only(tmp_path, entry, line, expected):
    """Records before and after are whole: counted by a sum over all of them."""
    path = tmp_path / "rows.csv"
    path.write_bytes(with_line(line))
    everybody = Sum(rows=Rows())
    wants = [everybody]
    for column in ("age", "rent", "sex"):
        wants.append(Sum(rows=Rows(where=Is(column, "answered"))))
        wants.append(Sum(rows=Rows(answered=(column,)), value=column, power=1))

    def tally() -> list[int]:
        engine = DuckDBEngine(open_path(str(path)), threads=1)
        found = engine.tally(schema(), wants).statistics
        engine.close()
        return [found[want] for want in wants]

    odd = tally()
    path.write_text("\n".join([HEADER, *rows(), ""]))
    moved = [a - b for a, b in zip(odd, tally(), strict=True)]
    answered = [sum(record[i] is not None for record in expected) for i in range(3)]
    summed = [sum(record[i] or 0 for record in expected) for i in range(3)]
    assert moved == [len(expected), *(n for pair in zip(answered, summed, strict=True) for n in pair)]


# Who is protected: ids that repeat, and ids that are not there.

PEOPLE = CODEBOOK.replace('unit = "row"', 'unit = "person"\nat_most = 2') + (
    '\n[columns.person]\nkind = "identifier"\n'
)


@pytest.mark.parametrize(
    ("ids", "counted"),
    [  # covers B056 B057
        (["a", "b", "c", "d"], 4),
        (["a", "a", "c", "d"], 4),
        (["a", "a", "a", "a"], 2),
        (["a", "a", "a", " a "], 2),
        (["", "", "", ""], 4),
        (["", "  ", "a", "a"], 4),
        (["", "a", "a", "a"], 3),
        (["'; --", "'; --", "'; --", "\0"], 3),
    ],
)
def test_the_bound_on_records_applies_and_nobody_without_an_id_is_merged(tmp_path, ids, counted):
    house = House(tmp_path, codebook=PEOPLE)
    house.fill([f'{GOOD},"{name}"' for name in ids], header=f"{HEADER},person")
    engine = DuckDBEngine(open_path(str(house.rows)), threads=1)
    want = Sum(rows=Rows())
    assert engine.tally(read_schema(house.codebook), [want]).statistics[want] == counted
    engine.close()


@pytest.mark.parametrize("name", ["p3", ""])
def test_an_odd_id_is_released_like_a_good_one(tmp_path_factory, name):  # covers B056 B057
    def shown(last: str) -> tuple:
        house = House(tmp_path_factory.mktemp("house"), codebook=PEOPLE)
        lines = [f"{row},p{i}" for i, row in enumerate(rows())]
        house.fill([*lines, f"{GOOD},{last}"], header=f"{HEADER},person")
        return visible(house)

    assert shown(name) == shown("somebody new")


@pytest.mark.parametrize(
    ("text", "code"),
    [  # covers B094
        ("-1", 0), ("0", 0), ("NaN", None), ("inf", 1000), ("-inf", 0), ("1e300", 1000),
        ("99999999999999999999", 1000), ("2.345", 235), ("", None), ("heavy", None),
    ],
)  # fmt: skip
def test_weights_are_held_between_zero_and_the_declared_maximum(tmp_path, text, code):
    odd = Odd("B094", "weight", text, code)
    assert codes(as_csv(odd, tmp_path), ("weight",)) == [code]
    number = pa.array([float(text)] if text not in ("", "heavy") else [None], pa.float64())
    typed = table_with(odd).set_column(3, "weight", number)
    found = codes(open_frame(typed), ("weight",))
    assert found == [code] or (text == "2.345" and found[0] in (234, 235))  # the double is not 2.345
    (tmp_path / "house").mkdir()
    assert release_of(tmp_path / "house", with_line(line_with(odd).encode())) == good_release()


# `check` is the curator's: there the odd row shows (K).


@pytest.mark.parametrize(
    "odd",
    [o for o in CELLS if o.column != "rent" and o.entry not in ("B002", "B026", "B027", "B037", "B040")],
    ids=str,
)
def test_the_curator_is_shown_the_odd_cell(tmp_path, odd):
    from reticent.engine.confidential import inspect

    path = tmp_path / "rows.csv"
    path.write_bytes(with_line(line_with(odd).encode()))
    engine = DuckDBEngine(open_path(str(path)), threads=1)
    found = {finding.column: finding for finding in inspect(engine, schema())}[odd.column]
    engine.close()
    low, high = {"age": (0, 99), "rent": RENTS}.get(odd.column, (None, None))
    if odd.code is None:
        assert (found.unfit, found.clamped) == (1, 0) and found.examples
    elif odd.code in (low, high) and odd.entry != "B038":
        assert (found.unfit, found.clamped) == (0, 1)


@pytest.mark.parametrize(
    "odd", [Odd("B001", "age", "plenty", None), Odd("B019", "age", "100000", 99)], ids=str
)
def test_check_prints_it_as_confidential_and_charges_nothing(tmp_path, odd):
    house = House(tmp_path)
    house.rows.write_bytes(with_line(line_with(odd).encode()))
    before = house.digests()
    seen = house.check()
    assert seen.status == 0 and seen.out.startswith("CONFIDENTIAL")
    assert ("'plenty'" in seen.out) == (odd.code is None)
    assert house.digests() == before and json.dumps(before)
