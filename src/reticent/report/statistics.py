"""Statistics on a page, in pictures and on the terminal: single estimates, and tables of them, with their intervals."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reticent.release.product import Document, Grid, Line
from reticent.report import marks
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import Spec
from reticent.report.numbers import (
    barless,
    columns_of,
    downward,
    is_table,
    nearest,
    percent,
    places,
    unit_of,
    upward,
)
from reticent.report.words import covers

MOST_CELLS = 60
NUMBERS = {"value": "value", "low": "privacy_low", "high": "privacy_high"}
_MARKS = {"reliable": "●", "use with caution": "◆", "unreliable": "▲"}
HEADINGS = (
    "statistic",
    "cell",
    "estimate",
    "interval for privacy noise",
    "total: sampling and noise",
    "reliability",
)


def statistics_lines(document: Document) -> Iterator[Line]:
    """One line per estimate, with the digits that the page shows; before it, which bins weights were made of."""
    weights = document.get("weights")
    if weights:
        yield f"weights {weights['name']}: {weights['bins']} bins ({weights['strategy']}), {weights['how']}"
        if "raked" in weights:
            yield weights["raked"]["words"]
    answers = document["statistics"]
    rows = [_shown(answer, estimate) for answer in answers for estimate in answer["estimates"]]
    if rows:
        yield covers(document)
    yield Grid(headings=HEADINGS, rows=rows)


def _shown(answer: Document, estimate: dict[str, Any]) -> tuple[str, ...]:
    cell = "; ".join(f"{name} = {level}" for name, level in estimate["cell"].items())
    digits = places(estimate)
    ends = (downward(estimate["privacy_low"], digits), upward(estimate["privacy_high"], digits))
    bar = " to ".join(ends) if all(ends) else ""
    whole = (downward(estimate.get("total_low"), digits), upward(estimate.get("total_high"), digits))
    total = " to ".join(whole) if all(whole) else ""
    value = nearest(estimate["value"], digits)
    return (answer["name"], cell, value, bar, total, estimate["reliability"] or "")


def statistics_view(document: Document) -> dict[str, Any]:
    """What a page says of the statistics."""
    answers = document.get("statistics") or []
    return {
        "asked": [(answer.get("name"), answer.get("words") or "not described") for answer in answers],
        "single": _lines([answer for answer in answers if not is_table(answer)], []),
        "tables": [_table(answer) for answer in answers if is_table(answer)],
    }


def meanings(document: Document) -> dict[str, list[Any]]:
    """What each kind of interval means, with the statistics it is said of."""
    answers = document.get("statistics") or []
    bare = barless(answers)
    return _meanings([answer for answer in answers if answer.get("name") not in bare])


def totals(document: Document, key: str) -> dict[str, list[Any]]:
    """What total intervals mean, or why they are empty, with the statistics it is said of."""
    found: dict[str, list[Any]] = {}
    for answer in document.get("statistics") or []:
        told = answer.get("total") or {}
        has = any(each.get("total_margin") is not None for each in answer.get("estimates") or [])
        if told.get(key) and has == (key == "meaning"):
            found.setdefault(told[key], []).append(answer.get("name"))
    return found


def parts(document: Document) -> list[dict[str, Any]]:
    """Every statistic as it was asked, for the list of its parts."""
    return [{**answer, "written": _written(answer)} for answer in document.get("statistics") or []]


def _table(answer: Mapping[str, Any]) -> dict[str, Any]:
    columns = columns_of(answer)
    return {"answer": answer, "unit": unit_of(answer), "columns": columns, **_lines([answer], columns)}


def _lines(answers: list[Any], columns: list[str]) -> dict[str, Any]:
    """The lines of one table, and which of its columns have anything to say."""
    lines = [
        _line(answer, estimate, columns) for answer in answers for estimate in answer.get("estimates") or []
    ]
    return {
        "lines": lines,
        "has_total": any(line["total"] for line in lines),
        "has_rating": any(line["rating"] for line in lines),
    }


def _line(answer: Mapping[str, Any], estimate: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    digits, rating = places(estimate), estimate.get("reliability") or ""
    low, high = downward(estimate.get("privacy_low"), digits), upward(estimate.get("privacy_high"), digits)
    return {
        "name": answer.get("name"),
        "unit": unit_of(answer),
        "cells": [(estimate.get("cell") or {}).get(column, "") for column in columns],
        "exact": estimate.get("value"),
        "value": nearest(estimate.get("value"), digits) or "not given",
        "bar": f"{low or 'no bound'}\N{NO-BREAK SPACE}to {high or 'no bound'}" if low or high else "",
        "level": (answer.get("interval") or {}).get("level"),
        "total": _total(estimate, digits),
        "cv": percent(estimate.get("cv")),
        "rating": rating,
        "mark": _MARKS.get(rating, ""),
    }


def _total(estimate: dict[str, Any], digits: int) -> str:
    """The total interval, rounded outward; of a release that told a margin alone, the margin."""
    low, high = estimate.get("total_low"), estimate.get("total_high")
    if low is not None and high is not None:
        return f"{downward(low, digits)}\N{NO-BREAK SPACE}to {upward(high, digits)}"
    margin = upward(estimate.get("total_margin"), digits)
    return f"±\N{NO-BREAK SPACE}{margin}" if margin else ""


def _meanings(answers: list[Any]) -> dict[str, list[Any]]:
    """What each kind of error bar means, with the answers it is said of."""
    found: dict[str, list[Any]] = {}
    for answer in answers:
        meaning = (answer.get("interval") or {}).get("meaning")
        if meaning:
            found.setdefault(meaning, []).append(answer.get("name"))
    return found


def _written(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer.get("query"), ensure_ascii=False, sort_keys=True)


def statistics_charts(document: Document) -> Iterator[Drawn]:
    """Single estimates by unit, then each table."""
    answers = document.get("statistics") or []
    singles: dict[str, list[Mapping[str, Any]]] = {}
    for answer in answers:
        if not is_table(answer):
            singles.setdefault(_family(answer, answers), []).append(answer)
    yield from ((unit, None, _singles(group)) for unit, group in singles.items())
    for answer in answers:
        if is_table(answer):
            yield _name(answer), _name(answer), _charted(answer)


def _name(answer: Mapping[str, Any]) -> str:
    return str(answer.get("name"))


def _family(answer: Mapping[str, Any], answers: list[Any], depth: int = 0) -> str:
    """What may share an axis: the same unit, and sums apart from averages, weighted apart from not."""
    query, unit = answer.get("query") or {}, unit_of(answer)
    if "difference" in query and depth < 2:
        parents = [other for other in answers if other.get("name") in query["difference"]]
        return _family(parents[0], answers, depth + 1) if parents else unit
    return f"{unit}, total{', weighted' if query.get('weight') else ''}" if "total" in query else unit


def _singles(group: list[Mapping[str, Any]]) -> tuple[str, Spec]:
    rows = [
        _row(place, _name(answer), (answer.get("estimates") or [{}])[0]) for place, answer in enumerate(group)
    ]
    caption = f"{_levels(group)} The axis need not start at zero."
    return caption, {"data": {"values": rows}, **marks.points(rows)}


def _charted(answer: Mapping[str, Any]) -> tuple[str, Spec]:
    columns, estimates = columns_of(answer), list(answer.get("estimates") or [])
    outer, inner = (columns[:1], columns[1:]) if len(columns) > 1 else ([], columns)
    rows = []
    for place, estimate in enumerate(estimates[:MOST_CELLS]):
        cell = estimate.get("cell") or {}
        row = _row(place, " · ".join(str(cell.get(column, "")) for column in inner), estimate)
        row["group"] = "".join(f"{column}: {cell.get(column, '')}" for column in outer)
        rows.append(row)
    caption = _levels([answer])
    if len(estimates) > len(rows):
        caption += f" The first {len(rows)} of {len(estimates)} cells; the table has all."
    plot = marks.bars(rows, unit_of(answer))
    return caption, {"data": {"values": rows}, **(marks.in_groups(plot) if outer else plot)}


def _row(place: int, label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """One line of a chart's data: the release's own numbers, untouched."""
    numbers = {name: estimate.get(key) for name, key in NUMBERS.items()}
    numbers |= dict(zip(("total_low", "total_high"), _total_ends(estimate), strict=True))
    rating = estimate.get("reliability") or "not rated"
    return {"place": place, "label": label, **numbers, "rating": rating}


def _total_ends(estimate: Mapping[str, Any]) -> tuple[Any, Any]:
    """The ends of the total interval; of a release that told a margin alone, as far on either side."""
    value, margin = estimate.get("value"), estimate.get("total_margin")
    if estimate.get("total_low") is not None:
        return estimate["total_low"], estimate.get("total_high")
    return (None, None) if margin is None or value is None else (value - margin, value + margin)


def _levels(group: list[Mapping[str, Any]]) -> str:
    levels = dict.fromkeys((answer.get("interval") or {}).get("level") for answer in group)
    said = " and ".join(f"{100 * level:g} %" for level in levels if level is not None) or "unstated"
    bare = " A point without an interval: its noise has a confidential scale." if barless(group) else ""
    return f"Intervals for privacy noise at {said}.{bare}"


STATISTICS = Drawing(
    heading="Estimates",
    template="statistics.html.j2",
    view=statistics_view,
    lines=statistics_lines,
    charts=statistics_charts,
)
