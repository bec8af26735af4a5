"""Places and circumstances: outputs in the way, ledgers that are none, signals, environments, command lines."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import Rows, Sum
from reticent.errors import EngineError
from reticent.privacy.ledger import Ledger
from reticent.release import statistics as carry
from reticent.release.statistics import evaluate_sampled
from reticent.schema.codebook import read_schema
from tests.badinput.house import House, assert_refused, assert_untouched, run
from tests.badinput.test_plans import make_odd, refused
from tests.badinput.test_rows import PEOPLE
from tests.doubles import passed

COMMAND = [sys.executable, "-c", "from reticent.cli import main; main()"]
UNDRAWN = [sys.executable, "-c", "from reticent.cli import main, plans; plans.drawn = tuple; main()"]


# covers B106 R15
@pytest.mark.parametrize("ending", [".json", ".csv"])
@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing", "pipe"])
def test_an_output_in_the_way_is_found_before_the_charge(house, ending, kind):
    path = house.out / f"town-1{ending}"
    if kind == "file":
        path.write_text("an older release")
    else:
        make_odd(path, kind)
    refused(house, "out", f"town-1{ending}")


@pytest.mark.parametrize("kind", ["missing", "file", "pipe", "link to nothing"])
def test_an_output_folder_that_is_none(house, kind):  # covers B106
    place = house.folder / "elsewhere"
    if kind == "file":
        place.write_text("x")
    else:
        make_odd(place, kind)
    before = house.digests()
    assert_refused(house.release("--out", str(place)), "out")
    assert_untouched(house, before)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_output_folder_that_may_not_be_written(house):  # covers B106
    house.out.chmod(0o500)
    refused(house, "out")


# covers B107 R16
@pytest.mark.parametrize(
    "kind", ["folder", "missing", "pipe", "text", "empty", "SQLite", "read-only", "head lost"]
)
def test_a_ledger_that_is_none_is_status_5_before_anything_else(house, kind, monkeypatch):
    head = house.folder / "town.ledger.db.head"
    if kind == "read-only":
        house.ledger.chmod(0o400)
    elif kind == "head lost":
        kept = house.ledger.read_bytes()
        assert house.release().status == 0
        house.ledger.write_bytes(kept)  # the ledger rolled back, its head ahead
    else:
        house.ledger.unlink()
        head.unlink()
        if kind == "text":
            house.ledger.write_text("dataset,epsilon\n" * 100)
        elif kind == "empty":
            house.ledger.touch()
        elif kind == "SQLite":
            import sqlite3

            connection = sqlite3.connect(house.ledger)
            connection.execute("CREATE TABLE entry (number, kind)")
            connection.close()
        else:
            make_odd(house.ledger, kind)
    house.rows.unlink()  # the data are looked for later
    refused(house, status=5)
    for command in ("show", "spent", "verify"):
        assert_refused(run("ledger", command, str(house.ledger)), status=5)


def test_a_ledger_of_another_survey_or_change_is_refused(house):  # covers B107 L12
    house.ledger.unlink()
    (house.folder / "town.ledger.db.head").unlink()
    house.open_ledger(change="one respondent's answers replaced")
    before = house.digests()
    seen = house.release()
    assert_refused(seen, status=seen.status)
    assert seen.status in (2, 5)
    assert_untouched(house, before)


# Signals, memory, and others at work at the same time


def during(monkeypatch, act: Callable[[], object]) -> None:
    """Do something while a release is under way: charged, rows read, answer not yet committed."""

    def interrupted(*arguments, **options):
        act()
        return evaluate_sampled(*arguments, **options)

    monkeypatch.setattr(carry, "evaluate_sampled", interrupted)
    passed(monkeypatch)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard, as in a terminal. A shell starts a background job, and so perhaps these tests, with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_with_130_and_what_was_charged_can_be_resumed(house, monkeypatch, number):
    # covers B112 L04 R16
    with monkeypatch.context() as patch:
        during(patch, lambda: os.kill(os.getpid(), number))
        seen = house.release()
    assert_refused(seen, "interrupted", status=130)
    assert house.spent == 20 and not list(house.out.iterdir())
    Ledger.open(house.ledger).verify()
    assert run("resume", "town-1", "--plan", str(house.plan)).status == 0
    assert house.spent == 20 and (house.out / "town-1.json").exists()
    assert run("resume", "town-1", "--plan", str(house.plan)).status == 0  # the same bytes again


def test_a_stop_and_a_continue_change_nothing(house):  # covers B112
    child = subprocess.Popen(
        [*COMMAND, "release", str(house.plan)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        for _ in range(3):
            child.send_signal(signal.SIGSTOP)
            child.send_signal(signal.SIGCONT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 0 and err == "" and "report: " in out
    assert house.spent == 20


@pytest.mark.parametrize("closed", ["1>&-", "2>&- 1>&-", "| :", "0<&- 1>/dev/null", "1>/dev/full"])
def test_nobody_listens(house, closed):
    """The release is made all the same; a stream that is gone is no reason to lose or repeat it."""
    # covers B112 B113
    script = f'"$@" {closed}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *UNDRAWN, "release", str(house.plan)],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    full = closed == "1>/dev/full"  # what cannot be printed is an error of the resource, after the release
    assert done.returncode == (4 if full else 0) and "Traceback" not in done.stderr, done
    assert house.spent == 20 and (house.out / "town-1.json").exists()
    Ledger.open(house.ledger).verify()


def test_no_command_ever_asks(house, monkeypatch):
    """There are no prompts: with a standard input that must not be read, everything still works."""

    # covers B113
    class Silent:
        def __getattr__(self, name):
            raise AssertionError("somebody read the standard input")

    monkeypatch.setattr(sys, "stdin", Silent())
    assert house.release().status == 0
    assert house.check().status == 0
    assert run("preview", str(house.plan)).status == 0


def test_no_memory_is_status_4_without_a_word_of_the_rows(house, monkeypatch):  # covers B111 R10
    def fails() -> None:
        raise MemoryError("while holding 34,420.5,f")

    during(monkeypatch, fails)
    seen = house.release()
    assert_refused(seen, "memory", status=4)
    assert "420.5" not in seen.err and house.spent == 20 and not list(house.out.iterdir())


def test_little_memory_spills_or_is_an_error_of_ours(tmp_path):  # covers B111
    """A sort of 300,000 respondents in 16 MiB: the same count as in plenty, or EngineError."""
    house = House(tmp_path, codebook=PEOPLE)
    people = 300_000
    table = pa.table({
        "age": pa.array(range(people)), "rent": pa.array(range(people)), "sex": ["f"] * people,
        "weight": pa.array([1] * people), "person": pa.array([f"p{i % 1000}" for i in range(people)]),
    })  # fmt: skip
    want, found = Sum(rows=Rows()), []
    for memory in ("16MiB", "1GiB"):
        engine = DuckDBEngine(open_frame(table), threads=1, memory=memory)
        try:
            found.append(engine.tally(read_schema(house.codebook), [want]).statistics[want])
        except EngineError as problem:
            assert "p1" not in str(problem)
        finally:
            engine.close()
    assert set(found) == {2000}


def test_two_releases_into_one_output(tmp_path, monkeypatch):  # covers B115
    """One wins; the other, charged and answered, is told, and publishes elsewhere without a new charge."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = House(tmp_path / "a"), House(tmp_path / "b")
    shared = tmp_path / "shared"
    shared.mkdir()
    inner = []

    def other() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(carry, "evaluate_sampled", evaluate_sampled)
            inner.append(second.release("--out", str(shared)))

    with monkeypatch.context() as patch:
        during(patch, other)
        seen = first.release("--out", str(shared))
    assert inner[0].status == 0
    won = {path.name: path.read_bytes() for path in shared.iterdir()}
    assert_refused(seen, "never overwritten")
    assert first.spent == second.spent == 20
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("resume", "town-1", "--plan", str(first.plan), "--out", str(elsewhere)).status == 0
    assert first.spent == 20 and {p.name for p in elsewhere.iterdir()} == set(won)
    assert {path.name: path.read_bytes() for path in shared.iterdir()} == won


