"""The lab's charts as Vega-Lite, in the look of the report: boxes around the true line, bias against spread.

Quantiles are computed here and not by the chart, so a chart holds a few numbers and not every run.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from reticent.errors import ReticentError
from reticent.files import refusal, written_beside
from reticent.lab.run.summary import Floats
from reticent.report.charts import converter
from reticent.report.drawing import HOW
from reticent.report.marks import BLUE, GREY, IN_ORDER, PALE, Spec, framed

SILVER, ORANGE = "#DDDDDD", "#D55E00"
BOX = {"from": 0.05, "left": 0.25, "middle": 0.5, "right": 0.75, "to": 0.95}
BOX_WORDS = (
    "Difference from the truth, in % of it. Box: the middle half of the runs, and their median; whiskers: from 5 % "
    "to 95 % of the runs. Dashed: the truth. Each panel has its own scale."
)


def box(values: Floats, *, panel: str, label: str, noisy: bool) -> dict[str, Any]:
    """One line of a box plot: the label of the line, the panel it belongs to, and five quantiles."""
    numbers = {name: float(np.quantile(values, share)) for name, share in BOX.items()}
    return {"panel": panel, "label": label, "noisy": noisy, **numbers}


def boxes(rows: Iterable[Mapping[str, Any]], *, columns: int = 2) -> Spec:
    """Small multiples of boxes, lines in the order given, the truth at zero; each panel has its own scale in %."""
    lines = [{**row, "place": place} for place, row in enumerate(rows)]
    labels = list(dict.fromkeys(line["label"] for line in lines))
    y = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": {"ticks": False}}
    fill = {"condition": {"test": "datum.noisy", "value": PALE}, "value": SILVER}
    edge = {"condition": {"test": "datum.noisy", "value": BLUE}, "value": GREY}
    layers = [
        _span("from", "to", {"type": "rule", "strokeWidth": 1.5}, {"y": y, "color": edge}),
        _span("left", "right", {"type": "bar", "height": 12}, {"y": y, "fill": fill, "stroke": edge}),
        {
            "mark": {"type": "tick", "thickness": 2.5, "height": 12, "color": "black", "opacity": 1},
            "encoding": {"x": _x("middle"), "y": y},
        },
        {
            "mark": {"type": "rule", "color": "black", "strokeDash": [4, 3], "strokeWidth": 1},
            "encoding": {"x": {"datum": 0}},
        },
    ]
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 13}
    return {
        "data": {"values": lines},
        "facet": {"field": "panel", "type": "nominal", "sort": IN_ORDER, "header": header},
        "columns": columns,
        "spacing": {"row": 16, "column": 30},
        "spec": {"width": 250, "height": {"step": 19}, "layer": layers},
        "resolve": {"scale": {"x": "independent"}, "axis": {"x": "independent"}},
    }


def bias_against_spread(rows: list[dict[str, Any]], *, kinds: Mapping[str, str], runs: int) -> Spec:
    """A point for each `kind` and `label`: its `spread` across and its absolute `bias` upwards, on log scales.

    On the solid line bias equals spread. Below the dashed one, at two standard errors, a bias cannot be told
    from chance. `kinds` gives each kind its colour.
    """
    shown = sorted((row for row in rows if row["spread"] > 0 and row["bias"] > 0), key=lambda r: r["bias"])
    across = [scale * pick(r["spread"] for r in shown) for scale, pick in ((0.7, min), (1.4, max))]
    upward = [0.5 * shown[0]["bias"], 2 * max(shown[-1]["bias"], across[1])]
    x = _log("spread", "standard deviation over the runs, in % of the truth", across)
    y = _log("bias", "absolute bias, in % of the truth", upward)
    lines = [
        _line([{"spread": end, "bias": end * factor} for end in across], dash, x, y)
        for factor, dash in ((1.0, [1, 0]), (2 / np.sqrt(runs), [5, 4]))
    ]
    # Names stand to the left of the points on the left, so that neighbours do not write over each other.
    named = sorted((r for r in shown if r["bias"] > 3 * r["spread"]), key=lambda r: r["spread"])
    half = -(-len(named) // 2)
    words = [_words(named[:half], "right", x, y), _words(named[half:], "left", x, y)]
    return {"width": 520, "height": 380, "layer": [*lines, _points(shown, kinds, x, y), *words]}


def titled(spec: Spec, title: str, *words: str, width: int = 95) -> Spec:
    """Title, and under it what a reader must know: data, epsilon, runs, and what the marks mean."""
    made = framed(spec, title, rehearsal=False)
    under = [line for text in words for line in wrap(text, width)]
    made["title"] = made["title"] | {
        "text": title,
        "subtitle": under,
        "subtitleColor": GREY,
        "subtitleFontSize": 13,
        "subtitlePadding": 6,
    }
    return made


def write(charts: Mapping[str, Mapping[str, Any]], folder: Path, *, scale: float = 2.0) -> list[Path]:
    """Every chart as SVG, PNG and a page of its own, in place of what an earlier run drew there."""
    part = converter()
    if part is None:
        raise ReticentError(f"need vl-convert; install it with {HOW}", field="figures")
    written = []
    for name, chart in charts.items():
        made = {
            ".svg": part.vegalite_to_svg(dict(chart), allowed_base_urls=[]).encode(),
            ".png": part.vegalite_to_png(dict(chart), scale=scale, allowed_base_urls=[]),
            ".html": part.vegalite_to_html(dict(chart), bundle=True).encode(),
        }
        written += [_put(folder / f"{name}{ending}", data) for ending, data in made.items()]
    return written


def _put(path: Path, data: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path, data, mode=0o644) as temporary:
            os.replace(temporary, path)
    except OSError as error:
        raise refusal(error, path.name) from None
    return path


def _x(name: str) -> Spec:
    axis = {"tickCount": 4, "grid": True, "labelExpr": "datum.label + ' %'", "labelOverlap": True}
    axis |= {"labelSeparation": 10}
    return {"field": name, "type": "quantitative", "title": None, "axis": axis}


def _span(left: str, right: str, mark: Spec, rest: Spec) -> Spec:
    return {"mark": mark, "encoding": {"x": _x(left), "x2": {"field": right}, **rest}}


def _log(name: str, title: str, domain: list[float]) -> Spec:
    """A log scale with a line at each power of ten."""
    first, last = (int(np.floor(np.log10(end))) for end in domain)
    axis = {"format": "~g", "values": [10.0**power for power in range(first, last + 1)], "titleLimit": 500}
    scale = {"type": "log", "domain": domain, "nice": False}
    return {"field": name, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _points(rows: list[dict[str, Any]], kinds: Mapping[str, str], x: Spec, y: Spec) -> Spec:
    """Shape and colour say the same, so that either will do."""
    names, shapes = list(kinds), ["circle", "diamond", "triangle-up", "square", "cross"][: len(kinds)]
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 400}
    shape = {"field": "kind", "scale": {"domain": names, "range": shapes}, "legend": legend}
    colour = {"field": "kind", "scale": {"domain": names, "range": list(kinds.values())}, "legend": legend}
    mark = {"type": "point", "filled": True, "size": 70, "opacity": 0.9}
    return {
        "data": {"values": rows},
        "mark": mark,
        "encoding": {"x": x, "y": y, "shape": shape, "color": colour},
    }


def _words(rows: list[dict[str, Any]], align: str, x: Spec, y: Spec) -> Spec:
    mark = {
        "type": "text",
        "align": align,
        "dx": 9 if align == "left" else -9,
        "fontSize": 13,
        "color": "black",
    }
    return {"data": {"values": rows}, "mark": mark, "encoding": {"x": x, "y": y, "text": {"field": "label"}}}


def _line(values: list[dict[str, float]], dash: list[int], x: Spec, y: Spec) -> Spec:
    mark = {"type": "line", "color": GREY, "strokeDash": dash, "strokeWidth": 1.2, "clip": True}
    return {"data": {"values": values}, "mark": mark, "encoding": {"x": x, "y": y}}
