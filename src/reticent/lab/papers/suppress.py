"""Count-based cell suppression: the rule that small-cell tables are published by, its bias, and an attack on it.

A baseline to compare with. It adds no noise; what it publishes is exact, and *not differentially private*.

Series behind the pictures of the small-cells paper, and what noise does to reliability. Plain numbers.

Those made from `GridPoints` are for the curator's eyes: they are read off the rows and published nowhere.

The pictures of the small-cells paper as Vega-Lite, from the series of `diagnostics` and `suppress`.

Every encoding names a field of ours. A picture drawn from the rows says so in red, for it may travel alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.smallcells.estimators import Estimator, Floats, Predict, estimates
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.points import GridPoints, moments

LABEL = "count suppression, exact numbers, not differentially private"
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRespondents:
    """Withholds cells with fewer than `least` respondents."""

    least: int

    def keeps(self, sizes: Counts, events: Counts) -> Flags:
        """Which cells are published."""
        return np.asarray(sizes >= self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class FewEvents:
    """Withholds cells with `low` to `high` events and keeps those with none: the rule of the paper's Figure 3."""

    low: int = 1
    high: int = 4

    def keeps(self, sizes: Counts, events: Counts) -> Flags:
        """Which cells are published."""
        return np.asarray((events < self.low) | (events > self.high))


Rule = FewRespondents | FewEvents


