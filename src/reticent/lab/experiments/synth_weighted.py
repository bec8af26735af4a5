"""Synthetic rows from answered cells weighted by who answers, beside available cells and silence as a category, filled after the noise.

A piece is a table, a kind of silence, a method and a strategy: `bank/MAR/aim/response-weighted`. A fifth of the answers is missing,
of the workers those that they really left out (`flags`); `none` is the table without missing answers, as the method alone would do.
What is measured of it:

    tvd1, tvd2   mean distance of 1- and 2-way tables to the truth's, on the public bins
    seconds      processor time of fitting, drawing and filling

Settings were chosen on Adult and on `adult_pgm` with MCAR; all other tables were run once.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa

from reticent.lab.judge.distances import distances
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.trials import tables
from reticent.lab.trials.fitting import DELTA, NO_MISSING, synthesize
from reticent.lab.trials.masks import FLAGS, mask
from reticent.lab.trials.tables import cells_of

EPSILON = Fraction(1)
RATE = 0.2
SILENCES = ("MCAR", "MAR", "MNAR", "clustered")
METHODS = ("aim", "mst", "pairs")
STRATEGIES = ("available", "category", "response-weighted")
DATASETS = ("adult", tables.CODED, "bank", "br2000", "national", tables.CENSUS, tables.WORKERS)


def pieces_of(dataset: str) -> Iterator[str]:
    """The baseline, and aim, mst and pairs by every strategy and without missing answers."""
    yield from (f"{dataset}/none/{method}/{NO_MISSING}" for method in METHODS)
    for silence in _silences(dataset):
        yield f"{dataset}/{silence}/independent/available"
        yield from (f"{dataset}/{silence}/aim/{strategy}" for strategy in STRATEGIES)
        if dataset != tables.CODED and silence in ("MCAR", "MAR", FLAGS):
            yield from (f"{dataset}/{silence}/{method}/{s}" for method in METHODS[1:] for s in STRATEGIES)


def _silences(dataset: str) -> tuple[str, ...]:
    if dataset == tables.WORKERS:
        return (FLAGS,)
    return SILENCES[:2] if dataset == tables.CODED else SILENCES


def run(index: int, seed: int, *, pieces: tuple[str, ...], rows: int | None = None) -> list[Outcome]:
    """One piece of one repeat."""
    piece = pieces[index % len(pieces)]
    dataset, silence, method, strategy = piece.split("/")
    table = tables.trial(dataset, rows=rows)
    domain = table.domain()
    lost = mask(dataset, "MCAR" if silence == "none" else silence, RATE, rows=rows)
    start = process_time()
    made = synthesize(
        table,
        lost,
        method=method,
        strategy=strategy,
        epsilon=EPSILON,
        rng=np.random.default_rng(seed),
        bins=None,
    )
    seconds = process_time() - start
    found = distances(table.cells(), cells_of(made, domain), domain, ways=(1, 2))
    return [
        Outcome(
            method=piece,
            query=f"tvd{way}",
            epsilon=float(EPSILON),
            truth=0.0,
            estimate=value,
            seconds=seconds,
        )
        for way, value in found.items()
    ]


def told(outcomes: pa.Table) -> list[Row]:
    """A row for every piece: means over the repeats, and the spread of the 2-way distance."""
    found: dict[str, Row] = {}
    for key, lines in groups(outcomes):
        dataset, silence, method, strategy = key["method"].split("/")
        words = {"dataset": dataset, "mask": silence, "method": method, "strategy": strategy}
        row = found.setdefault(key["method"], {**words, "epsilon": key["epsilon"]})
        row[key["query"]] = float(np.mean(lines["estimate"]))
        if key["query"] == "tvd2":
            many = len(lines["estimate"])
            row["tvd2_sd"] = float(np.std(lines["estimate"], ddof=1)) if many > 1 else None
            row["runs"], row["seconds"] = many, float(np.mean(lines["seconds"]))
    return list(found.values())


def _lacks(piece: str) -> bool:
    return not tables.at_hand(piece.split("/")[0])


def experiment(datasets: Sequence[str] = DATASETS, *, rows: int | None = None, runs: int = 3) -> Experiment:
    """On the simulated census, and on six tables where their rows are at hand."""
    pieces = tuple(piece for name in datasets for piece in pieces_of(name))
    return Experiment(
        name="synth-weighted",
        title="Synthetic rows from answered cells, weighted by who answers",
        source="synthesis",
        run=partial(run, pieces=pieces, rows=rows),
        params={
            "pieces": len(pieces),
            "rate": RATE,
            "epsilon": str(EPSILON),
            "delta": str(DELTA),
            "rows": rows,
        },
        runs=runs,
        batch=1,
        pieces=pieces,
        cases=pieces,
        lacks=_lacks,
        told=told,
    )
