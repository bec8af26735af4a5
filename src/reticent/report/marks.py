"""How a chart looks: points, whiskers and bars as Vega-Lite layers, in colours every reader can tell apart.

Every encoding names a field of ours and every expression is a constant: names from the plan are data, so none
of them can become part of an expression (T28).
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
LETTERS = 34  # of a title in bold, in one line of the narrowest chart
PADDING = {"left": 22, "right": 14, "top": 6, "bottom": 6}  # a reader's font may be wider than ours
IN_ORDER = {"field": "place", "op": "min"}
Spec = dict[str, Any]


SCALES = ((10**10, 10**9, "billions"), (10**7, 10**6, "millions"), (10**5, 10**3, "thousands"))
"""From this size on an axis counts in so many, which are called so."""
ENDS = ("value", "low", "high", "total_low", "total_high")


@dataclass(frozen=True, slots=True)
class AxisScale:
    """One unit for a whole axis: its ticks are divided by `by`, and its title says so."""

    by: int = 1
    word: str = ""

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> "AxisScale":
        """The scale at which the largest number of the rows has at most five digits before the point."""
        sizes = (abs(row[end]) for row in rows for end in ENDS if row.get(end) is not None)
        largest = max(sizes, default=0)
        return next((cls(by, word) for start, by, word in SCALES if largest >= start), cls())

    def title(self, unit: str | None) -> str | None:
        """The unit with its scale, where it has one."""
        if not self.word:
            return unit
        return f"{unit}, {self.word}" if unit else f"in {self.word}"

    @property
    def axis(self) -> Spec:
        """Few ticks, written without exponents, all with the same decimals. Only a number of ours enters the expression."""
        written = (
            {"format": ",f"} if self.by == 1 else {"labelExpr": f"format(datum.value / {self.by}, ',~g')"}
        )
        return {
            "tickCount": 5,
            **written,
            "labelOverlap": True,
            "labelSeparation": 12,
            "labelFlush": False,
        }


def points(rows: list[dict[str, Any]]) -> Spec:
    """A point and its whiskers on each line, the label above them."""
    label = {"type": "text", "align": "left", "dy": -14, "fontSize": 14, "limit": WIDE}
    scale = AxisScale.of(rows)
    values = _points(rows, None, scale)
    if not any(row["low"] is not None for row in rows):
        values["encoding"]["x"]["scale"] = {"zero": True}  # a point alone spans no axis
    layers = [_label(label, 0), *_whiskers(None, scale), values]
    return {"width": WIDE, "height": {"step": 44}, "encoding": {"y": _y()}, "layer": layers}


def bars(rows: list[dict[str, Any]], unit: str) -> Spec:
    """A bar from zero with its whiskers on each line, the label beside it."""
    label = {"type": "text", "align": "right", "fontSize": 14, "limit": BESIDE - 10}
    scale = AxisScale.of(rows)
    bar = {"mark": {"type": "bar", "color": PALE, "height": 14}, "encoding": {"x": _x("value", unit, scale)}}
    layers = [bar, _label(label, -10), *_whiskers(unit, scale), _points(rows, unit, scale)]
    return {"width": WIDE - BESIDE, "height": {"step": 24}, "encoding": {"y": _y()}, "layer": layers}


FIRST_YEAR, LAST_YEAR = 1500, 2200


def are_years(levels: list[str], *, least: int = 3) -> bool:
    """Whether the levels, missing ones aside, are years: at least three whole numbers of four digits that could be."""
    told = {level for level in levels if not level.startswith("(")}
    return len(told) >= least and all(
        len(level) == 4 and level.isdigit() and FIRST_YEAR <= int(level) <= LAST_YEAR for level in told
    )


def line(rows: list[dict[str, Any]], unit: str, title: str) -> Spec:
    """A line over the years, with the noise as a band and the total interval as thin bars. The axis need not begin at zero."""
    scale = AxisScale.of(rows)
    year = {"field": "year", "type": "quantitative", "title": title, "scale": {"zero": False, "nice": False}}
    year["axis"] = {"format": "d", "tickMinStep": 1, "tickCount": 8, "grid": False}

    def height(name: str) -> Spec:
        return {**_x(name, unit, scale), "scale": {"zero": False}}

    def given(low: str, high: str) -> list[Spec]:
        return [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}]

    layers: list[Spec] = [
        {
            "transform": given("low", "high"),
            "mark": {"type": "area", "color": PALE, "opacity": 0.9},
            "encoding": {"y": height("low"), "y2": {"field": "high"}},
        },
        {
            "transform": given("total_low", "total_high"),
            "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.2},
            "encoding": {"y": height("total_low"), "y2": {"field": "total_high"}},
        },
        {
            "mark": {"type": "line", "color": BLUE, "strokeWidth": 2, "point": {"color": BLUE, "size": 30}},
            "encoding": {"y": height("value")},
        },
    ]
    return {"width": WIDE, "height": 180, "encoding": {"x": year}, "layer": layers}


def lines_in_groups(plot: Spec) -> Spec:
    """The same line chart once for each `group`, one under the other, on the same axes so that they can be compared."""
    return {"facet": _facet(), "spec": {**plot, "height": 110}, "spacing": 12}


def in_groups(plot: Spec) -> Spec:
    """The same plot once for each `group`, one under the other, on one axis."""
    return {"facet": _facet(), "spec": plot, "spacing": 12, "resolve": {"scale": {"y": "independent"}}}


def _facet() -> Spec:
    """A part for each group, its name above it in as many lines as it needs."""
    header = {"title": None, "labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold"}
    header |= {"labelExpr": "split(datum.value, '\\n')"}
    return {"row": {"field": "group", "type": "nominal", "sort": IN_ORDER, "header": header}}


def group_text(text: str) -> str:
    """The name of a group, broken into lines that fit over its part."""
    return "\n".join(wrap(text, LETTERS))


def framed(spec: Spec, title: str, *, rehearsal: bool) -> Spec:
    """Title, a rehearsal's mark (a picture may travel alone), and one look for all."""
    heading: Spec = {"text": wrap(title, LETTERS) or [""], "anchor": "start", "frame": "bounds", "offset": 10}
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
        "legend": {"labelFontSize": 14, "columnPadding": 20},
    }
    return {**spec, "title": heading, "background": "white", "padding": PADDING, "config": config}