def test_check_and_another_try_during_a_release(house, monkeypatch):  # covers B115
    inner = []

    def others() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(carry, "evaluate_sampled", evaluate_sampled)
            inner.extend([house.check(), house.release()])

    during(monkeypatch, others)
    assert house.release().status == 0
    assert inner[0].status == 0 and inner[0].out.startswith("CONFIDENTIAL")
    assert_refused(inner[1], "another run is at work", status=5)
    assert house.spent == 20


# Environments


def test_an_odd_environment_changes_nothing(house, tmp_path):
    """No HOME, no TMPDIR, LANG=C, an odd zone, umask 0, -O, and variables that open doors elsewhere."""
    # covers B114 B119 B121
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    (tmp_path / ".duckdbrc").write_text(f".output {tmp_path / 'sprung'}")
    environment = {
        "PATH": "/nowhere", "LANG": "C", "LC_ALL": "C", "TZ": "Antarctica/Troll", "PYTHONOPTIMIZE": "2",
        "PYTHONHASHSEED": "1", "PYTHONSTARTUP": str(trap), "PYTHONINSPECT": "", "DUCKDB_HOME": str(tmp_path),
        "DUCKDB_SECRET_DIRECTORY": str(tmp_path), "DUCKDB_EXTENSION_DIRECTORY": str(tmp_path),
        "SPARK_CONF_DIR": str(tmp_path), "RETICENT_SEED": "1", "RETICENT_DEBUG": "1", "COLUMNS": "0",
        "NO_COLOR": "x", "TERM": "\x1b[2J",
    }  # fmt: skip
    done = subprocess.run(
        [*COMMAND, "release", str(house.plan), "--debug"],
        env=environment, check=False, capture_output=True, text=True, timeout=60, umask=0, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done
    assert house.spent == 20 and not (tmp_path / "sprung").exists()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in house.folder.glob("town.ledger.db*")}
    assert set(modes.values()) == {0o600}
    published = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in house.out.iterdir()}
    assert set(published.values()) == {0o644} and {".json", ".csv", ".html"} <= set(published)
    refusal = subprocess.run(
        [*COMMAND, "release", str(tmp_path / "no.toml"), "--debug"],
        env=environment, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert refusal.returncode == 2 and refusal.stderr.count("\n") == 1, refusal


def test_checks_are_not_asserts():
    """Python -O removes asserts; ours are not what anything rests on."""
    # covers B119
    import ast

    import reticent

    folder = Path(reticent.__file__).parent
    found = [
        f"{path.relative_to(folder)}:{node.lineno}"
        for path in folder.rglob("*.py")
        if "lab" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert not found


# Command lines


@pytest.mark.parametrize(
    "arguments",
    [  # covers B120
        ["--unknown"],
        ["--unknown=1"],
        ["--seed", "1"],
        ["--epsilon=1e-1"],
        ["--yes"],
        ["--data"],
        ["--data", "rows.csv", "--data", "other.csv"],
        ["--out=a", "--out=b"],
        ["--ledger", "a.db", "--ledger=b.db"],
        ["another.toml"],
        ["--out", "a\nb"],
        ["--data", "x" * 100_000],
        ["--ledger", "y" * 100_000],
        ["--out", "z" * 100_000],
        ["--data", "\x1b[2J.csv"],
        ["--data", ""],
    ],
    ids=lambda words: " ".join(words)[:30].encode("ascii", "replace").decode(),
)
def test_bad_command_lines(house, arguments):
    before = house.digests()
    seen = house.release(*arguments)
    assert_refused(seen, status=seen.status)
    assert seen.status in (2, 5) and len(seen.err) < 700 and "\x1b" not in seen.err
    assert_untouched(house, before)


@pytest.mark.parametrize(
    "arguments",
    [
        ["releas", "plan.toml"],
        ["release"],
        ["release", "x" * 100_000],
        ["release", "plan\n.toml"],
        ["release", "\udcff.toml"],
        ["resume"],
        ["resume", "other-id"],
        ["preview", "plan.toml", "--target", "cv=0%"],
        ["preview", "plan.toml", "--target", "cv=5"],
        ["ledger", "open", "x.db"],
        ["ledger", "open", "x.db", "--dataset", "d", "--epsilon=1e-1"],
        ["ledger", "open", "x.db", "--dataset", "d", "--epsilon", "1", "--epsilon", "2"],
        ["ledger", "open", "x.db", "--dataset", "d\nd", "--epsilon", "1"],
        ["ledger", "note", "town.ledger.db", "why", "--raise-to", "1"],
        ["ledger", "note", "town.ledger.db", "", "--raise-to", "2000"],
        ["codebook", "draft", "nothing.csv"],
        ["codebook", "draft", "plan.toml"],
        ["codebook", "check", "plan.toml"],
        ["demo", "--rows", "7"],
        ["demo", "--rows", "many"],
        ["demo", "--out", "plan.toml"],
    ],
    ids=lambda words: " ".join(words)[:40].encode("ascii", "replace").decode(),
)
def test_bad_calls_of_other_commands(house, monkeypatch, arguments):  # covers B120
    monkeypatch.chdir(house.folder)
    before, names = house.digests(), set(os.listdir(house.folder))
    seen = run(*arguments)
    assert_refused(seen, status=seen.status)
    assert seen.status in (2, 5)
    assert_untouched(house, before)
    assert set(os.listdir(house.folder)) == names


def test_an_argument_of_a_megabyte(house):  # covers B120
    """The system itself takes no single argument this long; main() is asked directly."""
    before = house.digests()
    assert_refused(house.release("--data", "x" * 2**20))
    assert_untouched(house, before)


def test_a_plan_beside_which_nothing_can_be_made(house, tmp_path):  # covers B106
    shutil.rmtree(house.out)
    house.out.write_text("in the way")
    assert_refused(house.release(), "out")
    assert house.spent == 0
