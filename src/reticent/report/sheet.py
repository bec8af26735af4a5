"""The answers as an Excel workbook: one sheet of numbers, one that says what they mean. Text stays text (T28)."""

import io
from datetime import UTC, datetime
from typing import Any

from reticent.errors import ReticentError
from reticent.release.release import Release
from reticent.report.charts import HOW
from reticent.report.numbers import clean

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)  # a workbook wants a date; the same release is the same bytes


def writer() -> Any | None:
    """The part that writes workbooks, where it is installed."""
    try:
        import xlsxwriter  # an extra
    except ImportError:
        return None
    return xlsxwriter


def sheet(release: Release) -> bytes:
    """The workbook of a release."""
    part = writer()
    if part is None:
        raise ReticentError(f"needs xlsxwriter; install it with {HOW}", field="report")
    out = io.BytesIO()
    book = part.Workbook(out, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"title": "Release", "created": _LONG_AGO.replace(tzinfo=None)})
    _answers(book, release)
    _about(book, clean(release.document))
    book.close()
    return out.getvalue()


def _answers(book: Any, release: Release) -> None:
    bold = book.add_format({"bold": True, "bottom": 1})
    page = book.add_worksheet("answers")
    page.write_row(0, 0, release.header, bold)
    for place, line in enumerate(release.lines(), start=1):
        for column, value in enumerate(line):
            if isinstance(value, int | float):
                page.write_number(place, column, value)
            elif value is not None:
                page.write_string(place, column, str(value))
    page.freeze_panes(1, 2)
    page.set_column(0, 2, 28)
    page.set_column(3, len(release.header) - 3, 12)
    page.set_column(len(release.header) - 2, len(release.header) - 1, 60)


def _about(book: Any, document: Any) -> None:
    page = book.add_worksheet("about")
    page.set_column(0, 0, 20)
    page.set_column(1, 1, 100)
    facts = {
        "release": document["id"],
        "title": document["title"],
        "data set": document["dataset"],
        "status": "published"
        if document["published"] is True
        else "rehearsal on simulated rows, not a release",
        "guarantee": document["guarantee"]["words"],
        "missing answers": "; ".join(document.get("imputation") or []) or "used as they are",
        "plan": document["plan"],
        "software": ", ".join(f"{name} {version}" for name, version in document["software"].items()),
    }
    for place, (name, value) in enumerate(facts.items()):
        page.write_string(place, 0, name)
        page.write_string(place, 1, str(value))
