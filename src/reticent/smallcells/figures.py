"""The pictures of the small-cells paper as Vega-Lite, from the series of `diagnostics` and `suppress`.

Every encoding names a field of ours. A picture drawn from the rows says so in red, for it may travel alone.
"""

from typing import Any

from reticent.smallcells.diagnostics import Rows
from reticent.smallcells.suppress import Scatter

BLUE, ORANGE, GREY, RED = "#0072B2", "#D55E00", "#555555", "#A00000"
CONFIDENTIAL = "Drawn from the rows: for the curator's eyes, not for publication."
Spec = dict[str, Any]


def draw_cell(rows: Rows, points: Rows, *, at: float) -> Spec:
    """Figure 1: a cell's points, its line, and the line that one more respondent moves furthest at `at`."""
    worst = max(rows, key=lambda row: row["moved"])
    lines = [
        {"line": row["line"], "x": x, "y": row[side]}
        for row in (rows[0], worst)
        for side, x in (("left", 0.0), ("right", 1.0))
    ]
    layers = [
        {
            "data": {"values": points},
            "mark": {"type": "point", "color": GREY},
            "encoding": {"x": _axis("x"), "y": _axis("y")},
        },
        {
            "data": {"values": lines},
            "mark": {"type": "line", "clip": True},
            "encoding": {"x": _axis("x"), "y": _axis("y"), "color": _colour("line")},
        },
        {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": at}}},
    ]
    return _framed({"layer": layers}, f"One more respondent moves the prediction by {worst['moved']:.3f}")


def draw_envelope(rows: Rows) -> Spec:
    """Figure 2: local sensitivity against size, both on log scales, under the envelope."""
    line = sorted(rows, key=lambda row: row["size"])
    layers = [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 12, "color": BLUE},
            "encoding": {
                "x": _axis("size", "respondents in the cell", log=True),
                "y": _axis("local", "local sensitivity", log=True),
            },
        },
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": ORANGE},
            "encoding": {"x": _axis("size", log=True), "y": _axis("envelope", log=True)},
        },
    ]
    return _framed({"layer": layers}, "Local sensitivity and the envelope chi / N")


def draw_scatters(everything: Scatter, kept: Scatter, *, x: str, y: str) -> Spec:
    """Figure 3: the binned scatter of all cells, and of those that suppression leaves."""
    rows = [
        {"cells": name, "x": a, "y": b}
        for name, scatter in (("all cells", everything), ("cells not suppressed", kept))
        for a, b in zip(scatter.x, scatter.y, strict=True)
    ]
    mark = {"type": "point", "filled": True, "size": 50}
    spec = {
        "data": {"values": rows},
        "mark": mark,
        "encoding": {"x": _axis("x", x), "y": _axis("y", y), "color": _colour("cells")},
    }
    return _framed(
        spec, f"Slope {everything.slope:.3f} over all cells, {kept.slope:.3f} over those not suppressed"
    )


def draw_errors(rows: Rows) -> Spec:
    """The mean squared error by noise against epsilon."""
    spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": True, "color": BLUE},
        "encoding": {
            "x": _axis("epsilon", "epsilon"),
            "y": _axis("squared_error", "mean squared error by noise", log=True),
        },
    }
    return _framed(spec, "What a larger epsilon buys")


def _axis(name: str, title: str | None = None, *, log: bool = False) -> Spec:
    scale = {"type": "log", "nice": False} if log else {"zero": False}
    return {"field": name, "type": "quantitative", "title": title, "scale": scale}


def _colour(name: str) -> Spec:
    return {
        "field": name,
        "type": "nominal",
        "scale": {"range": [BLUE, ORANGE]},
        "legend": {"title": None, "orient": "bottom"},
    }


def _framed(spec: Spec, title: str) -> Spec:
    """Title and warning: all of these pictures hold numbers without noise."""
    heading = {"text": title, "anchor": "start", "subtitle": CONFIDENTIAL, "subtitleColor": RED}
    return {"width": 430, "height": 300, **spec, "title": heading, "background": "white"}
