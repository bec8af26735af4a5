"""Tables that add up on a page: two-way ones as they are printed, totals at the ends, and a picture of each margin."""

from collections.abc import Iterator
from typing import Any

from reticent.answer.add_up import ALL
from reticent.release.labels import Labels
from reticent.release.product import Document, Grid, Line
from reticent.report import marks
from reticent.report.crosstab import CrossCell, Crosstab, crosstab
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import Spec
from reticent.report.numbers import downward, nearest, places, upward

SHOWN = 200
DRAWN = 60
UNIT = "respondents"


def _number(table: Document, line: Document) -> str:
    return f"{line['value']:,}" if table["whole"] else nearest(line["value"], places(line))


def _bar(table: Document, line: Document) -> str:
    if table["whole"]:
        return f"{line['privacy_low']:,} to {line['privacy_high']:,}"
    digits = places(line)
    return f"{downward(line['privacy_low'], digits)} to {upward(line['privacy_high'], digits)}"


def _interval(table: Document) -> str:
    return f"{100 * table['level']:g} % interval for privacy noise"


def _view(document: Document) -> dict[str, Any]:
    labels = Labels.of(document)
    tables = [
        {**table, "shown": [_margin(table, margin, labels) for margin in table["margins"]]}
        for table in document.get("tables") or []
    ]
    return {"asked": [(table["name"], table["words"]) for table in tables], "tables": tables}


def _margin(table: Document, margin: Document, labels: Labels) -> dict[str, Any]:
    """Two columns or more across each other; where that cannot be printed, line by line."""
    lines, columns = margin["lines"], margin["columns"]
    return {
        "columns": [labels.column(column) for column in columns],
        "total": len(lines),
        "interval": _interval(table),
        "crossed": margin_crosstab(table, margin, labels),
        "lines": [
            {
                "cells": [labels.level(column, line["cell"][column]) for column in columns],
                "value": _number(table, line),
                "bar": _bar(table, line),
                "is_total": ALL in line["cell"].values(),
            }
            for line in lines[:SHOWN]
        ],
    }


def margin_crosstab(table: Document, margin: Document, labels: Labels) -> Crosstab | None:
    """A margin as it is printed, totals at the ends; None where it has one column, or too many levels."""
    cells = [
        (
            line["cell"],
            CrossCell(
                value=_number(table, line),
                interval=_bar(table, line),
                number=line["value"],
                is_total=ALL in line["cell"].values(),
            ),
        )
        for line in margin["lines"]
    ]
    name = f"{table['name']}: {' by '.join(labels.column(column) for column in margin['columns'])}"
    note = f"Under each number its {_interval(table)}."
    return crosstab(cells, margin["columns"], labels, name=name, unit=str(table["unit"]), note=note)


def _lines(document: Document) -> Iterator[Line]:
    """Each margin as a small table, if it is small; the CSV has all."""
    labels = Labels.of(document)
    for table in document["tables"]:
        yield f"{table['name']}: {table['guarantee']['words']}"
        for margin in table["margins"]:
            over = " by ".join(labels.column(column) for column in margin["columns"])
            if len(margin["lines"]) > DRAWN:
                yield f"  {over}: {len(margin['lines']):,} cells and totals in {document['id']}.tables.csv"
                continue
            crossed = margin_crosstab(table, margin, labels)
            yield f"{over} ({table['unit']})"
            yield crossed.grid() if crossed is not None else _grid(table, margin, labels)
            yield crossed.note if crossed is not None else ""


def _grid(table: Document, margin: Document, labels: Labels) -> Grid:
    told = _margin(table, margin, labels)
    rows = [(*line["cells"], line["value"], line["bar"]) for line in told["lines"]]
    return Grid(headings=(*told["columns"], UNIT, _interval(table)), rows=rows)


def _charts(document: Document) -> Iterator[Drawn]:
    for table in document.get("tables") or []:
        for margin in table["margins"]:
            yield (
                f"{table['name']}: {' by '.join(margin['columns'])}",
                str(table["name"]),
                _charted(table, margin, Labels.of(document)),
            )


def _charted(table: Document, margin: Document, labels: Labels) -> tuple[str, Spec]:
    """The cells of a margin with their intervals, without totals."""
    cells = [line for line in margin["lines"] if ALL not in line["cell"].values()]
    rows = [
        {
            "place": place,
            "label": " · ".join(labels.level(name, level) for name, level in line["cell"].items()),
            "value": line["value"],
            "low": line["privacy_low"],
            "high": line["privacy_high"],
            "total_low": None,
            "total_high": None,
            "rating": "not rated",
        }
        for place, line in enumerate(cells[:DRAWN])
    ]
    caption = f"Intervals for privacy noise at {100 * table['level']:g} %."
    if len(cells) > len(rows):
        caption += f" The first {len(rows)} of {len(cells)} cells; the table has all."
    return caption, {"data": {"values": rows}, **marks.bars(rows, UNIT)}


TABLES = Drawing(heading="Tables", template="tables.html.j2", view=_view, lines=_lines, charts=_charts)
