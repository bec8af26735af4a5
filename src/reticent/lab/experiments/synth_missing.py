"""Synthetic rows from tables with holes: every method and strategy, at every rate, kind of silence and epsilon.

A piece of this experiment is one line of a figure at one point: `adult/MCAR/0.2/aim/holes/1`. What is measured of it:

    tvd1, tvd2, tvd3   mean distance of 1-, 2- and 3-way tables to the truth's, numbers in 16 public bins
    f1                 nine classifiers that learn from rows synthesized from four fifths of the table, tried on the last fifth
    complete           rows that no answer is missing from
    seconds            processor time of fitting, drawing, filling and decoding

`no-missing` is the same method on the table without holes. `bootstrap` and `decode-floor` are what no method can be asked to beat.
The mask of a table, a kind and a rate is one fixed draw; repeats draw the noise and the rows anew.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from time import process_time

import numpy as np

from reticent.lab.experiment import Experiment, Outcome
from reticent.lab.experiments.synth_missing_figures import figures
from reticent.lab.experiments.synth_missing_rows import Point, told
from reticent.lab.judge import floors
from reticent.lab.judge.distances import distances
from reticent.lab.seeded import SeededBits
from reticent.lab.trials import tables
from reticent.lab.trials.coding import Codes, cells_of
from reticent.lab.trials.fitting import DELTA, NO_MISSING, synthesize
from reticent.lab.trials.masks import Mask, mask
from reticent.lab.trials.teaching import TrialSize, taught
from reticent.synth.base import Holes

FLOORS = ("bootstrap", "decode-floor")
METHODS = ("privbayes", "mst", "aim")
STRATEGIES = (*("holes" if each is Holes.VALUES else str(each) for each in Holes), NO_MISSING)
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
        told=told,
        figures=figures,
    )
