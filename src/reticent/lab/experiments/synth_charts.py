"""The charts of `synth-missing`: strategies, rates, kinds of silence and epsilons, in the order of the document's figures."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reticent.lab.run.experiment import Row
from reticent.lab.run.figures import ORANGE, titled
from reticent.lab.trials.points import FLOORS
from reticent.report.marks import BLUE, GREY, IN_ORDER, Spec

COLOURS = {
    "independent": GREY,
    "privbayes": ORANGE,
    "mst": "#009E73",
    "aim": BLUE,
    "chain": "#CC79A7",
    "kamino": "#E69F00",
    "kamino-i": "#E69F00",
    "dpautogan": "#56B4E9",
    "misgan": "#56B4E9",
}
"""One for a method for complete rows and for what adapts it to missing answers."""
ORDER = ("no-missing", "holes", "available", "impute-model", "impute-mean", "impute-random", "complete")
TELLS = "Mean distance of the 2-way tables of synthetic rows to the truth's, numbers in 16 public bins; mean of the repeats."


SIGNS = "Solid, circles: available cells. Dashed, squares: holes as values. Dotted, triangles: complete rows."


def charts(rows: Sequence[Row]) -> dict[str, Spec]:
    """Those for which there is something to draw, of rows with a 2-way distance, of whole tables and of these methods."""
    rows = [r for r in rows if r["method"] in (*COLOURS, *FLOORS) and "-" not in r["dataset"]]
    drawn = {
        "synth-strategies": _strategies(rows),
        "synth-rates": _rates(rows, 1),
        "synth-rates-3": _rates(rows, 3),
        "synth-silence": _lines(
            [r for r in rows if (r["mask"], r["rate"]) in SHOWN_KINDS and r["epsilon"] == 1],
            lambda r: f"{r['mask']} {100 * r['rate']:g} %, {r['complete']:,.0f}",
            lambda r: list(SHOWN_KINDS).index((r["mask"], r["rate"])),
            "Kinds of silence, epsilon 1",
            "Across: who is silent, at which rate, and how many rows are left complete.",
        ),
        "synth-epsilons": _lines(
            [r for r in rows if r["mask"] == "MCAR" and r["rate"] == 0.2],
            lambda r: "none" if r["epsilon"] is None else f"{r['epsilon']:g}",
            lambda r: 1e9 if r["epsilon"] is None else r["epsilon"],
            "Epsilons, MCAR 20 %",
            "Across: epsilon, and the same method without noise.",
        ),
    }
    return {name: chart for name, chart in drawn.items() if chart is not None}


SHOWN_KINDS = (("MCAR", 0.1), ("MAR", 0.1), ("MNAR", 0.1), ("MAR", 0.35))


def _rates(rows: Iterable[Row], epsilon: float) -> Spec | None:
    return _lines(
        [r for r in rows if r["mask"] == "MCAR" and r["epsilon"] == epsilon],
        lambda r: f"{100 * r['rate']:g} %, {r['complete']:,.0f}",
        lambda r: r["rate"],
        f"Rates of missing cells, MCAR, epsilon {epsilon:g}",
        "Across: the rate, and how many rows are left complete.",
    )


def _strategies(rows: Iterable[Row]) -> Spec | None:
    """A dot for each method and strategy, lines for the floors, a panel for each table."""
    here = [
        r
        for r in rows
        if (r["mask"], r["rate"]) == ("MCAR", 0.2) and (r["strategy"] in ORDER or r["method"] in FLOORS)
    ]
    dots = [
        {
            "panel": r["dataset"],
            "label": r["strategy"],
            "method": r["method"],
            "value": r["tvd2"],
            "place": place,
        }
        for place, r in enumerate(here)
        if r["epsilon"] == 1
    ]
    floors = [{"panel": r["dataset"], "value": r["tvd2"]} for r in here if r["method"] == "bootstrap"]
    if not dots:
        return None
    y = {
        "field": "label",
        "type": "nominal",
        "scale": {"domain": list(ORDER)},
        "title": None,
        "axis": {"grid": True},
    }
    x = {"field": "value", "type": "quantitative", "title": "2-way distance", "scale": {"zero": True}}
    mark = {"type": "point", "filled": True, "size": 75, "opacity": 0.95}
    rule = {"type": "rule", "color": "black", "strokeDash": [4, 3]}
    layers = [
        {"mark": rule, "transform": [{"filter": "datum.floor"}], "encoding": {"x": x}},
        {"mark": mark, "transform": [{"filter": "!datum.floor"}], "encoding": {"x": x, "y": y, **_method()}},
    ]
    values = [*({**dot, "floor": False} for dot in dots), *({**f, "floor": True} for f in floors)]
    made = _panels(values, {"width": 270, "height": 22 * len(ORDER), "layer": layers})
    words = "MCAR 20 %, epsilon 1, delta 0.000001. Dashed: as many rows drawn again from the truth."
    return titled(made, "Strategies for incomplete rows", f"{words} {TELLS}")


def _lines(
    rows: Iterable[Row], label: Callable[[Row], str], place: Callable[[Row], Any], title: str, words: str
) -> Spec | None:
    """Lines through the points of each method and strategy, a panel for each table."""
    kept = [
        r for r in rows if r["method"] not in FLOORS and r["strategy"] in ("available", "holes", "complete")
    ]
    values = [
        {
            "panel": r["dataset"],
            "label": label(r),
            "method": r["method"],
            "strategy": r["strategy"],
            "line": f"{r['method']} {r['strategy']}",
            "value": r["tvd2"],
            "place": place(r),
        }
        for r in kept
    ]
    # A line has at least two points, and a panel is there for its lines.
    ends = Counter((v["panel"], v["line"]) for v in values)
    values = [v for v in values if ends[v["panel"], v["line"]] > 1]
    if not values:
        return None
    x = {"field": "label", "type": "nominal", "sort": IN_ORDER, "title": None, "axis": {"labelAngle": -30}}
    y = {
        "field": "value",
        "type": "quantitative",
        "title": "2-way distance",
        "scale": {"type": "log", "nice": False},
    }
    names = ["available", "holes", "complete"]
    dash = {
        "field": "strategy",
        "scale": {"domain": names, "range": [[1, 0], [6, 3], [2, 2]]},
        "legend": None,
    }
    shape = {
        "field": "strategy",
        "scale": {"domain": names, "range": ["circle", "square", "triangle-up"]},
        "legend": None,
    }
    shared = {"x": x, "y": y, "detail": {"field": "line"}, **_method(shape=False)}
    layers = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {**shared, "strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 50}, "encoding": {**shared, "shape": shape}},
    ]
    made = _panels(values, {"width": 270, "height": 190, "layer": layers})
    return titled(
        made, title, f"{words} {SIGNS}", f"{TELLS} Each panel has its own scale, a logarithmic one."
    )


def _method(*, shape: bool = True) -> Spec:
    """Colour says which method, and its shape says the same."""
    names, legend = list(COLOURS), {"title": None, "orient": "bottom", "labelLimit": 400}
    colour = {
        "field": "method",
        "scale": {"domain": names, "range": list(COLOURS.values())},
        "legend": legend,
    }
    shapes = [
        "circle",
        "triangle-up",
        "diamond",
        "square",
        "cross",
        *2 * ["triangle-down"],
        *2 * ["triangle-right"],
    ]
    told = {"shape": {"field": "method", "scale": {"domain": names, "range": shapes}, "legend": legend}}
    return {"color": colour, **(told if shape else {})}


def _panels(values: list[Row], spec: Spec) -> Spec:
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 13}
    return {
        "data": {"values": values},
        "facet": {"field": "panel", "type": "nominal", "sort": None, "header": header},
        "columns": 2,
        "spec": spec,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }
