"""MST and AIM from counted tables to drawn rows, beside the same steps on mbi (Private-PGM), at epsilon 1.

Run as `python -m bench.synth`. Adult where RETICENT_DATA names its folder, else a simulated table of the same shape.
Ours adds exact noise from the system and draws as many rows as there are. `others` follows the authors' programs on mbi's
own estimator: MST with 5,000 passes at the end, AIM with 1,000 in every round, up to a limit of the processor's time,
where it is given up. `pairs` is the mean distance of all two-way tables from the truth. mbi is installed under bench/out by
`bench.graph`; where it cannot be, it is left out.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bench.graph import OTHERS, PACKAGES, adult, simulated
from bench.others import installed
from reticent.schema.codebook import schema_from
from reticent.synth.base import MissingMethod, Spend
from reticent.synth.domain import Domain, domain_of
from reticent.synth.registry import find
from reticent.synth.spending import SystemSynthNoise

HERE = Path(__file__).parent
SPEND = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))
LIMIT = 600
METHODS = ("independent", "mst", "aim", "aim-printed")
BESIDE = ("mst", "aim")


@dataclass(frozen=True)
class Rows:
    """Cells as an array; nothing is silent."""

    cells: np.ndarray
    domain: Domain

    def count(self, sets: Any) -> list[np.ndarray]:
        made = []
        for places in sets:
            sizes = self.domain.sizes(places)
            at = np.ravel_multi_index(tuple(self.cells[:, place] for place in places), sizes)
            made.append(np.bincount(at, minlength=int(np.prod(sizes))).reshape(sizes))
        return made

    def complete(self) -> "Rows":
        return self


def declared(shape: tuple[int, ...]) -> Domain:
    """A codebook of plain levels."""
    columns = {
        f"c{i}": {"kind": "categorical", "levels": [str(level) for level in range(size)]}
        for i, size in enumerate(shape)
    }
    return domain_of(schema_from({"survey": {"name": "bench", "unit": "row"}, "columns": columns}))


def apart(rows: np.ndarray, made: np.ndarray, shape: tuple[int, ...]) -> float:
    """The mean over pairs of half the L1 distance of their tables."""
    off = []
    for a, b in combinations(range(len(shape)), 2):
        one, two = (
            np.bincount(each[:, a] * shape[b] + each[:, b], minlength=shape[a] * shape[b]) / len(each)
            for each in (rows, made)
        )
        off.append(float(np.abs(one - two).sum()) / 2)
    return float(np.mean(off))


def ours(name: str, rows: np.ndarray, shape: tuple[int, ...]) -> dict[str, Any]:
    """Seconds of the processor, from rows to rows."""
    domain, noise = declared(shape), SystemSynthNoise()
    wall, cpu = time.perf_counter(), time.process_time()
    network = find(name).fit(
        Rows(rows, domain), domain, MissingMethod.COMPLETE, SPEND, noise=noise, step=lambda _: None
    )
    made = network.draw(len(rows), noise.bits)
    took = time.perf_counter() - wall, time.process_time() - cpu
    return {"seconds": took[0], "cpu": took[1], "pairs": apart(rows, made.astype(np.int64), shape)}


def theirs(name: str, rows: np.ndarray, shape: tuple[int, ...]) -> dict[str, Any]:
    """The same by mbi, in an interpreter of its own; empty where it is not there or gave up."""
    if name not in BESIDE or not installed(OTHERS, PACKAGES):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, rows=rows, shape=shape)
        program = [str(OTHERS / "bin" / "python"), str(HERE / "synth_others.py")]
        call = ["prlimit", f"--cpu={LIMIT}", *program, name, str(given), str(found)]
        done = subprocess.run(call, check=False, capture_output=True, text=True)
        if done.returncode:
            return {"mbi cpu": float(LIMIT), "mbi": f"gave up ({done.returncode})"}
        return {**json.loads(done.stdout), "mbi pairs": apart(rows, np.load(found), shape)}


def lines() -> Iterator[dict[str, Any]]:
    """One row for each method, as it is done."""
    real = adult()
    rows, shape = simulated() if real is None else real
    find("mst").fit(  # compiles, once for all
        Rows(rows[:50], declared(shape)),
        declared(shape),
        MissingMethod.COMPLETE,
        SPEND,
        noise=SystemSynthNoise(),
        step=lambda _: None,
    )
    for name in METHODS:
        data = "simulated" if real is None else "Adult"
        yield {"data": data, "method": name, **ours(name, rows, shape), **theirs(name, rows, shape)}


def run() -> list[dict[str, Any]]:
    """All of them."""
    return list(lines())


COLUMNS = (("seconds", 9, 2), ("cpu", 8, 2), ("pairs", 8, 4), ("mbi cpu", 9, 1), ("mbi pairs", 11, 4))


def main() -> None:
    """Print the table."""
    print(f"{'data':<11}{'method':<13}{''.join(f'{name:>{width}}' for name, width, _ in COLUMNS)}")
    for row in lines():
        cells = (f"{row[k]:>{w},.{d}f}" if k in row else f"{'':>{w}}" for k, w, d in COLUMNS)
        print(f"{row['data']:<11}{row['method']:<13}{''.join(cells)}  {row.get('mbi', '')}", flush=True)
    if not (OTHERS / "ready").exists():
        print("mbi could not be installed; it needs a network once.")


if __name__ == "__main__":
    sys.exit(main())