def suppress(points: GridPoints, estimator: Estimator, rule: Rule) -> tuple[Fraction | None, ...]:
    """Exact estimates of the cells that the rule keeps; None for those withheld or undefined. Events have y = 1."""
    of = moments(points)
    found = estimates(estimator, of)
    is_event = np.concatenate([[0], np.cumsum(points.y == points.y_steps)])
    events = is_event[points.starts[1:]] - is_event[points.starts[:-1]]
    kept = rule.keeps(of.n.astype(np.int64), events)
    return tuple(found.of(g) if kept[g] else None for g in range(points.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Means of x and y within bins of x of equal count, and the least-squares slope over all cells used."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    slope: float
    cells: int


def binned_scatter(x: Floats, y: Floats, *, bins: int = 20) -> Scatter:
    """The scatter of cells, in bins: what Figure 3 draws."""
    if bins < 1 or len(x) < 2 or x.min() == x.max():
        raise PlanError("a scatter needs a bin, and cells with two different x.", field="bins")
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    about = x - x.mean()
    return Scatter(
        x=tuple(float(x[part].mean()) for part in parts),
        y=tuple(float(y[part].mean()) for part in parts),
        slope=float((about * y).sum() / (about * about).sum()),
        cells=len(x),
    )


def scatters(
    x: Floats, sizes: Counts, events: Counts, rule: Rule, *, bins: int = 20
) -> tuple[Scatter, Scatter]:
    """The rate of events against x, over all cells and over those the rule keeps."""
    if (sizes < 1).any():
        raise PlanError("a rate needs at least one respondent in each cell.", field="sizes")
    rate, kept = events / sizes, rule.keeps(sizes, events)
    return binned_scatter(x, rate, bins=bins), binned_scatter(x[kept], rate[kept], bins=bins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An exact mean over so many people, as suppression publishes it once a cell is large enough."""

    people: int
    mean: Fraction


def newcomer(before: Published, after: Published) -> Fraction:
    """The answer of the one person who is in the second release and not in the first.

    The differencing attack: both cells are far above any threshold, and the difference of two exact sums is one
    person's answer.
    """
    if after.people != before.people + 1:
        raise PlanError("the second release has one person more than the first.", field="people")
    return after.people * after.mean - before.people * before.mean


def worked_example(
    answers: Sequence[Fraction], rule: FewRespondents
) -> tuple[Published, Published, Fraction]:
    """150 people, then 151: two releases that the rule lets pass, and what they say of the last person."""
    last = len(answers) - 1
    if last < rule.least:
        raise PlanError("the rule withholds the first release.", field="least")
    before = Published(people=last, mean=sum(answers[:last], Fraction(0)) / last)
    after = Published(people=last + 1, mean=sum(answers, Fraction(0)) / (last + 1))
    return before, after, newcomer(before, after)


Rows = list[dict[str, Any]]


def one_cell(points: GridPoints, cell: int, at: Fraction) -> Rows:
    """Figure 1: the lines of one cell before and after each corner is added, and how far each moves the prediction."""
    here = slice(int(points.starts[cell]), int(points.starts[cell + 1]))
    x, y = points.x[here], points.y[here]
    lines: Rows = []
    for corner in (None, (0, 0), (0, 1), (1, 0), (1, 1)):
        more = [] if corner is None else [corner]
        grown = GridPoints(
            starts=np.array([0, len(x) + len(more)], dtype=np.int64),
            x=np.append(x, np.array([a * points.x_steps for a, _ in more], dtype=np.int64)),
            y=np.append(y, np.array([b * points.y_steps for _, b in more], dtype=np.int64)),
            x_steps=points.x_steps,
            y_steps=points.y_steps,
        )
        of = moments(grown)
        heights = [float(estimates(Predict(at=Fraction(p)), of).floats()[0]) for p in (0, at, 1)]
        name = "as it is" if corner is None else f"with ({corner[0]}, {corner[1]})"
        lines.append({"line": name, "left": heights[0], "prediction": heights[1], "right": heights[2]})
    return [{**line, "moved": abs(line["prediction"] - lines[0]["prediction"])} for line in lines]


def log_envelope(points: GridPoints, at: Fraction) -> Rows:
    """Figure 2: each cell's size and local sensitivity, and the envelope chi / N above them all."""
    local = local_sensitivity(points, Predict(at=at))
    sizes = np.diff(points.starts)
    used = np.flatnonzero(~np.isnan(local))
    if not len(used):
        raise PlanError("no cell has a line.", field="cells")
    chi = float((sizes[used] * local[used]).max())
    return [
        {"size": int(sizes[g]), "local": float(local[g]), "envelope": chi / int(sizes[g])}
        for g in used.tolist()
    ]


def error_by_epsilon(chi: Fraction, sizes: Floats, epsilons: tuple[Fraction, ...]) -> Rows:
    """The mean squared error by noise over cells of these sizes, 2 (chi / (epsilon N))**2, for each epsilon."""
    if len(sizes) == 0 or sizes.min() < 1 or min(epsilons) <= 0:
        raise PlanError("sizes are at least 1 and epsilons positive.", field="epsilon")
    return [
        {
            "epsilon": float(e),
            "squared_error": float((2 * (float(chi) / (float(e) * sizes)) ** 2).mean()),
        }
        for e in epsilons
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The share of the spread between cells that is signal, before and after the noise, and the noise's own share."""

    before: float
    after: float
    noise_share: float


def reliability(*, variance: float, sampling: float, noise: float) -> Reliability:
    """From the variance of estimates between cells, and the mean variances of sampling and of noise.

    With `share` the noise's part of the variance of what is released, after = before (1 - share): the noise adds to
    what the signal is divided by. Taking the share off in points would be too much.
    """
    if variance <= 0 or not 0 <= sampling <= variance or noise < 0:
        raise PlanError(
            "the variance between cells is positive and holds that of sampling.", field="variance"
        )
    signal, total = variance - sampling, variance + noise
    return Reliability(before=signal / variance, after=signal / total, noise_share=noise / total)


BLUE, ORANGE, GREY, RED = "#0072B2", "#D55E00", "#555555", "#A00000"
CONFIDENTIAL = "Drawn from the rows: for the curator's eyes, not for publication."
Spec = dict[str, Any]


def draw_cell(rows: Rows, points: Rows, *, at: float) -> Spec:
    """Figure 1: a cell's points, its line, and the line that one more respondent moves furthest at `at`."""
    worst = max(rows, key=lambda row: row["moved"])
    lines = [
        {"line": row["line"], "x": x, "y": row[side]}
        for row in (rows[0], worst)
        for side, x in (("left", 0.0), ("right", 1.0))
    ]
    layers = [
        {
            "data": {"values": points},
            "mark": {"type": "point", "color": GREY},
            "encoding": {"x": _axis("x"), "y": _axis("y")},
        },
        {
            "data": {"values": lines},
            "mark": {"type": "line", "clip": True},
            "encoding": {"x": _axis("x"), "y": _axis("y"), "color": _colour("line")},
        },
        {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": at}}},
    ]
    return _framed({"layer": layers}, f"One more respondent moves the prediction by {worst['moved']:.3f}")


def draw_envelope(rows: Rows) -> Spec:
    """Figure 2: local sensitivity against size, both on log scales, under the envelope."""
    line = sorted(rows, key=lambda row: row["size"])
    layers = [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 12, "color": BLUE},
            "encoding": {
                "x": _axis("size", "respondents in the cell", log=True),
                "y": _axis("local", "local sensitivity", log=True),
            },
        },
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": ORANGE},
            "encoding": {"x": _axis("size", log=True), "y": _axis("envelope", log=True)},
        },
    ]
    return _framed({"layer": layers}, "Local sensitivity and the envelope chi / N")


def draw_scatters(everything: Scatter, kept: Scatter, *, x: str, y: str) -> Spec:
    """Figure 3: the binned scatter of all cells, and of those that suppression leaves."""
    rows = [
        {"cells": name, "x": a, "y": b}
        for name, scatter in (("all cells", everything), ("cells not suppressed", kept))
        for a, b in zip(scatter.x, scatter.y, strict=True)
    ]
    mark = {"type": "point", "filled": True, "size": 50}
    spec = {
        "data": {"values": rows},
        "mark": mark,
        "encoding": {"x": _axis("x", x), "y": _axis("y", y), "color": _colour("cells")},
    }
    return _framed(
        spec, f"Slope {everything.slope:.3f} over all cells, {kept.slope:.3f} over those not suppressed"
    )


def draw_errors(rows: Rows) -> Spec:
    """The mean squared error by noise against epsilon."""
    spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": True, "color": BLUE},
        "encoding": {
            "x": _axis("epsilon", "epsilon"),
            "y": _axis("squared_error", "mean squared error by noise", log=True),
        },
    }
    return _framed(spec, "What a larger epsilon buys")


def _axis(name: str, title: str | None = None, *, log: bool = False) -> Spec:
    scale = {"type": "log", "nice": False} if log else {"zero": False}
    return {"field": name, "type": "quantitative", "title": title, "scale": scale}


def _colour(name: str) -> Spec:
    return {
        "field": name,
        "type": "nominal",
        "scale": {"range": [BLUE, ORANGE]},
        "legend": {"title": None, "orient": "bottom"},
    }


def _framed(spec: Spec, title: str) -> Spec:
    """Title and warning: all of these pictures hold numbers without noise."""
    heading = {"text": title, "anchor": "start", "subtitle": CONFIDENTIAL, "subtitleColor": RED}
    return {"width": 430, "height": 300, **spec, "title": heading, "background": "white"}
