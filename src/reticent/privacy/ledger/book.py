"""A ledger's store and its head as one thing: read it, add to it, start it, and look for loss and change.

Looked at are the stored entries, the head, the answers, and the receipts others hold. What may be added is decided
elsewhere.
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError
from reticent.privacy.ledger import store
from reticent.privacy.ledger.entries import START, Entry, sealed
from reticent.privacy.ledger.history import History
from reticent.privacy.ledger.postgres import ServerStore
from reticent.privacy.ledger.sqlite import FileStore
from reticent.privacy.ledger.store import (
    FORMAT,
    BusyError,
    Head,
    LedgerStore,
    StoredEntries,
    answer_at,
    check_head,
    ledger_service,
    read_head,
    write_head,
)

_LARGEST = 64 * 2**20


def store_at(where: str | PathLike[str], timeout: float, *, new: bool = False) -> LedgerStore:
    """The store that a place names; `new` if it is to be made, so that a link under its name counts as taken."""
    served = ledger_service(os.fspath(where))
    if served is not None:
        return ServerStore(*served, timeout)
    path = Path(os.fspath(where))
    return FileStore(path.parent.resolve() / path.name if new else path.resolve(), timeout)


def check_unopened(place: LedgerStore, dataset: str, outputs: Path | None, *, allow_network: bool) -> None:
    """Refuse a second ledger for a data set that has been charged before (L11)."""
    place.check_vacant(allow_network=allow_network)
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


def check_bytes(held: StoredEntries, head: Head, name: str) -> None:
    """Refuse a store that differs in any byte from the one the head file was written for."""
    found = held.digest()
    if head.file and found and head.file != found:
        raise LedgerError(
            f"{name} was changed by another program after its last entry; put back an unchanged copy.",
            field="ledger",
        )


def check_answers(held: StoredEntries, history: History) -> None:
    """Refuse an answer that is not the one that was committed."""
    for standing in history.releases.values():
        if standing.answer is not None:
            answer_at(held, standing.committed, standing.answer)


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

    def __init__(self, held: StoredEntries, history: History) -> None:
        self._held = held
        self.history = history
        self.has_more = False

    def add(self, kind: str, body: Mapping[str, Any], answer: bytes | None = None) -> None:
        """Append one entry; the rules that admit it are those that will read it."""
        entry, text = sealed(self.history.number + 1, kind, body, self.history.hash)
        self.history.add(entry)
        self._held.insert(entry, text, answer)
        self.has_more = True

    def answer(self, release_id: str) -> bytes | None:
        """The bytes that were committed for a release, if any."""
        standing = self.history.releases.get(release_id)
        if standing is None or standing.answer is None:
            return None
        return store.answer_at(self._held, standing.committed, standing.answer)


class LedgerBook:
    """A ledger's store with its head."""

    def __init__(self, place: LedgerStore) -> None:
        self.place = place

    @contextmanager
    def reading(self) -> Iterator[Page]:
        """What the entries add up to.

        The head is read before the view is taken: it is written after its entry is there, so it cannot run ahead of the
        view. Only a ledger that is just being started has none yet.
        """
        head = read_head(self.place.head)
        with self.place.reading() as held:
            history = store.replayed(held)
            check_head(head or read_head(self.place.head), history, self.place)
            yield Page(held, history)

    @contextmanager
    def adding(self) -> Iterator[Page]:
        """The only writer from here to the end; then the entries are on disk, and the head says so."""
        with self.place.writing() as held:
            history, head = store.replayed(held), read_head(self.place.head)
            check_head(head, history, self.place)
            if head is None:  # cut off while it was opened: no entry may follow before there is a head
                self._write_head(held, history)
            page = Page(held, history)
            yield page
        if page.has_more:
            self.mark()

    def mark(self) -> None:
        """Bring the head up to the last entry.

        Under the writer's lock, so that of two runs the later one never writes the older head. If others
        hold the lock too long the head stays behind, which is safe, and the next one brings it up.
        """
        with suppress(BusyError), self.place.writing() as held:
            history = store.replayed(held)
            check_head(read_head(self.place.head), history, self.place)
            self._write_head(held, history)

    def join(self, receipts: Iterable[Mapping[str, Any]]) -> None:
        """Give this machine a head of its own, once the ledger agrees with all receipts at hand, on the curator's word."""
        with self.place.writing() as held:
            history, head = store.replayed(held), read_head(self.place.head)
            if head is not None:
                check_head(head, history, self.place)
            for receipt in receipts:
                check_receipt(receipt, history)
            check_answers(held, history)
            self._write_head(held, history)

    def _write_head(self, held: StoredEntries, history: History) -> None:
        head = Head(
            ledger=history.known().ledger,
            entry=history.number,
            hash=history.hash,
            file=held.digest(),
        )
        write_head(self.place.head, head)

    def peek(self) -> History:
        """What the entries of another ledger add up to; its head counts where this machine has one."""
        head = read_head(self.place.head)
        with self.place.reading() as held:
            history = store.replayed(held)
            if head is not None:
                check_head(head, history, self.place)
        return history

    def entries(self) -> list[Entry]:
        """All entries, their chain checked."""
        with self.place.reading() as held:
            return list(store.entries(held))

    def verify(self) -> History:
        """Check store, chain, answers and head, while nobody can add."""
        with self.place.writing() as held:
            head = read_head(self.place.head)
            held.check_whole()
            history = store.replayed(held)
            check_head(head, history, self.place)
            if head is not None and head.entry == history.number:
                check_bytes(held, head, self.place.name)
            check_answers(held, history)
        return history


def start(place: LedgerStore, facts: Mapping[str, Any], sign_off: Mapping[str, Any] | None = None) -> None:
    """Make a ledger with its first entry, and who has to approve its charges: whole under its name, or not there at all."""
    body = {"format": FORMAT, "ledger": secrets.token_hex(16), **facts}
    first = [sealed(1, "open", body, START)]
    if sign_off is not None:
        first.append(sealed(2, "sign-off", sign_off, first[0][0].hash))
    place.start(first)
