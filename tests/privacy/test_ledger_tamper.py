"""A ledger that was changed, cut, rolled back or lost says so."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reticent.errors import LedgerError
from reticent.privacy.ledger import Ledger
from reticent.privacy.ledger.book import LedgerBook
from reticent.privacy.ledger.entries import START, canonical, entry_hash
from reticent.privacy.ledger.sqlite import head_path
from tests.privacy.ledgers import die, full, in_child, make, release, reserve

COLUMNS = ("number", "kind", "body", "answer", "previous", "hash")


def edit(path: Path, *statements: str) -> None:
    """What another program may do to the file."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def is_noticed(path: Path, receipts=()) -> bool:
    """Whether opening or verifying fails, in one plain sentence of ours."""
    try:
        Ledger.open(path, timeout=0.5).verify(receipts)
    except LedgerError as error:
        text = str(error)
        assert "Traceback" not in text and "\n" not in text and str(path.parent) not in text
        return True
    return False


@pytest.fixture
def ledger_and_receipts(folder):
    return full(folder / "a.db")


@pytest.fixture
def path(folder, ledger_and_receipts) -> Path:
    return folder / "a.db"


def naive_sum(path: Path) -> str:
    """The naive twin: a table of amounts and no chain. It adds up whatever it finds."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT body FROM entry WHERE kind = 'reserve'").fetchall()
    return str(sum(float(json.loads(body)["amount"]) for (body,) in rows))


def test_an_untouched_ledger_verifies(path, ledger_and_receipts):
    ledger, receipts = ledger_and_receipts
    ledger.verify(receipts)
    assert not is_noticed(path, receipts)


def test_every_column_of_every_row_is_covered(path, folder):
    """Each set to 0 and to null-like text, head file left alone."""
    # covers L09
    numbers = [entry.number for entry in Ledger.open(path).entries()]
    kept = path.read_bytes()
    missed = []
    for number in numbers:
        for column in COLUMNS:
            path.write_bytes(kept)
            edit(path, f"UPDATE entry SET {column} = 0 WHERE number = {number}")
            if not is_noticed(path):
                missed.append((number, column))
    assert len(numbers) == 9 and missed == []


def test_a_smaller_amount_is_noticed_and_the_naive_sum_believes_it(path):
    # covers L09
    before = naive_sum(path)
    edit(path, """UPDATE entry SET body = replace(body, '"amount":"0.25"', '"amount":"0.01"')""")
    assert is_noticed(path) and naive_sum(path) < before


@pytest.mark.parametrize(
    "change",
    [
        """body = replace(body, '"amount":"0.25"', '"amount":"0.01"')""",
        "previous = hash",
        "hash = previous",
    ],
)
def test_a_changed_entry_stops_the_next_charge_and_not_only_verify(path, change):
    """Who charges reads the chain through: a ledger that was open before the change, and one opened after it."""
    # covers L09
    ledger = Ledger.open(path)
    edit(path, f"UPDATE entry SET {change} WHERE number = 2")
    with pytest.raises(LedgerError, match="chain of hashes"):
        reserve(ledger, "another")
    with pytest.raises(LedgerError, match="chain of hashes"):
        Ledger.open(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry",
        "DELETE FROM entry WHERE number = 1",
        "DELETE FROM entry WHERE number = 5",
        "DELETE FROM entry WHERE number = (SELECT max(number) FROM entry)",
        "UPDATE entry SET number = -number",
        "INSERT INTO entry SELECT number + 1, kind, body, answer, previous, hash FROM entry ORDER BY number DESC LIMIT 1",
        "INSERT INTO entry SELECT number + 1, kind, body, answer, hash, hash FROM entry ORDER BY number DESC LIMIT 1",
        "INSERT INTO entry VALUES (0, 'note', '{}', NULL, '', '')",
        "INSERT INTO entry VALUES (10, 'note', '{}', NULL, '', '')",
        "CREATE TRIGGER quiet AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE number = new.number; END",
        "CREATE TABLE other (x)",
        "CREATE INDEX other ON entry (kind)",
        "DROP TABLE entry",
        "ALTER TABLE entry ADD COLUMN more",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 0",
        "PRAGMA journal_mode = WAL",
        "VACUUM",
    ],
)
def test_rows_deleted_added_or_moved_are_noticed(path, statement):
    # covers L09
    edit(path, statement)
    assert is_noticed(path)


def test_swapped_rows_are_noticed(path):
    # covers L09
    edit(
        path,
        "UPDATE entry SET number = 100 WHERE number = 2",
        "UPDATE entry SET number = 2 WHERE number = 6",
        "UPDATE entry SET number = 6 WHERE number = 100",
    )
    assert is_noticed(path)


def test_a_row_that_breaks_the_rules_is_noticed_though_its_hash_fits(path):
    """A forger who knows the hash still cannot charge over budget, answer twice or lower the budget."""
    last = list(Ledger.open(path).entries())[-1]
    kept = path.read_bytes()
    forged = [
        ("reserve", {"release": "x", "plan": "p", "amount": "100", "claim": {}}),
        ("reserve", {"release": "x", "plan": "p", "amount": "-1", "claim": {}}),
        ("reserve", {"release": "r1", "plan": "p", "amount": "1", "claim": {}}),
        ("commit", {"release": "r1", "holder": "", "answer": "00"}),
        ("publish", {"release": "r3", "files": {}}),
        ("resume", {"release": "r2"}),
        ("note", {"text": "", "budget": "1000"}),
        ("note", {"text": "lower", "budget": "1"}),
        ("open", {"ledger": "x", "dataset": "x", "change": "x", "unit": "epsilon", "budget": "9"}),
        ("note", []),
        ("refund", {"release": "r1"}),
    ]
    for kind, body in forged:
        path.write_bytes(kept)
        text = canonical(body)
        answer = "x'00'" if kind == "commit" else "NULL"
        own = entry_hash(last.number + 1, kind, text, last.hash)
        edit(
            path,
            f"INSERT INTO entry VALUES ({last.number + 1}, '{kind}', '{text}', {answer}, '{last.hash}', '{own}')",
        )
        assert is_noticed(path), (kind, body)


def test_every_flipped_byte_is_noticed(path):
    """200 places drawn once and for all, all over the file, unused space too."""
    # covers L09
    kept = path.read_bytes()
    places = (
        random.Random(1).sample(range(len(kept)), 170) + list(range(0, 100, 4))[:15] + list(range(18, 33))
    )
    missed = []
    for place in places:
        changed = bytearray(kept)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        for beside in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        if not is_noticed(path):
            missed.append(place)
    print(f"flipped bytes: {len(places)}; not noticed: {len(missed)}")
    assert len(places) == 200 and missed == []


@pytest.mark.parametrize("length", [0, 1, 100, 4096, 5000, -1])
def test_a_cut_file_is_noticed(path, length):
    # covers L09
    path.write_bytes(path.read_bytes()[:length])
    assert is_noticed(path)


@pytest.mark.parametrize("more", [b"x", b"\0" * 4096])
def test_a_longer_file_is_noticed(path, more):
    # covers L09
    path.write_bytes(path.read_bytes() + more)
    assert is_noticed(path)


def test_another_ledger_in_its_place_is_noticed(path, folder):
    # covers L09
    (folder / "other").mkdir()
    full(folder / "other" / "b.db")
    shutil.copy(folder / "other" / "b.db", path)
    assert is_noticed(path)


def test_another_ledger_with_its_head_is_noticed_by_any_receipt(path, folder, ledger_and_receipts):
    # covers L09 L10
    (folder / "other").mkdir()
    full(folder / "other" / "b.db")
    shutil.copy(folder / "other" / "b.db", path)
    shutil.copy(head_path(folder / "other" / "b.db"), head_path(path))
    for receipt in ledger_and_receipts[1]:
        assert is_noticed(path, [receipt])


def test_an_old_copy_stops_the_next_release(path):
    """The head file is ahead, so nothing is charged."""
    # covers L10
    ledger = Ledger.open(path)
    old = path.read_bytes()
    release(ledger, "r4")
    path.write_bytes(old)
    with pytest.raises(LedgerError, match="old or cut copy"):
        reserve(ledger, "r5")
    assert is_noticed(path)


def test_an_old_copy_with_its_head_is_noticed_by_any_later_receipt(path):
    # covers L10
    ledger = Ledger.open(path)
    old, old_head = path.read_bytes(), head_path(path).read_bytes()
    later = [release(ledger, name).receipt.as_dict() for name in ("r4", "r5")]
    path.write_bytes(old)
    head_path(path).write_bytes(old_head)
    assert not is_noticed(path)  # nobody could tell from the files alone: the naive check stops here
    assert all(is_noticed(path, [receipt]) for receipt in later)
    release(Ledger.open(path), "r4")  # and a second history does not fit the old receipts either
    assert all(is_noticed(path, [receipt]) for receipt in later)


def test_a_changed_receipt_is_noticed(path, ledger_and_receipts):
    # covers L10
    for receipt in ledger_and_receipts[1]:
        for name in receipt:
            assert is_noticed(path, [{**receipt, name: 0}]), name
            assert is_noticed(path, [{each: value for each, value in receipt.items() if each != name}])
        assert is_noticed(path, [{**receipt, "more": 1}])


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b'{"entry": 1}'])
def test_a_damaged_head_is_noticed(path, text):
    head_path(path).write_bytes(text)
    assert is_noticed(path)


def test_a_head_of_another_number_or_hash_is_noticed(path):
    head = json.loads(head_path(path).read_text())
    for change in (
        {"entry": 0},
        {"entry": -1},
        {"entry": 99},
        {"entry": 3},
        {"hash": START},
        {"ledger": "x"},
        {"entry": "9"},
    ):
        head_path(path).write_text(json.dumps({**head, **change}))
        assert is_noticed(path), change


def test_a_lost_head_is_noticed(path):
    # covers L10
    head_path(path).unlink()
    assert is_noticed(path)


def test_a_head_that_a_crash_left_behind_is_brought_up(path):
    # covers L03
    ledger = Ledger.open(path)
    behind = head_path(path).read_bytes()
    release(ledger, "r4")
    head_path(path).write_bytes(behind)
    Ledger.open(path).verify()
    assert json.loads(head_path(path).read_text())["entry"] == 12


def test_a_ledger_cut_off_while_it_was_opened_gets_its_head_before_its_first_charge(folder):
    """Else a crash after that charge would leave a ledger without a head, which is refused."""
    # covers L03
    ledger = make(folder / "b.db")
    head_path(folder / "b.db").unlink()
    in_child(lambda: (setattr(LedgerBook, "mark", lambda _: die()), reserve(ledger)))()
    Ledger.open(folder / "b.db").verify()
    assert ledger.spent == 1


def test_a_lost_ledger_is_not_started_anew(path, folder, ledger_and_receipts):
    """By its head file, or by receipts in the output folder."""
    # covers L11
    path.unlink()
    with pytest.raises(LedgerError, match="existed before"):
        make(path)
    head_path(path).unlink()
    (folder / "out" / "2026").mkdir(parents=True)
    found = folder / "out" / "2026" / "release.json"
    found.write_text(json.dumps({"asks": [1], "receipt": ledger_and_receipts[1][0]}))
    with pytest.raises(LedgerError, match="receipts"):
        make(path, outputs=folder / "out")
    assert not path.exists()
    make(folder / "other.db", dataset="another survey", outputs=folder / "out")


def test_files_that_are_not_ours_do_not_stop_a_new_ledger(folder):
    # covers L11
    for name, data in {
        "a.json": b"{",
        "b.json": b"[" * 10_000,
        "c.json": b"\xff",
        "d.json": b'{"ledger": 1}',
    }.items():
        (folder / name).write_bytes(data)
    (folder / "e.json").mkdir()
    make(folder / "a.db", outputs=folder)
