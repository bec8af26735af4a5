"""Fit one joint table to noisy marginals: our junction tree beside mbi (Private-PGM), on the same measurements.

Run as `python -m bench.graph`. Noise of standard deviation 30 on every cell. Cases: a *tree* of pairs with all single
axes, as MST measures; the same with more pairs, until the cliques have 250,000 cells, as in a late round of AIM; the
*round* after it, started from it, with one pair more; and a *small* table fitted to the end by both. Ours takes its own
number of passes, mbi its default of 1,000. `loss` is half the squares in units of the noise, so lower is nearer to the
measurements; `apart` the largest difference between the two in a measured cell, in deviations of the noise. mbi is
installed under bench/out; where it cannot be, it is left out. Adult is added where RETICENT_DATA names its folder.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.others import installed
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable, estimate
from reticent.synth.graph.tree import tree_cells

HERE = Path(__file__).parent
OTHERS = HERE / "out" / "graph-others"
PACKAGES = ("mbi==2.0.0",)
ROWS, SEED, DEVIATION, CELLS = 30_000, 2026, 30.0, 250_000
SHAPE = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41, 2)
BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (10_000, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}


@dataclass(frozen=True)
class Case:
    """A problem, how many passes each may take, and how many of its last sets the start has not seen."""

    name: str
    shape: tuple[int, ...]
    measured: list[NoisyTable]
    total: float
    ours: dict[str, Any]
    theirs: int = 1000
    new: int = 0


def simulated() -> tuple[np.ndarray, tuple[int, ...]]:
    """Rows in which every column leans on an earlier one."""
    rng = np.random.default_rng(SEED)
    rows = np.zeros((ROWS, len(SHAPE)), dtype=np.int64)
    rows[:, 0] = rng.integers(0, SHAPE[0], ROWS)
    for i, size in enumerate(SHAPE[1:], start=1):
        lines = rng.dirichlet(np.full(size, 0.3), size=SHAPE[(i - 1) // 2])
        reached = np.cumsum(lines, axis=1)[rows[:, (i - 1) // 2]]
        rows[:, i] = np.minimum((rng.random((ROWS, 1)) > reached).sum(axis=1), size - 1)
    return rows, SHAPE


def adult() -> tuple[np.ndarray, tuple[int, ...]] | None:
    """The complete rows, numbers in 16 bins between public bounds."""
    path = Path(os.environ.get("RETICENT_DATA", "nowhere")) / "adult.parquet"
    if not path.exists():
        return None
    table = pq.read_table(path)
    known = np.all([table[name].is_valid().to_numpy() for name in table.column_names], axis=0)
    columns, shape = [], []
    for name in table.column_names:
        values = table[name].filter(known).combine_chunks()
        if name in BOUNDS:
            low, high = BOUNDS[name]
            share = (values.to_numpy(zero_copy_only=False).astype(float) - low) / (high - low + 1)
            columns.append(np.clip(share * 16, 0, 15).astype(np.int64))
            shape.append(16)
        else:
            names, codes = np.unique(
                values.cast("string").to_numpy(zero_copy_only=False), return_inverse=True
            )
            columns.append(codes)
            shape.append(len(names))
    return np.stack(columns, axis=1), tuple(shape)


def counted(rows: np.ndarray, shape: tuple[int, ...], places: tuple[int, ...]) -> np.ndarray:
    """One marginal table."""
    table = np.zeros([shape[place] for place in places])
    np.add.at(table, tuple(rows[:, place] for place in places), 1)
    return table


def strongest(rows: np.ndarray, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs from the most to the least dependent."""
    ones = [counted(rows, shape, (i,)) for i in range(len(shape))]

    def off(pair: tuple[int, int]) -> float:
        product = np.outer(ones[pair[0]], ones[pair[1]]) / len(rows)
        return -float(np.abs(counted(rows, shape, pair) - product).sum())

    return sorted(combinations(range(len(shape)), 2), key=off)


def spanning(pairs: list[tuple[int, int]], axes: int) -> list[tuple[int, int]]:
    """The tree of the strongest pairs (Kruskal)."""
    part, tree = list(range(axes)), []
    for a, b in pairs:
        if part[a] != part[b]:
            tree.append((a, b))
            part = [part[a] if p == part[b] else p for p in part]
    return tree


def cases(name: str, rows: np.ndarray, shape: tuple[int, ...]) -> list[Case]:
    """Tree, loops, and one round more."""
    pairs = strongest(rows, shape)
    sets: list[tuple[int, ...]] = [(i,) for i in range(len(shape))] + spanning(pairs, len(shape))
    first = len(sets)
    for pair in pairs:
        if pair not in sets and tree_cells(shape, [*sets, pair]) <= CELLS:
            sets.append(pair)
    rng = np.random.default_rng(SEED)
    measured = [
        NoisyTable(
            places=places,
            table=counted(rows, shape, places) + rng.normal(0, DEVIATION, [shape[i] for i in places]),
            deviation=DEVIATION,
        )
        for places in sets
    ]
    whole = Case(f"{name}, loops", shape, measured, float(len(rows)), {})
    tree = replace(whole, name=f"{name}, tree", measured=measured[:first])
    return [tree, whole, replace(whole, name=f"{name}, round", new=1)]


