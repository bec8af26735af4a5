"""Raking to one-way margins, beside ipfn, weightipy, svy and a plain NumPy loop: wall time to a relative error of 1e-8.

Run as `python -m bench.raking`. The others are installed under bench/out, in an environment of their own; where that
is not possible, only ours and the plain loop are measured. Best of several rounds; ours before and after the others.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.others import installed
from reticent.refine.margins import Margin
from reticent.refine.raking import rake

HERE = Path(__file__).parent
OTHERS = HERE / "out" / "raking-others"
PACKAGES = ("ipfn==1.4.4", "weightipy==0.4.2", "svy==0.35.0")
SHAPES = ((20, 10, 30), (20, 10, 8, 12, 5))
TOLERANCE = 1e-8
SEED = 2026


def problem(shape: tuple[int, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    """A table of uneven counts, nobody missing everywhere, and the one-way margins of another such table."""
    rng = np.random.default_rng(SEED)
    table = 1.0 + rng.poisson(rng.gamma(0.5, 2.0, shape))
    other = rng.gamma(0.5, 2.0, shape)
    other *= table.sum() / other.sum()
    return table, [other.sum(axis=_rest(other, axis)) for axis in range(other.ndim)]


def _rest(table: np.ndarray, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(table.ndim) if i != axis)


def plain(table: np.ndarray, margins: list[np.ndarray]) -> np.ndarray:
    """The loop that everybody writes first: sum, divide, multiply the whole table, look at all margins."""
    table, error = table.copy(), 1.0
    while error > TOLERANCE:
        for axis, totals in enumerate(margins):
            ratio = totals / table.sum(axis=_rest(table, axis))
            table *= ratio.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
        error = worst(table, margins)
    return table


def worst(table: np.ndarray, margins: list[np.ndarray]) -> float:
    """The largest relative error of a margin."""
    return max(float(np.max(np.abs(table.sum(axis=_rest(table, a)) / m - 1))) for a, m in enumerate(margins))


def best(work: Callable[[], Any], rounds: int = 15) -> float:
    """Wall seconds of the best round."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def others(table: np.ndarray, margins: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    """Seconds and error of each of the others, measured by an interpreter of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, table=table, **{f"m{axis}": m for axis, m in enumerate(margins)})
        call = [str(OTHERS / "bin" / "python"), str(HERE / "raking_others.py"), str(path)]
        done = subprocess.run(call, check=True, capture_output=True, text=True)
    return {name: (made[0], made[1]) for name, made in json.loads(done.stdout).items()}


def run() -> list[dict[str, Any]]:
    """One row for each raker and table: seconds, the error reached, and how many times ours fits into it."""
    rows, there = [], installed(OTHERS, PACKAGES)
    for shape in SHAPES:
        table, margins = problem(shape)
        wanted = [Margin(axis, totals) for axis, totals in enumerate(margins)]
        first = best(lambda t=table, w=wanted: rake(t, w, tolerance=TOLERANCE))
        found = {
            "plain NumPy loop": (
                best(lambda t=table, m=margins: plain(t, m)),
                worst(plain(table, margins), margins),
            )
        }
        found |= others(table, margins) if there else {}
        ours = min(first, best(lambda t=table, w=wanted: rake(t, w, tolerance=TOLERANCE)))
        found = {"reticent": (ours, worst(rake(table, wanted).table, margins)), **found}
        name = "x".join(map(str, shape))
        rows += [
            {"table": name, "raker": raker, "seconds": seconds, "error": error, "times": seconds / ours}
            for raker, (seconds, error) in found.items()
        ]
    return rows


def main() -> None:
    """Print the table."""
    rows = run()
    print(f"{'table':<16}{'raker':<26}{'ms':>10}{'error':>12}{'times ours':>12}")
    for row in rows:
        print(
            f"{row['table']:<16}{row['raker']:<26}{1e3 * row['seconds']:>10.2f}{row['error']:>12.1e}{row['times']:>12.1f}"
        )
    if not (OTHERS / "ready").exists():
        print("The others could not be installed; they need a network once.")


if __name__ == "__main__":
    sys.exit(main())
