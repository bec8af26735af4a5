"""Which files a ledger was charged for, so that a second budget for the same file is refused (L11, L13).

What is compared is where a file lies once links are followed, and which file it is to the system. No row is read, and
no refusal depends on one. A ledger keeps the marks of its files under its own secret key. Beside the rows it leaves a
marker that says whose they are, so that a ledger in any other folder finds it.

Other ledgers are looked for in a ledger's own folder, beside the rows, and among published files. A budget counts only if
there is one: a second ledger for the same file of rows is refused, under the same name of the data set or under another,
unless its budget was said to be a separate one.
"""

import hmac
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError
from reticent.files import PUBLISHED, flush_folder, written_beside
from reticent.privacy.ledger.book import LedgerBook, receipts_in, store_at
from reticent.privacy.ledger.entries import canonical, digest
from reticent.privacy.ledger.history import History
from reticent.privacy.ledger.sqlite import stores_in
from reticent.privacy.ledger.store import BusyError, LedgerStore

Origin = tuple[Path, str]
"""A file of rows and, in a database, the table."""

_LARGEST = 16 * 2**20
WAY_OUT = "use that ledger, or give the rows a budget of their own with `--separate-budget`, which every receipt states."


def resolved(origins: Iterable[Origin]) -> tuple[Origin, ...]:
    """The files behind all links; names of tables are the same in capitals."""
    return tuple((Path(path).resolve(), table.lower()) for path, table in origins)


def marks(key: str, origins: Iterable[Origin]) -> frozenset[str]:
    """The marks of files under a key: where each lies, and which file it is."""
    each = (mark for path, table in origins for mark in _marks(key, path, table, place=str(path)))
    return frozenset(each)


def _marks(key: str, path: Path, table: str, *, place: str) -> Iterator[str]:
    yield _mark(key, "place", place, table)
    with suppress(OSError):
        found = os.stat(path)
        # The number of a deleted file is given to the next one: the time of the last change tells them apart.
        yield _mark(key, "file", str(found.st_dev), str(found.st_ino), str(found.st_mtime_ns), table)


def _mark(key: str, *words: str) -> str:
    return hmac.new(key.encode(), canonical(words).encode(), "sha256").hexdigest()


def keyed(key: str, fingerprint: str) -> str:
    """A fingerprint of rows as one ledger keeps it: of no use to anybody without that ledger."""
    return _mark(key, "rows", fingerprint)


def check_markers(ledger: str, origins: Iterable[Origin]) -> None:
    """Refuse files beside which another ledger left its marker."""
    for folder, files in _by_folder(origins).items():
        for other, kept in _markers(folder):
            if other != ledger and kept & _named(other, files):
                raise LedgerError(
                    f"these rows were charged to another ledger, number {other[:8]}; {WAY_OUT}",
                    field="ledger",
                )


def leave_marker(ledger: str, origins: Iterable[Origin]) -> None:
    """Say beside the rows whose they are. A folder that cannot be written to goes without."""
    for folder, files in _by_folder(origins).items():
        path = _marker(folder, ledger)
        kept = next((marks for _, marks in _read_marker(path)), frozenset[str]())
        new = kept | _named(ledger, files)
        if new == kept:
            continue
        text = canonical({"ledger": ledger, "marks": sorted(new)}).encode() + b"\n"
        with suppress(OSError), written_beside(path, text, mode=PUBLISHED) as temporary:
            os.replace(temporary, path)
            flush_folder(folder)


def take_marker(ledger: str, origins: Iterable[Origin]) -> None:
    """Remove the marker of a ledger whose budget is a separate one."""
    for folder in _by_folder(origins):
        with suppress(OSError):
            os.unlink(_marker(folder, ledger))


def _by_folder(origins: Iterable[Origin]) -> dict[Path, list[Origin]]:
    found: dict[Path, list[Origin]] = {}
    for path, table in origins:
        found.setdefault(path.parent, []).append((path, table))
    return found


