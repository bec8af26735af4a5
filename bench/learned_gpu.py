"""What a GPU gains for the exact step of `chain` on a large table, and whether it gives the same whole numbers.

Run as `python bench/learned_gpu.py [rows ...]`, by itself: NumPy is needed, PyTorch is used where it is there, and nothing
of the library is. One JSON line for each case, on a simulated table of 15 columns with a fifth of the answers missing:

    {"rows": 1000000, "on": "numpy" | "torch, cpu" | "torch, cuda", "seconds": ..., "copied": ..., "equal": true, ...}

`seconds` is wall time of one step with the cells at hand, `copied` the time to bring them there; `equal` says whether all
whole numbers are those of the first case of this size, and `shuffled` whether they are with the rows in another order.
What cannot be done within `--budget` seconds is left out and says so. Exit 1 where integers differ.

The step is that of `reticent.synth.learned.gradient`, as products of matrices: whole numbers held by doubles, all below
2**53. Rows in one-hot form times weights are logits; a table gives exponentials; divisions towards zero give chances, less
the row's own cell residuals, and residuals of bounded length; rows transposed times these are the sum. Biases have no part.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    torch = None

GRID, LENGTH, UNIT, LAST = 256, 1 << 14, 1 << 20, 14 * 256
SIZES = (16, 9, 16, 16, 16, 7, 15, 6, 5, 2, 16, 16, 16, 42, 2)
"""Cells of each column, about as many as Adult's have."""
MISSING = 255
CHUNK = {"numpy": 1 << 13, "cpu": 1 << 14, "cuda": 1 << 18}
"""Rows that are worked on at once, so that a block of them lies in a cache, or fills a GPU."""


def exponentials() -> np.ndarray:
    """The largest whole numbers below 2**20 exp(-i / 256)."""
    with localcontext() as context:
        context.prec = 40
        odds = [(Decimal(-i) / GRID).exp() * UNIT for i in range(LAST + 1)]
        return np.array([int(each.to_integral_value(ROUND_CEILING)) - 1 for each in odds], dtype=np.int64)


@dataclass(frozen=True)
class Step:
    """Public numbers of a step: where columns begin, weights in steps of 1/256, and exponentials.

    Parameters
    ----------
    sizes : how many cells each column has
    weights : a line for each cell of every column, then the bias; only lines of earlier columns are not zero
    table : exponentials
    """

    sizes: tuple[int, ...]
    weights: np.ndarray
    table: np.ndarray

    @property
    def slices(self) -> list[slice]:
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]


def made(sizes: tuple[int, ...], seed: int = 1) -> Step:
    """Weights of a quarter in size."""
    rng, width = np.random.default_rng(seed), sum(sizes)
    step = Step(sizes, np.zeros((width + 1, width)), exponentials())
    for own in step.slices:
        lines = [*range(own.start), width]
        step.weights[lines, own] = np.rint(rng.normal(0, GRID / 4, (len(lines), own.stop - own.start)))
    return step


def cells_of(rows: int, sizes: tuple[int, ...], seed: int = 2) -> np.ndarray:
    """A line for each column, a byte a cell, a fifth of them missing."""
    rng = np.random.default_rng(seed)
    cells = np.empty((len(sizes), rows), dtype=np.uint8)
    for place, size in enumerate(sizes):
        for first in range(0, rows, 1 << 20):
            part = cells[place, first : first + (1 << 20)]
            part[:] = rng.integers(0, size, len(part), dtype=np.uint8)
            part[rng.random(len(part), dtype=np.float32) < 0.2] = MISSING
    return cells


def in_numpy(step: Step, cells: np.ndarray) -> np.ndarray:
    """The sum over rows, a number for each weight."""
    totals = np.zeros(step.weights.shape, dtype=np.int64)
    starts = np.array([own.start for own in step.slices])[:, None]
    for first in range(0, cells.shape[1], CHUNK["numpy"]):
        part = cells[:, first : first + CHUNK["numpy"]]
        told = part != MISSING
        ones = np.zeros((part.shape[1], len(step.weights)))
        ones[:, -1] = 1
        place, row = np.nonzero(told)
        ones[row, (starts + part)[place, row]] = 1
        made = ones @ step.weights
        square, lines = np.zeros(len(ones)), np.zeros(len(ones))
        for own, answered in zip(step.slices, told, strict=True):
            logits = made[:, own]
            below = np.minimum(logits.max(axis=1, keepdims=True) - logits, LAST).astype(np.int64)
            odds = step.table[below].astype(np.float64)
            chances = np.floor(odds * UNIT / odds.sum(axis=1, keepdims=True))
            made[:, own] = (chances - UNIT * ones[:, own]) * answered[:, None]
            square += lines * (made[:, own] ** 2).sum(axis=1)
            lines += answered
        root = np.ceil(np.sqrt(square))
        root += root * root < square
        root -= (root - 1) ** 2 >= square
        kept = np.trunc(made * LENGTH / np.maximum(root, UNIT)[:, None])
        totals[:-1] += (ones[:, :-1].T @ kept).astype(np.int64)
    return totals


