"""How a release shows itself in a notebook: its estimates, and each table by its keys, with intervals. Escaped, without scripts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reticent.exact import BARE, level_words, places_for, rounded, rounded_down, rounded_up
from reticent.notebook import html_table, paragraph
from reticent.release.labels import Labels, keys_of
from reticent.release.product import Document

MOST_SHOWN = 100
NO_END = "no bound"
Told = Mapping[str, Any]


def release_html(document: Document, sections: Sequence[str]) -> str:
    """The guarantee, and what can be shown of every one of its `sections`; the others are named."""
    said = str((document.get("guarantee") or {}).get("words") or "no guarantee")
    state = "Release" if document.get("published") is True else "REHEARSAL, not a release:"
    held = [key for key in sections if document.get(key)]
    others = [key for key in held if key not in SHOWN]
    parts = [part for key in held if key in SHOWN for part in SHOWN[key](document)]
    more = paragraph(f"also holds: {', '.join(others)}") if others else ""
    return paragraph(f"{state} {document['id']}: {said}") + "".join(parts) + more


def _headings(levels: Iterable[float | None]) -> tuple[str, ...]:
    """Over numbers, with the level of their intervals where all have one."""
    level = level_words(levels)
    return "estimate", f"{level}interval for privacy noise", f"{level}total interval", "reliability"


def _level(answer: Told) -> float | None:
    return (answer.get("interval") or {}).get("level")


def _statistics(document: Document) -> Iterator[str]:
    """Single estimates in one table for each level of their intervals, then a table for each that has cells."""
    single = [each for each in document["statistics"] if not any(one["cell"] for one in each["estimates"])]
    for level in dict.fromkeys(map(_level, single)):
        mine = [each for each in single if _level(each) == level]
        rows = [(str(each["name"]), *numbers(one)) for each in mine for one in each["estimates"]]
        yield html_table(("statistic", *_headings([level])), rows[:MOST_SHOWN])
    for each in document["statistics"]:
        if each not in single:
            caption = f"{each['name']} ({each['unit'] or 'no unit'})"
            yield _table(caption, each["estimates"], document, _level(each))


def _tables(document: Document) -> Iterator[str]:
    """Every margin of tables that add up."""
    for table in document["tables"]:
        for margin in table["margins"]:
            caption = f"{table['name']} ({table.get('unit') or 'respondents'})"
            yield _table(caption, margin["lines"], document, table.get("level"))


def _regressions(document: Document) -> Iterator[str]:
    """The coefficients of each regression."""
    labels = Labels.of(document)
    for line in document["regression"]:
        rows = [(*_term(each, labels), *numbers(each)) for each in line["coefficients"]]
        yield html_table(
            ("term", "against", *_headings([line.get("level")])),
            rows[:MOST_SHOWN],
            caption=f"{line['name']}: {labels.column(line['response'])} on",
        )


def _term(each: Told, labels: Labels) -> tuple[str, str]:
    """The term, in its domain where there are some, and what it is compared with."""
    domain, term = labels.cell(each.get("cell") or {}), str(each["term"])
    named = labels.term(term)
    return f"{domain}: {named}" if domain else named, labels.against(term, str(each.get("against") or ""))


def _cells(document: Document) -> Iterator[str]:
    """The first cells of each table of small cells, and what their intervals mean or why there are none."""
    labels = Labels.of(document)
    for table in document["cells"]:
        columns = table["columns"]
        ends = zip(columns["cell"], columns["estimate"], columns["low"], columns["high"], strict=True)
        rows = [
            (
                labels.level(table["cell"], cell),
                *numbers({"value": value, "privacy_low": low, "privacy_high": high})[:2],
            )
            for cell, value, low, high in [*ends][:MOST_SHOWN]
        ]
        said = table.get("label") or table["guarantee"]["words"]
        left = _left(len(columns["cell"]))
        yield html_table(
            (labels.column(table["cell"]), "estimate", f"{level_words([table['level']])}interval"),
            rows,
            caption=f"{table['name']} ({said}){left}; {table['meaning']}",
        )


def _left(cells: int) -> str:
    return f"; the first {MOST_SHOWN} of {cells:,} cells" if cells > MOST_SHOWN else ""


def _table(caption: str, lines: Sequence[Told], document: Document, level: float | None) -> str:
    """The cells of a table line by line, under their keys."""
    labels, keys = Labels.of(document), keys_of(each["cell"] for each in lines)
    rows = [
        (*(labels.level(key, each["cell"].get(key, "")) for key in keys), *numbers(each))
        for each in lines[:MOST_SHOWN]
    ]
    headings = [*map(labels.column, keys), *_headings([level])]
    return html_table(headings, rows, caption=f"{caption}{_left(len(lines))}")


def numbers(each: Told) -> tuple[str, str, str, str]:
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
    if low is None and high is None:
        return ""
    return f"{rounded_down(low, digits) or NO_END} to {rounded_up(high, digits) or NO_END}"


SHOWN: Mapping[str, Callable[[Document], Iterator[str]]] = {
    "statistics": _statistics,
    "tables": _tables,
    "cells": _cells,
    "regression": _regressions,
}
"""The sections that a notebook shows, by their key in a document."""
