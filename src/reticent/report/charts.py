"""Charts into pictures, by vl-convert. Without it there are no pictures, and the page says how to get them."""

import re
from typing import Any, cast

from reticent.errors import ReticentError
from reticent.release.release import Release
from reticent.report.specs import Chart, specs

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
