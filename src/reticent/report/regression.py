"""Regressions on a page and on the terminal: every coefficient with its interval for privacy noise."""

from collections.abc import Iterator
from math import floor, log10
from typing import Any

from reticent.release.product import Document, Grid, Line
from reticent.report.drawing import Drawing, Drawn
from reticent.report.numbers import DIGITS, downward, nearest, upward

HEADINGS = ("coefficient", "against", "value", "interval for privacy noise", "total interval")
BARE = 4
USES = (
    (
        "A slope is by how much the response differs, on average, between respondents who differ by one unit of that "
        "predictor and in no other: of numbers by 1, of levels from the first. It is no effect: nobody was assigned to anything."
    ),
)


def _places(line: Document) -> int:
    """Decimals that show two digits of the interval; without one, four digits of the value."""
    low, high = line["privacy_low"], line["privacy_high"]
    if low is None or high is None or high <= low:
        return max(0, BARE - 1 - floor(log10(abs(line["value"])))) if line["value"] else 0
    return max(0, DIGITS - 1 - floor(log10((high - low) / 2)))


def _shown(line: Document) -> tuple[str, str, str, str, str]:
    places = _places(line)
    domain = ", ".join(f"{name} {level}" for name, level in line.get("cell", {}).items())
    term = f"{domain}: {line['term']}" if domain else line["term"]
    return (
        term,
        line["against"],
        nearest(line["value"], places),
        _bar(line, "privacy", places),
        _bar(line, "total", places),
    )


def _bar(line: Document, which: str, places: int) -> str:
    low, high = line[f"{which}_low"], line[f"{which}_high"]
    return "" if low is None else f"{downward(low, places)} to {upward(high, places)}"


def _view(document: Document) -> dict[str, Any]:
    told = [
        {**each, "shown": [_shown(line) for line in each["coefficients"]]}
        for each in document.get("regression") or []
    ]
    return {"asked": [(each["name"], each["words"]) for each in told], "regressions": told}


def _lines(document: Document) -> Iterator[Line]:
    for each in document["regression"]:
        yield f"{each['name']}: {each['guarantee']['words']}"
        yield f"  {each['words']}"
        yield Grid(headings=HEADINGS, rows=[_shown(line) for line in each["coefficients"]])
        if each["no_privacy_interval"]:
            yield f"  no interval: {each['no_privacy_interval']}"
        if each["no_total_interval"]:
            yield f"  no total interval: {each['no_total_interval']}"


def _charts(document: Document) -> Iterator[Drawn]:
    """None: coefficients have different units, and do not go on one axis."""
    return iter(())


REGRESSION = Drawing(
    heading="Regressions",
    template="regression.html.j2",
    view=_view,
    lines=_lines,
    charts=_charts,
    uses=USES,
)
