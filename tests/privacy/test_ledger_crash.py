"""Killed, out of space, locked out: spent covers all that was published, and the next release works."""

import errno
import os
import random
import resource
import signal
import sqlite3
import time
from contextlib import closing
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest

from reticent import files
from reticent.errors import LedgerError, ReticentError
from reticent.privacy.ledger import ChargedWave, Ledger, sqlite
from tests.privacy.ledgers import (
    ANSWER,
    FILES,
    die,
    in_child,
    make,
    publish_last,
    release,
    reserve,
    violation,
)

KILLS = int(os.environ.get("RETICENT_KILLS", "40"))
INTERRUPTED = 99  # what a child ends with for an error that is not ours
CALLS = ("write", "fsync", "fchmod", "link", "replace", "unlink")


def publish_first(path: Path) -> None:
    """The naive twin: what is out is charged afterwards."""
    files.write_new(path.with_name("release.json"), ANSWER, private=False)
    ledger = Ledger.open(path)
    ledger.commit(reserve(ledger), ANSWER)
    ledger.publish("r1", FILES)


def at_call(number: int, act) -> None:
    """In this process, do `act` just before the numbered file-changing call or statement."""
    calls = count()

    def tick(statement: str = "write") -> None:
        if statement.split()[0] in ("write", "BEGIN", "INSERT", "COMMIT") and next(calls) == number:
            act()

    def ticking(call):
        return lambda *given, **named: (tick(), call(*given, **named))[1]

    def connect(path, timeout, plain=sqlite.connect):
        connection = plain(path, timeout)
        connection.set_trace_callback(tick)
        return connection

    for name in CALLS:
        setattr(os, name, ticking(getattr(os, name)))
    sqlite.connect = connect


RHO = {"unit": "rho", "wave": ChargedWave(name="2026q1", at_most=1, of=4)}


def outcomes(folder: Path, work, act, **changes) -> list[tuple[int, str]]:
    """Status and violation, for `act` at each call in turn until one run reaches its end."""
    seen = []
    for number in count():
        path = folder / str(number) / "a.db"
        path.parent.mkdir()
        make(path, budget="1", unit=changes.get("unit", "epsilon"))
        status = in_child(lambda path=path, number=number: (at_call(number, act), work(path, **changes)))()
        seen.append((status, violation(path, **changes)))
        if status == 0:
            return seen


def test_killed_at_any_call_nothing_is_lost(folder):
    """SIGKILL before every write, flush, naming and statement of one release. The naive order is caught."""
    # covers L03 L02 L05
    seen = outcomes(folder, publish_last, die)
    print(f"kills before every call of ours: {len(seen) - 1}; violations: 0")
    assert len(seen) > 40 and {status for status, _ in seen} == {-signal.SIGKILL, 0}
    assert [wrong for _, wrong in seen if wrong] == []
    (folder / "naive").mkdir()
    assert any(wrong for _, wrong in outcomes(folder / "naive", publish_first, die))


def test_killed_at_any_call_a_wave_in_rho_is_charged_once(folder):
    """The same in a ledger in rho, with the entry that fixes the design of a panel on the way."""
    # covers L03 L02 L05
    seen = outcomes(folder, publish_last, die, **RHO)
    assert len(seen) > 40 and {status for status, _ in seen} == {-signal.SIGKILL, 0}
    assert [wrong for _, wrong in seen if wrong] == []
    for number in range(len(seen)):
        waves = Ledger.open(folder / str(number) / "a.db").waves()
        assert waves is not None and waves.spent == {"2026q1": 1} and waves.at_most == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
def test_disk_faults_at_any_call_are_a_resource_error(folder, code):
    """From the numbered call on, every call of ours fails; after space is made the release is finished."""
    # covers L03 B109 B110

    def fail() -> None:
        def failing(*_given, **_named):
            raise OSError(code, os.strerror(code), "/some/where")

        for name in CALLS:
            setattr(os, name, failing)

    seen = outcomes(folder, publish_last, fail)
    assert {status for status, _ in seen} == {4, 0} and [wrong for _, wrong in seen if wrong] == []


