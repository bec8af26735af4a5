"""A ledger on a server: lost connections, killed curators, changed rows, several machines, and roles that can do too much."""

import json
import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reticent import files
from reticent.errors import LedgerError, PlanError, ReticentError
from reticent.privacy.ledger import ChargedPiece, Ledger
from reticent.privacy.ledger.book import store_at
from reticent.privacy.ledger.entries import canonical, entry_hash
from tests.badinput.house import House, run
from tests.engine.conformance.server import BOSS, CURATOR, server
from tests.privacy.ledgers import ANSWER, FILES, full, in_child, make, release, reserve
from tests.privacy.proxy import COMMIT, CUT, DEAF, PASS, WRITE, Proxy
from tests.privacy.test_ledger_places import FIXTURES

COLUMNS = {
    "ledger": "'x'",
    "number": "number + 1000",
    "kind": "'note'",
    "body": "'{}'",
    "previous": "hash",
    "hash": "previous",
}


def edit(statement: str, *values: Any) -> None:
    """What an administrator may do to the table."""
    server().run(statement, values)


def is_noticed(place: str, receipts: Any = ()) -> bool:
    """Whether opening or verifying fails, in one plain sentence of ours."""
    try:
        Ledger.open(Path(place), timeout=0.5).verify(receipts)
    except LedgerError as error:
        assert "\n" not in str(error) and str(server().folder) not in str(error)
        return True
    return False


def head_of(place: str) -> Path:
    return store_at(place, 1).head


@pytest.fixture
def ledger_and_receipts(served: str) -> Any:
    return full(Path(served))


@pytest.fixture
def kept(served: str, ledger_and_receipts: Any) -> Iterator[str]:
    """A ledger with an entry of every kind, whose rows are kept aside and can be put back."""
    edit("CREATE TABLE kept AS SELECT * FROM reticent.entry")
    yield served
    edit("DROP TABLE kept")


def put_back() -> None:
    edit("TRUNCATE reticent.entry")
    edit("INSERT INTO reticent.entry SELECT * FROM kept")


def test_every_column_of_every_row_is_covered(kept, ledger_and_receipts):
    """Each changed in turn, and the answers; put back, all is well."""
    # covers L09
    numbers = [entry.number for entry in ledger_and_receipts[0].entries()]
    missed = []
    for number in numbers:
        for column, value in COLUMNS.items():
            edit(f"UPDATE reticent.entry SET {column} = {value} WHERE number = {number}")
            if not is_noticed(kept) and (number, column, value) != (6, "kind", "'note'"):
                missed.append((number, column))
            put_back()
    for number in (3, 8):
        edit(f"UPDATE reticent.entry SET answer = answer || '\\x00' WHERE number = {number}")
        assert is_noticed(kept)
        put_back()
    assert len(numbers) == 9 and missed == [] and not is_noticed(kept, ledger_and_receipts[1])


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM reticent.entry",
        "DELETE FROM reticent.entry WHERE number = 1",
        "DELETE FROM reticent.entry WHERE number = 5",
        "DELETE FROM reticent.entry WHERE number = 9",
        "UPDATE reticent.entry SET number = -number",
        "INSERT INTO reticent.entry SELECT ledger, 10, kind, body, answer, previous, hash FROM reticent.entry WHERE number = 9",
        "INSERT INTO reticent.entry VALUES ('survey', 0, 'note', '{}', NULL, '', '')",
        "INSERT INTO reticent.entry VALUES ('survey', 10, 'note', '{}', NULL, '', '')",
        "UPDATE reticent.entry SET number = CASE number WHEN 2 THEN 106 ELSE 102 END WHERE number IN (2, 6)",
        "UPDATE reticent.entry SET answer = NULL WHERE number = 3",
        "UPDATE reticent.entry SET answer = 'x' WHERE number = 2",
    ],
)
def test_rows_deleted_added_or_moved_are_noticed(kept, statement):
    # covers L09
    edit(statement)
    assert is_noticed(kept)
    put_back()
    assert not is_noticed(kept)


