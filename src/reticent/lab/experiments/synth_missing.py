"""Synthetic rows from tables with holes: every method and strategy, at every rate, kind of silence and epsilon.

A piece of this experiment is one line of a figure at one point: `adult/MCAR/0.2/aim/holes/1`. What is measured of it:

    tvd1, tvd2, tvd3   mean distance of 1-, 2- and 3-way tables to the truth's, numbers in 16 public bins
    f1                 nine classifiers that learn from rows synthesized from four fifths of the table, tried on the last fifth
    complete           rows that no answer is missing from
    seconds            processor time of fitting, drawing, filling and decoding

`no-missing` is the same method on the table without holes. `bootstrap` and `decode-floor` are what no method can be asked to beat.
The mask of a table, a kind and a rate is one fixed draw; repeats draw the noise and the rows anew.

The rows of `synth-missing`: a point of a figure, what was measured there, and what others measured there.

The charts of `synth-missing`: strategies, rates, kinds of silence and epsilons, in the order of the paper's figures.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.judge import distances as floors
from reticent.lab.judge.classify import classifiers
from reticent.lab.judge.distances import distances
from reticent.lab.noise import SeededBits
from reticent.lab.papers.synth_findings import findings
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.figures import ORANGE, titled
from reticent.lab.run.summary import groups
from reticent.lab.trials import tables
from reticent.lab.trials.fitting import DELTA, NO_MISSING, synthesize
from reticent.lab.trials.masks import Mask, mask
from reticent.lab.trials.tables import Codes, cells_of
from reticent.lab.trials.teaching import TrialSize, taught
from reticent.report.marks import BLUE, GREY, IN_ORDER, Spec
from reticent.synth.base import MissingMethod

MEASURED = ("complete", "tvd1", "tvd2", "tvd3", "f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One method and strategy on one table with one mask, at one epsilon. Numbers are kept as they are written."""

    dataset: str
    mask: str
    rate: str
    method: str
    strategy: str
    epsilon: str

    def __str__(self) -> str:
        return "/".join(astuple(self))

    @classmethod
    def read(cls, text: str) -> "Point":
        return cls(**dict(zip(cls.__slots__, text.split("/"), strict=True)))

    def outcome(self, name: str, value: float, seconds: float) -> Outcome:
        """What was measured here. A distance of 0 is the truth; so it is written as an estimate of 0."""
        return Outcome(
            method=self.method,
            query=f"{name}/{self}",
            epsilon=None if self.epsilon == "none" else float(self.epsilon),
            truth=0.0,
            estimate=value,
            seconds=seconds,
        )

    def row(self) -> Row:
        """The public part of a row: where it stands."""
        return {
            "dataset": self.dataset,
            "mask": self.mask,
            "rate": float(self.rate),
            "method": self.method,
            "strategy": self.strategy,
            "epsilon": None if self.epsilon == "none" else float(self.epsilon),
        }


def told(outcomes: pa.Table) -> list[Row]:
    """A row for every point: means over the repeats, with the standard deviation of the 2-way distance."""
    found: dict[Point, Row] = {}
    for key, lines in groups(outcomes):
        name, _, text = key["query"].partition("/")
        point = Point.read(text)
        row = found.setdefault(point, {**point.row(), **dict.fromkeys(MEASURED)})
        row[name] = float(np.mean(lines["estimate"]))
        if name == "tvd2":
            row["runs"], row["seconds"] = len(lines["estimate"]), float(np.mean(lines["seconds"]))
            row["tvd2_sd"] = float(np.std(lines["estimate"], ddof=1)) if row["runs"] > 1 else None
    return list(found.values())


def everything(outcomes: pa.Table) -> list[Row]:
    """A row for every point, and what the document states in sentences beside them."""
    rows = told(outcomes)
    return [*rows, *findings(rows)]


