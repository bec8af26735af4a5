"""Charts of a release, as Vega-Lite: one specification for the page, the PNG and a notebook.

Every encoding names a field of ours (`label`, `value`, `low`, ...), every expression is a constant. Names from
the plan are data, so none of them can become part of an expression (T28).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from reticent.release.release import Release
from reticent.report.clean import clean, columns_of, is_table
from reticent.report.words import BANNER

MOST_CELLS = 60
BLUE, PALE, GREY = "#0072B2", "#BFDDF0", "#555555"
RATINGS = {
    "reliable": "circle",
    "use with caution": "diamond",
    "unreliable": "triangle-up",
    "not rated": "square",
}
NUMBERS = ("value", "low", "high", "total_margin")
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: `key` names its file, `caption` says what the bars mean."""

    key: str
    title: str
    caption: str
    spec: Spec = field(repr=False)


def specs(release: Release) -> tuple[Chart, ...]:
    """Single answers by unit, then each table, in the order of the plan."""
    document = clean(release.document)
    rehearsal = document.get("published") is not True
    answers = document.get("answers") or []
    singles: dict[str, list[Mapping[str, Any]]] = {}
    for answer in answers:
        if not is_table(answer):
            singles.setdefault(_family(answer, answers), []).append(answer)
    drawn = [_singles(unit, group) for unit, group in singles.items()]
    drawn += [_table(answer) for answer in answers if is_table(answer)]
    return tuple(
        Chart(key=f"chart-{i}", title=title, caption=caption, spec=_framed(spec, title, rehearsal))
        for i, (title, caption, spec) in enumerate(drawn, start=1)
    )


def _family(answer: Mapping[str, Any], answers: list[Any], depth: int = 0) -> str:
    """What may share an axis: the same unit, and sums apart from averages, weighted apart from not."""
    unit, query = str(answer.get("unit") or "no unit"), answer.get("query") or {}
    if "difference" in query and depth < 2:
        parents = [other for other in answers if other.get("name") in query["difference"]]
        return _family(parents[0], answers, depth + 1) if parents else unit
    if not {"count", "total"} & set(query):
        return unit
    return f"{unit}{', total' if 'total' in query else ''}{', weighted' if query.get('weight') else ''}"


def _singles(unit: str, group: list[Mapping[str, Any]]) -> tuple[str, str, Spec]:
    rows = [row(answer.get("name"), (answer.get("estimates") or [{}])[0]) for answer in group]
    level = _levels(group)
    spec = {"data": {"values": rows}, **_plot(rows, bars=False, unit=unit)}
    return f"Answers in {unit}", f"{level} The axis need not start at zero.", spec


def _table(answer: Mapping[str, Any]) -> tuple[str, str, Spec]:
    columns, estimates = columns_of(answer), list(answer.get("estimates") or [])
    shown = estimates[:MOST_CELLS]
    inner = columns[1:] if len(columns) > 1 else columns
    rows = [row(" · ".join(str((e.get("cell") or {}).get(c)) for c in inner), e) for e in shown]
    caption = _levels([answer])
    if len(estimates) > len(shown):
        caption += f" The first {len(shown)} of {len(estimates)} cells; the table has all."
    plot = _plot(rows, bars=True, unit=str(answer.get("unit") or "no unit"))
    if len(columns) > 1:
        for one, estimate in zip(rows, shown, strict=True):
            one["group"] = f"{columns[0]}: {(estimate.get('cell') or {}).get(columns[0])}"
        header = {"title": None, "labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold"}
        facet = {"row": {"field": "group", "type": "nominal", "sort": None, "header": header}}
        plot = {"facet": facet, "spec": plot, "spacing": 12, "resolve": {"scale": {"y": "independent"}}}
    return str(answer.get("name")), caption, {"data": {"values": rows}, **plot}


def row(label: Any, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """One line of a chart's data: the release's own numbers, untouched."""
    lines = wrap(str(label), 26) or [""]
    return {
        "label": "\n".join([*lines[:3], *(["…"] if len(lines) > 3 else [])]),
        **{name: estimate.get(name) for name in NUMBERS},
        "rating": estimate.get("reliability") or "not rated",
    }


def _levels(group: list[Mapping[str, Any]]) -> str:
    levels = dict.fromkeys((answer.get("error_bar") or {}).get("level") for answer in group)
    said = " and ".join(f"{100 * level:g} %" for level in levels if level is not None) or "unstated"
    return f"Thick bars: privacy noise alone, level {said}. Thin lines, where given: total margin of error."


def _plot(rows: list[dict[str, Any]], *, bars: bool, unit: str) -> Spec:
    ratings = [name for name in RATINGS if any(one["rating"] == name for one in rows)]
    shape = {"domain": ratings, "range": [RATINGS[name] for name in ratings]}
    legend = {"title": None, "orient": "bottom"} if ratings != ["not rated"] else None
    y: Spec = {"field": "label", "type": "nominal", "sort": None, "title": None}
    y["axis"] = {"labelExpr": "split(datum.label, '\\n')", "labelLimit": 220, "ticks": False, "domain": False}
    return {
        "width": 300,
        "height": {"step": 24 if bars else 40},
        "encoding": {"y": y},
        "layer": [
            *(
                [{"mark": {"type": "bar", "color": PALE, "height": 14}, "encoding": {"x": _x("value", unit)}}]
                if bars
                else []
            ),
            *_whiskers(unit),
            {
                "mark": {"type": "point", "filled": True, "size": 55, "color": "black", "opacity": 1},
                "encoding": {
                    "x": _x("value", unit),
                    "shape": {"field": "rating", "type": "nominal", "scale": shape, "legend": legend},
                },
            },
        ],
    }


def _whiskers(unit: str) -> Iterator[Spec]:
    yield {
        "transform": [
            {"filter": "isValid(datum.total_margin)"},
            {"calculate": "datum.value - datum.total_margin", "as": "from"},
            {"calculate": "datum.value + datum.total_margin", "as": "to"},
        ],
        "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.2},
        "encoding": {"x": _x("from", unit), "x2": {"field": "to"}},
    }
    yield {
        "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
        "mark": {"type": "rule", "color": BLUE, "strokeWidth": 5},
        "encoding": {"x": _x("low", unit), "x2": {"field": "high"}},
    }


def _x(name: str, unit: str) -> Spec:
    return {
        "field": name,
        "type": "quantitative",
        "title": unit,
        "scale": {"zero": False},
        "axis": {"tickCount": 5},
    }


def _framed(spec: Spec, title: str, rehearsal: bool) -> Spec:
    """Title, a rehearsal's mark (a PNG may travel alone), and one look for all."""
    marked = (
        {"subtitle": BANNER, "subtitleColor": "#A00000", "subtitleFontWeight": "bold"} if rehearsal else {}
    )
    return {
        **spec,
        "title": {"text": wrap(title, 60) or [""], "anchor": "start", "frame": "group", **marked},
        "background": "white",
        "padding": 6,
        "config": {
            "aria": False,
            "font": "Helvetica, Arial, sans-serif",
            "view": {"stroke": None},
            "title": {"fontSize": 15, "subtitleFontSize": 13},
            "axis": {"labelFontSize": 13, "titleFontSize": 13, "gridColor": "#E4E4E4"},
            "header": {"labelFontSize": 13, "labelLimit": 420},
            "legend": {"labelFontSize": 13},
        },
    }