def test_a_row_that_breaks_the_rules_is_noticed_though_its_hash_fits(kept, ledger_and_receipts):
    """Whoever may insert and knows the hash still cannot charge over budget, answer twice or lower the budget."""
    # covers L09
    last = list(ledger_and_receipts[0].entries())[-1]
    forged: list[tuple[str, dict[str, Any]]] = [
        ("reserve", {"release": "x", "plan": "p", "amount": "100", "claim": {}}),
        ("reserve", {"release": "r1", "plan": "p", "amount": "1", "claim": {}}),
        ("commit", {"release": "r1", "holder": "", "answer": "00"}),
        ("resume", {"release": "r2"}),
        ("note", {"text": "lower", "budget": "1"}),
        ("refund", {"release": "r1"}),
    ]
    for kind, body in forged:
        text = canonical(body)
        own = entry_hash(last.number + 1, kind, text, last.hash)
        row = ("survey", last.number + 1, kind, text, b"0" if kind == "commit" else None, last.hash, own)
        edit("INSERT INTO reticent.entry VALUES (%s, %s, %s, %s, %s, %s, %s)", *row)
        assert is_noticed(kept), (kind, body)
        put_back()


def test_a_server_that_lost_entries_is_refused_and_so_is_any_later_receipt(served):
    """As after a failover to a replica that was behind, or a restored backup. Without a head nobody could tell."""
    # covers L10
    ledger, _ = full(Path(served))
    old = head_of(served).read_bytes()
    later = release(ledger, "r4").receipt.as_dict()
    edit("DELETE FROM reticent.entry WHERE number > 9")
    with pytest.raises(LedgerError, match="old or cut copy"):
        reserve(ledger, "r5")
    assert is_noticed(served)
    head_of(served).write_bytes(old)
    assert not is_noticed(served)  # the naive check stops here
    assert is_noticed(served, [later])


def test_a_lost_ledger_is_not_started_anew(served):
    """By its head on this machine, under its own name and under another."""
    # covers L11
    release(make(Path(served)))
    edit("TRUNCATE reticent.entry")
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(Path(served))
    with pytest.raises(LedgerError, match="existed before"):
        make(Path(served))
    with pytest.raises(LedgerError, match="lost its ledger"):
        make(Path("postgres:ledgers/other"))


def test_a_second_ledger_of_the_same_data_set_or_file_is_refused(served, folder):
    """Wherever its head is: the server itself knows the others."""
    # covers L11 L13
    rows = (folder / "rows.csv", "")
    rows[0].write_text("a\n1\n")
    reserve(make(Path(served)), files=[rows])
    shutil.rmtree(folder / "state")
    with pytest.raises(LedgerError, match="has a ledger here, postgres:ledgers/survey"):
        make(Path("postgres:ledgers/other"))
    for marker in folder.glob(".*.charged"):
        marker.unlink()
    with pytest.raises(LedgerError, match="same file of rows belongs to postgres:ledgers/survey"):
        make(Path("postgres:ledgers/other"), dataset="other survey", files=[rows])
    made = make(Path("postgres:ledgers/other"), separate_budget=True, files=[rows])
    assert reserve(made, "r9").receipt.as_dict()["separate_budget"] is True


def test_two_machines_have_one_budget(served, folder, monkeypatch):
    """The second joins on the curator's word; each remembers what it saw last, and both charges count."""
    # covers L07 L10
    here = make(Path(served), budget="1")
    receipt = release(here, "r1", "0.5").receipt.as_dict()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "second"))
    with pytest.raises(LedgerError, match="reticent ledger join postgres:ledgers/survey"):
        Ledger.open(Path(served))
    with pytest.raises(LedgerError, match="does not match"):
        Ledger.join(Path(served), receipts=[{**receipt, "charged": "0.1"}])
    assert not head_of(served).exists()
    there = Ledger.join(Path(served), receipts=[receipt])
    release(there, "r2", "0.5")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    with pytest.raises(ReticentError, match="0 of 1 is left"):
        reserve(Ledger.open(Path(served)), "r3", "0.1")
    assert json.loads(head_of(served).read_text())["entry"] == 7


def test_a_file_is_not_joined(folder):
    make(folder / "a.db")
    with pytest.raises(PlanError, match="beside it"):
        Ledger.join(folder / "a.db")


@pytest.fixture
def proxy(served: str, folder: Path) -> Iterator[Proxy]:
    made = Proxy(server(), folder / "p", f"proxy{time.monotonic_ns()}")
    yield made
    made.close()


def publish(place: str, out: Path, log: list[Any]) -> None:
    """A release in the right order."""
    ledger = Ledger.open(Path(place))
    held = reserve(ledger)
    log.append("data are opened")
    ledger.commit(held, ANSWER)
    log.append("published")
    files.write_new(out, ANSWER, private=False)
    ledger.publish("r1", FILES)


