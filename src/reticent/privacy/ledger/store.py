"""The SQLite file under a ledger: rows in order, one writer at a time, each entry on disk before it counts.

A connection lives for one step only. So a ledger may be used from any thread and after a fork, and nobody
holds a lock while rows are read. The file is never opened except by SQLite: closing any other descriptor of
it would drop the locks of this process.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError
from reticent.privacy.ledger.chain import START, digest, opened
from reticent.privacy.ledger.entries import Entry
from reticent.privacy.ledger.faults import plain_faults
from reticent.privacy.ledger.history import History

APPLICATION = 0x72657469  # "reti"
FORMAT = 1
TABLE = (
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, "
    "answer BLOB, previous TEXT NOT NULL, hash TEXT NOT NULL)"
)
_ROWS = "SELECT number, kind, body, answer IS NOT NULL, previous, hash FROM entry ORDER BY number"


class Store:
    """One ledger file and how long to wait for its lock."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view; writers wait for its end, so it is kept short."""
        with self._step("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The only writer from here to the end; what it added is then on disk, or nothing is."""
        with self._step("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _step(self, begin: str) -> Iterator[sqlite3.Connection]:
        with plain_faults(self.path.name, self.timeout), closing(self._connect()) as connection:
            connection.execute(begin)
            try:
                _check_kind(connection, self.path.name)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        return connect(self.path, self.timeout)


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that makes no file, keeps no freed text, and returns from COMMIT when all is on disk."""
    connection = sqlite3.connect(
        path.as_uri() + "?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in (
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "temp_store=MEMORY",
            "secure_delete=ON",
            "synchronous=EXTRA",
        ):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_kind(connection: sqlite3.Connection, name: str) -> None:
    """Refuse another program's file, a newer format, and any table, index or trigger that is not ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if application != APPLICATION:
        raise LedgerError(f"{name} is another program's file; give the path of a ledger.", field="ledger")
    if version != FORMAT:
        raise LedgerError(
            f"{name} has ledger format {version}, this version of reticent reads format {FORMAT}; "
            "use the version that wrote it, or a newer one.",
            field="ledger",
        )
    if journal != "delete" or connection.execute("SELECT sql FROM sqlite_master").fetchall() != [(TABLE,)]:
        raise LedgerError(
            f"{name} was changed by another program; put back a copy of the ledger and its head.",
            field="ledger",
        )


def build(path: Path) -> None:
    """Make an empty ledger file at a temporary path, readable by its owner only."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.chmod(path, 0o600)
    with closing(connect(path, 1.0)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute(TABLE)


def entries(connection: sqlite3.Connection) -> Iterator[Entry]:
    """Every entry in order, each checked against the hash of the one before."""
    previous = START
    for number, row in enumerate(connection.execute(_ROWS), start=1):
        entry = opened(row, number, previous)
        previous = entry.hash
        yield entry


def replayed(connection: sqlite3.Connection) -> History:
    """What all entries add up to."""
    history = History()
    for entry in entries(connection):
        history.add(entry)
    history.known()
    return history


def insert(connection: sqlite3.Connection, entry: Entry, body: str, answer: bytes | None) -> None:
    """Add one row."""
    row = (entry.number, entry.kind, body, answer, entry.previous, entry.hash)
    connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)


def answer_at(connection: sqlite3.Connection, number: int, expected: str) -> bytes:
    """The bytes stored with a commit entry, if they are those whose digest the entry holds."""
    row: tuple[Any] | None = connection.execute(
        "SELECT answer FROM entry WHERE number = ?", (number,)
    ).fetchone()
    found = row[0] if row else None
    if not isinstance(found, bytes) or digest(found) != expected:
        raise LedgerError(f"the answer at entry {number} is not the one that was written.", field="ledger")
    return found


def file_digest(connection: sqlite3.Connection) -> str:
    """The digest of the whole file as SQLite sees it; empty where this SQLite cannot say."""
    serialize = getattr(connection, "serialize", None)
    return digest(serialize()) if serialize is not None else ""
