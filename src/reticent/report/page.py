"""One self-contained page, drawn from a Release alone. The same release is the same bytes."""

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.refine.total import CAUTION, RELIABLE
from reticent.release.release import Release
from reticent.report import words
from reticent.report.cells import cell_tables
from reticent.report.charts import HOW, specs, svg
from reticent.report.numbers import (
    barless,
    clean,
    columns_of,
    downward,
    is_table,
    nearest,
    percent,
    places,
    unit_of,
    upward,
)
from reticent.report.synth import synth_tables, uses

_MARKS = {"reliable": "●", "use with caution": "◆", "unreliable": "▲"}


def page(release: Release) -> bytes:
    """The page as HTML. It needs no network, no script, and nothing beside it."""
    document = clean(release.document)
    answers = document.get("statistics") or []
    drawn = [(chart, _inline(svg(chart))) for chart in specs(release)]
    view = {
        "document": document,
        "rehearsal": document.get("published") is not True,
        "words": words,
        "charts": drawn,
        "has_charts": all(picture for _, picture in drawn),
        "how": HOW,
        "single": _lines([answer for answer in answers if not is_table(answer)], []),
        "tables": [_table(answer) for answer in answers if is_table(answer)],
        "cells": cell_tables(document),
        "synths": synth_tables(document),
        "uses": uses(document),
        "upward": upward,
        "limits": (RELIABLE, CAUTION),
        "meanings": _meanings([answer for answer in answers if answer.get("name") not in barless(answers)]),
        "barless": barless(answers),
        "totals": _totals(answers, "meaning"),
        "empty": _totals(answers, "empty"),
        "asks": [{**answer, "written": _written(answer)} for answer in answers],
    }
    return (_environment().get_template("page.html.j2").render(view) + "\n").encode()


def _environment() -> Environment:
    # Escaping is on for every template: names in a release come from a plan (T28).
    return Environment(
        loader=PackageLoader("reticent", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _inline(drawn: str | None) -> Markup | None:
    """SVG from our own drawing part, whose text it has escaped; the one thing not escaped again."""
    return None if drawn is None else Markup(drawn)


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


def _totals(answers: list[Any], key: str) -> dict[str, list[Any]]:
    """What total intervals mean, or why they are empty, with the statistics it is said of."""
    found: dict[str, list[Any]] = {}
    for answer in answers:
        told = answer.get("total") or {}
        has = any(each.get("total_margin") is not None for each in answer.get("estimates") or [])
        if told.get(key) and has == (key == "meaning"):
            found.setdefault(told[key], []).append(answer.get("name"))
    return found


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
