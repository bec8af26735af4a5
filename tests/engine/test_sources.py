"""Every kind of source gives the same tallies, and opening one reads a header and no row."""

import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from reticent.engine.sources import arrow as statistical
from reticent.engine.sources.arrow import ArrowFile
from reticent.engine.sources.draft import draft_codebook
from reticent.engine.sources.open import open_frame, open_path, open_source
from reticent.engine.wants import Key, Rows, Sum, Table
from reticent.errors import EngineError, SourceError
from reticent.schema.codebook import schema_from
from tests.engine.opening import open_any

pytestmark = pytest.mark.usefixtures("every_engine")

SCHEMA = schema_from(
    {
        "survey": {"name": "tiny", "unit": "row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99], "source": "the age"},
            "sex": {"kind": "categorical", "levels": ["1", "2"]},
            "word": {"kind": "categorical", "levels": ["yes", "no"]},
        },
    }
)
ROWS = {
    "the age": [30, 7, None, 120, 50],
    "sex": [1, 2, 2, None, 7],
    "word": ["yes", "no", None, "maybe", "yes"],
}
WANTS = [
    Sum(rows=Rows(answered=("age",)), value="age", power=1),
    Sum(rows=Rows(answered=("age",)), value="age", power=2),
    Table(rows=Rows(), keys=(Key(column="sex", silent=True), Key(column="word", silent=True))),
]
WANTED = [30 + 7 + 99 + 50, 900 + 49 + 99**2 + 2500, (1, 0, 0, 0, 1, 1, 1, 0, 1)]


def tallied(source) -> list[object]:
    engine = open_any(source, threads=1)
    try:
        engine.check(SCHEMA)
        found = engine.tally(SCHEMA, WANTS)
    finally:
        engine.close()
    return [*found.statistics.sums.values(), *(table.cells for table in found.tables.values())]


def frame() -> pd.DataFrame:
    """Ages are doubles here, written "30.0" into a CSV, as pandas does where a column has holes."""
    return pd.DataFrame(ROWS).astype({"sex": "Int64"})


def write(kind: str, path) -> None:
    table = pa.table(ROWS)
    plain = pd.DataFrame(ROWS).rename(columns={"the age": "the_age"})
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif kind == "csv":
        frame().to_csv(path, index=False)
    elif kind == "tsv":
        frame().to_csv(path, index=False, sep="\t")
    elif kind == "sav":
        pyreadstat.write_sav(plain, str(path), variable_value_labels={"sex": {1: "man", 2: "woman"}})
    elif kind == "dta":
        pyreadstat.write_dta(plain, str(path))
    elif kind == "xpt":
        pyreadstat.write_xport(plain, str(path))
    elif kind == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.register("held", table)
            connection.execute("create table people as select * from held")


def odd(source_name: str):
    """Statistical formats allow no blank in a name: there the column goes by another header."""
    from dataclasses import replace

    columns = dict(SCHEMA.columns)
    columns["age"] = replace(columns["age"], source=source_name)
    return replace(SCHEMA, columns=columns)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "tsv", "duckdb"])
def test_files_agree(kind, tmp_path):
    """One table, written five ways; an odd header is mapped by the codebook."""
    path = tmp_path / f"rows.{kind}"
    write(kind, path)
    assert tallied(open_path(str(path), table="people")) == WANTED


@pytest.mark.parametrize("kind", ["sav", "dta", "xpt"])
def test_statistical_files_agree(kind, tmp_path, monkeypatch):
    """Codes stay codes, user-defined silence is missing, and pieces join without a seam."""
    path = tmp_path / f"rows.{kind}"
    write(kind, path)
    monkeypatch.setattr(statistical, "PIECE", 2)
    monkeypatch.setitem(globals(), "SCHEMA", odd("the_age"))
    assert tallied(open_path(str(path))) == WANTED


@pytest.mark.parametrize("make", [frame, lambda: pl.DataFrame(ROWS), lambda: pa.table(ROWS)])
def test_frames_agree(make):
    assert tallied(open_frame(make())) == WANTED