def _y() -> Spec:
    # The line's place, not its label: two labels may be alike, and lines stay in the order of the plan.
    return {"field": "place", "type": "ordinal", "axis": None}


def _x(name: str, unit: str | None, scale: AxisScale) -> Spec:
    """The axis. Bars, whose unit stands under them, begin at zero; points, under a title, need not."""
    return {
        "field": name,
        "type": "quantitative",
        "title": scale.title(unit),
        "scale": {"zero": unit is not None},
        "axis": scale.axis,
    }


def _label(mark: Spec, x: int) -> Spec:
    return {"mark": mark, "encoding": {"x": {"value": x}, "text": {"field": "label", "type": "nominal"}}}


def _points(rows: list[dict[str, Any]], unit: str | None, scale: AxisScale) -> Spec:
    """The values. Shape says how reliable they are, so that colour need not."""
    ratings = [name for name in RATINGS if any(row["rating"] == name for row in rows)]
    shapes = {"domain": ratings, "range": [RATINGS[name] for name in ratings]}
    legend = {"title": None, "orient": "bottom"} if ratings != ["not rated"] else None
    shape = {"field": "rating", "type": "nominal", "scale": shapes, "legend": legend}
    mark = {"type": "point", "filled": True, "size": 38, "color": "black", "opacity": 1}
    return {"mark": mark, "encoding": {"x": _x("value", unit, scale), "shape": shape}}


def _whiskers(unit: str | None, scale: AxisScale) -> Iterator[Spec]:
    """The total interval, thin, and over it that of the noise, thick; each only where it is given."""
    yield {
        "transform": [{"filter": "isValid(datum.total_low) && isValid(datum.total_high)"}],
        "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.2},
        "encoding": {"x": _x("total_low", unit, scale), "x2": {"field": "total_high"}},
    }
    yield {
        "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
        "mark": {"type": "rule", "color": BLUE, "strokeWidth": 5},
        "encoding": {"x": _x("low", unit, scale), "x2": {"field": "high"}},
    }
