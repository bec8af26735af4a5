"""The other rakers, each in its own way, on a table from a file. Run by `bench.raking` with an interpreter of its own.

ipfn is timed on the table; svy and weightipy rake weights of rows, so they get a row for each cell (svy, weighted by
the cell) or for each person (weightipy, which begins at weights of 1). Both are timed as a user would call them, and
once more with their inner loop alone, everything having been prepared.
"""

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import svy
import weightipy
from ipfn import ipfn
from svy_rs._internal import rake as svy_loop
from weightipy.internal.rim import Rake

TOLERANCE = 1e-8
Made = tuple[float, float]


def timed(work: Callable[[], np.ndarray], margins: list[np.ndarray], rounds: int) -> Made:
    """Wall seconds of the best round, and the largest relative error of a margin."""
    best, made = float("inf"), None
    for _ in range(rounds):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            made = work()
        best = min(best, time.perf_counter() - start)
    sums = [made.sum(axis=tuple(i for i in range(made.ndim) if i != a)) for a in range(made.ndim)]
    return best, max(float(np.max(np.abs(s / m - 1))) for s, m in zip(sums, margins, strict=True))


def by_ipfn(table: np.ndarray, margins: list[np.ndarray]) -> Made:
    def work() -> np.ndarray:
        axes = [[axis] for axis in range(table.ndim)]
        return ipfn.ipfn(
            table.copy(), list(margins), axes, convergence_rate=TOLERANCE, rate_tolerance=0.0
        ).iteration()

    return timed(work, margins, rounds=3)


def by_svy(table: np.ndarray, margins: list[np.ndarray]) -> dict[str, Made]:
    places = np.indices(table.shape).reshape(table.ndim, -1)
    names = [f"x{axis}" for axis in range(table.ndim)]
    frame = pl.DataFrame({**dict(zip(names, places, strict=True)), "w": table.reshape(-1)})
    controls = {name: dict(enumerate(totals.tolist())) for name, totals in zip(names, margins, strict=True)}

    def call() -> np.ndarray:
        sample = svy.Sample(frame, svy.Design(wgt="w"))
        done = sample.weighting.rake(controls=controls, tol=TOLERANCE, max_iter=1000)
        return done.data["rk_wgt"].to_numpy().reshape(table.shape)

    start, codes = table.reshape(-1, 1).copy(), [np.ascontiguousarray(p) for p in places]

    def loop() -> np.ndarray:
        return svy_loop(start, codes, margins, None, None, TOLERANCE, 1000)[:, 0].reshape(table.shape)

    return {"svy": timed(call, margins, rounds=5), "svy, loop alone": timed(loop, margins, rounds=5)}


def by_weightipy(table: np.ndarray, margins: list[np.ndarray]) -> dict[str, Made]:
    people = np.repeat(np.arange(table.size), table.reshape(-1).astype(int))
    places = np.indices(table.shape).reshape(table.ndim, -1)[:, people]
    names = [f"x{axis}" for axis in range(table.ndim)]
    frame = pd.DataFrame(dict(zip(names, places, strict=True)))
    total = float(margins[0].sum())
    targets = {
        name: dict(enumerate((100 * totals / total).tolist()))
        for name, totals in zip(names, margins, strict=True)
    }

    def tabled(weights: np.ndarray) -> np.ndarray:
        cells = np.bincount(people, weights=np.asarray(weights), minlength=table.size)
        return (cells * (total / len(people))).reshape(table.shape)

    def call() -> np.ndarray:
        return tabled(weightipy.weight(frame, weightipy.scheme_from_dict(targets)).to_numpy())

    def loop() -> np.ndarray:
        rows = frame.copy()
        Rake(rows, [{name: values} for name, values in targets.items()]).start()
        return tabled(rows["weight"].to_numpy())

    return {
        "weightipy": timed(call, margins, rounds=3),
        "weightipy, loop alone": timed(loop, margins, rounds=3),
    }


def main(path: str) -> None:
    """One JSON object: for each raker its seconds and the error it reached, or what went wrong."""
    held = np.load(path)
    table, margins = held["table"], [held[f"m{axis}"] for axis in range(held["table"].ndim)]
    found = {"ipfn": by_ipfn(table, margins), **by_svy(table, margins), **by_weightipy(table, margins)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