def test_a_glob_joins_files_of_one_header(tmp_path):
    """Two halves are the whole; a second kind that cannot be joined is refused, not dropped."""
    frame().iloc[:2].to_csv(tmp_path / "a.csv", index=False)
    frame().iloc[2:].to_csv(tmp_path / "b.csv", index=False)
    assert tallied(open_path(str(tmp_path / "*.csv"))) == WANTED
    for name in ("a.arrow", "b.arrow"):
        write("arrow", tmp_path / name)
    with pytest.raises(SourceError, match="several"):
        open_path(str(tmp_path / "*.arrow"))


@pytest.mark.parametrize("kind", ["arrow", "sav"])
def test_a_file_that_breaks_after_its_header_says_nothing_of_itself(kind, tmp_path):
    """The rows are read when they are asked for, and a failure there has a constant text."""
    # covers B080 R10
    path = tmp_path / f"rows.{kind}"
    write(kind, path)
    engine = open_any(open_path(str(path)))
    path.unlink()
    schema = SCHEMA if kind == "arrow" else odd("the_age")
    with pytest.raises(EngineError) as raised:
        engine.tally(schema, WANTS)
    engine.close()
    assert str(path) not in str(raised.value) and raised.value.status == 4


def test_opening_reads_no_row(tmp_path, monkeypatch):
    """The header of a statistical or Arrow file is enough to open it; the naive twin loads it whole."""
    # covers L01
    path = tmp_path / "rows.sav"
    write("sav", path)
    asked = []
    plain = pyreadstat.read_sav
    monkeypatch.setattr(pyreadstat, "read_sav", lambda *a, **k: asked.append(k) or plain(*a, **k))
    open_path(str(path)).types()
    assert asked and all(call.get("metadataonly") for call in asked)
    pyreadstat.read_sav(str(path))  # the naive twin
    assert not all(call.get("metadataonly") for call in asked)
    write("arrow", tmp_path / "rows.arrow")
    assert isinstance(open_path(str(tmp_path / "rows.arrow")), ArrowFile)


def test_a_draft_takes_labels_from_the_header_and_nothing_from_rows(tmp_path):
    """Value labels become levels; a column without them is left to be filled in, whatever its rows hold."""
    write("sav", tmp_path / "rows.sav")
    text = draft_codebook(str(tmp_path / "rows.sav"))
    assert (
        'levels = ["1", "2"]' in text and '"1" = "man", "2" = "woman"' in text and "unfinished = true" in text
    )
    assert "maybe" not in text and "120" not in text and "levels = []" in text
    write("csv", tmp_path / "rows.csv")
    assert 'source = "the age"' in draft_codebook(str(tmp_path / "rows.csv"))


def test_a_parquet_cell_that_is_not_utf8_is_missing(tmp_path):
    """One respondent's bytes decide nothing: DuckDB's own reader, the naive twin, fails on the whole file."""
    # covers B064 R01
    words = [b"yes", b"no", None, b"\xff\xfe", b"yes"]
    broken = pa.array(words, pa.binary()).view(pa.string())
    pq.write_table(pa.table({**ROWS, "word": broken}), tmp_path / "rows.parquet")
    assert tallied(open_path(str(tmp_path / "rows.parquet"))) == WANTED
    with duckdb.connect() as connection, pytest.raises(duckdb.Error):
        connection.execute(
            "select max(word) from read_parquet($1)", [str(tmp_path / "rows.parquet")]
        ).fetchall()


def test_without_the_extra_it_says_how_to_get_it(tmp_path, monkeypatch):
    write("sav", tmp_path / "rows.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(SourceError, match="pip install"):
        open_path(str(tmp_path / "rows.sav")).types()


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:hunter2@db/people",
        "postgres:",
        "host=db dbname=people password=hunter2",
        "postgres://db/x.csv",
    ],
)
@pytest.mark.parametrize("door", [open_path, open_source, draft_codebook])
def test_the_address_of_a_server_is_refused_and_not_repeated(text, door):
    """By every door, drafts too: who tries one is told where it belongs."""
    with pytest.raises(SourceError, match="service file") as problem:
        door(text)
    assert "hunter2" not in str(problem.value) and "db/" not in str(problem.value)


@pytest.mark.parametrize("source", ["postgres:census", "spark"])
def test_a_table_elsewhere_wants_its_name(source):
    with pytest.raises(SourceError, match="--relation"):
        open_source(source)
