"""Where a ledger's entries are kept, as everything above it sees that, and the head file beside it.

A store gives one consistent view to a reader, and lets one writer at a time add rows that are then on disk, or are not
there. What the rows mean, which may follow, and whether anybody changed them is worked out above it, from the chain alone:
an entry is the same text in every store. `sqlite.py` keeps them in a file of this machine, `postgres.py` on a server.

The head file says which entry was last, and lies on this machine, so that an old copy put back is noticed (L10). It is
written after each entry, under the writer's lock, so it is never ahead of the ledger it belongs to. A crash may leave it a
step behind; whoever opens the ledger next brings it up.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from reticent.errors import LedgerError
from reticent.files import PRIVATE, flush_folder, written_beside
from reticent.privacy.ledger.entries import START, Entry, canonical, digest, opened
from reticent.privacy.ledger.history import History
from reticent.services import SERVICE

HEAD = ".head"
FORMAT = 1
"""Of entries and of what holds them: a newer one is refused by name (L17)."""


class BusyError(LedgerError):
    """Somebody else held the lock for the whole waiting time."""


class StoredEntries(Protocol):
    """The rows of one ledger, as one step sees them."""

    def rows(self) -> Iterable[tuple[Any, ...]]:
        """Number, kind, body, whether there is an answer, previous hash and hash, in order of numbers."""
        ...

    def insert(self, entry: Entry, body: str, answer: bytes | None) -> None:
        """Add one row."""
        ...

    def answer(self, number: int) -> object:
        """The bytes stored with an entry, or None."""
        ...

    def digest(self) -> str:
        """A digest of everything that is stored, the unused parts too; empty where there is no such thing."""
        ...

    def check_whole(self) -> None:
        """Refuse a store that does not hang together."""
        ...


class LedgerStore(Protocol):
    """One ledger's place."""

    @property
    def name(self) -> str:
        """What it is called in texts: no folder, no host."""
        ...

    @property
    def head(self) -> Path:
        """Its head file, on this machine."""
        ...

    @property
    def way_out(self) -> str:
        """What to do where the head does not fit."""
        ...

    def reading(self) -> AbstractContextManager[StoredEntries]:
        """One consistent view, kept short."""
        ...

    def writing(self) -> AbstractContextManager[StoredEntries]:
        """The only writer from here to the end; what it added is then on disk, or nothing is."""
        ...

    def start(self, first: Sequence[tuple[Entry, str]]) -> None:
        """Make the ledger with its first entries and their bodies: whole under its name, or not there at all."""
        ...

    def check_usable(self, *, allow_network: bool) -> None:
        """Refuse what cannot be a ledger in use."""
        ...

    def check_vacant(self, *, allow_network: bool) -> None:
        """Refuse to start a ledger over something, or where none can be."""
        ...

    def others(self) -> Iterator["LedgerStore"]:
        """The other ledgers that are kept at the same place."""
        ...

    def orphans(self) -> Iterator[str]:
        """Names of head files at the same place whose ledger is lost."""
        ...


def entries(held: StoredEntries) -> Iterator[Entry]:
    """Every entry in order, each checked against the hash of the one before."""
    previous = START
    for number, row in enumerate(held.rows(), start=1):
        entry = opened(row, number, previous)
        previous = entry.hash
        yield entry


def replayed(held: StoredEntries) -> History:
    """What all entries add up to."""
    history = History()
    for entry in entries(held):
        history.add(entry)
    history.known()
    return history


def answer_at(held: StoredEntries, number: int, expected: str) -> bytes:
    """The bytes stored with a commit entry, if they are those whose digest the entry holds."""
    found = held.answer(number)
    if not isinstance(found, bytes) or digest(found) != expected:
        raise LedgerError(f"the answer at entry {number} is not the one that was written.", field="ledger")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last entry that was seen, and the digest of the ledger file at that moment."""

    ledger: str
    entry: int
    hash: str
    file: str


def read_head(path: Path) -> Head | None:
    """The head, or None where there is none."""
    head = None
    try:
        found = json.loads(path.read_bytes()[:10_000])
        head = Head(**found) if isinstance(found, dict) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError):
        pass
    if head is None or type(head.entry) is not int:
        raise LedgerError(
            f"{path.name} is damaged; put back a copy of the ledger and its head.", field="ledger"
        )
    return head


def write_head(path: Path, head: Head) -> None:
    """Put a new head in place of the old one, whole or not at all."""
    plain = {name: getattr(head, name) for name in Head.__slots__}
    with written_beside(path, canonical(plain).encode() + b"\n", mode=PRIVATE) as temporary:
        os.replace(temporary, path)
    flush_folder(path.parent)


def check_head(head: Head | None, history: History, place: LedgerStore) -> None:
    """Refuse a ledger older than its head, one of another history, and one whose head was lost."""
    problem = ""
    if head is None:
        # A ledger in which nothing has happened may have been cut off while it was opened: nothing was charged.
        problem = "" if history.is_new else "its head file is missing"
    elif head.ledger != history.known().ledger:
        problem = "its head file belongs to another ledger"
    elif head.entry > history.number:
        problem = (
            f"it ends at entry {history.number}, its head file at {head.entry}: it is an old or cut copy"
        )
    elif head.entry < 1 or history.hashes[head.entry - 1] != head.hash:
        problem = f"it and its head file differ at entry {head.entry}"
    if problem:
        raise LedgerError(
            f"{place.name} cannot be used: {problem}; {place.way_out}.",
            field="ledger",
        )


_LEDGER = re.compile(rf"postgres:({SERVICE})/({SERVICE})")


def ledger_service(where: str) -> tuple[str, str] | None:
    """The service and the name of a ledger that is kept on a server; None for the path of a file."""
    found = _LEDGER.fullmatch(where)
    return (found[1], found[2]) if found else None


def ledger_at(folder: Path, where: str) -> Path:
    """A plan's ledger: a service's as it is written, a file in the plan's folder."""
    return Path(where) if ledger_service(where) else folder / where
