"""Regressions on a page and on the terminal: every coefficient with its interval for privacy noise."""

from collections.abc import Iterator
from typing import Any

from reticent.exact import BARE, level_words, places_for
from reticent.release.labels import Labels
from reticent.release.product import Document, Grid, Line
from reticent.report.drawing import Drawing, Drawn
from reticent.report.numbers import downward, nearest, upward
from reticent.report.numbers import places as places_of

HEADINGS = ("coefficient", "against", "value")
INTERVALS = ("interval for privacy noise", "total interval: sampling and noise")
FINEST = 30  # a slope per dollar may be small
USES = (
    (
        "A slope is by how much the response differs, on average, between respondents who differ by one unit of that "
        "predictor and in no other: of numbers by 1, of levels from the first. It is no effect: nobody was assigned to anything."
    ),
)


def _shown(line: Document, labels: Labels) -> tuple[str, str, str, str, str]:
    places = places_of(line, most=FINEST)
    term = labels.term(line["term"])
    domain = labels.cell(line.get("cell") or {})
    return (
        f"{domain}: {term}" if domain else term,
        labels.against(line["term"], line["against"]),
        nearest(line["value"], places),
        _bar(line, "privacy", places),
        _bar(line, "total", places),
    )


def _bar(line: Document, which: str, places: int) -> str:
    low, high = line[f"{which}_low"], line[f"{which}_high"]
    return "" if low is None else f"{downward(low, places)} to {upward(high, places)}"


def _view(document: Document) -> dict[str, Any]:
    labels = Labels.of(document)
    told = [
        {
            **each,
            "response": labels.column(each["response"]),
            "residual": _residual(each["residual_sd"]),
            **_told(each, labels),
        }
        for each in document.get("regression") or []
    ]
    return {"asked": [(each["name"], each["words"]) for each in told], "regressions": told}


def _told(line: Document, labels: Labels) -> dict[str, Any]:
    """The coefficients under their headings; an interval that no coefficient has, has no column."""
    shown = [_shown(each, labels) for each in line["coefficients"]]
    names = (*HEADINGS, *(f"{level_words([line['level']])}{words}" for words in INTERVALS))
    kept = [i for i in range(len(names)) if i < len(HEADINGS) or any(each[i] for each in shown)]
    whys = dict.fromkeys((line["no_privacy_interval"], line["no_total_interval"]))
    return {
        "headings": [names[i] for i in kept],
        "shown": [[each[i] for i in kept] for each in shown],
        "same_why": len(whys) == 1,
    }


def _residual(told: Any) -> str:
    """The residual standard deviation as a reader sees it; one for each domain, where there are domains."""
    several = isinstance(told, list)
    texts = [
        nearest(each, places_for(each or 0.0, BARE)) or "not given" for each in (told if several else [told])
    ]
    return f"{', '.join(texts)} in the domains, in their order" if several else texts[0]


def _lines(document: Document) -> Iterator[Line]:
    labels = Labels.of(document)
    for each in document["regression"]:
        yield f"{each['name']}: {each['guarantee']['words']}"
        yield f"  {each['words']}"
        told = _told(each, labels)
        yield Grid(headings=told["headings"], rows=told["shown"])
        if each["no_privacy_interval"]:
            yield f"  no interval: {each['no_privacy_interval']}"
        if each["no_total_interval"] and not told["same_why"]:
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
