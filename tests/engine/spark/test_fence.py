"""What a cluster's log, UI, event log and standard error may hold: nothing of a row. Whoever would keep it is refused by name."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.open import open_engine
from reticent.engine.sources.open import RemoteTable
from reticent.engine.spark import session as fenced
from reticent.engine.spark.connection import check_relation, read_at
from reticent.errors import EngineError, SourceError
from tests.engine.spark.sessions import held, why_not

SECRET = "SECRET7"
ROOT = Path(__file__).parents[3]


class Settings(dict[str, str]):
    """A context that has these settings, and its own answer to who asks for them."""

    master = "yarn"

    def getConf(self) -> "Settings":
        return self


OFF = {"spark.ui.enabled": "false"}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "a UI"),
        ({"spark.ui.enabled": "true"}, "a UI"),
        (OFF | {"spark.eventLog.enabled": "true"}, "an event log"),
        (OFF | {"spark.eventLog.enabled": "TRUE"}, "an event log"),
    ],
)
def test_a_session_that_keeps_counts_of_rows_is_refused_by_name(settings: dict[str, str], word: str):
    """Unless its curator accepts that, in the session's own settings and nowhere else."""
    with pytest.raises(SourceError, match=word):
        fenced.check_logs(Settings(settings))
    fenced.check_logs(Settings(settings | {fenced.ACCEPTED: "accepted"}))
    fenced.check_logs(Settings(OFF))


def test_a_cluster_needs_a_folder_of_its_own_for_codes():
    with pytest.raises(SourceError, match=fenced.STAGE):
        fenced.stage_root(Settings())
    assert fenced.stage_root(Settings({fenced.STAGE: "hdfs:/private"})) == "hdfs:/private"


def test_a_connect_session_is_refused():
    with pytest.raises(SourceError, match="Connect"):
        fenced.beside(object())


@pytest.mark.parametrize(
    "relation", ["", "a b", "x; DROP TABLE y", "s.t.u.v.w", "`x`", "/data/*.parquet", "/d/{a,b}", "a.b@v1", "a.b@", "a.b@1 OR 1", "delta.`/x`"]
)  # fmt: skip
def test_odd_names_of_tables_are_refused_before_a_session_is_asked(relation: str):
    with pytest.raises(SourceError):
        check_relation(RemoteTable(engine="spark", relation=relation))


class Asked:
    """A session that says what it was asked for: formats with versions need jars that are not here."""

    read = property(lambda self: self)

    def parquet(self, path: str) -> str:
        return f"parquet {path}"

    def table(self, name: str) -> str:
        return f"table {name}"

    def sql(self, statement: str) -> str:
        return statement


@pytest.mark.parametrize(
    ("relation", "asked"),
    [
        ("census.people", "table census.people"),
        ("lake.census.people@12", "SELECT * FROM lake.census.people VERSION AS OF 12"),
        ("/data/people.parquet", "parquet /data/people.parquet"),
        ("s3://bucket/a@1/people.parquet", "parquet s3://bucket/a@1/people.parquet"),
    ],
)
def test_a_table_is_read_at_the_version_that_its_name_pins(relation: str, asked: str):
    check_relation(RemoteTable(engine="spark", relation=relation))
    assert read_at(Asked(), relation) == asked


def test_a_version_of_a_table_that_keeps_none_is_refused(session: Any, tmp_path: Path):
    """And no other version is read in its place."""
    session.sql(f"CREATE TABLE plain_ USING parquet LOCATION '{tmp_path}' AS SELECT 1 AS age")
    try:
        with pytest.raises(SourceError, match="cannot be read as a table"):
            open_engine(RemoteTable(engine="spark", relation="plain_@1", given=session))
        open_engine(RemoteTable(engine="spark", relation="plain_", given=session)).close()
    finally:
        session.sql("DROP TABLE plain_")


