"""Pictures of tables as Vega-Lite, in the look of the report: columns side by side, pairs of columns as a square."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from reticent.lab.figures import ORANGE
from reticent.lab.judge.counting import tally
from reticent.lab.judge.distances import distance
from reticent.lab.trials.coding import Cells
from reticent.report.marks import BLUE, GREY, PALE, Spec, framed
from reticent.report.specs import Chart
from reticent.synth.decode import bins
from reticent.synth.domain import Axis, Domain

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
    starts, widths = bins(axis, domain.schema)
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