def is_in_order(log: list[Any]) -> bool:
    """Whether what was written before the data are opened, and before the answer is out, was committed by then."""
    for moment in ("data are opened", "published"):
        before = log[: log.index(moment)]
        if "written" not in before or "committed" not in before[_last(before, "written") :]:
            return False
    return (
        log.index("published")
        > _last(log[: log.index("published")], "written")
        > log.index("data are opened")
    )


def _last(log: list[Any], word: str) -> int:
    return max(place for place, each in enumerate(log) if each == word)


def test_a_charge_is_committed_before_the_data_and_an_answer_before_it_is_out(proxy, folder):
    """As the server's own answers say, which the proxy records. What is published first, the naive twin, is seen."""
    # covers L01 L02
    ledger = make(Path(proxy.place))
    proxy.log.clear()
    publish(proxy.place, folder / "release.json", proxy.log)
    assert is_in_order(proxy.log)
    proxy.log.clear()
    held = reserve(ledger, "r2")
    proxy.log += ["data are opened", "published"]
    ledger.commit(held, ANSWER)
    assert not is_in_order(proxy.log)


@pytest.mark.parametrize(("fate", "added"), [(CUT, False), (DEAF, True)])
def test_a_connection_lost_while_it_commits_is_asked_again(proxy, fate, added):
    """What the server has is charged, once; what it has not can be tried again. Nobody is charged twice."""
    # covers L03 L06
    ledger, seen = make(Path(proxy.place), budget="1"), list[bytes]()

    def act(_number: int, data: bytes) -> str:
        """The first COMMIT behind a row that is written."""
        seen.append(data)
        first = sum(WRITE in each for each in seen) == 1 and COMMIT in data
        if first:
            seen.append(WRITE)
        return fate if first else PASS

    proxy.act = act
    if added:
        assert reserve(ledger).fresh
    else:
        with pytest.raises(ReticentError, match="nothing was added; try again") as refused:
            reserve(ledger)
        assert refused.value.status == 4
    proxy.act = lambda _number, _data: PASS
    assert ledger.spent == (1 if added else 0)
    if not added:
        reserve(ledger)
    ledger.verify()
    assert ledger.spent == 1


def finish(place: str, out: Path) -> None:
    """What a curator does after a crash: release again, or resume."""
    ledger = Ledger.open(Path(place))
    held = reserve(ledger) if ledger.state("r1") in ("none", "published") else ledger.resume("r1", "p")
    if held.fresh:
        ledger.commit(held, ANSWER)
    if not files.holds(out, ANSWER):
        files.write_new(out, ANSWER, private=False)
    ledger.publish("r1", FILES)


@pytest.mark.parametrize("how", ["lost", "killed"])
def test_cut_at_any_message_nothing_is_lost(proxy, folder, how):
    """The connection lost, or the curator killed, at messages of one release: 6 here, all with RETICENT_FAULTS=all."""
    # covers L03 L04 L05 B112
    edit("TRUNCATE reticent.entry")
    make(Path(proxy.place), budget="1")
    proxy.count = 0
    publish(proxy.place, folder / "whole.json", [])
    most = proxy.count
    points = list(range(most))
    chosen = points if os.environ.get("RETICENT_FAULTS") == "all" else random.Random(7).sample(points, 6)
    assert most > 40
    for point in chosen:
        edit("TRUNCATE reticent.entry")
        shutil.rmtree(folder / "state")
        proxy.act = lambda _number, _data: PASS
        make(Path(proxy.place), budget="1")
        out, child, proxy.count = folder / f"{point}.json", list[int](), 0

        def act(number: int, _data: bytes, point: int = point, child: list[int] = child) -> str:
            if number == point and how == "killed":
                while not child:
                    time.sleep(0.001)
                os.kill(child[0], signal.SIGKILL)
            return CUT if number == point else PASS

        proxy.act = act
        wait = in_child(lambda out=out: publish(proxy.place, out, []), started=child.append)
        status = wait()
        assert status in ((0, 4) if how == "lost" else (-signal.SIGKILL,)), point
        proxy.act = lambda _number, _data: PASS
        ledger = Ledger.open(Path(proxy.place))
        ledger.verify()
        if out.exists():
            assert ledger.spent == 1 and ledger.answer("r1") == ANSWER
        finish(proxy.place, out)
        ledger.verify()
        assert ledger.spent == 1 and ledger.state("r1") == "published"
    print(f"{how} at messages of one release on a server: {len(chosen)} of {most}; lost or doubled: 0")


