"""One page about synthetic rows: for the lab, beside the truth and what is missing of it; for publication, without either.

Pictures of tables as Vega-Lite, in the look of the report: columns side by side, pairs of columns as a square.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.lab.judge.distances import by_column, distance, distances, tally
from reticent.lab.judge.estimates import correlation_error, means
from reticent.lab.judge.propensity import propensity
from reticent.lab.run.figures import ORANGE
from reticent.lab.trials.masks import Mask
from reticent.lab.trials.tables import Cells, Codes, Trial, cells_of, with_missing
from reticent.report.charts import Chart, svg
from reticent.report.drawing import HOW
from reticent.report.marks import BLUE, GREY, PALE, Spec, framed
from reticent.synth.domain import Axis, Domain
from reticent.synth.domain import bins as axis_bins

COLOURS = {"truth": GREY, "answered": PALE, "synthetic": BLUE}
MOST_LABELS = 20  # of a column with more levels the commonest are drawn
MOST_LETTERS = 22


def columns(tables: Mapping[str, Cells], domain: Domain, *, by: str) -> list[Chart]:
    """A chart for each column: the share of each answer in every table. The table `by` orders levels that are too many."""
    return [_column(tables, domain, place, by) for place in range(len(domain.axes))]


def _column(tables: Mapping[str, Cells], domain: Domain, place: int, by: str) -> Chart:
    axis = domain.axes[place]
    shares = {name: _shares(cells[:, place], axis) for name, cells in tables.items()}
    labels = cell_labels(axis, domain)
    kept = sorted(np.argsort(-shares[by], kind="stable")[:MOST_LABELS].tolist())
    rows = [
        {"place": order, "label": labels[cell], "table": name, "value": float(share[cell])}
        for order, cell in enumerate(kept)
        for name, share in shares.items()
    ]
    names = list(tables)
    y = {"field": "label", "type": "nominal", "sort": {"field": "place", "op": "min"}, "title": None}
    x = {"field": "value", "type": "quantitative", "title": None, "axis": {"format": ".0%", "tickCount": 4}}
    scale = {"domain": names, "range": [COLOURS[name] for name in names]}
    legend = {"title": None, "orient": "bottom"} if len(names) > 1 else None
    encoding = {"y": y, "x": x, "color": {"field": "table", "scale": scale, "legend": legend}}
    if len(names) > 1:
        encoding["yOffset"] = {"field": "table", "sort": names}
    spec: Spec = {
        "width": 260,
        "height": {"step": 8 if len(names) > 1 else 14},
        "data": {"values": rows},
        "mark": "bar",
    }
    caption = "Share of each answer." if len(kept) == len(labels) else f"The {MOST_LABELS} commonest answers."
    title = domain.schema.columns[axis.column].label or axis.column
    return _chart(f"column{place}", title, caption, {**spec, "encoding": encoding})


def _shares(cells: Cells, axis: Axis) -> np.ndarray:
    """Of those who answered or were not asked: a silent cell is no answer."""
    counts = np.bincount(cells, minlength=axis.size).astype(float)
    counts[axis.silence] = 0
    return np.delete(counts / max(counts.sum(), 1), axis.silence)


def cell_labels(axis: Axis, domain: Domain) -> list[str]:
    """Names of the cells of a column but for silence: levels, or the first value of each bin. A heap is its value."""
    column = domain.schema.coded[axis.column]
    starts, widths = axis_bins(axis, domain.schema)
    pairs = zip(starts.tolist(), widths.tolist(), strict=True)
    told = [f"{column.text(code)}{' …' if width > 1 else ''}"[:MOST_LETTERS] for code, width in pairs]
    return [*told, "not asked"] if axis.has_unasked else told


def pair_distances(truth: Cells, made: Cells, domain: Domain) -> Chart:
    """For every two columns the distance of their tables."""
    first, second = (np.ascontiguousarray(c.T, dtype=np.int32) for c in (truth, made))
    values = {
        (a, b): distance(first[[a, b]], second[[a, b]], domain.sizes((a, b)))
        for a, b in combinations(range(len(domain.axes)), 2)
    }
    return _square(
        values, domain.columns, "Distance of every two columns", "2-way distance; white is none.", ORANGE
    )


def pair_associations(made: Cells, domain: Domain) -> Chart:
    """For every two columns how much they are associated in the synthetic rows: Cramér's V."""
    lines = np.ascontiguousarray(made.T, dtype=np.int32)
    values = {
        (a, b): _cramer(tally(lines[[a, b]], domain.sizes((a, b))).astype(float))
        for a, b in combinations(range(len(domain.axes)), 2)
    }
    return _square(
        values, domain.columns, "Association of every two columns", "Cramér's V; white is none.", BLUE
    )


def _cramer(table: np.ndarray) -> float:
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    least = min(table.shape) - 1
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum() / least)) if least else 0.0


def _square(
    values: Mapping[tuple[int, int], float], names: Sequence[str], title: str, caption: str, colour: str
) -> Chart:
    both = [(a, b, v) for (a, b), v in values.items()] + [(b, a, v) for (a, b), v in values.items()]
    rows = [{"x": names[a], "y": names[b], "value": value} for a, b, value in both]
    side = {"type": "nominal", "sort": list(names), "title": None}
    x = {"field": "x", **side, "axis": {"labelAngle": -50}}
    fill = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "sqrt", "range": ["#FFFFFF", colour], "domainMin": 0, "interpolate": "rgb"},
    }
    encoding = {
        "x": x,
        "y": {"field": "y", **side},
        "color": {**fill, "legend": {"title": None, "type": "symbol", "format": ".2~g"}},
    }
    spec: Spec = {"width": {"step": 17}, "height": {"step": 17}, "data": {"values": rows}, "mark": "rect"}
    return _chart("pairs", title, caption, {**spec, "encoding": encoding})


def _chart(key: str, title: str, caption: str, spec: Spec) -> Chart:
    return Chart(key=key, of="", title=title, caption=caption, spec=framed(spec, title, rehearsal=False))


CONFIDENTIAL = "For the lab. This page shows the truth: do not publish it."
PUBLIC = (
    "These rows are synthetic. They were drawn from a model with noise, and none of them is a respondent.",
    "An analysis of them has the error of noise and model besides that of sampling: usual standard errors are too small.",
)


def judge_page(table: Trial, lost: Mask, made: Codes, *, title: str) -> bytes:
    """Truth, what is answered of it, and synthetic rows, side by side. CONFIDENTIAL: for trials."""
    domain = table.domain()
    truth, answered, cells = (
        cells_of(c, domain) for c in (table.codes, with_missing(table.codes, lost), made)
    )
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
