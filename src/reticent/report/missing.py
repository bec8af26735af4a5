"""CONFIDENTIAL: missingness in pictures, for the curator: rates, patterns, what goes missing together, rates by a column.

Drawn from exact counts, so for the curator's eyes only; nothing here is ever part of a release. One denominator throughout:
a rate is the share of those who were asked; a pattern is a share of all rows, and says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.engine.confidential import MOST_COLUMNS, Patterns, inspect, patterns
from reticent.engine.protocol import CuratorEngine
from reticent.engine.wants import Rows, Sum
from reticent.missing.describe import Description, describe
from reticent.report.charts import Chart, svg
from reticent.report.drawing import HOW
from reticent.report.marks import BLUE, PALE, WIDE, Spec, framed
from reticent.schema import Levels, Schema
from reticent.schema.bind import AllOf, CodeIn, Is

MOST_PATTERNS, MOST_GROUPS, MOST_DRAWN = 15, 12, 20
WARNING = "CONFIDENTIAL: read off the rows, for the curator's eyes only. Do not publish or forward."
DENOMINATOR = (
    "A rate is the share of those who were asked; rows outside a question's universe are left out of it."
)
ROWS_SAID = "Patterns are shares of all rows; a question that was not asked is not missing."


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPictures:
    """CONFIDENTIAL: what is missing, as pictures. Shows itself in a notebook; `page` is the same as a file.

    **Fields**

    - `charts`: the pictures.
    - `rates`: by column, the share missing of those asked.
    - `text`: the same as text.
    - `titles`: what the codebook calls each column.
    """

    charts: tuple[Chart, ...] = field(repr=False)
    rates: Mapping[str, float] = field(repr=False)
    text: str = field(repr=False)
    titles: Mapping[str, str] = field(default_factory=dict, repr=False)

    def page(self) -> bytes:
        """One page that needs no network."""
        drawn = [(chart, svg(chart)) for chart in self.charts]
        view = {
            "warning": WARNING,
            "said": (DENOMINATOR, ROWS_SAID),
            "charts": [(chart, None if made is None else Markup(made)) for chart, made in drawn],
            "how": HOW,
            "rates": [
                (self.titles.get(name, name), name, f"{rate:.1%}") for name, rate in self.rates.items()
            ],
        }
        environment = Environment(
            loader=PackageLoader("reticent", "report"), autoescape=True, undefined=StrictUndefined
        )
        return (environment.get_template("missing.html.j2").render(view) + "\n").encode()

    def _repr_html_(self) -> str:
        return self.page().decode()


def missing_pictures(engine: CuratorEngine, schema: Schema, by: str | None = None) -> MissingPictures:
    """The pictures of a survey; with `by`, the rates in every level or group of that column."""
    findings = inspect(engine, schema)
    rates = {
        each.column: each.missing / (each.missing + each.answered) if each.missing + each.answered else 0.0
        for each in findings
    }
    silent = [each.column for each in findings if each.missing][:MOST_COLUMNS]
    found = describe(patterns(engine, schema, silent)) if silent else None
    charts = [_chart(1, "Missing, of those asked", DENOMINATOR, _rates(schema, rates))]
    if found is not None:
        charts.append(
            _chart(2, "Common patterns", _pattern_words(found.patterns), _patterns(schema, found.patterns))
        )
    if found is not None and len(silent) > 1:
        said = "Correlation of flags: near 1, two answers are lost by the same respondents."
        charts.append(_chart(3, "What goes missing together", said, _together(schema, found)))
    if by is not None:
        chosen = sorted(silent, key=lambda name: -rates[name])[:MOST_DRAWN]
        rows = list(_rates_by(engine, schema, [name for name in chosen if name != by], by))
        title = f"Missing by {schema.column(by, field='by').title}"
        charts.append(_chart(4, title, DENOMINATOR, _heat(rows, "group", "column", "rate", ".1%")))
    told = found.text(rates) if found is not None else "nothing is missing"
    titles = {name: schema.coded[name].title for name in rates}
    return MissingPictures(charts=tuple(charts), rates=rates, text=told, titles=titles)


def _chart(number: int, title: str, caption: str, spec: Spec) -> Chart:
    made = framed(spec, title, rehearsal=False)
    return Chart(key=f"missing-{number}", title=title, caption=caption, of=None, spec=made)


def _title(schema: Schema, name: str) -> str:
    """What the codebook calls a column; where it calls two the same, with the name, so that they do not share a line."""
    title = schema.coded[name].title
    is_shared = sum(each.title == title for each in schema.coded.values()) > 1
    return f"{title} ({name})" if is_shared else title


def _rates(schema: Schema, rates: Mapping[str, float]) -> Spec:
    rows = [
        {"place": place, "label": _title(schema, name), "rate": rate}
        for place, (name, rate) in enumerate(sorted(rates.items(), key=lambda each: -each[1])[:MOST_COLUMNS])
    ]
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 200}}
    x = {
        "field": "rate",
        "type": "quantitative",
        "title": "missing, of those asked",
        "axis": {"format": "~%"},
    }
    bar = {"type": "bar", "color": PALE, "stroke": BLUE}
    return {
        "width": WIDE - 150,
        "height": {"step": 20},
        "data": {"values": rows},
        "mark": bar,
        "encoding": {"x": x, "y": y},
    }


def _pattern_words(found: Patterns) -> str:
    shown = min(MOST_PATTERNS, len(found.counts))
    return f"The {shown} most common of {len(found.counts)} patterns; a filled square is missing. {ROWS_SAID}"


def _patterns(schema: Schema, found: Patterns) -> Spec:
    """One line for each pattern: a square for each column, and how many rows have it."""
    rows = []
    for place, (missing, count) in enumerate(found.counts[:MOST_PATTERNS]):
        share = f"{place + 1:2d}.  {count / max(1, found.rows):.1%}"
        rows += [
            {
                "pattern": share,
                "column": _title(schema, name),
                "state": "missing" if name in missing else "there",
            }
            for name in found.columns
        ]
    fill = {"domain": ["missing", "there"], "range": [BLUE, "#EEF3F6"]}
    return {
        "width": {"step": 26},
        "height": {"step": 20},
        "data": {"values": rows},
        "mark": {"type": "rect", "stroke": "white"},
        "encoding": {
            "x": {
                "field": "column",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {"labelAngle": -50},
            },
            "y": {"field": "pattern", "type": "nominal", "sort": None, "title": None},
            "color": {"field": "state", "type": "nominal", "scale": fill, "legend": {"title": None}},
        },
    }


def _together(schema: Schema, found: Description) -> Spec:
    rows = [
        {
            "one": _title(schema, one),
            "other": _title(schema, other),
            "value": round(float(found.correlations[i, j]), 1) or 0.0,  # no zero has a sign
        }
        for i, one in enumerate(found.columns[:MOST_DRAWN])
        for j, other in enumerate(found.columns[:MOST_DRAWN])
        if i != j
    ]
    return _heat(rows, "one", "other", "value", ".1f", domain=[-1, 0, 1], shades=["#A00000", "#FFFFFF", BLUE])


def _rates_by(
    engine: CuratorEngine, schema: Schema, names: Sequence[str], by: str
) -> Iterator[dict[str, Any]]:
    """The rate of every column in every group, by one pass over the rows."""
    groups = _groups(schema, by)
    wants = {
        (group, name, kind): Sum(rows=Rows(where=AllOf((CodeIn(by, ((low, high),)), Is(name, kind)))))
        for group, low, high in groups
        for name in names
        for kind in ("missing", "answered")
    }
    if not wants:
        return
    sums = engine.tally(schema, list(wants.values())).statistics
    for group, _, _ in groups:
        for name in names:
            missing, answered = (sums[wants[group, name, kind]] for kind in ("missing", "answered"))
            if missing + answered:
                rate = missing / (missing + answered)
                yield {"group": group, "column": _title(schema, name), "rate": rate}


def _groups(schema: Schema, by: str) -> list[tuple[str, int, int]]:
    """Levels, or groups of neighbouring codes as equal as the public bounds allow: name, first and last code."""
    column = schema.column(by, field="by")
    size = column.high - column.low + 1
    few = min(MOST_GROUPS, size)
    starts = [column.low + i * size // few for i in range(few)]
    ends = [*(start - 1 for start in starts[1:]), column.high]
    if isinstance(column, Levels) and few == size:
        return [(column.title_of(code), code, code) for code in range(size)]
    texts = [(column.text(low), column.text(high)) for low, high in zip(starts, ends, strict=True)]
    named = [low if low == high else f"{low} to {high}" for low, high in texts]
    return list(zip(named, starts, ends, strict=True))


def _heat(
    rows: list[dict[str, Any]],
    x: str,
    y: str,
    value: str,
    written: str,
    *,
    domain: list[float] | None = None,
    shades: list[str] | None = None,
) -> Spec:
    """A table of shades with the numbers in it."""
    scale = {"domain": domain or [0, 1], "range": shades or ["#FFFFFF", BLUE], "interpolate": "rgb"}
    axis = {"labelLimit": 160, "labelAngle": -50}
    place = {
        "x": {"field": x, "type": "nominal", "sort": None, "title": None, "axis": axis},
        "y": {"field": y, "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 200}},
    }
    shade = {
        "field": value,
        "type": "quantitative",
        "scale": scale,
        "legend": {"format": written, "title": None},
    }
    number = {"field": value, "type": "quantitative", "format": written}
    return {
        "width": {"step": 38},
        "height": {"step": 22},
        "data": {"values": rows},
        "encoding": place,
        "layer": [
            {"mark": {"type": "rect", "stroke": "white"}, "encoding": {"color": shade}},
            {"mark": {"type": "text", "fontSize": 11, "color": "black"}, "encoding": {"text": number}},
        ],
    }
