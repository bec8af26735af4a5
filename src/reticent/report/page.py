"""One self-contained page, drawn from a Release alone. The same release is the same bytes."""

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.refine.total import CAUTION, RELIABLE
from reticent.release.labels import Labels
from reticent.release.release import Release
from reticent.report import words
from reticent.report.cells import cell_intervals
from reticent.report.charts import Chart, specs, svg
from reticent.report.drawing import HOW
from reticent.report.methodology import NOISE_ONLY, citation, methodology
from reticent.report.numbers import barless, clean, covers, scale_text
from reticent.report.pages import drawings
from reticent.report.statistics import (
    is_rated,
    key_figures,
    may_be_below_zero,
    meanings,
    parts,
    totals,
)


def page(release: Release, *, linked: str = "", back: str = "") -> bytes:
    """The page as HTML. It needs no network, no script, and nothing beside it.

    **Parameters**

    - `release`: what it shows.
    - `linked`: where a server has the style sheet, which the page then names in place of holding it.
    - `back`: where that server leads back to.
    """
    document = clean(release.document)
    drawn = [(chart, _inline(svg(chart))) for chart in specs(release)]
    shown = drawings(document)
    view = {
        "document": document,
        "linked": linked,
        "back": back,
        "rehearsal": document.get("published") is not True,
        "words": words,
        "covers": covers,
        "methodology": methodology,
        "citation": citation,
        "charts": drawn,
        "has_charts": all(picture for _, picture in drawn),
        "bars": _bars([chart for chart, _ in drawn]),
        "how": HOW,
        "heading": shown[0].heading if shown else "Estimates",
        "sections": [(each.template, each.view(document)) for each in shown],
        "uses": [(each.heading, each.uses) for each in shown if each.uses],
        "has_estimates": any(each.is_estimates for each in shown),
        "scale": scale_text,
        "named": Labels.of(document).named(),
        "limits": (RELIABLE, CAUTION),
        "meanings": meanings(document),
        "barless": barless(document.get("statistics") or []),
        "totals": totals(document, "meaning"),
        "figures": key_figures(document),
        "noise_only": any(document.get(key) for key in NOISE_ONLY),
        "cell_intervals": cell_intervals(document),
        "rated": is_rated(document),
        "below_zero": may_be_below_zero(document),
        "empty": totals(document, "empty"),
        "asks": parts(document),
    }
    return (_environment().get_template("page.html.j2").render(view) + "\n").encode()


BARS = (
    ("thick", "low", "thick bar: interval for privacy noise alone."),
    ("thin", "total_low", "thin line: interval for sampling and noise together."),
)


def _bars(charts: list[Chart]) -> list[tuple[str, str]]:
    """What the bars in the pictures are, of those that are drawn: the class of its sample, and the words."""
    return [(kind, said) for kind, end, said in BARS if any(chart.draws(end) for chart in charts)]


def _environment() -> Environment:
    # Escaping is on for every template: names in a release come from a plan (T28).
    return Environment(
        loader=PackageLoader("reticent", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _inline(drawn: str | None) -> Markup | None:
    """SVG from our own drawing part, whose text it has escaped; the one thing not escaped again."""
    return None if drawn is None else Markup(drawn)
