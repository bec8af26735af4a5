"""The answers as an Excel workbook: all numbers, a sheet for each table, and what they mean. Text stays text (T28)."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from reticent.errors import ReticentError
from reticent.release.labels import Labels
from reticent.release.release import Release
from reticent.report.crosstab import Crosstab
from reticent.report.drawing import HOW
from reticent.report.numbers import clean, covers
from reticent.report.statistics import answer_crosstab, answer_list
from reticent.report.tables import margin_crosstab, margin_list
from reticent.report.words import handled, not_filled

PARTS = ("cells", "regression")  # which have no keys to be crossed: a sheet for each of theirs, line by line
WIDE = {"guarantee": 60, "meaning": 60, "total_meaning": 60, "cell_label": 28, "term_label": 40}
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)  # a workbook wants a date; the same release is the same bytes


def sheet(release: Release) -> bytes:
    """The workbook of a release: all estimates, a sheet for each table as it is printed, and what they mean."""
    try:
        import xlsxwriter as part  # an extra
    except ImportError:
        raise ReticentError(f"needs xlsxwriter; install it with {HOW}", field="report") from None
    out = io.BytesIO()
    book = part.Workbook(out, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"title": "Release", "created": _LONG_AGO.replace(tzinfo=None)})
    document = clean(release.document)
    _listed(book, "answers", release.header, list(release.lines()))
    names = {"answers", "about"}
    for tab in crosstabs(document):
        _crossed(book, tab, _sheet_name(tab.name, names))
    for part in PARTS:
        if part in release.parts:
            tidy = release.tidy(part)
            for name, lines in tidy.by_name().items():
                _listed(book, _sheet_name(name, names), tidy.header, lines)
    _about(book, document)
    book.close()
    return out.getvalue()


def crosstabs(document: Any) -> list[Crosstab]:
    """Every table of a release, statistics first: one key across where it can be printed so, else line by line."""
    labels = Labels.of(document)
    found = [
        answer_crosstab(answer, labels) or answer_list(answer, labels)
        for answer in document.get("statistics") or []
    ]
    found += [
        margin_crosstab(table, margin, labels) or margin_list(table, margin, labels)
        for table in document.get("tables") or []
        for margin in table["margins"]
    ]
    return [tab for tab in found if tab is not None]


def _sheet_name(name: str, taken: set[str]) -> str:
    """At most 31 characters, none that a sheet may not have, and none that another has in any case."""
    plain = "".join("_" if char in "[]:*?/\\'" else char for char in name).strip() or "table"
    place, made = 1, plain[:31]
    while made.lower() in taken:
        place += 1
        made = f"{plain[: 31 - len(str(place)) - 1]} {place}"
    taken.add(made.lower())
    return made


def _crossed(book: Any, tab: Crosstab, name: str) -> None:
    """Numbers as numbers, their intervals beside them in a second block, so that the first can be charted."""
    bold, head = (
        book.add_format({"bold": True}),
        book.add_format({"bold": True, "bottom": 1, "align": "right"}),
    )
    page = book.add_worksheet(name)
    page.write_string(0, 0, tab.name, bold)
    page.write_string(1, 0, tab.unit)
    sides, width = len(tab.down), len(tab.heads)
    has_bars = any(cell.interval for _, cells in tab.rows for cell in cells)
    beside = f"{tab.covers}. {tab.legend}".strip()
    for start, title in [(sides, tab.across), *([(sides + width + 1, beside)] * has_bars)]:
        page.write_string(2, start, title, bold)
        for place, text in enumerate(tab.heads):
            page.write_string(3, start + place, text, head)
    for place, key in enumerate(tab.down):
        page.write_string(3, place, key, head)
    for line, (side, cells) in enumerate(tab.rows, start=4):
        for place, level in enumerate(side):
            page.write_string(line, place, level)
        for place, cell in enumerate(cells):
            if cell.number is not None:
                page.write_number(line, sides + place, cell.number)
            if cell.interval:
                page.write_string(line, sides + width + 1 + place, f"{cell.interval} {cell.mark}".strip())
    page.freeze_panes(4, sides)
    page.set_column(0, sides + width - 1, 16)
    page.set_column(sides + width + 1, sides + 2 * width, 22)


def _listed(book: Any, name: str, header: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
    """Lines under their header, as in the CSV; numbers as numbers."""
    bold, page = book.add_format({"bold": True, "bottom": 1}), book.add_worksheet(name)
    for place, text in enumerate(header):
        page.write_string(0, place, text, bold)
    for place, line in enumerate(lines, start=1):
        for column, value in enumerate(line):
            if isinstance(value, int | float):
                page.write_number(place, column, value)
            elif value is not None:
                page.write_string(place, column, str(value))
    page.freeze_panes(1, 2)
    for place, text in enumerate(header):
        page.set_column(place, place, WIDE.get(text, 24 if place < 3 else 12))


def _about(book: Any, document: Any) -> None:
    page = book.add_worksheet("about")
    page.set_column(0, 0, 20)
    page.set_column(1, 1, 100)
    named, done = Labels.of(document).named(), handled(document)
    notes = [said for each in done for said in each.notes]
    facts = {
        "release": document["id"],
        "title": document["title"],
        "data set": document["dataset"],
        "status": "published"
        if document["published"] is True
        else "rehearsal on simulated rows, not a release",
        "guarantee": document["guarantee"]["words"],
        **({"intervals": covers(document)} if document.get("statistics") else {}),
        "missing answers": not_filled(document),
        **{each.what: " ".join(each.sentences) for each in done},
        **({"names": "; ".join(f"{name}: {label}" for name, label in named.items())} if named else {}),
        **({"how far an answer reaches": " ".join(dict.fromkeys(notes))} if notes else {}),
        "plan": document["plan"],
        "software": ", ".join(f"{name} {version}" for name, version in document["software"].items()),
    }
    for place, (name, value) in enumerate(facts.items()):
        page.write_string(place, 0, name)
        page.write_string(place, 1, str(value))
