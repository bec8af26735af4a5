"""How a release shows itself in a notebook: its estimates, and each table by its keys, with intervals. Escaped, without scripts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from reticent.exact import BARE, places_for, rounded, rounded_down, rounded_up
from reticent.notebook import html_table, paragraph
from reticent.release.labels import Labels, keys_of
from reticent.release.product import Document

MOST_SHOWN = 100
HEADINGS = ("estimate", "interval for privacy noise", "total interval", "reliability")


def release_html(document: Document, sections: Sequence[str]) -> str:
    """The guarantee, and what can be shown of every one of its `sections`; the others are named."""
    said = str((document.get("guarantee") or {}).get("words") or "no guarantee")
    state = "Release" if document.get("published") is True else "REHEARSAL, not a release:"
    held = [key for key in sections if document.get(key)]
    others = [key for key in held if key not in SHOWN]
    parts = [part for key in held if key in SHOWN for part in SHOWN[key](document)]
    more = paragraph(f"also holds: {', '.join(others)}") if others else ""
    return paragraph(f"{state} {document['id']}: {said}") + "".join(parts) + more


def _statistics(document: Document) -> Iterator[str]:
    """Single estimates in one table, then a table for each that has cells."""
    single = [each for each in document["statistics"] if not any(one["cell"] for one in each["estimates"])]
    rows = [(str(each["name"]), *numbers(one)) for each in single for one in each["estimates"]]
    if rows:
        yield html_table(("statistic", *HEADINGS), rows[:MOST_SHOWN])
    for each in document["statistics"]:
        if each not in single:
            yield _table(f"{each['name']} ({each['unit'] or 'no unit'})", each["estimates"], document)


def _tables(document: Document) -> Iterator[str]:
    """Every margin of tables that add up."""
    for table in document["tables"]:
        for margin in table["margins"]:
            yield _table(f"{table['name']} ({table.get('unit') or 'respondents'})", margin["lines"], document)


def _regressions(document: Document) -> Iterator[str]:
    """The coefficients of each regression."""
    for line in document["regression"]:
        rows = [
            (str(each["term"]), str(each.get("against") or ""), *numbers(each))
            for each in line["coefficients"]
        ]
        yield html_table(
            ("term", "against", *HEADINGS),
            rows[:MOST_SHOWN],
            caption=f"{line['name']}: {line['response']} on",
        )


def _table(caption: str, lines: Sequence[Mapping[str, Any]], document: Document) -> str:
    """The cells of a table line by line, under their keys."""
    labels, keys = Labels.of(document), keys_of(each["cell"] for each in lines)
    rows = [
        (*(labels.level(key, each["cell"].get(key, "")) for key in keys), *numbers(each))
        for each in lines[:MOST_SHOWN]
    ]
    left = f"; the first {MOST_SHOWN} of {len(lines):,} cells" if len(lines) > MOST_SHOWN else ""
    return html_table([*map(labels.column, keys), *HEADINGS], rows, caption=f"{caption}{left}")


def numbers(each: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """An estimate, its two intervals and its reliability as a reader sees them."""
    low, high = each.get("privacy_low"), each.get("privacy_high")
    has_bar = low is not None and high is not None
    half = (high - low) / 2 if low is not None and high is not None and high > low else each["value"] or 0.0
    digits = places_for(half, 2 if has_bar else BARE)
    bars = (
        _between(each.get(f"{which}_low"), each.get(f"{which}_high"), digits)
        for which in ("privacy", "total")
    )
    privacy, total = bars
    return rounded(each["value"], digits), privacy, total, str(each.get("reliability") or "")


def _between(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return ""
    return f"{rounded_down(low, digits)} to {rounded_up(high, digits)}"


SHOWN: Mapping[str, Callable[[Document], Iterator[str]]] = {
    "statistics": _statistics,
    "tables": _tables,
    "regression": _regressions,
}
"""The sections that a notebook shows, by their key in a document."""
