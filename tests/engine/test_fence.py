"""The engine reaches the declared files and nothing else, and what it says when it fails is ours (R12, R10)."""

import os
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame, open_path
from reticent.engine.wants import Rows, Sum
from reticent.errors import EngineError
from reticent.schema import Schema
from reticent.schema.codebook import schema_from

MARKER = "Zyxwvut"
WANT = Sum(rows=Rows(answered=("x",)), value="x", power=1)


@pytest.fixture(autouse=True)
def spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own, where engines make theirs."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A declared file, and beside it one that nobody declared."""
    numbers = pa.table({"x": pa.array(range(50_000), pa.int64()), "word": pa.array([MARKER] * 50_000)})
    pq.write_table(numbers, tmp_path / "declared.parquet", compression="zstd", use_dictionary=False)
    pq.write_table(numbers, tmp_path / "other.parquet")
    (tmp_path / "other.csv").write_text("x\n1\n")
    return tmp_path / "declared.parquet"


@pytest.fixture
def engine(data: Path) -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine(open_path(str(data)), threads=2)
    yield engine
    engine.close()


@pytest.fixture
def schema() -> Schema:
    columns = {
        "x": {"kind": "integer", "bounds": [0, 10**6]},
        "word": {"kind": "categorical", "levels": ["a"]},
    }
    return schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})


def ran(connection: Any, statement: str) -> bool:
    """Whether the connection carries the statement out."""
    try:
        connection.execute(statement).fetchall()
    except duckdb.Error:
        return False
    return True


FOREIGN = [
    "SELECT content FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('{folder}/other.parquet')",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM '{folder}/other.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/written.csv'",
    "ATTACH '{folder}/new.duckdb' AS n",
    "EXPORT DATABASE '{folder}/export'",
]


# covers R12
@pytest.mark.parametrize("statement", FOREIGN)
def test_no_other_file_can_be_read_or_written(engine: DuckDBEngine, data: Path, statement: str):
    """Each works on an open connection, which is what the fence is for."""
    statement = statement.replace("{folder}", str(data.parent))
    assert not ran(engine._connection, statement)
    assert ran(duckdb.connect(), statement)


def test_the_declared_file_can_be_read(engine: DuckDBEngine, data: Path, schema: Schema):
    assert ran(engine._connection, f"SELECT * FROM read_parquet('{data}')")
    assert engine.tally(schema, [WANT]).statistics[WANT] == sum(range(50_000))


def test_a_fence_around_frames_lets_no_file_through(data: Path):
    engine = DuckDBEngine(open_frame(pa.table({"x": [1]})), threads=1)
    try:
        assert not any(ran(engine._connection, f"SELECT * FROM '{path}'") for path in data.parent.iterdir())
    finally:
        engine.close()


def test_variables_of_the_caller_are_no_tables(engine: DuckDBEngine):
    frame = pa.table({"x": [1]})
    assert len(duckdb.connect().execute("SELECT * FROM frame").fetchall()) == frame.num_rows
    with pytest.raises(duckdb.Error):
        engine._connection.execute("SELECT * FROM frame")


@pytest.mark.parametrize("name", ["httpfs", "sqlite", "postgres", "spatial"])
def test_no_extension_is_installed_or_loaded(engine: DuckDBEngine, name: str):
    assert not ran(engine._connection, f"INSTALL {name}") and not ran(engine._connection, f"LOAD {name}")


def test_an_extension_cannot_come_from_a_file(engine: DuckDBEngine, data: Path):
    """A naive connection looks at the file and dislikes it; a fenced one does not look."""
    planted = data.with_name("planted.duckdb_extension")
    planted.write_bytes(b"not an extension")
    refusals = []
    for connection in (engine._connection, duckdb.connect()):
        with pytest.raises(duckdb.Error) as refusal:
            connection.execute(f"LOAD '{planted}'")
        refusals.append(str(refusal.value))
    assert "disabled" in refusals[0] and "disabled" not in refusals[1]


SETTINGS = [
    "SET threads = 1",
    "SET memory_limit = '9GB'",
    "SET temp_directory = '/tmp'",
    "SET allowed_paths = ['/etc/passwd']",
    "SET disabled_optimizers = ''",
    "SET lock_configuration = false",
    "RESET disabled_optimizers",
    "PRAGMA enable_progress_bar",
]


@pytest.mark.parametrize("statement", SETTINGS)
def test_no_setting_changes_after_the_lock(engine: DuckDBEngine, statement: str):
    assert not ran(engine._connection, statement)
    assert ran(duckdb.connect(), statement)


def test_external_access_stays_off(engine: DuckDBEngine):
    assert not ran(engine._connection, "SET enable_external_access = true")
    (access,) = engine._connection.execute("SELECT current_setting('enable_external_access')").fetchone()
    assert access is False


# --- the folder for what does not fit into memory ----------------------------------------------------------------------