def test_a_server_that_stops_is_told_in_plain_words_and_keeps_what_it_had(served):
    # covers L03 L04 B109
    ledger = make(Path(served))
    held = reserve(ledger)
    server().stop()
    try:
        with pytest.raises(ReticentError) as told:
            ledger.commit(held, b"answer")
        assert told.value.status == 4 and told.value.__cause__ is None
        assert str(server().folder) not in str(told.value) and CURATOR not in str(told.value)
    finally:
        server().start()
    assert ledger.spent == 1 and ledger.state("r1") == "reserved"
    ledger.commit(ledger.resume("r1", "p"), b"answer")
    ledger.verify()


def holding(ready: int) -> None:
    """Sit in the writer's lock, with a row written and not committed."""
    with store_at("postgres:ledgers/survey", 5).writing() as held:
        held.insert(next(iter(_entries())), "{}", None)
        os.write(ready, b"x")
        time.sleep(60)


def _entries() -> list[Any]:
    from reticent.privacy.ledger.entries import Entry

    return [Entry(number=99, kind="note", body={}, previous="", hash="")]


def with_writer() -> int:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            holding(there)
        finally:
            os._exit(1)
    os.read(here, 1)
    os.close(here), os.close(there)
    return child


def test_a_lock_held_too_long_is_refused_and_a_writer_that_died_blocks_nobody(served):
    """Readers are not held up. Killed, its transaction ends and leaves no row."""
    # covers L15 B108
    make(Path(served))
    child = with_writer()
    try:
        ledger = Ledger.open(Path(served), timeout=0.3)
        assert ledger.spent == 0
        with pytest.raises(LedgerError, match=r"in use by another run for 0.3 seconds"):
            reserve(ledger)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    ledger = Ledger.open(Path(served), timeout=5)
    release(ledger)
    ledger.verify()


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (f"GRANT UPDATE (body) ON reticent.entry TO {CURATOR}", f"REVOKE UPDATE (body) ON reticent.entry FROM {CURATOR}", "can change"),
        (f"GRANT DELETE ON reticent.entry TO {CURATOR}", f"REVOKE DELETE ON reticent.entry FROM {CURATOR}", "can change"),
        (f"ALTER ROLE {CURATOR} SUPERUSER", f"ALTER ROLE {CURATOR} NOSUPERUSER", "can change"),
        (f"REVOKE INSERT ON reticent.entry FROM {CURATOR}", f"GRANT INSERT ON reticent.entry TO {CURATOR}", "may not use"),
        ("ALTER TABLE reticent.entry RENAME TO away", "ALTER TABLE reticent.away RENAME TO entry", "no table"),
        ("ALTER TABLE reticent.entry SET UNLOGGED", "ALTER TABLE reticent.entry SET LOGGED", "not as it is to be made"),
        ("ALTER TABLE reticent.entry ADD more text", "ALTER TABLE reticent.entry DROP more", "not as it is to be made"),
        ("ALTER TABLE reticent.entry DROP CONSTRAINT entry_pkey", "ALTER TABLE reticent.entry ADD PRIMARY KEY (ledger, number)", "not as it is to be made"),
        ("CREATE RULE quiet AS ON INSERT TO reticent.entry DO INSTEAD NOTHING", "DROP RULE quiet ON reticent.entry", "not as it is to be made"),
        ("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM RESET fsync", "can lose"),
        ("ALTER SYSTEM SET full_page_writes = off", "ALTER SYSTEM RESET full_page_writes", "can lose"),
    ],
)  # fmt: skip
def test_a_server_or_role_that_a_charge_cannot_rest_on_is_refused(served, before, after, word):
    # covers L01 L09 B107
    ledger = make(Path(served))
    edit(before)
    edit("SELECT pg_reload_conf()")
    try:
        deadline = time.monotonic() + 10  # a reloaded setting takes a moment
        while "SYSTEM" in before and shown(before.split()[3]) == "on" and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(LedgerError, match=word):
            reserve(ledger)
    finally:
        edit(after)
        edit("SELECT pg_reload_conf()")
        while "SYSTEM" in before and shown(before.split()[3]) == "off" and time.monotonic() < deadline:
            time.sleep(0.05)
    assert ledger.spent == 0 and reserve(ledger).fresh


