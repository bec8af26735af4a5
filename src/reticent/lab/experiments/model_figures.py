"""The pictures of `model-imputation`: boxes around the true line, and small multiples of error along each sweep."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.experiment import Row
from reticent.lab.figures import BOX_WORDS, bias_against_spread, box, boxes, titled
from reticent.lab.summary import Floats, groups
from reticent.report.marks import BLUE, GREY, IN_ORDER, Spec

MEAN = "mean of y"
USUAL = {"n": 10_000.0, "predictors": 2.0, "variance": 0.1, "epsilon": 1.0, "split": 0.5}
COLOURS = {
    "no-missing": "#BBBBBB",
    "available": GREY,
    "query-only": "#000000",
    "both/functional": "#E69F00",
    "both/objective": "#009E73",
    "both/output": "#CC79A7",
    "both/privgene": "#56B4E9",
    "both/robust": "#D55E00",
    "both/adassp": "#F0E442",
    "both/centred": BLUE,
    "both/adassp-delta": "#882255",
    "both/multiple": "#117733",
}
WHO = (
    "Predictors are uniform, y is their mean plus normal noise, clipped to [0, 1], and missing with probability "
    "equal to the first predictor. Rows are replaced; their number is public."
)
Found = list[tuple[Row, dict[str, Floats]]]


def figures(outcomes: pa.Table) -> dict[str, Spec]:
    """Boxes at the published setting, bias against spread there, and the sweeps."""
    found, runs = list(groups(outcomes)), len(outcomes["run"].unique())
    usual = [(k, v) for k, v in found if k["query"] == MEAN and k["epsilon"] in (None, 1.0)]
    where = f"{WHO} 10,000 rows, two predictors, epsilon 1, half of it for the line."
    points = [_point(key, lines) for key, lines in usual]
    kinds = {"without privacy": GREY, "one stage": "#D55E00", "both stages": BLUE}
    made = {
        "model-imputation": titled(
            boxes(_boxes(usual)), "The mean of y by every method", where, f"{runs:,} runs. {BOX_WORDS}"
        ),
        "model-bias-and-spread": titled(
            _named(bias_against_spread(points, kinds=kinds, runs=runs), points),
            "Bias against spread",
            where,
            f"{runs:,} runs. On the solid line they are equal; below the dashed one chance explains a bias.",
        ),
    }
    swept = list(_swept(found))
    if len({line["panel"] for line in swept}) > 1:
        words = "Root mean squared error against the setting; one thing changes at a time, every fifth run."
        made["model-sweeps"] = titled(_lines(swept), "Where each method wins", WHO, words)
    return made


def _boxes(found: Found) -> Iterator[dict[str, Any]]:
    """Query-only has a panel beside the others, since it would hide them."""
    for panel, kept in (("all but query-only", False), ("query-only", True)):
        for key, lines in found:
            if (key["method"] == "query-only") == kept:
                error = 100 * (lines["estimate"] / lines["truth"] - 1)
                yield box(error, panel=panel, label=key["method"], noisy=key["method"].startswith("both/"))


def _point(key: Row, lines: dict[str, Floats]) -> dict[str, Any]:
    error, method = 100 * (lines["estimate"] / lines["truth"] - 1), str(key["method"])
    kind = "both stages" if method.startswith("both/") else "one stage"
    kind = "without privacy" if key["epsilon"] is None else kind
    spread = float(np.std(error, ddof=1)) if len(error) > 1 else 0.0
    return {"kind": kind, "label": method, "spread": spread, "bias": float(abs(error.mean()))}


def _named(spec: Spec, points: list[dict[str, Any]]) -> Spec:
    """Every point with its name beside it, in place of the few that the chart would name."""
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] != "text"]
    x, y = ({**layers[0]["encoding"][axis]} for axis in ("x", "y"))
    values = [{**point, "label": point["label"].removeprefix("both/")} for point in points]
    mark = {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "color": "black"}
    words = {
        "data": {"values": [each for each in values if each["spread"] > 0 and each["bias"] > 0]},
        "mark": mark,
        "encoding": {"x": x, "y": y, "text": {"field": "label"}},
    }
    return {**spec, "layer": [*layers, words]}


def _swept(found: Found) -> Iterator[dict[str, Any]]:
    """One line for each panel and method, the published setting in every panel."""
    for key, lines in found:
        if key["method"] not in COLOURS:
            continue
        rmse = float(np.sqrt(np.mean((lines["estimate"] - lines["truth"]) ** 2)))
        told = {"method": key["method"], "rmse": rmse}
        name, _, value = str(key["query"]).removeprefix(f"{MEAN}, ").partition(" = ")
        if value:
            yield {**told, "panel": name, "x": float(value)}
        elif key["epsilon"] in (None, 1.0):
            yield from ({**told, "panel": panel, "x": usual} for panel, usual in USUAL.items())
        else:
            yield {**told, "panel": "epsilon", "x": key["epsilon"]}


def _lines(rows: list[dict[str, Any]]) -> Spec:
    log = {"type": "log", "nice": False}
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 13}
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 300}
    colour = {"domain": list(COLOURS), "range": list(COLOURS.values())}
    return {
        "data": {"values": [{**row, "place": place} for place, row in enumerate(rows)]},
        "facet": {"field": "panel", "type": "nominal", "sort": IN_ORDER, "header": header},
        "columns": 3,
        "spec": {
            "width": 200,
            "height": 180,
            "mark": {"type": "line", "point": True, "strokeWidth": 1.5},
            "encoding": {
                "x": {
                    "field": "x",
                    "type": "quantitative",
                    "title": None,
                    "scale": log,
                    "axis": {"tickCount": 4},
                },
                "y": {"field": "rmse", "type": "quantitative", "title": "rmse", "scale": log},
                "color": {"field": "method", "type": "nominal", "scale": colour, "legend": legend},
            },
        },
        "resolve": {"scale": {"x": "independent"}, "axis": {"x": "independent"}},
    }
