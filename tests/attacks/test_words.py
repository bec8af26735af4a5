"""Words of respondents stay where they are; words of plans come out harmless."""

import csv
import io
import json
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import ReticentError
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.document import document
from reticent.release.release import Release
from reticent.release.statistics import StatisticsResult, evaluate, wants_of
from reticent.release.survey import Survey
from tests.tables import ADD, EVERY_KIND, book, make_plan, plain_tallies, tally

MARKERS = ["Zyzzyva", "Quuxplugh", "Xyzzy4711", "Frobozzimus", "0.31415926535897"]
PLAN = make_plan(EVERY_KIND, book(unit="who", at_most=2), epsilon="0.1", expect={"rows": 300})
ROOT = Path(__file__).parents[2]


def marked(rows: int = 300) -> pa.Table:
    """Marker words in every column, among ordinary answers."""
    return pa.table(
        {
            "who": [f"Frobozzimus{i % 200}" for i in range(rows)],
            "sex": ["Zyzzyva" if i % 3 else "f" for i in range(rows)],
            "age": ["Quuxplugh" if i % 4 else "40" for i in range(rows)],
            "pay": ["Xyzzy4711" if i % 5 else "0.31415926535897" for i in range(rows)],
            "w": ["1" if i % 6 else "Zyzzyva" for i in range(rows)],
        }
    )


def found(data: bytes | str) -> list[str]:
    held = data.encode() if isinstance(data, str) else data
    return [marker for marker in MARKERS if marker.encode() in held]


def in_files(folder: Path, *besides: Path) -> list[str]:
    """Markers in any file under the folder, sources aside."""
    files = [path for path in folder.rglob("*") if path.is_file() and path not in besides]
    return [marker for path in files for marker in found(path.read_bytes())]


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        pq.write_table(table, path)
    return path


def new_ledger(folder: Path, plan: Plan) -> Ledger:
    return Ledger.create(
        folder / "ledger.db", dataset="tiny", change=plan.change.value, unit="epsilon", budget="10"
    )


# covers T14
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_no_word_of_a_respondent_leaves_in_a_release(ending, folder, capfd, caplog, monkeypatch) -> None:
    """Streams, logs, published files, ledger, temporary files and arguments, while it runs and after."""
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    source = write(marked(), folder / f"rows{ending}")
    out = folder / "out"
    out.mkdir()
    during: list[str] = []

    def look(_: str) -> None:
        during.extend(in_files(folder, source) + found(Path("/proc/self/cmdline").read_bytes()))

    with caplog.at_level(logging.DEBUG):
        ledger = new_ledger(folder, PLAN)
        Curator(ledger).release(PLAN, Survey(source, codebook={}), out, step=look)
    said = capfd.readouterr()
    assert during == [] and found(said.out + said.err + caplog.text) == []
    assert in_files(folder, source) == []
    assert len(list(out.iterdir())) == 2
    assert not list(folder.glob("reticent-*"))  # the folder for spilling is gone


def broken_files(folder: Path) -> list[Path]:
    """Files that cannot be read to the end, with markers in them."""
    whole = write(marked(), folder / "whole.parquet").read_bytes()
    middle = len(whole) // 2
    cut = folder / "cut.parquet"
    cut.write_bytes(whole[:8] + bytes(byte ^ 0xFF for byte in whole[8:middle]) + whole[middle:])
    table = marked()
    broken = b"Zyzzyva\xff" * len(table)
    ends = pa.array([8 * i for i in range(len(table) + 1)], pa.int32()).buffers()[1]
    sex = pa.Array.from_buffers(pa.string(), len(table), [None, ends, pa.py_buffer(broken)])
    return [cut, write(table.set_column(1, "sex", sex), folder / "encoding.parquet")]


