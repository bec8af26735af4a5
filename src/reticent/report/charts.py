"""Charts of a release, as Vega-Lite: one specification for the page, the PNG and a notebook.

Pictures are made by vl-convert. Without it there are none, and the page says how to get them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from reticent.errors import ReticentError
from reticent.release.release import Release
from reticent.report import marks
from reticent.report.cells import cell_charts
from reticent.report.marks import Spec
from reticent.report.numbers import barless, clean, columns_of, is_table, unit_of
from reticent.report.synth import synth_charts

MOST_CELLS = 60
NUMBERS = {"value": "value", "low": "privacy_low", "high": "privacy_high"}
Drawn = tuple[str, str | None, tuple[str, Spec]]  # title, table, (caption, specification)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: `key` names its file; `of` is the table it draws, none for single answers."""

    key: str
    title: str
    caption: str
    of: str | None
    spec: Spec = field(repr=False)


def specs(release: Release) -> tuple[Chart, ...]:
    """Single answers by unit, then each table, in the order of the plan."""
    document = clean(release.document)
    rehearsal = document.get("published") is not True
    answers = document.get("statistics") or []
    singles: dict[str, list[Mapping[str, Any]]] = {}
    for answer in answers:
        if not is_table(answer):
            singles.setdefault(_family(answer, answers), []).append(answer)
    drawn: list[Drawn] = [(unit, None, _singles(group)) for unit, group in singles.items()]
    drawn += [(_name(answer), _name(answer), _table(answer)) for answer in answers if is_table(answer)]
    drawn += cell_charts(document)
    drawn += synth_charts(document)
    return tuple(
        Chart(
            key=f"chart-{i}",
            title=title,
            caption=caption,
            of=of,
            spec=marks.framed(spec, title, rehearsal=rehearsal),
        )
        for i, (title, of, (caption, spec)) in enumerate(drawn, start=1)
    )


def _name(answer: Mapping[str, Any]) -> str:
    return str(answer.get("name"))


def _family(answer: Mapping[str, Any], answers: list[Any], depth: int = 0) -> str:
    """What may share an axis: the same unit, and sums apart from averages, weighted apart from not."""
    query, unit = answer.get("query") or {}, unit_of(answer)
    if "difference" in query and depth < 2:
        parents = [other for other in answers if other.get("name") in query["difference"]]
        return _family(parents[0], answers, depth + 1) if parents else unit
    return f"{unit}, total{', weighted' if query.get('weight') else ''}" if "total" in query else unit


def _singles(group: list[Mapping[str, Any]]) -> tuple[str, Spec]:
    rows = [
        _row(place, _name(answer), (answer.get("estimates") or [{}])[0]) for place, answer in enumerate(group)
    ]
    caption = f"{_levels(group)} The axis need not start at zero."
    return caption, {"data": {"values": rows}, **marks.points(rows)}


def _table(answer: Mapping[str, Any]) -> tuple[str, Spec]:
    columns, estimates = columns_of(answer), list(answer.get("estimates") or [])
    outer, inner = (columns[:1], columns[1:]) if len(columns) > 1 else ([], columns)
    rows = []
    for place, estimate in enumerate(estimates[:MOST_CELLS]):
        cell = estimate.get("cell") or {}
        row = _row(place, " · ".join(str(cell.get(column, "")) for column in inner), estimate)
        row["group"] = "".join(f"{column}: {cell.get(column, '')}" for column in outer)
        rows.append(row)
    caption = _levels([answer])
    if len(estimates) > len(rows):
        caption += f" The first {len(rows)} of {len(estimates)} cells; the table has all."
    plot = marks.bars(rows, unit_of(answer))
    return caption, {"data": {"values": rows}, **(marks.in_groups(plot) if outer else plot)}


def _row(place: int, label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """One line of a chart's data: the release's own numbers, untouched."""
    numbers = {name: estimate.get(key) for name, key in NUMBERS.items()}
    numbers |= dict(zip(("total_low", "total_high"), _total(estimate), strict=True))
    rating = estimate.get("reliability") or "not rated"
    return {"place": place, "label": label, **numbers, "rating": rating}


def _total(estimate: Mapping[str, Any]) -> tuple[Any, Any]:
    """The ends of the total interval; of a release that told a margin alone, as far on either side."""
    value, margin = estimate.get("value"), estimate.get("total_margin")
    if estimate.get("total_low") is not None:
        return estimate["total_low"], estimate.get("total_high")
    return (None, None) if margin is None or value is None else (value - margin, value + margin)


def _levels(group: list[Mapping[str, Any]]) -> str:
    levels = dict.fromkeys((answer.get("interval") or {}).get("level") for answer in group)
    said = " and ".join(f"{100 * level:g} %" for level in levels if level is not None) or "unstated"
    bare = " A point without an interval: its noise has a confidential scale." if barless(group) else ""
    thin = any(None not in _total(each) for answer in group for each in answer.get("estimates") or [])
    both = " Thin: sampling and noise together." if thin else ""
    return f"Intervals for privacy noise at {said}.{both}{bare}"


HOW = "pip install 'reticent[report]'"
_ID = re.compile(r'(\bid="|url\(#|href="#)')


def converter() -> Any | None:
    """The drawing part, where it is installed."""
    try:
        import vl_convert  # an extra, and slow to load: only when something is drawn
    except ImportError:
        return None
    return vl_convert


def svg(chart: Chart) -> str | None:
    """The chart as SVG for a page that holds several: its ids begin with the chart's key."""
    part = converter()
    if part is None:
        return None
    drawn = cast(str, part.vegalite_to_svg(chart.spec, allowed_base_urls=[]))
    return _ID.sub(rf"\g<1>{chart.key}-", drawn)


def png(release: Release, *, scale: float = 2.0) -> dict[str, bytes]:
    """The charts of a page as PNG, by key."""
    part = converter()
    if part is None:
        raise ReticentError(f"needs vl-convert; install it with {HOW}", field="report")
    return {
        chart.key: cast(bytes, part.vegalite_to_png(chart.spec, scale=scale, allowed_base_urls=[]))
        for chart in specs(release)
    }
