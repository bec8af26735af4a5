"""The head file: which entry was last, kept beside the ledger so that an old copy put back is noticed (L10).

It is written after each entry, under the writer's lock, so it is never ahead of the ledger it belongs to. A
crash may leave it one step behind; whoever opens the ledger next brings it up.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from reticent.errors import LedgerError
from reticent.files import PRIVATE, flush_folder, written_beside
from reticent.privacy.ledger.chain import canonical
from reticent.privacy.ledger.history import History

HEAD = ".head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last entry that was seen, and the digest of the ledger file at that moment."""

    ledger: str
    entry: int
    hash: str
    file: str


def head_path(ledger: Path) -> Path:
    """`survey.ledger.db` has its head in `survey.ledger.db.head`."""
    return ledger.with_name(ledger.name + HEAD)


def read_head(ledger: Path) -> Head | None:
    """The head, or None where there is none."""
    path = head_path(ledger)
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


def write_head(ledger: Path, head: Head) -> None:
    """Put a new head in place of the old one, whole or not at all."""
    path = head_path(ledger)
    plain = {name: getattr(head, name) for name in Head.__slots__}
    with written_beside(path, canonical(plain).encode() + b"\n", mode=PRIVATE) as temporary:
        os.replace(temporary, path)
    flush_folder(path.parent)


def check_head(head: Head | None, history: History, name: str) -> None:
    """Refuse a ledger older than its head, one of another history, and one whose head was lost."""
    problem = ""
    if head is None:
        # A ledger with its first entry only may have been cut off while it was opened: nothing was charged.
        problem = "" if history.number == 1 else "its head file is missing"
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
            f"{name} cannot be used: {problem}; put back the newest ledger together with its head.",
            field="ledger",
        )
