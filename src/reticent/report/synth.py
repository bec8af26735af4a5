"""Synthetic tables on a page: how they were made, and what their own columns look like. There is no truth to compare with."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from reticent.exact import level_words
from reticent.release.labels import Labels
from reticent.release.product import Grid, Line
from reticent.release.synth_table import Numbers, unpacked
from reticent.report import marks
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import BESIDE, BLUE, PALE, WIDE, Spec
from reticent.report.numbers import downward, nearest, places, upward
from reticent.report.words import USE, point_mass_sentences, promised, ruled

BINS = 20
MOST_COLUMNS = 30
MOST_LEVELS = 30
Table = Mapping[str, Any]


def synth_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a page says of each synthetic table."""
    return [
        {
            **{key: value for key, value in table.items() if key not in ("tables", "measured", "answers")},
            "answers": _answers(table),
            "bootstrap": table.get("bootstrap", 0),
            "promised": promised(table),
            "ruled": ruled(table),
            "heaped": point_mass_sentences(table),
            "listed": [f"{name}.csv" for name in table["files"]],
            "drawn": min(MOST_COLUMNS, len(table["columns"])),
        }
        for table in document.get("synth") or []
    ]


def synth_charts(document: Mapping[str, Any]) -> Iterator[Drawn]:
    """Title, table, caption and specification of a picture for each column of the first copy."""
    for table in document.get("synth") or []:
        columns = table["columns"][:MOST_COLUMNS]
        for column, numbers in zip(columns, unpacked(table), strict=False):
            labels = Labels.of(document)
            drawn = (
                _levels(column, numbers, labels)
                if "levels" in column
                else _histogram(column, numbers, labels)
            )
            yield (
                f"{labels.column(column['name'])}, {table['rows']:,} synthetic rows",
                str(table["name"]),
                drawn,
            )


def _silent(column: Table, numbers: Numbers) -> str:
    """How many rows have no answer here, if any."""
    size = column["high"] - column["low"] + 1
    missing, unasked = (int((numbers == size + k).sum()) for k in (0, 1))
    said = [f"{missing:,} without an answer"] * (missing > 0) + [f"{unasked:,} not asked"] * (unasked > 0)
    return f" {' and '.join(said)} are not drawn." if said else ""


def _levels(column: Table, numbers: Numbers, labels: Labels) -> tuple[str, Spec]:
    size = len(column["levels"])
    counts = np.bincount(numbers[numbers < size], minlength=size)
    shown = range(min(size, MOST_LEVELS))
    rows = [
        {
            "place": place,
            "label": labels.level(column["name"], column["levels"][place]),
            "value": int(counts[place]),
        }
        for place in shown
    ]
    more = f" The first {len(shown)} of {size} levels." if size > len(shown) else ""
    label = {"type": "text", "align": "right", "fontSize": 14, "limit": BESIDE - 10}
    value = {"field": "value", "type": "quantitative", "title": "synthetic rows", "axis": {"tickCount": 5}}
    layers = [
        {"mark": {"type": "bar", "color": PALE, "stroke": BLUE, "height": 14}, "encoding": {"x": value}},
        {"mark": label, "encoding": {"x": {"value": -10}, "text": {"field": "label", "type": "nominal"}}},
    ]
    y = {"field": "place", "type": "ordinal", "axis": None}
    spec = {"width": WIDE - BESIDE, "height": {"step": 24}, "encoding": {"y": y}, "layer": layers}
    return f"Rows by level.{more}{_silent(column, numbers)}", {"data": {"values": rows}, **spec}


def _histogram(column: Table, numbers: Numbers, labels: Labels) -> tuple[str, Spec]:
    size, grid = column["high"] - column["low"] + 1, Fraction(column["grid"])
    bins = min(BINS, size)
    edges = [i * size // bins for i in range(bins + 1)]
    counts = np.histogram(numbers[numbers < size], bins=edges)[0]
    low, step = float(column["low"] * grid), float(grid)
    rows = [
        {"from": low + step * start, "to": low + step * end, "count": int(count)}
        for start, end, count in zip(edges, edges[1:], counts, strict=False)
    ]
    unit = f" ({column['unit']})" if column.get("unit") else ""
    spec = {
        "width": marks.WIDE,
        "height": 160,
        "data": {"values": rows},
        "mark": {"type": "bar", "color": PALE, "stroke": BLUE},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": f"{labels.column(column['name'])}{unit}",
            },
            "x2": {"field": "to"},
            "y": {"field": "count", "type": "quantitative", "title": "synthetic rows"},
        },
    }
    return f"Rows in {bins} bins between the declared bounds.{_silent(column, numbers)}", spec


def _answers(table: Table) -> Grid | None:
    """The answers as a table under their headings; where their levels differ, each interval tells its own."""
    told = table.get("answers") or ()
    level = level_words(each["level"] for each in told)
    headings = (
        "answer",
        "estimate",
        f"{level}interval for sampling and noise",
        "standard error: noise, sampling",
        "rests on",
    )
    rows = [_answer_row(each, "" if level else level_words([each["level"]])) for each in told]
    return Grid(headings=headings, rows=rows) if told else None


def _answer_row(told: Mapping[str, Any], level: str = "") -> tuple[str, ...]:
    """One answer as a line of a table; where it has no interval, the reason stands in its place."""
    words = f"{told['name']}: {told['words']}"
    if told["total_low"] is None:
        at = places({"value": told["estimate"]})
        return words, nearest(told["estimate"], at), told["meaning"], "", ""
    at = places({"privacy_low": told["total_low"], "privacy_high": told["total_high"]})
    errors = f"{upward(told['noise_se'], at + 1)}, {upward(told['sampling_se'], at + 1)}"
    design = told.get("design")
    errors += f" (design effect {design['design_effect']:g}, {design['source']})" if design else ""
    chosen = " (chosen from the data)" if told["chosen_from_data"] else ""
    ends = f"{downward(told['total_low'], at)} to {upward(told['total_high'], at)}"
    interval = f"{ends} ({level.strip()})" if level else ends
    return words, nearest(told["estimate"], at), interval, errors, " x ".join(told["rests_on"]) + chosen


def synth_lines(document: Mapping[str, Any]) -> Iterator[Line]:
    """One line for each table: its rows are in the files."""
    for table in document["synth"]:
        names = ", ".join(f"{name}.csv" for name in table["files"])
        yield f"{table['name']}: {table['rows']:,} synthetic rows by {table['method']} in {names}"
        answers = _answers(table)
        yield from [answers] if answers is not None else []
        yield f"  {table['guarantee']['words']}"


def _view(document: Mapping[str, Any]) -> dict[str, Any]:
    tables = synth_tables(document)
    return {"asked": [(table["name"], table["words"]) for table in tables], "tables": tables}


SYNTH = Drawing(
    heading="Synthetic rows",
    template="synth.html.j2",
    view=_view,
    lines=synth_lines,
    charts=synth_charts,
    is_estimates=False,
    uses=USE,
)
