"""How a chart looks: points, whiskers and bars as Vega-Lite layers, in colours every reader can tell apart.

Every encoding names a field of ours and every expression is a constant: names from the plan are data, so none
of them can become part of an expression (T28).
"""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from reticent.report.words import BANNER

BLUE, PALE, GREY, RED = "#0072B2", "#BFDDF0", "#555555", "#A00000"
RATINGS = {
    "reliable": "circle",
    "use with caution": "diamond",
    "unreliable": "triangle-up",
    "not rated": "square",
}
WIDE, BESIDE = 430, 150  # the whole chart, and the labels beside its bars
IN_ORDER = {"field": "place", "op": "min"}
Spec = dict[str, Any]


def points(rows: list[dict[str, Any]]) -> Spec:
    """A point and its whiskers on each line, the label above them."""
    label = {"type": "text", "align": "left", "dy": -14, "fontSize": 14, "limit": WIDE}
    values = _points(rows, None)
    if not any(row["low"] is not None for row in rows):
        values["encoding"]["x"]["scale"] = {"zero": True}  # a point alone spans no axis
    layers = [_label(label, 0), *_whiskers(None), values]
    return {"width": WIDE, "height": {"step": 44}, "encoding": {"y": _y()}, "layer": layers}


def bars(rows: list[dict[str, Any]], unit: str) -> Spec:
    """A bar from zero with its whiskers on each line, the label beside it."""
    label = {"type": "text", "align": "right", "fontSize": 14, "limit": BESIDE - 10}
    bar = {"mark": {"type": "bar", "color": PALE, "height": 14}, "encoding": {"x": _x("value", unit)}}
    layers = [bar, _label(label, -10), *_whiskers(unit), _points(rows, unit)]
    return {"width": WIDE - BESIDE, "height": {"step": 24}, "encoding": {"y": _y()}, "layer": layers}


def in_groups(plot: Spec) -> Spec:
    """The same plot once for each `group`, one under the other, on one axis."""
    header = {"title": None, "labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold"}
    facet = {"row": {"field": "group", "type": "nominal", "sort": IN_ORDER, "header": header}}
    return {"facet": facet, "spec": plot, "spacing": 12, "resolve": {"scale": {"y": "independent"}}}


def framed(spec: Spec, title: str, *, rehearsal: bool) -> Spec:
    """Title, a rehearsal's mark (a picture may travel alone), and one look for all."""
    heading: Spec = {"text": wrap(title, 50) or [""], "anchor": "start", "frame": "bounds", "offset": 10}
    if rehearsal:
        heading |= {"subtitle": BANNER, "subtitleColor": RED, "subtitleFontWeight": "bold"}
    config = {
        "aria": False,
        "font": "Helvetica, Arial, sans-serif",
        "view": {"stroke": None},
        "title": {"fontSize": 15, "subtitleFontSize": 14},
        "axis": {
            "labelFontSize": 14,
            "titleFontSize": 14,
            "titleLimit": WIDE - BESIDE,
            "gridColor": "#E4E4E4",
        },
        "header": {"labelFontSize": 14, "labelLimit": WIDE - BESIDE},
        "legend": {"labelFontSize": 14},
    }
    return {**spec, "title": heading, "background": "white", "padding": 6, "config": config}


def _y() -> Spec:
    # The line's place, not its label: two labels may be alike, and lines stay in the order of the plan.
    return {"field": "place", "type": "ordinal", "axis": None}


def _x(name: str, unit: str | None) -> Spec:
    """The axis. Bars, whose unit stands under them, begin at zero; points, under a title, need not."""
    scale, axis = {"zero": unit is not None}, {"tickCount": 5}
    return {"field": name, "type": "quantitative", "title": unit, "scale": scale, "axis": axis}


def _label(mark: Spec, x: int) -> Spec:
    return {"mark": mark, "encoding": {"x": {"value": x}, "text": {"field": "label", "type": "nominal"}}}


def _points(rows: list[dict[str, Any]], unit: str | None) -> Spec:
    """The values. Shape says how reliable they are, so that colour need not."""
    ratings = [name for name in RATINGS if any(row["rating"] == name for row in rows)]
    shapes = {"domain": ratings, "range": [RATINGS[name] for name in ratings]}
    legend = {"title": None, "orient": "bottom"} if ratings != ["not rated"] else None
    shape = {"field": "rating", "type": "nominal", "scale": shapes, "legend": legend}
    mark = {"type": "point", "filled": True, "size": 38, "color": "black", "opacity": 1}
    return {"mark": mark, "encoding": {"x": _x("value", unit), "shape": shape}}


def _whiskers(unit: str | None) -> Iterator[Spec]:
    """The total interval, thin, and over it that of the noise, thick; each only where it is given."""
    yield {
        "transform": [{"filter": "isValid(datum.total_low) && isValid(datum.total_high)"}],
        "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.2},
        "encoding": {"x": _x("total_low", unit), "x2": {"field": "total_high"}},
    }
    yield {
        "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
        "mark": {"type": "rule", "color": BLUE, "strokeWidth": 5},
        "encoding": {"x": _x("low", unit), "x2": {"field": "high"}},
    }
