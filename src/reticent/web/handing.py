"""What was published, to look at and to keep: reports, files and receipts, found by id among those of a ledger (W10).

A file is handed out only if it is the one that the ledger recorded. Pages and workbooks are not recorded; they are drawn
anew from the JSON that is, so a file that somebody has put in their place goes to nobody.
"""

import os
import stat
from hashlib import sha256
from pathlib import Path

from starlette.responses import HTMLResponse, Response

from reticent.errors import LedgerError
from reticent.release.release import Release
from reticent.report.draw import DRAWN
from reticent.report.page import page as report_page
from reticent.web.asked import Asked, attachment
from reticent.web.budgets import LedgerLine, lines_of, view_of
from reticent.web.desk import NAME, NoSuchError

KINDS = {
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
OTHER = "application/octet-stream"


def releases(asked: Asked) -> Response:
    """Everything that was charged to the ledgers here, with its files."""
    folder, books = asked.desk.folder / "releases", asked.desk.ledgers()
    views = [view_of(book, name, folder) for name, book in books.items()]
    plans = asked.desk.plans()
    return asked.page(
        "releases.html.j2",
        views=views,
        plans={(each.named("ledger"), each.release_id): each for each in plans},
        elsewhere=[each for each in plans if each.named("ledger") and each.named("ledger") not in books],
    )


def _line(asked: Asked) -> LedgerLine:
    """The release that the path names, found among those in its ledger."""
    book = asked.desk.ledger_called(asked.params["ledger"])
    lines = lines_of(book, list(book.entries()), asked.desk.folder / "releases")
    found = next((each for each in lines if each.release == asked.params["release"]), None)
    if found is None or NAME.fullmatch(found.release) is None:
        raise NoSuchError("there is no such release")
    return found


def report(asked: Asked) -> Response:
    """The report of a published release, drawn from its JSON."""
    made = Release.from_bytes(_published(asked, _line(asked), ".json"))
    return HTMLResponse(report_page(made, linked="/static/report.css", back="/releases").decode())


def download(asked: Asked) -> Response:
    """A published file, to keep, or a page of it."""
    line, ending = _line(asked), "." + asked.params["ending"]
    if ending not in line.files:
        raise NoSuchError("there is no such file of this release")
    data = _published(asked, line, ".json" if ending in DRAWN else ending)
    data = DRAWN[ending](Release.from_bytes(data)) if ending in DRAWN else data
    return attachment(data, f"{line.release}{ending}", KINDS.get(ending, OTHER))


def _published(asked: Asked, line: LedgerLine, ending: str) -> bytes:
    """The bytes of a file, which must be those that the ledger recorded."""
    name = f"{line.release}{ending}"
    if name not in line.recorded:
        raise NoSuchError("there is no such file of this release")
    data = _plain_bytes(asked.desk.folder / "releases" / name)
    if data is None or sha256(data).hexdigest() != line.recorded[name]:
        raise LedgerError(
            f"{name} is not there, or not as it was published; resume the release to have it again",
            field="file",
        )
    return data


def _plain_bytes(path: Path) -> bytes | None:
    """What a plain file holds; None where it is a link, something else, or nothing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(handle).st_mode) else None