# covers T14
def test_failures_quote_no_cell(folder, capfd, caplog) -> None:
    """Whatever goes wrong past the header: one constant text, no chain to the engine's own words."""
    texts = []
    for path in broken_files(folder):
        engine = Survey(path, codebook={}).open()
        try:
            engine.tally(PLAN.schema, wants_of(PLAN))
        except ReticentError as problem:
            texts.append(str(problem))
            assert problem.__cause__ is None and problem.__context__ is None
            assert found("".join(traceback.format_exception(problem))) == []
        finally:
            engine.close()
    said = capfd.readouterr()
    assert found(said.out + said.err + caplog.text) == []
    assert texts and len(set(texts)) == 1


# covers T14
def test_naive_code_passes_the_engines_words_on(folder) -> None:
    path = broken_files(folder)[1]
    with pytest.raises(duckdb.Error) as caught:
        duckdb.execute("select sex from read_parquet($1)", [str(path)]).fetchall()
    assert found(str(caught.value))
    with pytest.raises(duckdb.Error) as caught:
        duckdb.execute("select sum(cast('Zyzzyva' as double))").fetchall()
    assert found(str(caught.value))


# covers T14
def test_tallies_and_engines_do_not_print_what_they_hold() -> None:
    """Objects that end up in a debugger, a log or a notebook keep silent about rows."""
    table = marked(37)
    held = tally(PLAN, table)
    engine = DuckDBEngine(open_frame(table), threads=1)
    assert found(repr(held) + repr(engine) + repr(open_frame(table)) + repr(Survey(table, codebook={}))) == []
    assert "37" not in repr(held.statistics)
    engine.close()
    assert found(repr(table.to_pylist()))  # the twin: rows print themselves


SPILL = """
import sys, time
from pathlib import Path
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from tests.attacks.test_words import marked
engine = DuckDBEngine(open_frame(marked()), threads=1, memory="64MiB")
(engine._spill / "part").write_text("Zyzzyva")
print(engine._spill, flush=True)
time.sleep(60)
"""


# covers T14
def test_what_a_killed_run_spilled_is_private_and_goes_at_the_next_start(folder) -> None:
    """The folder for spilling is the owner's alone; a run that was killed leaves it to the next to remove."""
    child = subprocess.Popen(
        [sys.executable, "-c", SPILL],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert child.stdout is not None
    spill = Path(child.stdout.readline().strip())
    assert spill.parent == folder and spill.stat().st_mode & 0o777 == 0o700
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert in_files(folder)
    again = "from tests.attacks.test_words import marked, open_frame, DuckDBEngine; DuckDBEngine(open_frame(marked())).close()"
    subprocess.run(
        [sys.executable, "-c", again], cwd=ROOT, env={**os.environ, "TMPDIR": str(folder)}, check=True
    )
    assert in_files(folder) == []


CODEBOOK = """
[survey]
name = "tiny"
unit = "who"
at_most = 2
[columns.who]
kind = "identifier"
[columns.sex]
kind = "categorical"
levels = ["f", "m", "x"]
[columns.age]
kind = "integer"
bounds = [0, 99]
[columns.pay]
kind = "decimal"
bounds = [-50, 150]
grid = "0.5"
[columns.w]
kind = "decimal"
bounds = [0, 4]
grid = "0.25"
role = "weight"
"""
PLAN_FILE = f"""
[survey]
source = "rows.csv"
codebook = "codebook.toml"
ledger = "ledger.db"
[release]
id = "r1"
[protect]
change = "{ADD}"
epsilon = "1"
[[statistic]]
name = "pay"
query = {{ mean = "pay", where = "age >= 18", weight = "w" }}
epsilon = "0.5"
[[statistic]]
name = "sex"
query = {{ table = ["sex"] }}
epsilon = "0.5"
"""


# covers T14
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_says_no_word_of_a_respondent(ending, folder) -> None:
    """`reticent release`, good file and broken one, with --debug: both streams and every file it made."""
    (folder / "codebook.toml").write_text(CODEBOOK)
    (folder / "plan.toml").write_text(PLAN_FILE.replace("rows.csv", f"rows.{ending}"))
    source = write(marked(), folder / f"rows.{ending}")
    if ending == "parquet":
        source.write_bytes(broken_files(folder)[1].read_bytes())
        for extra in ("whole", "cut", "encoding"):
            (folder / f"{extra}.parquet").unlink()
    new_ledger(folder, PLAN)
    done = subprocess.run(
        [str(Path(sys.executable).parent / "reticent"), "release", "plan.toml", "--debug"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 4) and b"Traceback" not in done.stderr
    assert found(done.stdout + done.stderr) == []
    assert in_files(folder, source) == []


# --- T28: words of the plan -------------------------------------------------------------------------------------------

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "=HYPERLINK(1)"]


def lines(release: dict[str, Any]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(Release(release).to_csv().decode())))