def in_torch(step: Step, cells: Any, device: str) -> np.ndarray:
    """The same on a device, where the cells are already."""
    weights = torch.tensor(step.weights, device=device)
    table = torch.tensor(step.table, device=device).double()
    totals = torch.zeros(step.weights.shape, dtype=torch.int64, device=device)
    width = len(step.weights) - 1
    starts = torch.tensor([own.start for own in step.slices], device=device)[:, None]
    for first in range(0, cells.shape[1], CHUNK[device]):
        part = cells[:, first : first + CHUNK[device]].long()
        told = part != MISSING
        # Missing cells are marked where the bias stands, which is one in every row anyhow.
        ones = torch.zeros((part.shape[1], width + 1), dtype=torch.float64, device=device)
        ones.scatter_(1, torch.where(told, starts + part, width).T, 1.0)
        ones[:, -1] = 1
        made = ones @ weights
        square = torch.zeros(len(ones), dtype=torch.float64, device=device)
        lines = torch.zeros_like(square)
        for own, answered in zip(step.slices, told, strict=True):
            logits = made[:, own]
            below = (logits.amax(dim=1, keepdim=True) - logits).clamp(max=LAST).long()
            odds = table[below]
            chances = torch.floor(odds * UNIT / odds.sum(dim=1, keepdim=True))
            residuals = (chances - UNIT * ones[:, own]) * answered[:, None]
            made[:, own] = residuals
            square += lines * (residuals * residuals).sum(dim=1)
            lines += answered.double()
        root = torch.ceil(torch.sqrt(square))
        root += (root * root < square).double()
        root -= ((root - 1) ** 2 >= square).double()
        kept = torch.trunc(made * LENGTH / root.clamp(min=UNIT)[:, None])
        totals[:-1] += (ones[:, :-1].T @ kept).long()
    if device == "cuda":
        torch.cuda.synchronize()
    return totals.cpu().numpy()


@dataclass
class Clock:
    """What is left of the time that all cases may take together."""

    ends: float

    def allows(self, seconds: float) -> bool:
        return time.monotonic() + seconds < self.ends


def numpy_case(step: Step, cells: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    start = time.perf_counter()
    totals = in_numpy(step, cells)
    return totals, {"on": "numpy", "seconds": time.perf_counter() - start, "copied": 0.0}


def torch_case(step: Step, cells: np.ndarray, device: str) -> tuple[np.ndarray, dict[str, Any]]:
    """One step after one on a few rows, which loads what is loaded late; then one with the rows in another order."""
    in_torch(step, torch.from_numpy(cells[:, : CHUNK[device]]).to(device), device)
    start = time.perf_counter()
    there = torch.from_numpy(cells).to(device)
    if device == "cuda":
        torch.cuda.synchronize()
    copied = time.perf_counter() - start
    start = time.perf_counter()
    totals = in_torch(step, there, device)
    told: dict[str, Any] = {
        "on": f"torch, {device}",
        "seconds": time.perf_counter() - start,
        "copied": copied,
    }
    if device == "cuda":
        order = torch.randperm(there.shape[1], device=device)
        told["shuffled"] = bool((in_torch(step, there[:, order], device) == totals).all())
        told["device"] = torch.cuda.get_device_name()
        told["gigabytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    else:
        told["threads"] = torch.get_num_threads()
    return totals, told


def cases(rows: int, clock: Clock) -> list[dict[str, Any]]:
    """All cases of one size, the GPU first, so that it is measured whatever the time; what is left out says why."""
    step, cells = made(SIZES), cells_of(rows, SIZES)
    first: np.ndarray | None = None
    found: list[dict[str, Any]] = []
    for on in ("cuda", "numpy", "cpu"):
        line: dict[str, Any] = {"rows": rows, "columns": len(SIZES), "numbers": _parameters(SIZES)}
        if why := _unable(on, rows, clock):
            found.append({**line, "on": on if on == "numpy" else f"torch, {on}", "left out": why})
            continue
        try:
            totals, told = numpy_case(step, cells) if on == "numpy" else torch_case(step, cells, on)
        except (RuntimeError, MemoryError) as error:  # a GPU without memory, or with another driver
            found.append({**line, "on": on, "left out": f"failed: {str(error)[:200]}"})
            continue
        RATES[on] = told["seconds"] / rows
        first = totals if first is None else first
        told["equal"] = bool((totals == first).all())
        told["largest"] = int(np.abs(totals).max())
        found.append({**line, **told})
    return found


RATES = {"numpy": 2e-5, "cpu": 5e-5, "cuda": 1e-6}
"""Seconds a row; what was measured takes the place of a guess."""


def _unable(on: str, rows: int, clock: Clock) -> str:
    if on != "numpy" and torch is None:
        return "PyTorch is not installed"
    if on == "cuda" and not torch.cuda.is_available():
        return "no GPU is at hand"
    return "" if clock.allows(RATES[on] * rows) else "would pass the budget of time"


def _parameters(sizes: tuple[int, ...]) -> int:
    return sum((sum(sizes[:place]) + 1) * size for place, size in enumerate(sizes))


def main() -> int:
    """A line of JSON for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", type=int, default=[10**6, 10**7], help="sizes of the table")
    parser.add_argument(
        "--budget", type=float, default=200.0, help="seconds for everything; 200 where left out"
    )
    chosen = parser.parse_args()
    if any(rows < 1 for rows in chosen.rows) or chosen.budget <= 0:
        parser.error("rows and budget are above 0")
    clock, is_equal = Clock(time.monotonic() + chosen.budget), True
    for rows in chosen.rows:
        for line in cases(rows, clock):
            is_equal &= line.get("equal", True) and line.get("shuffled", True)
            print(json.dumps(line), flush=True)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