COLOURS = {"independent": GREY, "privbayes": ORANGE, "mst": "#009E73", "aim": BLUE}
ORDER = ("no-missing", "holes", "available", "impute-model", "impute-mean", "impute-random", "complete")
FLOORS = ("bootstrap", "decode-floor")
TELLS = "Mean distance of the 2-way tables of synthetic rows to the truth's, numbers in 16 public bins; mean of the repeats."


SIGNS = "Solid, circles: available cells. Dashed, squares: holes as values. Dotted, triangles: complete rows."


def figures(outcomes: pa.Table) -> dict[str, Spec]:
    """Those for which there is something to draw."""
    rows = told(outcomes)
    drawn = {
        "synth-strategies": _strategies(rows),
        "synth-rates": _rates(rows, 1),
        "synth-rates-3": _rates(rows, 3),
        "synth-silence": _lines(
            [r for r in rows if (r["mask"], r["rate"]) in SHOWN_KINDS and r["epsilon"] == 1],
            lambda r: f"{r['mask']} {100 * r['rate']:g} %, {r['complete']:,.0f}",
            lambda r: list(SHOWN_KINDS).index((r["mask"], r["rate"])),
            "Kinds of silence, epsilon 1",
            "Across: who is silent, at which rate, and how many rows are left complete.",
        ),
        "synth-epsilons": _lines(
            [r for r in rows if r["mask"] == "MCAR" and r["rate"] == 0.2],
            lambda r: "none" if r["epsilon"] is None else f"{r['epsilon']:g}",
            lambda r: 1e9 if r["epsilon"] is None else r["epsilon"],
            "Epsilons, MCAR 20 %",
            "Across: epsilon, and the same method without noise.",
        ),
    }
    return {name: chart for name, chart in drawn.items() if chart is not None}


SHOWN_KINDS = (("MCAR", 0.1), ("MAR", 0.1), ("MNAR", 0.1), ("MAR", 0.35))


def _rates(rows: Iterable[Row], epsilon: float) -> Spec | None:
    return _lines(
        [r for r in rows if r["mask"] == "MCAR" and r["epsilon"] == epsilon],
        lambda r: f"{100 * r['rate']:g} %, {r['complete']:,.0f}",
        lambda r: r["rate"],
        f"Rates of missing cells, MCAR, epsilon {epsilon:g}",
        "Across: the rate, and how many rows are left complete.",
    )


def _strategies(rows: Iterable[Row]) -> Spec | None:
    """A dot for each method and strategy, lines for the floors, a panel for each table."""
    here = [r for r in rows if (r["mask"], r["rate"]) == ("MCAR", 0.2)]
    dots = [
        {
            "panel": r["dataset"],
            "label": r["strategy"],
            "method": r["method"],
            "value": r["tvd2"],
            "place": place,
        }
        for place, r in enumerate(here)
        if r["epsilon"] == 1
    ]
    floors = [{"panel": r["dataset"], "value": r["tvd2"]} for r in here if r["method"] == "bootstrap"]
    if not dots:
        return None
    y = {
        "field": "label",
        "type": "nominal",
        "scale": {"domain": list(ORDER)},
        "title": None,
        "axis": {"grid": True},
    }
    x = {"field": "value", "type": "quantitative", "title": "2-way distance", "scale": {"zero": True}}
    mark = {"type": "point", "filled": True, "size": 75, "opacity": 0.95}
    rule = {"type": "rule", "color": "black", "strokeDash": [4, 3]}
    layers = [
        {"mark": rule, "transform": [{"filter": "datum.floor"}], "encoding": {"x": x}},
        {"mark": mark, "transform": [{"filter": "!datum.floor"}], "encoding": {"x": x, "y": y, **_method()}},
    ]
    values = [*({**dot, "floor": False} for dot in dots), *({**f, "floor": True} for f in floors)]
    made = _panels(values, {"width": 270, "height": 22 * len(ORDER), "layer": layers})
    words = "MCAR 20 %, epsilon 1, delta 0.000001. Dashed: as many rows drawn again from the truth."
    return titled(made, "Strategies for incomplete rows", f"{words} {TELLS}")