def test_no_room_for_the_file_is_a_resource_error(folder):
    """RLIMIT_FSIZE from 0 upwards: SQLite's own writes fail at one page after another."""
    # covers L03 B109 B110
    statuses = []
    for limit in [*range(0, 26_000, 2_000), 10**7]:
        path = folder / str(limit) / "a.db"
        path.parent.mkdir()
        make(path, budget="1")

        def limited(path: Path = path, limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            publish_last(path)

        statuses.append(in_child(limited)())
        assert violation(path) == ""
    assert set(statuses[:3]) == {4} and set(statuses) == {0, 4}


def cut_off(folder: Path, times: int, seed: int, prepare=lambda: None) -> list[int]:
    """The statuses of releases to which SIGALRM comes within 30 ms, until so many were cut off in time.

    The delays are drawn once and for all. Where most releases are done sooner, ten times as many are tried and no more.
    """
    draw, seen = random.Random(seed), list[int]()
    for number in range(10 * times):
        if len(seen) - seen.count(0) == times:
            break
        path = folder / str(number) / "a.db"
        path.parent.mkdir(parents=True)
        make(path, budget="1")

        def work(path: Path = path, delay: float = draw.uniform(0.0005, 0.03)) -> None:
            prepare()
            signal.setitimer(signal.ITIMER_REAL, delay)
            publish_last(path)

        seen.append(in_child(work)())
        assert violation(path) == "", number
    return seen


def test_killed_at_random_times_nothing_is_lost(folder):
    """40 kills here, 200 in the long run."""
    # covers L03
    seen = cut_off(folder, KILLS, seed=3)
    assert set(seen) <= {-signal.SIGALRM, 0}
    print(f"kills at random times: {len(seen) - seen.count(0)}; violations: 0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_at_random_times_nothing_is_lost(folder, number):
    """As the command line takes a signal: raised between two steps of Python's. 10 each here, 50 in the long run."""
    # covers L03 B112

    def prepare() -> None:
        signal.signal(number, signal.default_int_handler)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))

    seen = cut_off(folder, max(KILLS // 4, 1), seed=int(number), prepare=prepare)
    assert set(seen) <= {INTERRUPTED, 0}
    print(f"{signal.Signals(number).name}: {len(seen) - seen.count(0)}; violations: 0")


def test_killed_while_a_ledger_is_started(folder):
    """There is a ledger or there is none, and it can be started or used."""
    # covers L03
    for number in count():
        path = folder / str(number) / "a.db"
        path.parent.mkdir()
        status = in_child(lambda path=path, number=number: (at_call(number, die), make(path)))()
        ledger = Ledger.open(path) if path.exists() else make(path)
        release(ledger)
        ledger.verify()
        if status == 0:
            break
    assert number > 10


def hold_lock(path: Path, ready: int, text: str = "{}") -> None:
    """Sit inside a transaction, with a row written but not committed."""
    connection = sqlite.connect(path, 5)
    connection.execute("PRAGMA cache_size=1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO entry VALUES (99, 'note', ?, NULL, '', '')", (text,))
    os.write(ready, b"x")
    time.sleep(60)


def with_writer(path: Path, text: str = "{}") -> int:
    """The process id of a child that holds the lock now."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            hold_lock(path, there, text)
        finally:
            os._exit(1)
    os.read(here, 1)
    os.close(here), os.close(there)
    return child


def end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_writer_that_died_does_not_block_the_next(folder):
    """Killed inside its transaction; the next one waits 5 s at most and is not refused. A lock file would stay behind."""
    # covers L15
    make(folder / "a.db")
    end(with_writer(folder / "a.db"))
    ledger = Ledger.open(folder / "a.db", timeout=5)
    release(ledger)
    ledger.verify()
    naive = folder / "lock"
    in_child(lambda: (os.open(naive, os.O_CREAT | os.O_EXCL), die()))()
    with pytest.raises(FileExistsError):
        os.open(naive, os.O_CREAT | os.O_EXCL)


def test_a_lock_held_too_long_is_refused_and_nothing_is_charged(folder):
    """Readers are not held up by it."""
    # covers B108 L15
    make(folder / "a.db")
    child = with_writer(folder / "a.db")
    try:
        ledger = Ledger.open(folder / "a.db", timeout=0.2)
        assert ledger.spent == 0
        with pytest.raises(LedgerError, match=r"in use by another run for 0.2 seconds") as refused:
            reserve(ledger)
        assert refused.value.status == 5
    finally:
        end(child)
    assert ledger.spent == 0 and reserve(ledger).fresh


def test_what_was_not_kept_leaves_no_trace(folder):
    """Marker words in a refused answer, and in a transaction that was killed after it spilled to the file."""
    # covers L18
    ledger, marker = make(folder / "a.db"), b"MARKER-7f3a"
    held = reserve(ledger)
    ledger.commit(held, b"noisy")
    with pytest.raises(LedgerError):
        ledger.commit(held, marker * 5_000)
    end(with_writer(folder / "a.db", marker.decode() * 5_000))
    ledger.verify()
    assert [each.name for each in folder.iterdir() if marker in each.read_bytes()] == []


def test_without_our_settings_freed_text_stays(folder):
    """The naive twin: plain SQLite keeps what was deleted."""
    # covers L18
    marker, found = "MARKER-7f3a", {}
    for name in ("naive", "ours"):
        path = folder / name
        sqlite3.connect(path).close()
        path.touch()
        with closing(sqlite3.connect(path) if name == "naive" else sqlite.connect(path, 1)) as connection:
            connection.execute("PRAGMA secure_delete" + ("=OFF" if name == "naive" else ""))
            connection.execute("CREATE TABLE t (x)")
            connection.execute("INSERT INTO t VALUES (?)", (marker * 2_000,))
            connection.commit()
            connection.execute("DELETE FROM t")
            connection.commit()
        found[name] = marker.encode() in path.read_bytes()
    assert found == {"naive": True, "ours": False}


def test_faults_are_told_without_the_machine(folder):
    """No folder, no text of SQLite's in a message."""
    # covers B109
    ledger = make(folder / "a.db")
    (folder / "a.db").write_bytes(b"garbage" * 2_000)
    with pytest.raises(ReticentError) as told:
        reserve(ledger)
    assert str(folder) not in str(told.value) and "database" not in str(told.value)
    assert told.value.__suppress_context__ and told.value.__cause__ is None


def test_spent_stays_after_a_crash(folder):
    """Reserved but not committed stays spent; nothing is ever given back."""
    # covers L04
    make(folder / "a.db")
    in_child(lambda: (reserve(Ledger.open(folder / "a.db"), amount="0.5"), die()))()
    assert Ledger.open(folder / "a.db").spent == Fraction("0.5")
