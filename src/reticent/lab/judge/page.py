"""One page about synthetic rows: for the lab, beside the truth and what is missing of it; for publication, without either."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.lab.judge.distances import by_column, distances
from reticent.lab.judge.estimates import correlation_error, means
from reticent.lab.judge.pictures import columns, pair_associations, pair_distances
from reticent.lab.judge.propensity import propensity
from reticent.lab.trials.coding import Codes, cells_of, with_holes
from reticent.lab.trials.masks import Mask
from reticent.lab.trials.tables import Trial
from reticent.report.charts import HOW, svg
from reticent.report.specs import Chart
from reticent.synth.domain import Domain

CONFIDENTIAL = "For the lab. This page shows the truth: do not publish it."
PUBLIC = (
    "These rows are synthetic. They were drawn from a model with noise, and none of them is a respondent.",
    "An analysis of them has the error of noise and model besides that of sampling: usual standard errors are too small.",
)


def judge_page(table: Trial, lost: Mask, made: Codes, *, title: str) -> bytes:
    """Truth, what is answered of it, and synthetic rows, side by side. CONFIDENTIAL: for trials."""
    domain = table.domain()
    truth, answered, cells = (cells_of(c, domain) for c in (table.codes, with_holes(table.codes, lost), made))
    shown = {"truth": truth, "answered": answered, "synthetic": cells}
    charts = [pair_distances(truth, cells, domain), *columns(shown, domain, by="truth")]
    return _page(
        title,
        charts,
        banner=CONFIDENTIAL,
        sentences=[
            f"{len(table.codes):,} rows, {int((~lost.any(axis=1)).sum()):,} of them complete; {len(made):,} synthetic rows."
        ],
        tables=[_numbers(table, made), _by_column(table, lost, made)],
    )


def public_page(made: Codes, domain: Domain, *, title: str, promise: str) -> bytes:
    """Synthetic rows alone, with the promise they were made under. Nothing here was read off the truth."""
    cells = cells_of(made, domain)
    charts = [pair_associations(cells, domain), *columns({"synthetic": cells}, domain, by="synthetic")]
    return _page(
        title, charts, banner="", sentences=[promise, f"{len(made):,} synthetic rows.", *PUBLIC], tables=[]
    )


def _numbers(table: Trial, made: Codes) -> dict[str, Any]:
    """Every measure of the lab but classifiers, which take too long for a page."""
    schema, names = table.schema, table.columns
    found: dict[str, Any] = {}
    for bins in (16, 10):
        domain = table.domain(bins)
        for k, value in distances(table.cells(bins), cells_of(made, domain), domain).items():
            found[f"{k}-way distance, {bins} bins"] = f"{value:.4f}"
    average = means(table.codes, made, schema, names)
    told = propensity(table.codes, made, schema, names)
    found["error of means, in standard deviations"] = f"{average.error:.4f}"
    found["intervals of means that hold the truth"] = f"{100 * average.covered:.0f} %"
    found["error of correlations"] = f"{correlation_error(table.codes, made, schema, names):.4f}"
    found["propensity: mean squared error"] = f"{told.error:.5f}"
    found["propensity: times that of chance"] = f"{told.ratio:.1f}"
    words = "Intervals are of 95 %, written as if the synthetic rows were a sample."
    return {
        "title": "In numbers",
        "columns": ["measure", "value"],
        "lines": list(found.items()),
        "words": words,
    }


def _by_column(table: Trial, lost: Mask, made: Codes) -> dict[str, Any]:
    domain = table.domain()
    apart = by_column(table.cells(), cells_of(made, domain), domain)
    rates = np.asarray(lost).mean(axis=0)
    lines = [
        (n, f"{100 * rate:.1f} %", f"{apart[n]:.4f}") for n, rate in zip(table.columns, rates, strict=True)
    ]
    return {
        "title": "By column",
        "columns": ["column", "missing", "1-way distance"],
        "lines": lines,
        "words": "Numbers are in 16 bins between their declared bounds.",
    }


def _page(title: str, charts: Sequence[Chart], **rest: Any) -> bytes:
    drawn = [(chart, picture) for chart in charts if (picture := svg(chart)) is not None]
    shown = [
        (chart, Markup(picture)) for chart, picture in drawn
    ]  # our own drawing part has escaped its text
    view = {"title": title, "charts": shown, "how": HOW, **rest}
    return (_environment().get_template("page.html.j2").render(view) + "\n").encode()


def _environment() -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader("reticent.lab", "judge"), PackageLoader("reticent", "report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