CHILD = """
import sys
from pathlib import Path
from reticent.engine.open import open_engine
from reticent.engine.sources.open import RemoteTable
from reticent.errors import EngineError

how, path = sys.argv[1:]
if how == "naive":
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.read.parquet(path).createOrReplaceTempView("rows_")
    try:
        session.sql("SELECT CAST(name AS BIGINT) AS n FROM rows_").toArrow()
    except Exception as error:
        print(str(error)[:500], file=sys.stderr)
else:
    engine = open_engine(RemoteTable(engine="spark", relation=path))
    assert engine._context.uiWebUrl is None
    engine._frame.createOrReplaceTempView("rows_")
    try:
        engine.ask("SELECT CAST(name AS BIGINT) AS n FROM rows_")
    except EngineError as error:
        print(error)
    engine.close()
"""


def spoken(how: str, path: Path, folder: Path) -> tuple[str, str]:
    """What a process says whose statement fails on a cell, and all that its session left in the folder of event logs."""
    (folder / "conf").mkdir(exist_ok=True)
    (folder / "events").mkdir(exist_ok=True)
    settings = f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file:{folder}/events\nspark.master local[1]\n"
    settings += "spark.driver.bindAddress 127.0.0.1\nspark.driver.host 127.0.0.1\n"
    (folder / "conf" / "spark-defaults.conf").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, how, str(path)],
        env={**os.environ, "SPARK_CONF_DIR": str(folder / "conf")},
        cwd=ROOT,
        capture_output=True,
        timeout=200,
        check=True,
    )
    events = "".join(each.read_text() for each in (folder / "events").rglob("*") if each.is_file())
    return done.stdout.decode() + done.stderr.decode(), events


def test_a_cell_that_a_statement_fails_on_is_in_no_text_and_no_log(tmp_path: Path):
    """Though the cluster's defaults say an event log. A plain session, the naive twin, tells the cell in both."""
    if why := why_not():
        pytest.skip(why)
    pq.write_table(pa.table({"name": [SECRET, "8"]}), tmp_path / "rows.parquet")
    said, events = spoken("ours", tmp_path / "rows.parquet", tmp_path)
    assert SECRET not in said and events == ""
    assert "the rows could not be read to the end" in said
    said, events = spoken("naive", tmp_path / "rows.parquet", tmp_path)
    assert SECRET in said and SECRET in events


def test_what_spark_sorts_is_in_no_folder_that_others_may_read(session: Any):
    """Codes of all respondents are there. Spark itself, the naive twin, leaves its folders to the machine's other users."""
    folders = [each for each in fenced.sorted_in(session.sparkContext) if each.stat().st_uid == os.getuid()]
    for folder in folders:
        os.chmod(folder, 0o755)
    engine = open_engine(RemoteTable(engine="spark", given=held(pa.table({"name": ["a"]}))))
    assert folders and {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    assert [path for path in (engine._local, *folders) if path.stat().st_mode & 0o077] == []  # type: ignore[attr-defined]
    engine.close()


def test_the_curators_session_keeps_its_views_settings_and_log(
    session: Any, capfd: pytest.CaptureFixture[str]
):
    """A view of the name that we use is not met; settings are as they were; the log speaks again afterwards."""
    before = {name: session.conf.get(name, None) for name in fenced.SETTINGS}
    session.sql("SELECT 1 AS x").createOrReplaceTempView("rows_")
    engine = open_engine(RemoteTable(engine="spark", given=held(pa.table({"name": [SECRET]}))))
    with pytest.raises(EngineError) as problem:
        engine.ask("SELECT CAST(name AS BIGINT) AS n FROM rows_")
    assert SECRET not in str(problem.value) and problem.value.__cause__ is None
    with pytest.raises(EngineError):
        engine.ask(f"SELECT raise_error('{SECRET}') AS n")
    engine.close()
    assert session.table("rows_").collect()[0][0] == 1
    assert {name: session.conf.get(name, None) for name in fenced.SETTINGS} == before
    session.catalog.dropTempView("rows_")
    out, err = capfd.readouterr()
    assert SECRET not in out + err
