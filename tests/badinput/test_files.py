"""Files that are not what they should be: refused from the header alone, or released like any other."""

import datetime as dt
import gzip
import io
import os
import pickle
import random
import shutil
import struct
import zipfile
import zlib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.csv import CsvSource
from reticent.engine.sources.open import open_frame, open_path
from reticent.engine.wants import Rows, Sum
from reticent.errors import SourceError
from reticent.plan.plan import read_plan
from reticent.release.statistics import MOST_ROWS, wants_of
from reticent.release.survey import Survey
from reticent.schema import Number
from reticent.schema.codebook import read_schema
from reticent.schema.columns import Identifier
from tests.badinput.house import GOOD, HEADER, House, assert_refused, assert_untouched, rows, run
from tests.badinput.test_plans import make_odd, refused
from tests.engine.carriers import readings

GOOD_TABLE = pa.table(
    {
        "age": pa.array([34, 50, None], pa.int64()),
        "rent": pa.array([420.5, None, 10.0], pa.float64()),
        "sex": pa.array(["f", "m", None], pa.string()),
        "weight": pa.array([1.25, 2.0, 3.0], pa.float64()),
    }
)


def released(house: House, *arguments: str) -> None:
    seen = house.release(*arguments)
    assert (seen.status, seen.err) == (0, ""), seen
    assert {path.name for path in house.out.iterdir()} == {"town-1.json", "town-1.csv"}
    assert house.spent == 20


# covers B066
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "missing", "socket", "link to nothing", "loop"])
def test_data_that_are_no_file(house, kind):
    house.rows.unlink()
    make_odd(house.rows, kind)
    refused(house)


