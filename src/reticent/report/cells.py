"""Tables of small cells on a page: a summary, the first cells, and two pictures, from released numbers alone."""

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any

from reticent.exact import level_words
from reticent.release.labels import Labels
from reticent.release.product import Line
from reticent.report import marks
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import BLUE, PALE, Spec
from reticent.report.numbers import downward, nearest, places, scale_text, upward

SHOWN = 60
BINS = 40
DOTS = 400
FEWEST = 10  # dots, before they are a picture
Table = Mapping[str, Any]


def cell_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a page says of each table of cells."""
    labels = Labels.of(document)
    return [
        {
            **{key: value for key, value in table.items() if key != "columns"},
            "titled": titled(table),
            "chi": {group: scale_text(chi) for group, chi in (table.get("chi") or {}).items()},
            "cell": labels.column(table["cell"]),
            "error_of": error_of(table),
            "intervals": _intervals(table),
            "told": _told(table),
            "has_errors": any(error is not None for error in table["columns"]["standard_error"]),
            "has_counts": any(count is not None for count in table["columns"]["count"]),
            "total": len(table["columns"]["cell"]),
            "lines": _lines(table, labels),
        }
        for table in document.get("cells") or []
    ]


def titled(table: Table) -> str:
    """The name; wherever an observed table is named, so is what it is."""
    return f"{table['name']} ({table['label']})" if table.get("label") else str(table["name"])


def error_of(table: Table) -> str:
    """What the standard error of a table is one of: sampling is in it only where that was bought."""
    return "sampling and noise" if _holds_sampling(table) else "privacy noise alone"


def _holds_sampling(table: Table) -> bool:
    return "standard errors" in (table.get("epsilon") or {})


def _intervals(table: Table) -> str:
    """What the intervals of a table are, at which level; nothing where it has none."""
    has_any = any(low is not None for low in table["columns"]["low"])
    return f"{level_words([table['level']])}interval for {error_of(table)}" if has_any else ""


def _told(table: Table) -> str:
    """What is said of the intervals, or why there are none."""
    meaning = f"; {table['meaning']}" if table.get("meaning") else ""
    named = _intervals(table)
    return f"Of each cell a {named}{meaning}." if named else f"No intervals{meaning}."


def cell_intervals(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the intervals of each table cover, where it has any."""
    return [
        {"name": titled(table), "covers": error_of(table)}
        for table in document.get("cells") or []
        if _intervals(table)
    ]


def _lines(table: Table, labels: Labels) -> list[dict[str, Any]]:
    columns = table["columns"]
    found = []
    for place, cell in enumerate(columns["cell"][:SHOWN]):
        low, high = columns["low"][place], columns["high"][place]
        digits = places({"value": columns["estimate"][place], "privacy_low": low, "privacy_high": high})
        bar = f"{downward(low, digits)} to {upward(high, digits)}" if low is not None else ""
        error, count = columns["standard_error"][place], columns["count"][place]
        found.append(
            {
                "cell": labels.level(table["cell"], cell),
                "estimate": nearest(columns["estimate"][place], digits) or "withheld",
                "error": upward(error, digits),
                "bar": bar,
                "count": "" if count is None else f"{count:,}",
            }
        )
    return found


def cell_charts(document: Mapping[str, Any]) -> Iterator[Drawn]:
    """Title, table, caption and specification of each picture."""
    for table in document.get("cells") or []:
        name = str(table["name"])
        values = [value for value in table["columns"]["estimate"] if value is not None]
        if len(table["columns"]["cell"]) <= SHOWN:
            yield titled(table), name, _listed(table, Labels.of(document))
        elif values:
            yield titled(table), name, _histogram(table, values)
        dots = _dots(table)
        if len(dots) >= FEWEST:
            yield f"Noise by size, {titled(table)}", name, _scatter(dots)


def _listed(table: Table, labels: Labels) -> tuple[str, Spec]:
    """Every cell with its interval."""
    columns, which = table["columns"], "total_" if _holds_sampling(table) else ""
    rows = [
        {
            "place": place,
            "label": labels.level(table["cell"], cell),
            "value": columns["estimate"][place],
            **dict.fromkeys(("low", "high", "total_low", "total_high")),
            **{f"{which}{end}": columns[end][place] for end in ("low", "high")},
            "rating": "not rated",
        }
        for place, cell in enumerate(columns["cell"])
    ]
    plot = marks.bars(rows, str(table.get("unit") or "estimate"))
    named = _intervals(table)
    caption = f"Of each cell a {named}, where one is given." if named else _told(table)
    return caption, {"data": {"values": rows}, **plot}


def _histogram(table: Table, values: list[float]) -> tuple[str, Spec]:
    """How many cells have an estimate in each of forty bins of the declared range; beyond it, in the outermost."""
    low, high = table["range"]
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, max(0, int((value - low) / (high - low) * BINS)))] += 1
    width = (high - low) / BINS
    rows = [
        {"from": low + i * width, "to": low + (i + 1) * width, "count": count}
        for i, count in enumerate(counts)
    ]
    spec = {
        "width": marks.WIDE,
        "height": 200,
        "data": {"values": rows},
        "mark": {"type": "bar", "color": PALE, "stroke": BLUE},
        "encoding": {
            "x": {"field": "from", "type": "quantitative", "bin": {"binned": True}, "title": "estimate"},
            "x2": {"field": "to"},
            "y": {"field": "count", "type": "quantitative", "title": "cells"},
        },
    }
    return "Noisy estimates; those beyond the declared range stand in the outermost bins.", spec


def _dots(table: Table) -> list[dict[str, float]]:
    """Noisy count and spread of the noise, for cells taken evenly."""
    columns = table["columns"]
    pairs = [
        {"count": count, "spread": sqrt(variance)}
        for count, variance in zip(columns["count"], columns["noise_variance"], strict=True)
        if count is not None and count > 0 and variance
    ]
    return pairs[:: max(1, -(-len(pairs) // DOTS))]


def _scatter(dots: list[dict[str, float]]) -> tuple[str, Spec]:
    def axis(name: str, title: str) -> Spec:
        return {
            "field": name,
            "type": "quantitative",
            "title": title,
            "scale": {"type": "log", "nice": False, "padding": 8},
            "axis": {
                "tickCount": 5,
                "labelExpr": "format(datum.value, ',~r')",
                "labelOverlap": True,
                "labelSeparation": 8,
            },
        }

    spec = {
        "width": marks.WIDE,
        "height": 260,
        "data": {"values": dots},
        "mark": {"type": "point", "filled": True, "size": 20, "color": BLUE},
        "encoding": {
            "x": axis("count", "noisy count of the cell"),
            "y": axis("spread", "standard deviation of the noise"),
        },
    }
    return f"{len(dots)} cells, both axes logarithmic.", spec


def cell_lines(document: Mapping[str, Any]) -> Iterator[Line]:
    """One line for each table: its cells are in the CSV."""
    for table in document["cells"]:
        count, place = len(table["columns"]["cell"]), f"{document['id']}.cells.csv"
        yield f"{table['name']}: {count:,} cells by method {table['method']} in {place}"
        yield f"  {table['label'] or table['guarantee']['words']}"
        yield f"  {_told(table)}"
        yield from (f"  not protected: {said}" for said in table["unprotected"])


def _view(document: Mapping[str, Any]) -> dict[str, Any]:
    tables = cell_tables(document)
    return {"asked": [(table["titled"], table["words"]) for table in tables], "tables": tables}


CELLS = Drawing(
    heading="Estimates", template="cells.html.j2", view=_view, lines=cell_lines, charts=cell_charts
)
