"""Other ledgers that can be seen from here: in a ledger's own folder, beside the rows, and among published files.

A budget counts only if there is one. A second ledger for the same file of rows is refused, under the same name of the
data set or under another, unless its budget was said to be a separate one (L11, L13).
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from reticent.errors import LedgerError
from reticent.privacy.ledger.book import LedgerBook, receipts_in
from reticent.privacy.ledger.history import History
from reticent.privacy.ledger.origins import WAY_OUT, Origin, check_markers, keyed, marks
from reticent.privacy.ledger.store import HEAD, BusyError, read_head

_PATIENCE = 5.0


def ledgers_in(folders: Iterable[Path], *, but: Path) -> Iterator[tuple[Path, History]]:
    """Every ledger with a head in the folders, and what its entries add up to. One that cannot be used is passed over."""
    for folder in dict.fromkeys(each.resolve() for each in folders):
        for head in sorted(folder.glob(f"*{HEAD}")):
            path = head.with_name(head.name.removesuffix(HEAD))
            if path.is_file() and path.resolve() != but:
                yield from _read(path)


def _read(path: Path) -> Iterator[tuple[Path, History]]:
    history = None
    try:
        with LedgerBook(path.resolve(), _PATIENCE).reading() as page:
            history = page.history
    except BusyError:
        raise
    except LedgerError:
        pass
    if history is not None:
        yield path, history


def check_files(path: Path, ledger: str, origins: Sequence[Origin], out: Path | None) -> None:
    """Refuse rows whose files another ledger was opened or charged for."""
    if not origins:
        return
    folders = [path.parent, *(file.parent for file, _ in origins), *([out] if out else [])]
    for other, history in ledgers_in(folders, but=path):
        facts = history.known()
        if facts.ledger == ledger or facts.separate:
            continue
        if history.marks & marks(history.key, origins):
            raise LedgerError(
                f'the same file of rows belongs to {other.name}, for "{facts.dataset}"; {WAY_OUT}',
                field="ledger",
            )
    check_markers(ledger, origins)


def same_rows(path: Path, fingerprint: str, folders: Sequence[Path]) -> list[tuple[str, str]]:
    """CONFIDENTIAL: other ledgers that keep a fingerprint of the same rows, by file and data set."""
    found = ledgers_in([path.parent, *folders], but=path)
    return [
        (other.name, history.known().dataset)
        for other, history in found
        if keyed(history.key, fingerprint) in history.fingerprints
    ]


def check_name(path: Path, dataset: str) -> None:
    """Refuse to start a ledger beside another one for the same data set, or beside the head of one that is lost."""
    for head in sorted(path.parent.glob(f"*{HEAD}")):
        if _is_orphan(head):
            raise LedgerError(
                f"{head.name} has lost its ledger, which may be the one for these rows; put that ledger back, or take "
                "its head away if it was for others.",
                field="ledger",
            )
    for other, history in ledgers_in([path.parent], but=path):
        facts = history.known()
        if facts.dataset == dataset and not facts.separate:
            raise LedgerError(f'"{dataset}" has a ledger here, {other.name}; {WAY_OUT}', field="ledger")


def _is_orphan(head: Path) -> bool:
    """Whether it is a head of ours without its ledger."""
    ledger = head.with_name(head.name.removesuffix(HEAD))
    try:
        return not os.path.lexists(ledger) and read_head(ledger) is not None
    except LedgerError:
        return False


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
