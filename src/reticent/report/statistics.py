"""Statistics on a page, in pictures and on the terminal: single estimates, and tables of them, with their intervals."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reticent.exact import level_words
from reticent.release.labels import Labels
from reticent.release.product import Document, Grid, Line
from reticent.report import marks
from reticent.report.crosstab import MARKS, CrossCell, Crosstab, TableCells, doubt_mark, mark_legend
from reticent.report.drawing import Drawing, Drawn
from reticent.report.marks import Spec
from reticent.report.numbers import (
    NO_UNIT,
    barless,
    columns_of,
    covers,
    downward,
    has_total,
    is_table,
    nearest,
    places,
    unit_of,
    upward,
    variation,
)

MOST_CELLS = 60
MOST_LINES_DRAWN = 12
NUMBERS = {"value": "value", "low": "privacy_low", "high": "privacy_high"}
NOISE, TOTAL = "interval for privacy noise", "total interval: sampling and noise"
NO_END = "no bound"
KEY_FIGURES = 6
NARROW = "\N{NO-BREAK SPACE}"  # which a page keeps together, and a terminal may break
MOST_LINES = 60  # on a terminal; the files have all


def statistics_lines(document: Document) -> Iterator[Line]:
    """One line per estimate, with the digits that the page shows; before it, which bins weights were made of."""
    weights = document.get("weights")
    if weights:
        yield f"weights {weights['name']}: {weights['bins']} bins ({weights['strategy']}), {weights['how']}"
        if "raked" in weights:
            yield weights["raked"]["words"]
    answers, labels = document["statistics"], Labels.of(document)
    if not answers:
        return
    yield covers(document)
    yield from _drawn(answers, labels, document)
    for reason, names in totals(document, "empty", of=("statistics",)).items():
        yield f"no total interval for {'; '.join(names)}: {reason}"


def _drawn(answers: list[Any], labels: Labels, document: Document) -> Iterator[Line]:
    """Tables of two keys or more as they are printed, after all else."""
    crossed = {answer["name"]: answer_crosstab(answer, labels) for answer in answers if is_table(answer)}
    single = [answer for answer in answers if answer["name"] not in crossed]
    if single:
        yield _listed(single, [], labels, document)
    for answer in answers:
        if answer["name"] in crossed:
            yield f"{_name(answer)} ({unit_of(answer)})"
            tab = crossed[answer["name"]]
            yield tab.grid() if tab is not None else _listed([answer], columns_of(answer), labels, document)
            yield from [tab.note] if tab is not None and tab.note else []


def _listed(answers: list[Any], columns: list[str], labels: Labels, document: Document) -> Grid:
    """One line for each estimate, under the `columns` of a table, else by its name; nothing of columns that would be empty."""
    told = _lines(answers, columns, labels)
    rows = [
        (*(line["cells"] or [line["name"]]), line["value"], line["bar"], line["total"], line["rating"])
        for line in told["lines"]
    ]
    noise, total = (f"{told['level']}{words}" for words in (NOISE, TOTAL))
    first = [labels.column(column) for column in columns] or ["statistic"]
    headings = (*first, "estimate", noise, total, "reliability")
    kept = [i for i in range(len(headings)) if i < len(first) + 2 or any(row[i] for row in rows)]
    more = [(f"and {len(rows) - MOST_LINES:,} more in {document['id']}.csv", *[""] * (len(headings) - 1))] * (
        len(rows) > MOST_LINES
    )
    return Grid(
        headings=[headings[i] for i in kept],
        rows=[[row[i].replace(NARROW, " ") for i in kept] for row in [*rows[:MOST_LINES], *more]],
    )


def _level(answer: Mapping[str, Any]) -> float | None:
    """The level of the intervals of a statistic."""
    return (answer.get("interval") or {}).get("level")


def answer_crosstab(answer: Document, labels: Labels) -> Crosstab | None:
    """A table of two keys or more as it is printed; in each cell the total interval, or that of the noise."""
    return _cells(answer, labels).crossed()


def answer_list(answer: Document, labels: Labels) -> Crosstab | None:
    """A table line by line, where it is one."""
    return _cells(answer, labels).listed() if is_table(answer) else None


def _cells(answer: Document, labels: Labels) -> TableCells:
    """The cells of a table as a reader sees them, and what their intervals cover and their marks mean."""
    estimates = answer.get("estimates") or []
    has_total = any(each.get("total_low") is not None for each in estimates)
    cells = []
    for each in estimates:
        digits = places(each)
        low, high = ("total_low", "total_high") if has_total else ("privacy_low", "privacy_high")
        ends = (downward(each.get(low), digits), upward(each.get(high), digits))
        cell = CrossCell(
            value=nearest(each.get("value"), digits) or "not given",
            interval=_span(*ends),
            mark=doubt_mark(each),
            number=each.get("value"),
        )
        cells.append((each.get("cell") or {}, cell))
    covers = f"{level_words([_level(answer)])}{TOTAL if has_total else NOISE}"
    return TableCells(
        cells=cells,
        keys=columns_of(answer),
        labels=labels,
        name=_name(answer),
        unit=unit_of(answer),
        covers=covers,
        legend=mark_legend(cells),
    )


def _span(low: str, high: str, space: str = " ") -> str:
    """An interval by its ends; one that is not there has no bound on that side."""
    return f"{low or NO_END}{space}to {high or NO_END}" if low or high else ""


def statistics_view(document: Document) -> dict[str, Any]:
    """What a page says of the statistics."""
    answers, labels = document.get("statistics") or [], Labels.of(document)
    single = _lines([answer for answer in answers if not is_table(answer)], [], labels)
    return {
        "asked": [(answer.get("name"), answer.get("words") or "not described") for answer in answers],
        "single": single,
        "tables": [_table(answer, labels) for answer in answers if is_table(answer)],
    }


def key_figures(document: Document) -> list[dict[str, Any]]:
    """The first single estimates, to stand at the head of a page: name, value, and the widest interval that is given.

    Variances, which are released for the sake of others and are in squared units, only where there is nothing else.
    """
    single = [each for each in document.get("statistics") or [] if not is_table(each)]
    answers = [each for each in single if "variance" not in (each.get("query") or {})] or single
    labels = Labels.of(document)
    lines = [line for each in answers[:KEY_FIGURES] for line in _lines([each], [], labels)["lines"]]
    return [{**line, "says": _says(line)} for line in lines]


def is_rated(document: Document) -> bool:
    """Whether any estimate has a flag for its reliability."""
    told = [each for answer in document.get("statistics") or [] for each in answer.get("estimates") or []]
    margins = [margin for table in document.get("tables") or [] for margin in table["margins"]]
    return any(
        each.get("reliability") for each in [*told, *(line for each in margins for line in each["lines"])]
    )


def may_be_below_zero(document: Document) -> bool:
    """Whether the release holds counts, which noise can make negative, and that nothing has made to add up."""
    counts = ("count", "table")
    asked = any(set(counts) & set(each.get("query") or {}) for each in document.get("statistics") or [])
    return asked or any(not table.get("whole") for table in document.get("tables") or [])


def _says(line: dict[str, Any]) -> str:
    """What stands under a key figure."""
    level = level_words([line["level"]])
    if line["total"]:
        return f"{level}{TOTAL}: {line['total']}"
    return f"{level}{NOISE}: {line['bar']}" if line["bar"] else "no interval"


def meanings(document: Document) -> dict[str, list[Any]]:
    """What each kind of interval means, with the statistics it is said of."""
    answers = document.get("statistics") or []
    bare = barless(answers)
    return _meanings([answer for answer in answers if answer.get("name") not in bare])


def totals(
    document: Document, key: str, of: tuple[str, ...] = ("statistics", "tables")
) -> dict[str, list[Any]]:
    """What total intervals mean, or why they are empty, with the statistics it is said of, and the tables that add up."""
    found: dict[str, list[Any]] = {}
    for answer in document.get("statistics") or []:
        told = answer.get("total") or {}
        has = any(has_total(each) for each in answer.get("estimates") or [])
        if told.get(key) and has == (key == "meaning"):
            found.setdefault(told[key], []).append(answer.get("name"))
    for table in (document.get("tables") or []) if "tables" in of else []:
        told = table.get("total") or {}
        if told.get(key) and ("empty" in told) == (key == "empty"):
            found.setdefault(told[key], []).append(table["name"])
    return found


def parts(document: Document) -> list[dict[str, Any]]:
    """Every statistic as it was asked, for the list of its parts."""
    return [{**answer, "written": _written(answer)} for answer in document.get("statistics") or []]


def _table(answer: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    columns = columns_of(answer)
    return {
        "answer": answer,
        "unit": unit_of(answer),
        "columns": [labels.column(column) for column in columns],
        "crossed": answer_crosstab(answer, labels),
        **_lines([answer], columns, labels),
    }


def _lines(answers: list[Any], columns: list[str], labels: Labels) -> dict[str, Any]:
    """The lines of one table, which of its columns have anything to say, and the level of all its intervals.

    Where levels differ, each interval tells its own.
    """
    level = level_words(map(_level, answers))
    lines = [
        _line(answer, estimate, columns, labels, "" if level else level_words([_level(answer)]))
        for answer in answers
        for estimate in answer.get("estimates") or []
    ]
    return {
        "lines": lines,
        "level": level,
        "noise": _headed(f"{level}{NOISE}"),
        "both": _headed(f"{level}{TOTAL}"),
        "has_total": any(line["total"] for line in lines),
        "has_rating": any(line["rating"] for line in lines),
    }


def _headed(words: str) -> str:
    """As the heading of a column."""
    return words[:1].upper() + words[1:]


def _line(
    answer: Mapping[str, Any], estimate: dict[str, Any], columns: list[str], labels: Labels, own: str = ""
) -> dict[str, Any]:
    cell = estimate.get("cell") or {}
    digits, rating = places(estimate), estimate.get("reliability") or ""
    low, high = downward(estimate.get("privacy_low"), digits), upward(estimate.get("privacy_high"), digits)
    return {
        "name": answer.get("name"),
        "unit": "" if unit_of(answer) == NO_UNIT else unit_of(answer),
        "cells": [labels.level(column, cell.get(column, "")) for column in columns],
        "exact": estimate.get("value"),
        "value": nearest(estimate.get("value"), digits) or "not given",
        "bar": _with(_span(low, high, "\N{NO-BREAK SPACE}"), own),
        "level": _level(answer),
        "total": _with(_total(estimate, digits), own),
        "cv": variation(estimate.get("cv")),
        "rating": rating,
        "mark": MARKS.get(rating, ""),
    }


def _with(interval: str, level: str) -> str:
    """An interval with a level of its own, where it has one."""
    return f"{interval} ({level.strip()})" if interval and level else interval


def _total(estimate: dict[str, Any], digits: int) -> str:
    """The total interval, rounded outward; of a release that told a margin alone, the margin."""
    low, high = estimate.get("total_low"), estimate.get("total_high")
    if low is not None or high is not None:
        return _span(downward(low, digits), upward(high, digits), "\N{NO-BREAK SPACE}")
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
    answers, labels = document.get("statistics") or [], Labels.of(document)
    singles: dict[str, list[Mapping[str, Any]]] = {}
    for answer in answers:
        if not is_table(answer):
            singles.setdefault(_family(answer, answers, labels), []).append(answer)
    yield from ((unit, None, _singles(group)) for unit, group in singles.items())
    for answer in answers:
        if is_table(answer):
            yield _name(answer), _name(answer), _charted(answer, labels)


def _name(answer: Mapping[str, Any]) -> str:
    return str(answer.get("name"))


OF_COLUMNS = ("mean", "total", "median", "quantile", "variance")


def _family(answer: Mapping[str, Any], answers: list[Any], labels: Labels, depth: int = 0) -> str:
    """What may share an axis: the same unit, and sums apart from averages, weighted apart from not; without a unit the same
    column, and its variance apart."""
    query = answer.get("query") or {}
    if "difference" in query and depth < 2:
        parents = [other for other in answers if other.get("name") in query["difference"]]
        return _family(parents[0], answers, labels, depth + 1) if parents else unit_of(answer)
    key = next((each for each in OF_COLUMNS if each in query), None)
    unit = labels.column(str(query[key])) if key and not answer.get("unit") else unit_of(answer)
    if key == "total":
        return f"{unit}, total{', weighted' if query.get('weight') else ''}"
    return f"{unit}, variance" if key == "variance" and not answer.get("unit") else unit


def _singles(group: list[Mapping[str, Any]]) -> tuple[str, Spec]:
    rows = [
        _row(place, _name(answer), (answer.get("estimates") or [{}])[0]) for place, answer in enumerate(group)
    ]
    caption = f"{_levels(group)} The axis need not start at zero."
    return caption, {"data": {"values": rows}, **marks.points(rows)}


def _charted(answer: Mapping[str, Any], labels: Labels) -> tuple[str, Spec]:
    columns, estimates = columns_of(answer), list(answer.get("estimates") or [])
    years = next((column for column in columns if marks.are_years(_levels_of(estimates, column))), None)
    if years is not None:
        return over_years(estimates, columns, years, labels, unit=unit_of(answer), caption=_levels([answer]))
    outer, inner = (columns[:1], columns[1:]) if len(columns) > 1 else ([], columns)
    rows = []
    for place, estimate in enumerate(estimates[:MOST_CELLS]):
        cell = estimate.get("cell") or {}
        row = _row(
            place, " · ".join(labels.level(column, cell.get(column, "")) for column in inner), estimate
        )
        row["group"] = marks.group_text(
            "".join(
                f"{labels.column(column)}: {labels.level(column, cell.get(column, ''))}" for column in outer
            )
        )
        rows.append(row)
    caption = _levels([answer])
    if len(estimates) > len(rows):
        caption += f" The first {len(rows)} of {len(estimates)} cells; the table has all."
    plot = marks.bars(rows, unit_of(answer))
    return caption, {"data": {"values": rows}, **(marks.in_groups(plot) if outer else plot)}


def _levels_of(estimates: list[Any], column: str) -> list[str]:
    return [str((each.get("cell") or {}).get(column, "")) for each in estimates]


def over_years(
    estimates: Sequence[Any],
    columns: Sequence[str],
    years: str,
    labels: Labels,
    *,
    unit: str,
    caption: str,
) -> tuple[str, Spec]:
    """A line over the years for each combination of the other keys, one under the other."""
    others, rows = [column for column in columns if column != years], []
    for place, estimate in enumerate(estimates):
        cell = estimate.get("cell") or {}
        if not marks.are_years([str(cell.get(years, ""))], least=1):
            continue  # those whose year is missing stand in the table
        row = _row(place, "", estimate) | {"year": int(str(cell[years]))}
        group = " · ".join(labels.level(column, cell.get(column, "")) for column in others)
        row["group"] = marks.group_text(group)
        rows.append(row)
    groups = list(dict.fromkeys(row["group"] for row in rows))[:MOST_LINES_DRAWN]
    shown = [row for row in rows if row["group"] in groups]
    caption += " The band is the interval for privacy noise, the thin bars the total."
    if len(shown) < len(rows):
        caption += f" The first {len(groups)} lines; the table has all."
    plot = marks.line(shown, unit, labels.column(years))
    return caption, {"data": {"values": shown}, **(marks.lines_in_groups(plot) if others else plot)}


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
    told = [each for answer in group for each in answer.get("estimates") or []]
    kind = (
        "Intervals"
        if any(_total_ends(each)[0] is not None for each in told)
        else "Intervals for privacy noise"
    )
    return f"{kind} at {said}.{bare}"


STATISTICS = Drawing(
    heading="Estimates",
    template="statistics.html.j2",
    view=statistics_view,
    lines=statistics_lines,
    charts=statistics_charts,
)