def made(plan: Plan) -> dict[str, Any]:
    answers = evaluate(plan, plain_tallies(plan, []), SystemNoise())
    return document(plan, [StatisticsResult(plan=plan, answers=answers)], receipt=None, engine="engine")


def naive_csv(release: dict[str, Any]) -> list[list[str]]:
    """The twin: fields as they are."""
    return [[answer["name"], answer["unit"]] for answer in release["statistics"]]


def dangerous(rows: list[list[str]]) -> list[str]:
    """Fields that a spreadsheet would execute; numbers are none."""

    def is_number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    return [
        cell
        for row in rows
        for cell in row
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not is_number(cell)
    ]


# covers T28
@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_in_names_units_and_levels_are_defused(formula) -> None:
    columns = {
        "sex": {"kind": "categorical", "levels": [formula, "<script>alert(1)</script>", 'a "quoted", level']},
        "age": {"kind": "integer", "bounds": [0, 99], "unit": formula},
    }
    queries = [{"table": ["sex"]}, {"total": "age"}]
    release = made(make_plan(queries, book(columns), asks={0: {"name": formula}, 1: {"name": "=b"}}))
    rows = lines(release)
    assert dangerous(rows) == [] and {len(row) for row in rows} == {17}  # a column for the key
    assert any(formula in cell for row in rows for cell in row)
    assert json.loads(json.dumps(release))["statistics"][0]["name"] == formula  # JSON keeps the name as it is
    assert dangerous(naive_csv(release)) != []


CONTROLS = ["\x1b[31m", "\x00", "\x07", "a\nb", "a\rb", "a\tb", "\u202e", "\u200f", "\u2066", "\x7f", "\x9b"]


def _named(text: str) -> Plan:
    return make_plan([EVERY_KIND[0]], asks={0: {"name": text}})


def _titled(text: str) -> Plan:
    return make_plan([EVERY_KIND[0]], release={"id": "r1", "title": text})


def _identified(text: str) -> Plan:
    return make_plan([EVERY_KIND[0]], release={"id": f"r{text}"})


def _levelled(text: str) -> Plan:
    return make_plan([{"table": ["sex"]}], book({"sex": {"kind": "categorical", "levels": ["f", text]}}))


def _united(text: str) -> Plan:
    return make_plan([{"total": "x"}], book({"x": {"kind": "integer", "bounds": [0, 1], "unit": text}}))


def _surveyed(text: str) -> Plan:
    return make_plan([EVERY_KIND[0]], book(title=text))


def _asked(text: str) -> Plan:
    return make_plan([{"count": "*", "where": f"sex = 'f{text}'"}])


# covers T28
@pytest.mark.parametrize("door", [_named, _titled, _identified, _levelled, _united, _surveyed, _asked])
@pytest.mark.parametrize("text", CONTROLS, ids=[ascii(c) for c in CONTROLS])
def test_control_characters_are_refused_by_every_door(door: Callable[[str], Plan], text) -> None:
    with pytest.raises(ReticentError) as caught:
        door(text)
    assert str(caught.value).isprintable()
    assert not f"naive: {text}".isprintable()  # the twin: an echo would reach the terminal
