"""Learned synthesizers on Adult: one exact step, and whole fits, beside what a user would write or pick instead.

Run as `python -m bench.learned`. Adult with a fifth of the answers missing where RETICENT_DATA names its folder, else a
simulated census. Processor time of one thread, best of three for a step, one run for a fit; epsilon 1, delta 1e-6, exact
noise. A step is the sum over all rows of clipped gradients of `chain`; beside it the same model in NumPy's doubles, whose
sum depends on the order of the rows. Fits are beside `aim`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reticent.lab.trials import tables
from reticent.lab.trials.fitting import DELTA, Held
from reticent.lab.trials.masks import mask
from reticent.lab.trials.tables import cells_of, with_missing
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.domain import Domain
from reticent.synth.learned.gradient import GRID, ChainGradient, ChainLayout
from reticent.synth.marginals.study import plain
from reticent.synth.registry import find
from reticent.synth.spending import SystemSynthNoise

SPEND = Spend(epsilon=Fraction(1), delta=DELTA)
FITS = ("aim", "chain", "kamino-i", "misgan")
CHUNK = 4096
MUST = {"step": 0.3, "chain": 20.0}
AIM = {"step": 0.1, "chain": 8.0}


@dataclass(frozen=True)
class BenchTrial:
    """The rows, and how large they are."""

    name: str
    held: Held
    domain: Domain


def trial() -> BenchTrial:
    """Adult, or the simulated census where it is not at hand."""
    name = "adult" if tables.at_hand("adult") else "census"
    table = tables.trial(name)
    domain = table.domain()
    codes = with_missing(table.codes, mask(name, "MCAR", 0.2))
    return BenchTrial(name, Held(domain=domain, cells=cells_of(codes, domain)), domain)


def seconds(work: Callable[[], Any], times: int) -> float:
    """Processor time of the best of so many."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def doubles(layout: ChainLayout, weights: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The same step as one writes it in NumPy: one-hot rows, softmax, a clip for each row, products of matrices."""
    width, columns = int(layout.sizes.sum()), len(layout.sizes)
    matrix = np.zeros((width + 1, width))
    for place in range(columns):
        block = layout.block(weights / GRID, place)
        at = slice(int(layout.offsets[place]), int(layout.offsets[place] + layout.sizes[place]))
        matrix[: len(block) - 1, at], matrix[-1, at] = block[:-1], block[-1]
    summed = np.zeros_like(matrix)
    for first in range(0, cells.shape[1], CHUNK):
        rows = np.stack([layout.into[place, cells[place, first : first + CHUNK]] for place in range(columns)])
        _add_doubles(layout, rows, matrix, summed)
    return summed


def _add_doubles(layout: ChainLayout, rows: np.ndarray, matrix: np.ndarray, summed: np.ndarray) -> None:
    ones = np.zeros((rows.shape[1], len(matrix)))
    ones[:, -1] = 1
    for place, offset in enumerate(layout.offsets):
        there = np.flatnonzero(rows[place] >= 0)
        ones[there, offset + rows[place, there]] = 1
    logits = ones @ matrix
    square, lines = np.zeros(len(ones)), np.zeros(len(ones))
    for place, (offset, size) in enumerate(zip(layout.offsets, layout.sizes, strict=True)):
        at = slice(int(offset), int(offset + size))
        odds = np.exp(logits[:, at] - logits[:, at].max(axis=1, keepdims=True))
        told = rows[place] >= 0
        logits[:, at] = (odds / odds.sum(axis=1, keepdims=True) - ones[:, at]) * told[:, None]
        square += lines * (logits[:, at] ** 2).sum(axis=1)
        lines += told
    ones[:, -1] = 0  # biases have no part in it
    summed += ones.T @ (logits / np.maximum(1, np.sqrt(square))[:, None])


def step_rows(on: BenchTrial) -> list[dict[str, Any]]:
    """One exact step, and the same in doubles."""
    layout = ChainLayout.of(plain(on.domain, MissingMethod.AVAILABLE))
    rng = np.random.default_rng(1)
    weights = np.rint(rng.normal(0, 0.25 * GRID, layout.parameters)).astype(np.int64)
    work = ChainGradient(layout=layout, weights=weights)
    on.held.summed(work)  # compiled at its first call
    cells = np.ascontiguousarray(on.held.cells.T, dtype=np.uint16)
    exact = seconds(lambda: on.held.summed(work), 3)
    other = seconds(lambda: doubles(layout, weights, cells), 3)
    what = f"step, {cells.shape[1]:,} rows, {layout.parameters:,} numbers"
    return [
        {"what": what, "ours": exact, "other": other, "beside": "NumPy doubles", "kind": "step"},
    ]


def fit_rows(on: BenchTrial) -> list[dict[str, Any]]:
    """Whole fits, `aim` first."""
    found: dict[str, float] = {}
    for name in FITS:
        task = FitTask(
            counts=on.held,
            domain=on.domain,
            missing=MissingMethod.AVAILABLE,
            spend=SPEND,
            noise=SystemSynthNoise(),
            step=lambda _: None,
        )
        found[name] = seconds(lambda name=name, task=task: find(name).fit(task), 1)
    return [
        {"what": f"{name}, fit", "ours": took, "other": found["aim"], "beside": "aim", "kind": name}
        for name, took in found.items()
    ]


def run() -> list[dict[str, Any]]:
    """A row for the step and one for each fit: processor seconds, what stands beside it, and the ratio."""
    on = trial()
    rows = [*step_rows(on), *fit_rows(on)]
    return [
        {
            "table": on.name,
            **row,
            "ratio": row["other"] / row["ours"],
            "must": MUST.get(row["kind"]),
            "aim": AIM.get(row["kind"]),
        }
        for row in rows
    ]


def main() -> None:
    """Print the table."""
    rows = run()
    print(f"{rows[0]['table']}, a fifth missing; processor seconds; ratio: the other's time over ours")
    print(f"{'what':<40}{'ours':>9}{'other':>9}{'ratio':>8}{'must':>7}{'aim':>7}  beside")
    for row in rows:
        goals = "".join(f"{row[key] if row[key] is not None else '':>7}" for key in ("must", "aim"))
        print(
            f"{row['what']:<40}{row['ours']:>9.3f}{row['other']:>9.3f}{row['ratio']:>8.2f}{goals}  {row['beside']}"
        )


if __name__ == "__main__":
    main()