def test_the_spill_folder_is_ours_alone_and_goes_with_the_engine(data: Path, spill: Path):
    """Mode 0700 whatever the umask. A plain connection would spill into the working folder."""
    before = os.umask(0)
    try:
        engine = DuckDBEngine(open_path(str(data)))
    finally:
        os.umask(before)
    (folder,) = spill.iterdir()
    (used,) = engine._connection.execute("SELECT current_setting('temp_directory')").fetchone()
    assert used == str(folder) and stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine.close()
    assert list(spill.iterdir()) == []
    naive = duckdb.connect().execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    assert naive != str(folder)


def test_what_a_killed_run_left_is_removed_and_what_a_living_one_has_is_not(data: Path, spill: Path):
    killed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    mine = [spill / f"reticent-{os.getuid()}-{pid}-abc" for pid in (killed.pid, os.getpid())]
    foreign = spill / f"reticent-{os.getuid() + 1}-{killed.pid}-abc"
    for folder in (*mine, foreign):
        folder.mkdir()
        (folder / "spilled.tmp").write_text(MARKER)
    killed.kill()
    killed.wait()
    DuckDBEngine(open_path(str(data))).close()
    assert sorted(spill.iterdir()) == sorted([mine[1], foreign])


def test_a_link_planted_under_our_name_is_not_followed(data: Path, spill: Path):
    """Another user of the machine cannot have us empty a folder."""
    precious = data.parent / "precious"
    precious.mkdir()
    (precious / "kept").write_text("")
    (spill / f"reticent-{os.getuid()}-0-abc").symlink_to(precious)
    DuckDBEngine(open_path(str(data))).close()
    assert (precious / "kept").exists()


# --- what is said when the engine fails ---------------------------------------------------------------------------------


def damaged(data: Path) -> None:
    """Footer and header intact, the pages in between not."""
    held = data.read_bytes()
    data.write_bytes(held[:1000] + bytes(len(held) // 2) + held[1000 + len(held) // 2 :])


def cut(data: Path) -> None:
    """The end is gone, and the footer with it."""
    data.write_bytes(data.read_bytes()[:2000])


def deleted(data: Path) -> None:
    data.unlink()


def replaced(data: Path) -> None:
    """Another file under the same name, with texts where numbers were."""
    pq.write_table(pa.table({"x": [MARKER] * 9, "word": [MARKER] * 9}), data)


# covers R10 R12 B076 B080 T14
@pytest.mark.parametrize("harm", [damaged, cut, deleted, replaced])
def test_a_file_that_breaks_after_the_check_gives_our_sentence_and_no_other(
    data: Path, schema: Schema, engine: DuckDBEngine, harm: Any
):
    """Nothing of the engine's own words stays behind the error: no cause, no context, no path, no cell."""
    engine.check(schema)
    harm(data)
    with pytest.raises(EngineError) as caught:
        engine.tally(schema, [WANT])
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None
    shown = "".join(traceback.format_exception(error, chain=True))
    assert MARKER not in shown and str(data) not in shown and "duckdb.Error" not in shown
    assert str(error) == str(EngineError(*error.args, field="source"))
    assert "could not be read to the end" in str(error)


def test_every_harm_gets_the_same_words(tmp_path: Path, schema: Schema, data: Path):
    words, whole = set(), data.read_bytes()
    for harm in (damaged, cut, deleted, replaced):
        data.write_bytes(whole)
        engine = DuckDBEngine(open_path(str(data)))
        harm(data)
        with pytest.raises(EngineError) as caught:
            engine.tally(schema, [WANT])
        words.add(str(caught.value))
        engine.close()
    assert len(words) == 1


def test_a_stream_that_is_gone_gives_the_same_words(tmp_path: Path, schema: Schema):
    """CSV and Arrow files are opened anew for every pass."""
    people = pa.table({"x": [1, 2], "word": ["a", MARKER]})
    with pa.OSFile(str(tmp_path / "people.arrow"), "wb") as file, pa.ipc.new_file(file, people.schema) as out:
        out.write_table(people)
    (tmp_path / "people.csv").write_text(f"x,word\n1,a\n2,{MARKER}\n")
    for path in (tmp_path / "people.arrow", tmp_path / "people.csv"):
        engine = DuckDBEngine(open_path(str(path)))
        assert engine.tally(schema, [WANT]).statistics[WANT] == 3
        path.unlink()
        with pytest.raises(EngineError, match="could not be read to the end") as caught:
            engine.tally(schema, [WANT])
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        engine.close()


def test_a_plain_connection_quotes_the_cell_and_names_the_file(data: Path):
    """The naive twin: what the fence keeps back."""
    plain = duckdb.connect()
    with pytest.raises(duckdb.Error, match=MARKER):
        plain.execute(f"SELECT sum(CAST(word AS INTEGER)) FROM read_parquet('{data}')").fetchall()
    deleted(data)
    with pytest.raises(duckdb.Error, match=data.name):
        plain.execute(f"SELECT sum(x) FROM read_parquet('{data}')").fetchall()