def _lines(
    rows: Iterable[Row], label: Callable[[Row], str], place: Callable[[Row], Any], title: str, words: str
) -> Spec | None:
    """Lines through the points of each method and strategy, a panel for each table."""
    kept = [
        r for r in rows if r["method"] not in FLOORS and r["strategy"] in ("available", "holes", "complete")
    ]
    values = [
        {
            "panel": r["dataset"],
            "label": label(r),
            "method": r["method"],
            "strategy": r["strategy"],
            "line": f"{r['method']} {r['strategy']}",
            "value": r["tvd2"],
            "place": place(r),
        }
        for r in kept
    ]
    # A line has at least two points, and a panel is there for its lines.
    ends = Counter((v["panel"], v["line"]) for v in values)
    values = [v for v in values if ends[v["panel"], v["line"]] > 1]
    if not values:
        return None
    x = {"field": "label", "type": "nominal", "sort": IN_ORDER, "title": None, "axis": {"labelAngle": -30}}
    y = {
        "field": "value",
        "type": "quantitative",
        "title": "2-way distance",
        "scale": {"type": "log", "nice": False},
    }
    names = ["available", "holes", "complete"]
    dash = {
        "field": "strategy",
        "scale": {"domain": names, "range": [[1, 0], [6, 3], [2, 2]]},
        "legend": None,
    }
    shape = {
        "field": "strategy",
        "scale": {"domain": names, "range": ["circle", "square", "triangle-up"]},
        "legend": None,
    }
    shared = {"x": x, "y": y, "detail": {"field": "line"}, **_method(shape=False)}
    layers = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {**shared, "strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 50}, "encoding": {**shared, "shape": shape}},
    ]
    made = _panels(values, {"width": 270, "height": 190, "layer": layers})
    return titled(
        made, title, f"{words} {SIGNS}", f"{TELLS} Each panel has its own scale, a logarithmic one."
    )


def _method(*, shape: bool = True) -> Spec:
    """Colour says which method, and its shape says the same."""
    names, legend = list(COLOURS), {"title": None, "orient": "bottom", "labelLimit": 400}
    colour = {
        "field": "method",
        "scale": {"domain": names, "range": list(COLOURS.values())},
        "legend": legend,
    }
    shapes = ["circle", "triangle-up", "diamond", "square"]
    told = {"shape": {"field": "method", "scale": {"domain": names, "range": shapes}, "legend": legend}}
    return {"color": colour, **(told if shape else {})}


def _panels(values: list[Row], spec: Spec) -> Spec:
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 13}
    return {
        "data": {"values": values},
        "facet": {"field": "panel", "type": "nominal", "sort": None, "header": header},
        "columns": 2,
        "spec": spec,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }


METHODS = ("privbayes", "mst", "aim")
STRATEGIES = (*("holes" if each is MissingMethod.VALUES else str(each) for each in MissingMethod), NO_MISSING)
BASELINE = ("independent", "available")
LINES = (
    BASELINE,
    ("privbayes", "complete"),
    *((method, strategy) for method in METHODS for strategy in ("available", "holes")),
)
RATES, EPSILONS = ("0.01", "0.05", "0.1", "0.2", "0.3"), ("0.5", "1", "3", "5", "10", "none")
KINDS = (("MCAR", "0.1"), ("MAR", "0.1"), ("MNAR", "0.1"), ("MAR", "0.35"))


