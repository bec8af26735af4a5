"""Tables that add up on a page: two-way ones as they are printed, totals at the ends, and a picture of each margin."""

from collections.abc import Iterator
from typing import Any

from reticent.answer.add_up import ALL
from reticent.release.labels import Labels
from reticent.release.product import Document, Grid, Line
from reticent.report import marks
from reticent.report.crosstab import CrossCell, Crosstab, TableCells, doubt_mark, mark_legend
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import Spec
from reticent.report.numbers import downward, nearest, places, upward
from reticent.report.statistics import NOISE, TOTAL, over_years

SHOWN = 200
DRAWN = 60


def _unit(table: Document) -> str:
    return str(table.get("unit") or "respondents")


def _number(table: Document, line: Document) -> str:
    return f"{line['value']:,}" if table["whole"] else nearest(line["value"], places(line))


def _bar(table: Document, line: Document, kind: str = "privacy") -> str:
    """An interval of a line, for the noise or the total; nothing where it has none."""
    low, high = line.get(f"{kind}_low"), line.get(f"{kind}_high")
    if low is None or high is None:
        return ""
    if table["whole"]:
        return f"{low:,} to {high:,}"
    digits = places(line)
    return f"{downward(low, digits)} to {upward(high, digits)}"


def _titled(table: Document, margin: Document, labels: Labels) -> str:
    """The table, and which margin of it."""
    return f"{table['name']}: {' by '.join(labels.column(column) for column in margin['columns'])}"


def _has_total(table: Document) -> bool:
    """Whether the tables have total intervals; those of earlier releases have none."""
    return bool(table.get("total")) and "empty" not in table["total"]


def _interval(table: Document, words: str = NOISE) -> str:
    return f"{100 * table['level']:g} % {words}"


def _no_total(table: Document) -> str:
    return str((table.get("total") or {}).get("empty") or "")


def _view(document: Document) -> dict[str, Any]:
    labels = Labels.of(document)
    tables = [
        {
            **table,
            "shown": [_margin(table, margin, labels) for margin in table["margins"]],
            "has_total": _has_total(table),
            "no_total": _no_total(table),
        }
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
        "total_interval": _interval(table, TOTAL) if _has_total(table) else "",
        "crossed": margin_crosstab(table, margin, labels),
        "lines": [
            {
                "cells": [labels.level(column, line["cell"][column]) for column in columns],
                "value": _number(table, line),
                "bar": _bar(table, line),
                "total": _bar(table, line, "total"),
                "reliability": line.get("reliability") or "",
                "is_total": ALL in line["cell"].values(),
            }
            for line in lines[:SHOWN]
        ],
    }


def margin_crosstab(table: Document, margin: Document, labels: Labels) -> Crosstab | None:
    """A margin as it is printed, totals at the ends; None where it has one column, or too many levels."""
    return _cells(table, margin, labels).crossed()


def margin_list(table: Document, margin: Document, labels: Labels) -> Crosstab:
    """A margin line by line."""
    return _cells(table, margin, labels).listed()


def _cells(table: Document, margin: Document, labels: Labels) -> TableCells:
    """The cells of a margin as a reader sees them, and what is said of them."""
    has_total = _has_total(table)
    cells = [
        (
            line["cell"],
            CrossCell(
                value=_number(table, line),
                interval=_bar(table, line, "total" if has_total else "privacy"),
                mark=doubt_mark(line),
                number=line["value"],
                is_total=ALL in line["cell"].values(),
            ),
        )
        for line in margin["lines"]
    ]
    return TableCells(
        cells=cells,
        keys=margin["columns"],
        labels=labels,
        name=_titled(table, margin, labels),
        unit=str(table["unit"]),
        covers=_interval(table, TOTAL if has_total else NOISE),
        legend=mark_legend(cells),
    )


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
        if _no_total(table):
            yield f"  no total interval: {_no_total(table)}"


def _grid(table: Document, margin: Document, labels: Labels) -> Grid:
    told = _margin(table, margin, labels)
    more = ("total", "reliability") if _has_total(table) else ()
    rows = [
        (*line["cells"], line["value"], line["bar"], *(line[key] for key in more)) for line in told["lines"]
    ]
    headings = (told["total_interval"], "reliability") if more else ()
    return Grid(headings=(*told["columns"], _unit(table), _interval(table), *headings), rows=rows)


def _charts(document: Document) -> Iterator[Drawn]:
    for table in document.get("tables") or []:
        for margin in table["margins"]:
            yield (
                _titled(table, margin, Labels.of(document)),
                str(table["name"]),
                _charted(table, margin, Labels.of(document)),
            )


def _charted(table: Document, margin: Document, labels: Labels) -> tuple[str, Spec]:
    """The cells of a margin with their intervals, without totals; of several columns, a part for each level of the first."""
    cells = [line for line in margin["lines"] if ALL not in line["cell"].values()]
    caption = f"Intervals for privacy noise at {100 * table['level']:g} %"
    caption += ", and thin beyond them the total." if _has_total(table) else "."
    for column in margin["columns"]:
        if marks.are_years([line["cell"][column] for line in cells]):
            return over_years(
                cells,
                margin["columns"],
                column,
                labels,
                unit=_unit(table),
                caption=f"Intervals at {100 * table['level']:g} %.",
            )
    outer = margin["columns"][0] if len(margin["columns"]) > 1 else ""
    rows = [
        {
            "place": place,
            "group": marks.group_text(_group(outer, line, labels)) if outer else "",
            "label": " · ".join(
                labels.level(name, line["cell"][name]) for name in margin["columns"] if name != outer
            ),
            "value": line["value"],
            "low": line["privacy_low"],
            "high": line["privacy_high"],
            "total_low": line.get("total_low"),
            "total_high": line.get("total_high"),
            "rating": line.get("reliability") or "not rated",
        }
        for place, line in enumerate(cells[:DRAWN])
    ]
    if len(cells) > len(rows):
        caption += f" The first {len(rows)} of {len(cells)} cells; the table has all."
    plot = marks.bars(rows, _unit(table))
    return caption, {"data": {"values": rows}, **(marks.in_groups(plot) if outer else plot)}


def _group(outer: str, line: Document, labels: Labels) -> str:
    return f"{labels.column(outer)}: {labels.level(outer, line['cell'][outer])}"


TABLES = Drawing(heading="Tables", template="tables.html.j2", view=_view, lines=_lines, charts=_charts)