def _named(ledger: str, files: Iterable[Origin]) -> frozenset[str]:
    """Marks by name in the folder, which hold when the folder is moved."""
    each = (mark for path, table in files for mark in _marks(ledger, path, table, place=path.name))
    return frozenset(each)


def _marker(folder: Path, ledger: str) -> Path:
    return folder / f".{digest(ledger.encode())[:32]}.charged"


def _markers(folder: Path) -> Iterator[tuple[str, frozenset[str]]]:
    for path in sorted(folder.glob(".*.charged")):
        yield from _read_marker(path)


def _read_marker(path: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Whose marker it is and what it holds; nothing, where it is none of ours."""
    found: Any = None
    with suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= _LARGEST:
            found = json.loads(path.read_bytes())
    if isinstance(found, dict) and isinstance(found.get("ledger"), str) and _is_texts(found.get("marks")):
        yield found["ledger"], frozenset(found["marks"])


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def ledgers_near(place: LedgerStore, folders: Iterable[Path]) -> Iterator[tuple[str, History]]:
    """Every other ledger at the same place or with a head in the folders, and what its entries add up to.

    One that cannot be used is passed over.
    """
    near = [*place.others(), *(each for folder in folders for each in stores_in(folder, but=None))]
    for head, other in {each.head.resolve(): each for each in near}.items():
        if head != place.head.resolve():
            yield from _history_of(other)


def _history_of(other: LedgerStore) -> Iterator[tuple[str, History]]:
    history = None
    try:
        history = LedgerBook(other).peek()
    except BusyError:
        raise
    except LedgerError:
        pass
    if history is not None:
        yield other.name, history


def check_files(place: LedgerStore, ledger: str, origins: Sequence[Origin], out: Path | None) -> None:
    """Refuse rows whose files another ledger was opened or charged for."""
    if not origins:
        return
    folders = [*(file.parent for file, _ in origins), *([out] if out else [])]
    for other, history in ledgers_near(place, folders):
        facts = history.known()
        if facts.ledger == ledger or facts.separate:
            continue
        if history.marks & marks(history.key, origins):
            raise LedgerError(
                f'the same file of rows belongs to {other}, for "{facts.dataset}"; {WAY_OUT}',
                field="ledger",
            )
    check_markers(ledger, origins)


def same_rows(where: str | PathLike[str], fingerprint: str, folders: Sequence[Path]) -> list[tuple[str, str]]:
    """CONFIDENTIAL: other ledgers that keep a fingerprint of the same rows, by name and data set."""
    return [
        (other, history.known().dataset)
        for other, history in ledgers_near(store_at(where, _PATIENCE, new=True), folders)
        if keyed(history.key, fingerprint) in history.fingerprints
    ]


_PATIENCE = 5.0


def check_name(place: LedgerStore, dataset: str) -> None:
    """Refuse to start a ledger beside another one for the same data set, or beside the head of one that is lost."""
    for head in place.orphans():
        raise LedgerError(
            f"{head} has lost its ledger, which may be the one for these rows; put that ledger back, or take "
            "its head away if it was for others.",
            field="ledger",
        )
    for other, history in ledgers_near(place, ()):
        facts = history.known()
        if facts.dataset == dataset and not facts.separate:
            raise LedgerError(f'"{dataset}" has a ledger here, {other}; {WAY_OUT}', field="ledger")


def check_published(out: Path, ledger: str, dataset: str) -> None:
    """Refuse to publish beside releases of the same data set that another ledger was charged for."""
    with suppress(OSError):
        for each in receipts_in(out, deep=False):
            is_other = each["dataset"] == dataset and each["ledger"] != ledger
            if is_other and each.get("separate_budget") is not True:
                raise LedgerError(
                    f'the output folder holds receipts of "{dataset}" from another ledger; put that ledger back and '
                    + WAY_OUT,
                    field="ledger",
                )
