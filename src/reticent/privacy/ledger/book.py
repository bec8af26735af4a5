"""The file and its head as one thing: read it, add to it, start it. What may be added is decided elsewhere."""

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reticent.files import flush_folder
from reticent.privacy.ledger import audit, store
from reticent.privacy.ledger.chain import START, sealed
from reticent.privacy.ledger.entries import Entry
from reticent.privacy.ledger.faults import BusyError, plain_faults
from reticent.privacy.ledger.head import Head, check_head, read_head, write_head
from reticent.privacy.ledger.history import History


class Page:
    """What one writer sees and adds while it alone may write."""

    def __init__(self, connection: sqlite3.Connection, history: History) -> None:
        self._connection = connection
        self.history = history
        self.has_more = False

    def add(self, kind: str, body: Mapping[str, Any], answer: bytes | None = None) -> None:
        """Append one entry; the rules that admit it are those that will read it."""
        entry, text = sealed(self.history.number + 1, kind, body, self.history.hash)
        self.history.add(entry)
        store.insert(self._connection, entry, text, answer)
        self.has_more = True

    def answer(self, release_id: str) -> bytes | None:
        """The bytes that were committed for a release, if any."""
        standing = self.history.releases.get(release_id)
        if standing is None or standing.answer is None:
            return None
        return store.answer_at(self._connection, standing.committed, standing.answer)


class LedgerBook:
    """A ledger file with its head."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._store = store.Store(path, timeout)

    @contextmanager
    def reading(self) -> Iterator[Page]:
        """What the entries add up to.

        The head is read while this view keeps others from committing, so it cannot run ahead of it.
        """
        with self._store.reading() as connection:
            history = store.replayed(connection)
            check_head(read_head(self.path), history, self.path.name)
            yield Page(connection, history)

    @contextmanager
    def adding(self) -> Iterator[Page]:
        """The only writer from here to the end; then the entries are on disk, and the head says so."""
        with self._store.writing() as connection:
            history, head = store.replayed(connection), read_head(self.path)
            check_head(head, history, self.path.name)
            if head is None:  # cut off while it was opened: no entry may follow before there is a head
                self._write_head(connection, history)
            page = Page(connection, history)
            yield page
        if page.has_more:
            self.mark()

    def mark(self) -> None:
        """Bring the head up to the last entry.

        Under the writer's lock, so that of two runs the later one never writes the older head. If others
        hold the lock too long the head stays behind, which is safe, and the next one brings it up.
        """
        with suppress(BusyError), self._store.writing() as connection:
            history = store.replayed(connection)
            check_head(read_head(self.path), history, self.path.name)
            self._write_head(connection, history)

    def _write_head(self, connection: sqlite3.Connection, history: History) -> None:
        head = Head(
            ledger=history.known().ledger,
            entry=history.number,
            hash=history.hash,
            file=store.file_digest(connection),
        )
        write_head(self.path, head)

    def entries(self) -> list[Entry]:
        """All entries, their chain checked."""
        with self._store.reading() as connection:
            return list(store.entries(connection))

    def verify(self) -> History:
        """Check file, chain, answers and head, while nobody can add."""
        with self._store.writing() as connection:
            head = read_head(self.path)
            audit.check_whole(connection, self.path)
            history = store.replayed(connection)
            check_head(head, history, self.path.name)
            if head is not None and head.entry == history.number:
                audit.check_bytes(connection, head, self.path.name)
            audit.check_answers(connection, history)
        return history


def start(path: Path, facts: Mapping[str, Any]) -> None:
    """Make a ledger with its first entry: whole under its name, or not there at all."""
    body = {"format": store.FORMAT, "ledger": secrets.token_hex(16), **facts}
    entry, text = sealed(1, "open", body, START)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with plain_faults(path.name, 1.0):
        try:
            store.build(temporary)
            with store.Store(temporary, 1.0).writing() as connection:
                store.insert(connection, entry, text, None)
            os.link(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        flush_folder(path.parent)
