"""The pages of a release: which sections they show, and how they are drawn.

Pages are drawn after the release was published, each by a process whose death costs that page and no more (T35).
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, SubprocessError

from reticent import files
from reticent.errors import PlanError, ReticentError
from reticent.release.product import Document
from reticent.report.cells import CELLS
from reticent.report.drawing import Drawing
from reticent.report.regression import REGRESSION
from reticent.report.statistics import STATISTICS
from reticent.report.synth import SYNTH
from reticent.report.tables import TABLES

DRAWN: Mapping[str, Drawing] = {
    "statistics": STATISTICS,
    "cells": CELLS,
    "tables": TABLES,
    "regression": REGRESSION,
    "synth": SYNTH,
}
"""By their key in a document."""


def drawings(document: Document) -> list[Drawing]:
    """How the sections that a release has are shown."""
    return [drawing for key, drawing in DRAWN.items() if document.get(key)]


KNOWN = (".html", ".xlsx")
UNDRAWN = (
    "the report could not be drawn; the release itself is published. `reticent resume ID` or "
    "`reticent report FILE.json --as html` draws it, and neither charges anything."
)
PATIENCE = 600.0
"""Seconds after which a page is given up. The release is out by then; a renderer that hangs holds up nothing else."""


def command(ending: str) -> list[str]:
    """What draws a page. `-P`: no module is taken from the folder that the command happens to be run in."""
    return [sys.executable, "-P", "-m", "reticent.report.draw", ending]


def installed() -> tuple[str, ...]:
    """The endings of all pages that can be drawn here: a workbook where what writes it is installed, an extra."""
    try:
        import xlsxwriter  # noqa: F401 - whether it is there
    except ImportError:
        return KNOWN[:1]
    return KNOWN


def warn(text: str) -> None:
    """Say it the way a library does."""
    warnings.warn(text, stacklevel=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPages:
    """Which pages a release gets, by their `endings`, and who is told when one could not be drawn.

    A page is drawn from the published JSON alone, so it can be drawn at any later time: it is no part of the answer, and
    the ledger does not record it. One that is there is left as it is.
    """

    endings: Sequence[str] = KNOWN[:1]
    tell: Callable[[str], None] = warn

    def __post_init__(self) -> None:
        if isinstance(self.endings, str) or not set(self.endings) <= set(KNOWN):
            raise PlanError(f"are named by their endings: {', '.join(KNOWN)}", field="pages")

    def draw(self, published: Path) -> None:
        """Draw what is missing beside the JSON file `published`. Never fails: a page that is not there is told of."""
        targets = [published.with_suffix(ending) for ending in self.endings]
        missing = [target for target in targets if not lexists(target)]
        with suppress(Exception):  # whatever it was, the release is out and the page can be drawn later
            for target, made in zip(missing, _drawn(published, missing), strict=True):
                _write(target, made)
        if not all(lexists(target) for target in missing):
            self.tell(UNDRAWN)


def _write(target: Path, made: bytes) -> None:
    with suppress(ReticentError):  # no room for one page may still be room for another
        if made:
            files.write_new(target, made, private=False)


def _drawn(published: Path, targets: Sequence[Path]) -> Iterator[bytes]:
    """The pages in order, all drawn at the same time; empty for one that could not be."""
    workers = [_started(published, target.suffix) for target in targets]
    try:
        for worker in workers:
            yield b"" if worker is None else _page_of(worker)
    finally:  # interrupted: take them along
        for worker in workers:
            if worker is not None and worker.poll() is None:
                worker.kill()
                worker.wait()


def _started(published: Path, ending: str) -> "Popen[bytes] | None":
    """A process whose standard input is the published file; None where none can be started."""
    with suppress(OSError, SubprocessError, ValueError), published.open("rb") as release:
        return Popen(command(ending), stdin=release, stdout=PIPE, stderr=DEVNULL)
    return None


def _page_of(worker: "Popen[bytes]") -> bytes:
    with suppress(OSError, SubprocessError, ValueError, MemoryError):
        made, _ = worker.communicate(timeout=PATIENCE)
        return made if worker.returncode == 0 else b""
    return b""