def shown(setting: str) -> str:
    with server().connect(BOSS) as connection:
        return connection.execute(f"SHOW {setting}").fetchone()[0]


def test_what_a_role_asks_of_its_own_commits_is_overruled(served):
    """A role that says synchronous_commit = off still waits until its charge is on disk."""
    # covers L01
    edit(f"ALTER ROLE {CURATOR} SET synchronous_commit = off")
    try:
        ledger = make(Path(served))
        with store_at(served, 5).writing() as held:
            found = held._connection.execute("SHOW synchronous_commit").fetchone()  # type: ignore[attr-defined]
        assert found == ("on",) and reserve(ledger).fresh
    finally:
        edit(f"ALTER ROLE {CURATOR} RESET synchronous_commit")


def test_entries_of_a_file_are_those_of_a_server(served, folder):
    """A ledger of format 1, as the first version wrote it into a file, verifies here and takes a new release; a newer format is refused."""
    # covers L17 B122
    with closing(sqlite3.connect(FIXTURES / "ledger-1.db")) as connection:
        rows = connection.execute("SELECT * FROM entry ORDER BY number").fetchall()
    for row in rows:
        edit("INSERT INTO reticent.entry VALUES ('survey', %s, %s, %s, %s, %s, %s)", *row)
    ledger = Ledger.join(Path(served))
    assert ledger.answer("r2") == b"second" and reserve(ledger, "r1", "0.25").receipt.left_after == "9.75"
    release(ledger, "r4")
    ledger.verify()
    edit("UPDATE reticent.entry SET body = replace(body, '\"format\":1', '\"format\":2') WHERE number = 1")
    with pytest.raises(LedgerError, match="ledger format 2"):
        Ledger.open(Path(served))


def test_no_refused_answer_and_no_key_is_in_the_servers_log_or_files(served):
    """Bodies and answers go over by COPY, after the rules have admitted them. A value in a statement, the naive twin, is logged."""
    # covers L18
    ledger, marker = make(Path(served), change="one respondent's answers replaced"), "MARKER-7f3a"
    piece = ChargedPiece(partition="p", number=1, parts=("10", "10"), draw="fixed sizes", binds="cd" * 32)
    held = reserve(ledger, change="one respondent's answers replaced", piece=piece)
    ledger.commit(held, b"noisy")
    with pytest.raises(LedgerError):
        ledger.commit(held, marker.encode() * 1000)
    key, log = ledger.key("p"), server().log
    assert key not in log and "noisy" not in log and "COPY reticent.entry" in log
    edit("CHECKPOINT")
    found = [
        path for path in server().data.rglob("*") if path.is_file() and marker.encode() in path.read_bytes()
    ]
    assert found == []
    edit(f"SELECT '{marker}'")
    assert marker in server().log


def test_the_commands_take_a_ledger_of_a_server(served, tmp_path, monkeypatch):
    """Open by the plan, release, see, verify, and join from another machine, which sees the same sum."""
    # covers L02 L06 L13
    house = House(tmp_path)
    house.ledger.unlink(), house.ledger.with_name("town.ledger.db.head").unlink()
    house.edit("town.ledger.db", "postgres:ledgers/town")
    place = "postgres:ledgers/town"
    assert house.release().status == 5 and not list(house.out.glob("*.json"))
    opened = run("ledger", "open", "--plan", str(house.plan), "--epsilon", "100")
    assert opened.status == 0 and f"opened {place} for town-2026" in opened.out
    assert house.release().status == 0 and house.release().status == 0  # the second gives the same bytes
    receipt = json.loads((house.out / "town-1.json").read_text())["receipt"]
    assert run("ledger", "verify", place, "--receipts", str(house.out)).status == 0
    other = run("ledger", "open", "--plan", str(house.plan), place.replace("town", "two"), "--epsilon", "100")
    assert other.status == 5 and "ledger" in other.err
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "second"))
    refused = run("ledger", "spent", place)
    assert refused.status == 5 and f"`reticent ledger join {place}`" in refused.err
    joined = run("ledger", "join", place, "--receipts", str(house.out))
    assert joined.status == 0 and "1 receipt agrees" in joined.out
    assert f"{receipt['charged']} spent of 100" in run("ledger", "spent", place).out
