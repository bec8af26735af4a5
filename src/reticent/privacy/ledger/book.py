"""The ledger file and its head as one thing: read it, add to it, start it, and look for loss and change.

Looked at are the file, its head, its answers, and the receipts others hold. What may be added is decided elsewhere.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError
from reticent.files import flush_folder
from reticent.privacy.ledger import store
from reticent.privacy.ledger.entries import START, Entry, sealed
from reticent.privacy.ledger.history import History
from reticent.privacy.ledger.store import (
    BusyError,
    Head,
    answer_at,
    check_head,
    check_vacant,
    file_digest,
    head_path,
    plain_faults,
    read_head,
    write_head,
)

_LARGEST = 64 * 2**20


def check_unopened(path: Path, dataset: str, outputs: Path | None) -> None:
    """Refuse a second ledger for a data set that has been charged before (L11)."""
    check_vacant(path)
    if os.path.lexists(head_path(path)):
        raise LedgerError(
            f"{head_path(path).name} shows that {path.name} existed before; put back the ledger that belongs to it.",
            field="ledger",
        )
    if outputs is not None and any(each["dataset"] == dataset for each in receipts_in(outputs)):
        raise LedgerError(
            f'the output folder holds receipts of "{dataset}", so it has a ledger; put that ledger back.',
            field="ledger",
        )


def receipts_in(folder: Path, *, deep: bool = True) -> Iterator[dict[str, Any]]:
    """Every receipt in the JSON files of a folder and, if `deep`, the folders in it, by name."""
    for path in sorted(folder.glob("**/*.json" if deep else "*.json")):
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST:
                yield from _receipts_within(json.loads(path.read_bytes()))
        except (OSError, ValueError, RecursionError):
            continue  # not one of our files


def _receipts_within(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if set(value) >= {"ledger", "dataset", "entry", "hash", "release"}:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _receipts_within(each)


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose pages do not hang together, or that is longer or shorter than they are."""
    sound = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    if not sound or os.stat(path).st_size != pages * size:
        raise LedgerError(
            f"{path.name} is damaged; put back an undamaged copy of it and its head.", field="ledger"
        )


def check_bytes(connection: sqlite3.Connection, head: Head, name: str) -> None:
    """Refuse a file that differs in any byte from the one the head file was written for."""
    found = file_digest(connection)
    if head.file and found and head.file != found:
        raise LedgerError(
            f"{name} was changed by another program after its last entry; put back an unchanged copy.",
            field="ledger",
        )


def check_answers(connection: sqlite3.Connection, history: History) -> None:
    """Refuse an answer that is not the one that was committed."""
    for standing in history.releases.values():
        if standing.answer is not None:
            answer_at(connection, standing.committed, standing.answer)


def check_receipt(given: Mapping[str, Any], history: History) -> None:
    """Refuse a receipt that this ledger did not give, and a ledger that ends before the receipt (L10)."""
    problem = ""
    facts, number = history.known(), given.get("entry")
    kept = {each.receipt.entry: each.receipt for each in history.releases.values()}
    if given.get("ledger") != facts.ledger:
        problem = "was given by another ledger"
    elif type(number) is not int:
        problem = "names no entry"
    elif number > history.number:
        problem = f"is for entry {number}, but the ledger ends at {history.number}: it is an old or cut copy"
    elif number not in kept or kept[number].as_dict() != dict(given):
        problem = f"does not match entry {number}"
    if problem:
        name = given.get("release") if isinstance(given.get("release"), str) else "?"
        raise LedgerError(f"the receipt of release {name} {problem}.", field="receipt")


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
            check_whole(connection, self.path)
            history = store.replayed(connection)
            check_head(head, history, self.path.name)
            if head is not None and head.entry == history.number:
                check_bytes(connection, head, self.path.name)
            check_answers(connection, history)
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