def small(rows: np.ndarray) -> Case:
    """Four axes in a ring, fitted to the end by both."""
    rows, shape = rows[:, [1, 7, 8, 9]], tuple(SHAPE[i] for i in (1, 7, 8, 9))
    rng = np.random.default_rng(SEED)
    measured = [
        NoisyTable(
            places=pair,
            table=counted(rows, shape, pair) + rng.normal(0, DEVIATION, [shape[i] for i in pair]),
            deviation=DEVIATION,
        )
        for pair in ((0, 1), (1, 2), (2, 3), (0, 3))
    ]
    return Case(
        "small, to the end", shape, measured, float(ROWS), {"iterations": 5000, "tolerance": 0}, 20_000
    )


def ours(case: Case) -> dict[str, Any]:
    """Seconds, seconds of the processor, and the measured sets' marginals."""
    start: FittedGraph | None = None
    if case.new:
        start = estimate(case.shape, case.measured[: -case.new], total=case.total, **case.ours)
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = estimate(case.shape, case.measured, total=case.total, start=start, **case.ours)
    took = time.perf_counter() - wall, time.process_time() - cpu
    tables = fitted.marginals([each.places for each in case.measured])
    return {"seconds": took[0], "cpu": took[1], "tables": tables}


def theirs(case: Case) -> dict[str, Any] | None:
    """The same by mbi's mirror descent, in an interpreter of its own; None where it is not there or gave up."""
    if not installed(OTHERS, PACKAGES):
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        tables = {f"table{i}": each.table for i, each in enumerate(case.measured)}
        np.savez(given, shape=case.shape, total=case.total, new=case.new, passes=case.theirs, **tables)
        places = json.dumps([each.places for each in case.measured])
        call = [str(OTHERS / "bin" / "python"), str(HERE / "graph_others.py"), str(given), str(found), places]
        done = subprocess.run([*call, str(DEVIATION)], check=False, capture_output=True, text=True)
        if done.returncode:
            return None
        made = np.load(found)
        return {**json.loads(done.stdout), "tables": [made[f"table{i}"] for i in range(len(case.measured))]}


def loss(case: Case, tables: list[np.ndarray]) -> float:
    """Half the squares in units of the noise."""
    away = (
        ((table - each.table) / each.deviation) ** 2
        for table, each in zip(tables, case.measured, strict=True)
    )
    return 0.5 * sum(float(each.sum()) for each in away)


def compared(case: Case) -> dict[str, Any]:
    """One line of the table."""
    mine, other = ours(case), theirs(case)
    row: dict[str, Any] = {
        "case": case.name,
        "sets": len(case.measured),
        "cells": tree_cells(case.shape, [each.places for each in case.measured]),
        "seconds": mine["seconds"],
        "cpu": mine["cpu"],
        "loss": loss(case, mine["tables"]),
    }
    if other is not None:
        apart = max(np.abs(a - b).max() for a, b in zip(mine["tables"], other["tables"], strict=True))
        row |= {
            "mbi seconds": other["seconds"],
            "mbi cpu": other["cpu"],
            "mbi loss": loss(case, other["tables"]),
            "mbi MiB": other["mebibytes"],
            "apart": float(apart) / DEVIATION,
        }
    return row


def lines() -> Iterator[dict[str, Any]]:
    """One row for each case, as it is done."""
    rows, shape = simulated()
    real = adult()
    found = [small(rows), *cases("simulated", rows, shape)]
    found += cases("Adult", *real) if real is not None else []
    return (compared(case) for case in found)


def run() -> list[dict[str, Any]]:
    """All of them."""
    return list(lines())


COLUMNS = (
    *(("sets", 6, 0), ("cells", 9, 0), ("seconds", 9, 2), ("cpu", 8, 2), ("loss", 10, 2)),
    *(("mbi seconds", 13, 2), ("mbi cpu", 9, 2), ("mbi loss", 10, 2), ("mbi MiB", 9, 0), ("apart", 8, 3)),
)


def main() -> None:
    """Print the table."""
    print(f"{'case':<20}{''.join(f'{name:>{width}}' for name, width, _ in COLUMNS)}")
    for row in lines():
        cells = (f"{row[k]:>{w},.{d}f}" if k in row else f"{'':>{w}}" for k, w, d in COLUMNS)
        print(f"{row['case']:<20}{''.join(cells)}", flush=True)
    if not (OTHERS / "ready").exists():
        print("mbi could not be installed; it needs a network once.")


if __name__ == "__main__":
    sys.exit(main())
