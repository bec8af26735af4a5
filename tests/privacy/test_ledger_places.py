"""Where a ledger may lie, and the formats it may have."""

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from reticent.errors import LedgerError
from reticent.privacy.ledger import Ledger
from reticent.privacy.ledger import sqlite as place
from reticent.privacy.ledger.sqlite import head_path
from tests.privacy.ledgers import make, release, reserve

FIXTURES = Path(__file__).parents[1] / "fixtures"


def folder_instead(path):
    path.mkdir()


def text(path):
    path.write_text("dataset,epsilon\nsurvey,1\n" * 100)


def other_program(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE entry (number, kind, body, answer, previous, hash)")


def newer(path):
    make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")


def read_only(path):
    make(path)
    path.chmod(0o400)


def empty(path):
    path.touch()


def missing(path):
    pass


def dangling_link(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("prepare", "word"),
    [
        (folder_instead, "not a file"),
        (text, "no ledger"),
        (other_program, "another program"),
        (newer, "format 2"),
        (read_only, "read-only"),
        (empty, "empty"),
        (missing, "there is no ledger"),
        (dangling_link, "there is no ledger"),
    ],
)
def test_what_is_no_ledger_in_use_is_refused_by_name(folder, prepare, word):
    # covers B107 B122 L17
    path = folder / "a.db"
    prepare(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=word) as refused:
        Ledger.open(path)
    assert refused.value.status == 5 and str(folder) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert before is None or path.read_bytes() == before


def test_a_folder_that_is_missing(folder):
    # covers B107
    for attempt in (lambda: Ledger.open(folder / "no" / "a.db"), lambda: make(folder / "no" / "a.db")):
        with pytest.raises(LedgerError):
            attempt()


def test_a_ledger_is_never_started_over_something(folder):
    for prepare in (folder_instead, text, other_program, make, dangling_link):
        path = folder / prepare.__name__
        prepare(path)
        with pytest.raises(LedgerError, match="exist"):
            make(path)


def test_only_the_owner_can_read_it(folder):
    """With an open umask too, and the head file as well."""
    # covers B114
    before = os.umask(0)
    try:
        release(make(folder / "a.db"))
    finally:
        os.umask(before)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert modes == {"a.db": 0o600, "a.db.head": 0o600}


def test_it_may_be_reached_through_a_link(folder):
    """File and head stay together where the file is."""
    make(folder / "a.db")
    (folder / "link.db").symlink_to("a.db")
    release(Ledger.open(folder / "link.db"))
    Ledger.open(folder / "a.db").verify()
    assert not head_path(folder / "link.db").exists()


@pytest.mark.parametrize("name", ["a b.db", "a%20b.db", "a?mode=memory.db", "a#b.db", "é.db", "'\".db"])
def test_odd_file_names_are_only_names(folder, name):
    release(make(folder / name))
    assert {each.name for each in folder.iterdir()} == {name, name + ".head"}


MOUNTS = r"""
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 27 0:40 / /home rw - nfs4 server:/home rw
32 31 0:41 / /home/local rw shared:1 - xfs /dev/sdb rw
33 27 0:42 / /mnt/my\040share rw - cifs //server/share rw
34 27 0:43 / /mnt/ssh rw - fuse.sshfs host: rw
35 27 0:44 / /mnt/crypt rw - fuse.gocryptfs secret rw
36 27 0:45 / /mnt/over rw - ext4 /dev/sdc rw
37 36 0:46 / /mnt/over rw - nfs server:/over rw
garbage
"""


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("/srv", "ext4"),
        ("/home/ann", "nfs4"),
        ("/home/local/ann", "xfs"),
        ("/homework", "ext4"),
        ("/mnt/my share/x", "cifs"),
        ("/mnt/ssh", "fuse.sshfs"),
        ("/mnt/crypt", "fuse.gocryptfs"),
        ("/mnt/over", "nfs"),
    ],
)
def test_the_disk_under_a_folder_is_found(where, kind):
    assert place.kind_of_disk(Path(where), MOUNTS) == kind


def test_a_network_disk_is_refused_unless_told_otherwise(folder, monkeypatch):
    # covers L15
    make(folder / "a.db")
    monkeypatch.setattr(place, "kind_of_disk", lambda *_: "nfs4")
    with pytest.raises(LedgerError, match="network disk"):
        Ledger.open(folder / "a.db")
    with pytest.raises(LedgerError, match="network disk"):
        make(folder / "b.db", dataset="another survey")
    assert not (folder / "b.db").exists()
    Ledger.open(folder / "a.db", allow_network=True)


def test_a_ledger_of_format_1_still_verifies(folder):
    """Written once by the first version and kept; it verifies with its receipt and takes a new release."""
    # covers L17 B122
    for name in ("ledger-1.db", "ledger-1.db.head"):
        shutil.copy(FIXTURES / name, folder / name)
        (folder / name).chmod(0o600)
    ledger = Ledger.open(folder / "ledger-1.db")
    receipt = next(each for each in ledger.entries() if each.kind == "reserve")
    ledger.verify()
    assert [each.kind for each in ledger.entries()] == [
        "open", "reserve", "commit", "publish", "reserve", "note", "resume", "commit", "reserve",
    ]  # fmt: skip
    assert receipt.body["amount"] == "0.25" and ledger.spent == Fraction("2.25")
    assert ledger.answer("r2") == b"second"
    assert reserve(ledger, "r1", "0.25").receipt.left_after == "9.75"
    release(ledger, "r4")
    ledger.verify()
