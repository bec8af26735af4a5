"""Charts of a release, as Vega-Lite: one specification for the page, the PNG and a notebook.

Pictures are made by vl-convert. Without it there are none, and the page says how to get them.
"""

import re
from dataclasses import dataclass, field
from typing import Any, cast

from reticent.errors import ReticentError
from reticent.release.release import Release
from reticent.report import marks
from reticent.report.drawing import HOW
from reticent.report.marks import Spec
from reticent.report.numbers import clean
from reticent.report.pages import drawings


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: `key` names its file; `of` is the table it draws, none for single answers."""

    key: str
    title: str
    caption: str
    of: str | None
    spec: Spec = field(repr=False)

    def draws(self, end: str) -> bool:
        """Whether it has bars from this end on: `low` of privacy noise, `total_low` of the total. Lines over years say theirs."""
        rows = self.spec.get("data", {}).get("values", [])
        return any(row.get(end) is not None and "year" not in row for row in rows)


def specs(release: Release) -> tuple[Chart, ...]:
    """The pictures of every section that the release has: single estimates by unit, then each table."""
    document = clean(release.document)
    rehearsal = document.get("published") is not True
    drawn = [picture for each in drawings(document) for picture in each.charts(document)]
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


def svgs(release: Release) -> dict[str, bytes]:
    """The charts of a page as SVG, by key."""
    if converter() is None:
        raise ReticentError(f"needs vl-convert; install it with {HOW}", field="report")
    return {chart.key: (svg(chart) or "").encode() for chart in specs(release)}
