"""Tables that add up on a page: two-way ones as they are printed, totals at the ends, and a picture of each margin."""

from collections.abc import Iterator, Sequence
from typing import Any

from reticent.answer.add_up import ALL
from reticent.release.product import Document, Grid, Line
from reticent.report import marks
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import Spec
from reticent.report.numbers import downward, nearest, upward

SHOWN = 200
DRAWN = 60
DIGITS = 1
UNIT = "respondents"


def _number(table: Document, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if table["whole"] else nearest(value, DIGITS)


def _bar(table: Document, line: Document) -> str:
    if table["whole"]:
        return f"{line['privacy_low']:,} to {line['privacy_high']:,}"
    return f"{downward(line['privacy_low'], DIGITS)} to {upward(line['privacy_high'], DIGITS)}"


def _view(document: Document) -> dict[str, Any]:
    tables = [
        {**table, "shown": [_margin(table, margin) for margin in table["margins"]]}
        for table in document.get("tables") or []
    ]
    return {"asked": [(table["name"], table["words"]) for table in tables], "tables": tables}


def _margin(table: Document, margin: Document) -> dict[str, Any]:
    """Two columns across each other; any other number line by line."""
    lines, columns = margin["lines"], margin["columns"]
    found: dict[str, Any] = {"columns": columns, "total": len(lines), "across": None, "lines": []}
    if len(columns) == 2:
        found["across"] = _across(table, columns, lines)
    else:
        found["lines"] = [
            {
                "cells": list(line["cell"].values()),
                "value": _number(table, line["value"]),
                "bar": _bar(table, line),
                "is_total": ALL in line["cell"].values(),
            }
            for line in lines[:SHOWN]
        ]
    return found


def _across(table: Document, columns: Sequence[str], lines: Sequence[Document]) -> dict[str, Any]:
    down, right = columns
    values = {(line["cell"][down], line["cell"][right]): line for line in lines}
    heads = list(dict.fromkeys(line["cell"][right] for line in lines))
    sides = list(dict.fromkeys(line["cell"][down] for line in lines))
    rows = []
    for side in sides[:SHOWN]:
        cells = [values[side, head] for head in heads]
        rows.append({"name": side, "cells": [(_number(table, c["value"]), _bar(table, c)) for c in cells]})
    return {"corner": f"{down} by {right}", "heads": heads, "rows": rows}


def _lines(document: Document) -> Iterator[Line]:
    """Each margin as a small table, if it is small; the CSV has all."""
    for table in document["tables"]:
        yield f"{table['name']}: {table['guarantee']['words']}"
        for margin in table["margins"]:
            over = " by ".join(margin["columns"])
            if len(margin["lines"]) > DRAWN:
                yield f"  {over}: {len(margin['lines']):,} cells and totals in {document['id']}.tables.csv"
                continue
            rows = [
                (*line["cell"].values(), _number(table, line["value"]), _bar(table, line))
                for line in margin["lines"]
            ]
            yield Grid(headings=(*margin["columns"], UNIT, "interval for privacy noise"), rows=rows)


def _charts(document: Document) -> Iterator[Drawn]:
    for table in document.get("tables") or []:
        for margin in table["margins"]:
            yield (
                f"{table['name']}: {' by '.join(margin['columns'])}",
                str(table["name"]),
                _charted(table, margin),
            )


def _charted(table: Document, margin: Document) -> tuple[str, Spec]:
    """The cells of a margin with their intervals, without totals."""
    cells = [line for line in margin["lines"] if ALL not in line["cell"].values()]
    rows = [
        {
            "place": place,
            "label": " · ".join(line["cell"].values()),
            "value": line["value"],
            "low": line["privacy_low"],
            "high": line["privacy_high"],
            "total_margin": None,
            "rating": "not rated",
        }
        for place, line in enumerate(cells[:DRAWN])
    ]
    caption = f"Intervals for privacy noise at {100 * table['level']:g} %."
    if len(cells) > len(rows):
        caption += f" The first {len(rows)} of {len(cells)} cells; the table has all."
    return caption, {"data": {"values": rows}, **marks.bars(rows, UNIT)}


TABLES = Drawing(heading="Tables", template="tables.html.j2", view=_view, lines=_lines, charts=_charts)
