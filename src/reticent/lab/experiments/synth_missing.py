"""Synthetic rows from tables with holes: every method and strategy, at every rate, kind of silence and epsilon.

A piece of this experiment is one line of a figure at one point: `adult/MCAR/0.2/aim/holes/1`. What is measured of it:

    tvd1, tvd2, tvd3   mean distance of 1-, 2- and 3-way tables to the truth's, numbers in 16 public bins
    f1                 nine classifiers that learn from rows synthesized from four fifths of the table, tried on the last fifth
    f1_every           the same for every column as the target in turn, 5,000 rows to learn from: a piece of its own, `every-target`
    complete           rows that no answer is missing from
    seconds            processor time of fitting, drawing, filling and decoding

`no-missing` is the same method on the table without holes. `bootstrap` and `decode-floor` are what no method can be asked to beat.
The mask of a table, a kind and a rate is one fixed draw; repeats draw the noise and the rows anew.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa

from reticent.lab.experiments.synth_charts import charts
from reticent.lab.judge import distances as floors
from reticent.lab.judge.classify import classifiers
from reticent.lab.judge.distances import distances
from reticent.lab.noise import SeededBits
from reticent.lab.papers.items import printed
from reticent.lab.papers.synth_findings import findings
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.trials import tables
from reticent.lab.trials.fitting import DELTA, synthesize
from reticent.lab.trials.masks import Mask, mask, published
from reticent.lab.trials.points import EVERY_TARGET, FLOORS, Point, pieces_of
from reticent.lab.trials.tables import Codes, cells_of
from reticent.lab.trials.teaching import TrialSize, taught, taught_every
from reticent.report.marks import Spec

MEASURED = ("complete", "tvd1", "tvd2", "tvd3", "f1", "f1_every")


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
    return [*rows, *findings(rows), *_complete_rows(rows), *_sizes(rows)]


def _complete_rows(rows: list[Row]) -> list[Row]:
    """Of Adult where MNAR takes a fifth, by the document's own mask where it is at hand: no point is made with it."""
    name, kind, rate = "adult", "MNAR", 0.2
    is_run = any(row["dataset"] == name for row in rows) and tables.at_hand(name)
    held = published(tables.trial(name), kind, rate) if is_run else None
    if held is None:
        return []
    what = f"complete rows of Adult, {kind} 20 %, about"
    stated = printed("synthesis", "Tables and masks", what)
    return [{"item": what, "printed": stated, "value": float((~held.any(axis=1)).sum())}]


SIZES = {"adult": "Adult", "bank": "Bank", "br2000": "BR2000", "national": "National"}


def _sizes(rows: list[Row]) -> list[Row]:
    """How many rows each of the document's tables has, there and here, of those that were run."""
    run_on = {row["dataset"] for row in rows}
    why = "ours: those in which no answer is missing before the masks"
    return [
        {
            "item": f"rows of {title}",
            "query": why,
            "printed": printed("synthesis", "Tables and masks", f"rows of {title}"),
            "value": float(len(tables.trial(name).codes)),
        }
        for name, title in SIZES.items()
        if name in run_on and tables.at_hand(name)
    ]


def figures(outcomes: pa.Table) -> dict[str, Spec]:
    """Those for which there is something to draw."""
    return charts([row for row in told(outcomes) if row["tvd2"] is not None])


def is_classified(point: Point) -> bool:
    """Whether F1 is measured: at epsilon 3, a fifth missing, and for the floors. It takes longer than most fits."""
    return point.method in FLOORS or (point.epsilon == "3" and point.rate == "0.2")


def run(index: int, seed: int, *, pieces: tuple[str, ...], setting: TrialSize) -> list[Outcome]:
    """One piece of one repeat."""
    piece = pieces[index % len(pieces)]
    point = Point.read(piece)
    table = tables.trial(point.table, rows=setting.rows)
    lost = mask(point.table, point.mask, float(point.rate), rows=setting.rows)
    rng = np.random.default_rng(seed)
    judge = _every_target if piece.endswith(f"/{EVERY_TARGET}") else _distances
    values, seconds = judge(point, table, lost, rng, setting)
    return [point.outcome(name, value, seconds) for name, value in values.items()]


Judged = tuple[dict[str, float], float]
"""What was measured, by name, and the seconds of making the rows."""


def _distances(
    point: Point, table: tables.Trial, lost: Mask, rng: np.random.Generator, setting: TrialSize
) -> Judged:
    """Distances of the rows, and F1 of one target where it is asked for."""
    start = process_time()
    made = _made(point, table, lost, rng)
    seconds = process_time() - start
    domain = table.domain(point.bins)
    found = distances(table.cells(point.bins), cells_of(made, domain), domain)
    values = {
        **{f"tvd{k}": value for k, value in found.items()},
        "complete": float((~lost.any(axis=1)).sum()),
    }
    if is_classified(point):
        values["f1"] = taught(table, _maker(point, table, lost, rng), rng, setting)
    return values, seconds


def _every_target(
    point: Point, table: tables.Trial, lost: Mask, rng: np.random.Generator, setting: TrialSize
) -> Judged:
    """F1 over every column as the target."""
    start = process_time()
    value = taught_every(table, _maker(point, table, lost, rng), rng, setting)
    return {"f1_every": value}, process_time() - start


def _maker(
    point: Point, table: tables.Trial, lost: Mask, rng: np.random.Generator
) -> Callable[[tables.Kept], Codes]:
    """Rows learned from some of the table's."""
    return lambda kept: _made(point, table.only(kept), lost[kept], rng)


def _made(point: Point, table: tables.Trial, lost: Mask, rng: np.random.Generator) -> Codes:
    """The rows of one method."""
    if point.method == FLOORS[0]:
        return floors.bootstrap(table.codes, rng)
    if point.method == FLOORS[1]:
        return floors.round_trip(table.codes, table.domain(point.bins), SeededBits(rng))
    return synthesize(
        table,
        lost,
        method=point.method,
        strategy=point.way,
        epsilon=point.amount,
        rng=rng,
        share=point.share,
        bins=point.bins,
    )


def _check(pieces: Sequence[str]) -> None:
    """Before the first piece: whoever has to be judged needs the judges."""
    if any(piece.endswith(EVERY_TARGET) or is_classified(Point.read(piece)) for piece in pieces):
        classifiers(0)


def _lacks(piece: str) -> bool:
    return not tables.at_hand(Point.read(piece).table)


def experiment(
    datasets: Sequence[str] = tables.NAMES, *, setting: TrialSize | None = None, runs: int = 3
) -> Experiment:
    """On the simulated census, and on four tables that others use where their rows are at hand."""
    pieces = tuple(piece for name in datasets for piece in pieces_of(name))
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
            "most_every": setting.most_every,
        },
        runs=runs,
        batch=1,
        pieces=pieces,
        lacks=_lacks,
        told=everything,
        check=_check,
        figures=figures,
    )