@pytest.mark.parametrize(
    "path", ["/dev/null", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/", "rows\0.csv", "no*.csv"]
)
def test_odd_paths_on_the_command_line(house, path):  # covers B066
    before = house.digests()
    assert_refused(house.release("--data", path))
    assert_untouched(house, before)


# covers B067 B070 B072 B073 B074
def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(b"0" * 2**24) + packer.flush()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.csv", b"0" * 2**22)
    return out.getvalue()


BAD_FILES = {
    "empty": b"",
    "only a newline": b"\n",
    "only a BOM": b"\xef\xbb\xbf",
    "no header": ("\n".join(rows()) + "\n").encode(),
    "column missing": b"age,rent,sex\n1,2,f\n",
    "column twice": b"age,rent,sex,weight,age\n1,2,f,1,1\n",
    "other name": b"years,rent,sex,weight\n1,2,f,1\n",
    "other case": b"Age,rent,sex,weight\n1,2,f,1\n",
    "semicolons": b"age;rent;sex;weight\n1;2;f;1\n",
    "padded header": b"age, rent,sex,weight\n1,2,f,1\n",
    "open quote": b'"age,rent,sex,weight\n1,2,f,1\n',
    "UTF-16": (HEADER + "\n" + GOOD).encode("utf-16"),
    "UTF-16 without a mark": (HEADER + "\n" + GOOD).encode("utf-16-le"),
    "UTF-32": (HEADER + "\n" + GOOD).encode("utf-32"),
    "a picture": b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
    "a photograph": b"\xff\xd8\xff\xe0" + b"\0" * 100,
    "a pickle": pickle.dumps({"age": [1]}),
    "a PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "gzip": gzip.compress((HEADER + "\n" + GOOD).encode()),
    "gzip bomb": _bomb(),
    "nested gzip": gzip.compress(_bomb()),
    "zip": _zip(),
    "zstd": b"\x28\xb5\x2f\xfd" + b"\0" * 50,
    "bzip2": b"BZh91AY&SY",
    "xz": b"\xfd7zXZ\x00\x00",
    "Parquet": b"PAR1\x15\x04",
    "SQLite": b"SQLite format 3\0" + b"\0" * 100,
    "200,000 columns": ",".join(f"c{i}" for i in range(200_000)).encode(),
    "a header of 2 MiB": b"a" * 2**21 + b"\n",
    "NUL in the header": b"age,rent,sex,weight\0\n1,2,f,1\n",
    "random bytes": random.Random(7).randbytes(5000),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_no_csv_with_our_header(house, name):
    house.rows.write_bytes(BAD_FILES[name])
    line = refused(house)
    assert "1,2,f,1" not in line and "420.5" not in line


@pytest.mark.parametrize(
    ("header", "column"),
    [("age,rent,sex", "weight"), ("Age,rent,sex,weight", "age"), ("age,rents,sex,weight", "rent")],
)
def test_the_column_of_the_codebook_is_named(house, header, column):  # covers B070
    house.fill([GOOD], header=header)
    refused(house, f"columns.{column}", f"'{column}'")


def test_a_sparse_file_of_40_gigabytes_without_a_header(house):  # covers B074
    with house.rows.open("wb") as file:
        file.truncate(40 * 2**30)
    refused(house)


def test_a_line_of_20_megabytes_is_one_record_of_nothing(house):  # covers B074
    """R01: a record may be as long as it likes. What is over the limit is missing, in bounded memory."""
    house.rows.write_bytes(
        b"\n".join([HEADER.encode(), *(r.encode() for r in rows()), b"7" * 20 * 2**20, b""])
    )
    released(house)


@pytest.mark.parametrize(
    "lines",
    [
        [],  # covers B068
        [",,,"] * 30,  # covers B069
        [",,,"] * 30 + [GOOD],
        [GOOD] * 30,
        ["0,0,f,0"] * 30,
        ["x,y,z,w"] * 30,
    ],
    ids=["no row", "all missing", "one answer", "all equal", "all zero", "all unfit"],
)
@pytest.mark.parametrize("typed", [False, True], ids=["csv", "parquet"])
def test_nothing_to_see_is_released_as_well(house, lines, typed):
    """Every kind of query on hardly any data: noise around nothing, and never a division by zero."""
    asks = [
        '{ count = "*" }', '{ total = "rent" }', '{ mean = "rent", where = "age >= 18" }',
        '{ variance = "rent" }', '{ variance = "age", weight = "weight" }', '{ median = "rent", step = "10" }',
        '{ quantile = "age", at = "0.9", step = "1", weight = "weight" }', "{ proportion = \"sex = 'f'\" }",
        '{ proportion = "rent is missing" }', '{ table = ["sex"] }', '{ table = ["sex"], weight = "weight" }',
    ]  # fmt: skip
    head = house.plan.read_text().split("[[statistic]]")[0].replace("rows = 80\n", "")
    parts = [f'[[statistic]]\nname = "a{i}"\nquery = {ask}\nepsilon = "1"\n' for i, ask in enumerate(asks)]
    parts.append('[[statistic]]\nname = "ratio"\nquery = { ratio = ["a1", "a0"] }\n')
    house.plan.write_text(head + "\n".join(parts))
    house.fill(lines)
    if typed:
        table = CsvSource(house.rows).reader(("age", "rent", "sex", "weight")).read_all()
        pq.write_table(table, house.folder / "rows.parquet")
        house.edit("rows.csv", "rows.parquet")
    seen = house.release()
    assert (seen.status, seen.err) == (0, ""), seen


# covers B070 B071
# An extra column is not refused, as the catalogue would have it, but never read: what the codebook does not
# declare can do no harm, and files carry more than one survey needs.
SPELLINGS = {
    "extra column": b"age,rent,sex,weight,secret\n34,420.5,f,1.25,x\n",
    "other order": b"weight,sex,rent,age\n1.25,f,420.5,34\n",
    "CRLF": b"age,rent,sex,weight\r\n34,420.5,f,1.25\r\n",
    "BOM": b"\xef\xbb\xbfage,rent,sex,weight\n34,420.5,f,1.25\n",
    "no last newline": b"age,rent,sex,weight\n34,420.5,f,1.25",
    "quoted header": b'"age","rent","sex","weight"\n"34","420.5","f","1.25"\n',
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_the_same_table_are_released(house, name):
    house.rows.write_bytes(SPELLINGS[name])
    released(house)
    schema = read_schema(house.codebook)
    wants = [Sum(rows=Rows(answered=(c,)), value=c, power=1) for c in ("age", "rent", "sex", "weight")]
    engine = DuckDBEngine(open_path(str(house.rows)), threads=1)
    found = engine.tally(schema, wants).statistics
    engine.close()
    assert [found[want] for want in wants] == [34, 841, 0, 125]


def test_an_extra_column_is_never_read(house, monkeypatch):  # covers B070
    asked = []
    reader = CsvSource.reader
    monkeypatch.setattr(
        CsvSource, "reader", lambda self, columns: (asked.extend(columns), reader(self, columns))[1]
    )
    house.rows.write_bytes(SPELLINGS["extra column"])
    released(house)
    assert set(asked) == {"age", "rent", "sex", "weight"}


def test_no_row_is_ever_dropped_for_being_one_too_many(house):  # covers B075 R04
    """The bound on rows is public, enters the overflow check, and cuts nothing off."""
    assert MOST_ROWS == 2**40 and wants_of(read_plan(house.plan))
    house.edit("rows = 80", "rows = 5")
    table = pa.table({"age": np.full(300_000, 50), "rent": np.zeros(300_000), "sex": ["f"] * 300_000,
                      "weight": np.ones(300_000)})  # fmt: skip
    engine = DuckDBEngine(open_path(_parquet(house, table)), threads=1)
    want = Sum(rows=Rows())
    assert engine.tally(read_schema(house.codebook), [want]).statistics[want] == 300_000
    engine.close()


# Parquet


def _parquet(house: House, table: pa.Table, **options) -> str:
    path = house.folder / "rows.parquet"
    pq.write_table(table, path, **options)
    return str(path)


def _with(column: str, values, kind=None) -> pa.Table:
    place = GOOD_TABLE.column_names.index(column)
    return GOOD_TABLE.set_column(place, column, pa.array(values, kind))


def _refused_parquet(house: House, table: pa.Table, column: str, **options) -> None:
    before = house.digests()
    assert_refused(house.release("--data", _parquet(house, table, **options)), f"columns.{column}")
    assert_untouched(house, before)


WHEN = dt.datetime(2026, 1, 1)


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [  # covers B076 B077
        ("age", [WHEN] * 3, pa.timestamp("us", tz="Asia/Kathmandu")),
        ("age", [[1], [2], None], pa.list_(pa.int64())),
        ("age", [{"a": 1}] * 3, pa.struct([("a", pa.int64())])),
        ("age", [b"1", b"2", None], pa.binary()),
        ("sex", [["f"]] * 3, pa.list_(pa.string())),
        ("sex", [WHEN] * 3, pa.timestamp("us", tz="UTC")),
        ("weight", [[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_types_that_a_column_cannot_have(house, column, values, kind):
    _refused_parquet(house, _with(column, values, kind), column)


@pytest.mark.parametrize(
    ("column", "values", "kind", "codes"),
    [  # covers B076 B077
        ("age", [Decimal(34), Decimal(10) ** 37, Decimal(-7)], pa.decimal128(38, 0), [34, 99, 0]),
        ("age", [Decimal("34.00"), Decimal("34.50"), None], pa.decimal128(10, 2), [34, None, None]),
        ("rent", [Decimal("0.24"), Decimal("0.25"), Decimal("-0.26")], pa.decimal128(38, 10), [0, 1, -1]),
        ("age", [200, 5, 34], pa.uint8(), [99, 5, 34]),
        ("age", [2**63, 2**64 - 1, 34], pa.uint64(), [99, 99, 34]),
        ("age", [-128, 5, None], pa.int8(), [0, 5, None]),
        ("age", [34.0, 34.5, float("nan")], pa.float64(), [34, None, None]),
        ("age", [float("inf"), float("-inf"), 5e-324], pa.float64(), [99, 0, 0]),
        ("age", [dt.date(2026, 1, 1)] * 3, pa.date32(), [None] * 3),
        ("age", [WHEN] * 3, pa.timestamp("us"), [None] * 3),
        ("age", [WHEN] * 3, pa.timestamp("ns"), [None] * 3),
        ("age", [True, False, None], pa.bool_(), [None] * 3),
        ("rent", [float("inf"), 5e-324, -0.0], pa.float32(), [2000, 0, 0]),
        ("rent", [1e308, -1e308, float("nan")], pa.float64(), [2000, -200, None]),
        ("age", ["34", "x", None], pa.string(), [34, None, None]),
        ("age", ["34", " 34 ", ""], pa.large_string(), [34, 34, None]),
        ("age", [None] * 3, pa.null(), [None] * 3),
        ("sex", ["f", "m", "x"], pa.large_string(), [0, 1, None]),
        ("sex", [True, False, None], pa.bool_(), [None] * 3),
        ("sex", [0, 1, 2], pa.int64(), [None] * 3),
        ("sex", [float("nan"), 1.0, None], pa.float64(), [None] * 3),
    ],
    ids=str,
)  # fmt: skip
def test_types_that_a_column_can_have(house, column, values, kind, codes):
    """Other types than one would choose are read, value by value, as the rows above say."""
    schema = read_schema(house.codebook)
    for value, code in zip(values, codes, strict=True):
        path = _parquet(house, _one(column, value, kind))
        engine = DuckDBEngine(open_path(path), threads=1)
        engine.check(schema)
        answered = Sum(rows=Rows(answered=(column,)))
        summed = Sum(rows=Rows(answered=(column,)), value=column, power=1)
        found = engine.tally(schema, [answered, summed]).statistics
        engine.close()
        assert (found[summed] if found[answered] else None) == code, value


def _one(column: str, value, kind) -> pa.Table:
    table = GOOD_TABLE.slice(0, 1)
    return table.set_column(table.column_names.index(column), column, pa.array([value], kind))


def test_a_dictionary_of_a_million_words(house):  # covers B076
    words = pa.array([f"w{i}" for i in range(1_000_000)])
    table = pa.table({"age": np.zeros(3, np.int64), "rent": np.zeros(3), "weight": np.zeros(3),
                      "sex": pa.DictionaryArray.from_arrays(pa.array([0, 5, 999_999], pa.int32()), words)})  # fmt: skip
    released(house, "--data", _parquet(house, table))


def _lying(house: House) -> str:
    """A file whose footer says that no age is above 35, while one is 1,000,003."""
    table = _with("age", [34, 35, 1_000_003], pa.int64())
    path = house.folder / "rows.parquet"
    pq.write_table(table, path, use_dictionary=False, compression="none")
    data = path.read_bytes()
    foot = len(data) - 8 - struct.unpack("<i", data[-8:-4])[0]
    lie = data[foot:].replace(struct.pack("<q", 1_000_003), struct.pack("<q", 35))
    path.write_bytes(data[:foot] + lie)
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.max == 35
    return str(path)


def test_statistics_that_lie_do_not_lift_a_clamp(house):  # covers B076 R12
    """An engine that believes them leaves out the clamp it thinks needless; so DuckDB does by default."""
    import duckdb

    path = _lying(house)
    engine = DuckDBEngine(open_path(path), threads=1)
    want = Sum(rows=Rows(answered=("age",)), value="age", power=1)
    assert engine.tally(read_schema(house.codebook), [want]).statistics[want] == 34 + 35 + 99
    engine.close()
    naive = duckdb.execute(f"SELECT sum(CASE WHEN age > 99 THEN 99 ELSE age END) FROM read_parquet('{path}')")
    assert naive.fetchone() == (34 + 35 + 1_000_003,)


def test_parquet_that_is_cut_encrypted_or_a_bomb(house):  # covers B076
    data = Path(_parquet(house, GOOD_TABLE)).read_bytes()
    huge = data[:-8] + struct.pack("<i", 2**31 - 1) + b"PAR1"
    negative = data[:-8] + struct.pack("<i", -5) + b"PAR1"
    sealed = b"PARE" + data[4:-4] + b"PARE"
    for broken in (b"", b"PAR1", data[:-1], data[: len(data) // 2], huge, negative, sealed, b"\0" * 500,
                   data[:-8] + data[-8:-4] + b"XXXX"):  # fmt: skip
        (house.folder / "rows.parquet").write_bytes(broken)
        before = house.digests()
        assert_refused(house.release("--data", str(house.folder / "rows.parquet")), "source")
        assert_untouched(house, before)


def test_parquet_with_a_column_twice_or_none(house):  # covers B070 B076
    twice = pa.Table.from_arrays([*GOOD_TABLE.columns, GOOD_TABLE["age"]], [*GOOD_TABLE.column_names, "age"])
    for table in (twice, GOOD_TABLE.drop_columns(["age"]), pa.table({})):
        before = house.digests()
        assert_refused(house.release("--data", _parquet(house, table)))
        assert_untouched(house, before)


def test_several_files_have_one_header(house):  # covers B070 B076
    """What another file lacks is found from the footers, before the charge."""
    for other in (
        GOOD_TABLE.drop_columns(["age"]),
        _with("age", ["1", "2", "3"]),
        _with("age", [1, 2, 3], pa.int8()),
    ):
        pq.write_table(GOOD_TABLE, house.folder / "part-1.parquet")
        pq.write_table(other, house.folder / "part-2.parquet")
        before = house.digests()
        assert_refused(house.release("--data", str(house.folder / "part-*.parquet")), "same header")
        assert_untouched(house, before)
    (house.folder / "more-1.csv").write_text("age,rent,sex,weight\n")
    (house.folder / "more-2.csv").write_text("age,sex,rent,weight\n")
    assert_refused(house.release("--data", str(house.folder / "more-*.csv")), "same header")
    assert_untouched(house, before)


# Frames


def survey(frame) -> Survey:
    house = {
        "survey": {"name": "town", "unit": "row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99]},
            "sex": {"kind": "categorical", "levels": ["f", "m"]},
        },
    }
    return Survey(frame, codebook=house)


FRAME = pd.DataFrame({"age": [34, 50, 60], "sex": ["f", "m", "f"]})


def answered(frame, column: str = "age") -> tuple[int, int]:
    """How many cells of the column have a code, and the sum of the codes."""
    held = survey(frame)
    plan = held.plan("x", epsilon="1", statistics=[{"name": "n", "query": {"count": "*"}, "epsilon": "1"}])
    engine = held.open()
    engine.check(plan.schema)
    wants = [Sum(rows=Rows(answered=(column,))), Sum(rows=Rows(answered=(column,)), value=column, power=1)]
    found = engine.tally(plan.schema, wants).statistics
    engine.close()
    return found[wants[0]], found[wants[1]]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("never")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("ages", "expected"),
    [  # covers B077
        (pd.Series([34, "x", None, 4.0, b"5", True], dtype=object), None),
        (pd.Series([34, pd.NA, np.nan, None], dtype=object), (1, 34)),
        (pd.Series([34, None, 7], dtype="Int64"), (2, 41)),
        (pd.Series([34.0, np.nan, 7.5], dtype="Float64"), (1, 34)),
        (pd.Series([34, 7, 200], dtype="UInt64"), (3, 34 + 7 + 99)),
        (pd.Series(["34", None, "x"], dtype="string"), (1, 34)),
        (pd.Series(["34", "7", "x"], dtype="category"), (2, 41)),
        (pd.Series([34, 7, 7], dtype="category"), (3, 48)),
        (pd.Series([Unprintable(), 34, object()], dtype=object), (1, 34)),
        (pd.Series([[1], {"a": 2}, (3,)], dtype=object), (0, 0)),
        (pd.Series(["\ud800", "34", "\0"], dtype=object), (1, 34)),
        (pd.Series([10**400, -(10**400), 34], dtype=object), (3, 99 + 0 + 34)),
        (pd.Series([np.float64("nan"), np.inf, -np.inf]), (2, 99)),
    ],
)
def test_frames_of_odd_types_are_read_as_rows_are(ages, expected):
    frame = pd.DataFrame({"age": ages, "sex": ["f"] * len(ages)})
    found = answered(frame)
    assert expected is None or found == expected


def test_a_category_with_unused_levels_and_arrow_extension_types():  # covers B077
    levels = pd.CategoricalDtype(["m", "f", "unused", "x"])
    frame = FRAME.assign(sex=pd.Series(["f", "x", None], dtype=levels))
    assert answered(frame, "sex") == (1, 0)
    arrow = FRAME.assign(age=pd.array([34, None, 7], dtype=pd.ArrowDtype(pa.int16())))
    assert answered(arrow) == (2, 41)


@pytest.mark.parametrize(
    "frame",
    [  # covers B078
        pd.DataFrame([[1, 2, "f"]], columns=["age", "age", "sex"]),
        pd.DataFrame([[1, "f"]], columns=pd.MultiIndex.from_tuples([("age", "a"), ("sex", "b")])),
        FRAME.set_index("age", drop=False),
        pd.DataFrame(),
        pd.DataFrame(index=range(5)),
        FRAME.rename(columns={"age": "AGE"}),
        FRAME.rename(columns={"age": 1}),
        pa.table([[1], [2], ["f"]], names=["age", "age", "sex"]),
        pa.table({}),
        [{"age": 1, "sex": "f"}],
        None,
        7,
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_frames_that_do_not_fit_are_refused_from_their_header(frame):
    held = survey(frame)
    plan = held.plan("x", epsilon="1", statistics=[{"name": "n", "query": {"count": "*"}, "epsilon": "1"}])
    with pytest.raises(SourceError) as refusal:
        engine = held.open()
        try:
            engine.check(plan.schema)
        finally:
            engine.close()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "ages",
    [  # covers B078 T31
        pd.date_range("2026-01-01", periods=3, tz="UTC"),
        pd.period_range("2026-01", periods=3, freq="M"),
        pd.interval_range(0, 3),
        pd.to_timedelta([1, 2, 3], unit="D"),
        [1 + 2j] * 3,
        [True] * 3,
    ],
    ids=lambda ages: str(getattr(ages, "dtype", ages[0])),
)
def test_a_type_that_one_more_row_would_change_is_not_refused(ages):
    """With a text beside them these are objects, which were never refused: refusing the type tells of the text."""
    column = Number(name="age", source="age", lower=Fraction(0), upper=Fraction(9), whole=True)
    frame = pd.DataFrame({"age": ages})
    mixed = pd.DataFrame({"age": pd.Series([*ages, "?"], dtype=object)})
    assert readings(open_frame(frame), column, ["age"])["age"] == [None] * 3
    assert readings(open_frame(mixed), column, ["age"])["age"] == [None] * 4
    who = Identifier(name="age", source="age")
    named = readings(open_frame(frame), who, ["age"])["age"]
    assert readings(open_frame(mixed), who, ["age"])["age"] == [*named, "?"]


# Files that change


def _failing(monkeypatch, house: House, spoil) -> None:
    """Do something to the file after its header was read and the charge was made."""
    real = CsvSource.reader
    monkeypatch.setattr(CsvSource, "reader", lambda self, columns: (spoil(), real(self, columns))[1])


@pytest.mark.parametrize("how", ["disappears", "becomes a folder", "loses a column"])
def test_a_file_that_changes_after_the_charge(house, monkeypatch, how):  # covers B080 T15 R09
    """Charged, for the rows might have been seen; nothing is published; resume finishes it, uncharged."""
    good = house.rows.read_bytes()

    def spoil() -> None:
        house.rows.unlink(missing_ok=True)
        if how == "becomes a folder":
            house.rows.mkdir(exist_ok=True)
        elif how == "loses a column":
            house.rows.write_bytes(b"age\n34\n")

    with monkeypatch.context() as patch:
        _failing(patch, house, spoil)
        seen = house.release()
    assert seen.status in (2, 4) and seen.err.startswith("error: ") and seen.err.count("\n") == 1, seen
    assert house.spent == 20 and not list(house.out.iterdir())
    if house.rows.is_dir():
        house.rows.rmdir()
    house.rows.write_bytes(good)
    assert_refused(house.release(), "resume town-1", status=5)
    seen = run("resume", "town-1", "--plan", str(house.plan))
    assert seen.status == 0, seen
    assert house.spent == 20 and (house.out / "town-1.json").exists()


def test_a_file_that_is_cut_while_it_is_read_is_a_shorter_file(house, monkeypatch):  # covers B080
    with monkeypatch.context() as patch:
        _failing(patch, house, lambda: os.truncate(house.rows, 60))
        released(house)


def test_an_error_of_the_disk_is_status_4_and_charged(house, monkeypatch):  # covers B080 R10
    def chunks(file):
        raise OSError(5, "Input/output error: row 34,420.5")
        yield b""

    monkeypatch.setattr("reticent.engine.sources.csv._chunks", chunks)
    seen = house.release()
    assert_refused(seen, status=4)
    assert "420.5" not in seen.err and house.spent == 20 and not list(house.out.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(house):  # covers B080
    house.rows.chmod(0)
    refused(house)


def test_a_link_as_data_is_followed(house):  # covers B081
    shutil.move(house.rows, house.folder / "elsewhere.csv")
    house.rows.symlink_to("elsewhere.csv")
    released(house)


@pytest.mark.parametrize("ending", [".json", ".csv"])
@pytest.mark.parametrize("target", ["elsewhere", "plan.toml"])
def test_a_link_as_output_is_refused(house, ending, target):  # covers B081 B106
    plan = house.plan.read_bytes()
    (house.out / f"town-1{ending}").symlink_to(house.folder / target)
    refused(house, "town-1", "never overwritten")
    assert house.plan.read_bytes() == plan and not (house.folder / "elsewhere").exists()