def points(dataset: str) -> Iterator[Point]:
    """What the four figures and the table need of one dataset, some of it more than once."""
    at = partial(Point, dataset=dataset)
    for floor in FLOORS:
        yield at(mask="MCAR", rate="0.2", method=floor, strategy="none", epsilon="none")
    for method, strategy in (BASELINE, *((m, s) for m in METHODS for s in STRATEGIES)):
        yield at(mask="MCAR", rate="0.2", method=method, strategy=strategy, epsilon="1")
    for method, strategy in LINES:
        line = partial(at, method=method, strategy=strategy)
        yield from (line(mask="MAR", rate="0.2", epsilon=e) for e in ("1", "3"))
        yield from (line(mask="MCAR", rate="0.2", epsilon=e) for e in EPSILONS)
        yield from (line(mask="MCAR", rate=rate, epsilon=e) for rate in RATES for e in ("1", "3"))
        yield from (line(mask=kind, rate=rate, epsilon="1") for kind, rate in KINDS)
    for method in METHODS:
        yield at(mask="MCAR", rate="0.2", method=method, strategy=NO_MISSING, epsilon="3")


def is_classified(point: Point) -> bool:
    """Whether F1 is measured: at epsilon 3, a fifth missing, and for the floors. It takes longer than most fits."""
    return point.method in FLOORS or (point.epsilon == "3" and point.rate == "0.2")


def run(index: int, seed: int, *, pieces: tuple[str, ...], setting: TrialSize) -> list[Outcome]:
    """One piece of one repeat."""
    point = Point.read(pieces[index % len(pieces)])
    table = tables.trial(point.dataset, rows=setting.rows)
    lost = mask(point.dataset, point.mask, float(point.rate), rows=setting.rows)
    rng = np.random.default_rng(seed)
    start = process_time()
    made = _made(point, table, lost, rng)
    seconds = process_time() - start
    domain = table.domain()
    found = distances(table.cells(), cells_of(made, domain), domain)
    values = {
        **{f"tvd{k}": value for k, value in found.items()},
        "complete": float((~lost.any(axis=1)).sum()),
    }
    if is_classified(point):
        values["f1"] = taught(
            table, lambda kept: _made(point, table.only(kept), lost[kept], rng), rng, setting
        )
    return [point.outcome(name, value, seconds) for name, value in values.items()]


def _made(point: Point, table: tables.Trial, lost: Mask, rng: np.random.Generator) -> Codes:
    """The rows of one method."""
    without: dict[str, Callable[[], Codes]] = {
        "bootstrap": lambda: floors.bootstrap(table.codes, rng),
        "decode-floor": lambda: floors.round_trip(table.codes, table.domain(), SeededBits(rng)),
    }
    if point.method in without:
        return without[point.method]()
    epsilon = None if point.epsilon == "none" else Fraction(point.epsilon)
    return synthesize(table, lost, method=point.method, strategy=point.strategy, epsilon=epsilon, rng=rng)


def _check(pieces: Sequence[str]) -> None:
    """Before the first piece: whoever has to be judged needs the judges."""
    if any(is_classified(Point.read(piece)) for piece in pieces):
        classifiers(0)


def _lacks(piece: str) -> bool:
    return not tables.at_hand(Point.read(piece).dataset)


def experiment(
    datasets: Sequence[str] = tables.NAMES, *, setting: TrialSize | None = None, runs: int = 3
) -> Experiment:
    """On the simulated census, and on four tables that others use where their rows are at hand."""
    pieces = tuple(dict.fromkeys(str(point) for name in datasets for point in points(name)))
    setting = setting or TrialSize()
    return Experiment(
        name="synth-missing",
        title="Synthetic rows from tables with holes: methods, strategies, rates, kinds of silence, epsilons",
        source="Differentially private data generation with missing data, Figures 2 to 5",
        run=partial(run, pieces=pieces, setting=setting),
        params={
            "pieces": len(pieces),
            "delta": str(DELTA),
            "rows": setting.rows,
            "judges": list(setting.judges),
            "most": setting.most,
        },
        runs=runs,
        batch=1,
        pieces=pieces,
        lacks=_lacks,
        told=everything,
        check=_check,
        figures=figures,
    )
