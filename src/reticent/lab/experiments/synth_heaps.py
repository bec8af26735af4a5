"""Numbers with a heap: synthetic rows from equal bins alone, and with a bin for each value that many people give.

A piece is a table, a method and a way: `adult/aim/heaps`. Nothing is missing from the tables. What is measured of it:

    mean ...   the mean of each column that has a heap, in the units of the codebook, beside the truth's
    tvd2       mean distance of 2-way tables to the truth's, numbers in 16 equal bins whichever way the rows were made
    f1         nine classifiers that learn from rows made from four fifths of the table, tried on the last fifth

`truth` is the table itself; `decode-floor` is the truth put into bins and drawn evenly inside them, without noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa

from reticent.lab.judge import distances as floors
from reticent.lab.judge.classify import answered, classifiers
from reticent.lab.judge.distances import distances
from reticent.lab.noise import SeededBits
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.trials import tables
from reticent.lab.trials.fitting import DELTA, NO_MISSING, synthesize
from reticent.lab.trials.tables import Codes, cells_of
from reticent.lab.trials.teaching import TrialSize, taught
from reticent.schema import Number

EPSILON = Fraction(3)
EQUAL, HEAPS = "equal", "heaps"
TRUTH, FLOOR, AIM = "truth", "decode-floor", "aim"
WAYS = ((TRUTH, EQUAL), *((method, way) for method in (FLOOR, AIM) for way in (EQUAL, HEAPS)))
KNOWN: Mapping[str, Mapping[str, Sequence[int]]] = {
    tables.CENSUS: {"hours": [0, 40], "wage": [0], "rent": [0]},
    "adult": {"capital_gain": [0], "capital_loss": [0], "hours_per_week": [40]},
}
"""What anybody knows who knows the question: most have no such income, and a full week has 40 hours."""


def run(index: int, seed: int, *, pieces: tuple[str, ...], setting: TrialSize) -> list[Outcome]:
    """One piece of one repeat."""
    piece = pieces[index % len(pieces)]
    dataset, method, way = piece.split("/")
    table = tables.trial(dataset, rows=setting.rows)
    heaped = replace(table, point_masses=KNOWN[dataset]) if way == HEAPS else table
    rng, start = np.random.default_rng(seed), process_time()
    made = _made(method, heaped, rng)
    line = partial(_line, piece, process_time() - start)
    domain = table.domain()
    found = distances(table.cells(), cells_of(made, domain), domain, ways=(2,))
    means = [
        line(f"mean {name}", _mean(table.codes, table, name), _mean(made, table, name))
        for name in KNOWN[dataset]
    ]
    f1 = taught(heaped, lambda kept: _made(method, heaped.only(kept), rng), rng, setting)
    return [*means, line("tvd2", 0.0, found[2]), line("f1", 1.0, f1)]


def _line(piece: str, seconds: float, query: str, truth: float, estimate: float) -> Outcome:
    epsilon = float(EPSILON) if AIM in piece else None
    return Outcome(
        method=piece, query=query, epsilon=epsilon, truth=truth, estimate=estimate, seconds=seconds
    )


def _made(method: str, table: tables.Trial, rng: np.random.Generator) -> Codes:
    if method == TRUTH:
        return table.codes
    if method == FLOOR:
        return floors.round_trip(table.codes, table.domain(), SeededBits(rng))
    none = np.zeros(table.codes.shape, dtype=np.bool_)
    return synthesize(table, none, method=method, strategy=NO_MISSING, epsilon=EPSILON, rng=rng)


def _mean(codes: Codes, table: tables.Trial, name: str) -> float:
    """In the units of the codebook, of those who were asked."""
    column, values = table.schema.coded[name], codes[:, table.columns.index(name)]
    grid = float(column.grid) if isinstance(column, Number) else 1.0
    return float(values[answered(values)].mean() * grid)


def told(outcomes: pa.Table) -> list[Row]:
    """A row for each number: the truth, the mean over the repeats, the mean size of the error, and the spread."""
    return [_row(key, lines) for key, lines in groups(outcomes)]


def _row(key: Row, lines: Mapping[str, np.ndarray]) -> Row:
    dataset, method, way = key["method"].split("/")
    made, truth = lines["estimate"], lines["truth"]
    return {
        "dataset": dataset,
        "method": method,
        "bins": way,
        "epsilon": key["epsilon"],
        "query": key["query"],
        "runs": len(made),
        "truth": float(truth.mean()),
        "estimate": float(made.mean()),
        "error": float(np.abs(made - truth).mean()),
        "sd": float(made.std(ddof=1)) if len(made) > 1 else None,
        "seconds": float(lines["seconds"].mean()),
    }


def _lacks(piece: str) -> bool:
    return not tables.at_hand(piece.split("/")[0])


def _check(pieces: Sequence[str]) -> None:
    """Before the first piece: all are judged by classifiers."""
    classifiers(0)


def experiment(
    datasets: Sequence[str] = tuple(KNOWN), *, setting: TrialSize | None = None, runs: int = 3
) -> Experiment:
    """On the simulated census, and on Adult where its rows are at hand."""
    pieces = tuple(f"{dataset}/{method}/{way}" for dataset in datasets for method, way in WAYS)
    setting = setting or TrialSize()
    return Experiment(
        name="synth-heaps",
        title="Synthetic numbers that many people give: equal bins, and a bin for each heap",
        source="our own question",
        run=partial(run, pieces=pieces, setting=setting),
        params={
            "pieces": len(pieces),
            "heaps": {
                name: {c: list(v) for c, v in point_masses.items()} for name, point_masses in KNOWN.items()
            },
            "epsilon": str(EPSILON),
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
        check=_check,
    )
