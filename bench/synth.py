"""Synthesizers from counted tables to drawn rows, ours beside mbi (Private-PGM) and dpmm, at epsilon 1.

Run as `python -m bench synth`. Adult where RETICENT_DATA names its folder, else a simulated table of the same shape. Once from
complete rows and once with a fifth of all answers missing by chance. Every method draws as many rows as there are. `cpu` is
processor time from rows to rows, `pairs` the mean distance of all two-way tables from the truth.

Ours adds exact noise from the system; with missing answers by the default strategy of each method and by available cells.
mbi is given MST and AIM as the authors' programs have them, on its own estimator: 5,000 passes at the end of MST, 1,000 in every
round of AIM. dpmm is given its own MST and AIM with their defaults. Both take a missing answer as one more level of its
column; what they say of a pair is read from the rows that have both answers. Each runs to its end. Their AIM takes from
many minutes to hours: it is run with `--large`, or by its name, with models of at most RETICENT_BENCH_MIB (80 where not said), and what it
prints meanwhile is passed on: of mbi the share of the budget that is spent. They are installed under bench/out, in
environments of their own; where they cannot be, they are left out. One line alone: `--only mbi/aim`, or for one of its
tables `--only "mbi/aim/a fifth missing"` and `--only mbi/aim/complete`.
"""

import json
import os
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
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.domain import Domain, domain_of
from reticent.synth.registry import find, usual_missing
from reticent.synth.spending import SystemSynthNoise

HERE = Path(__file__).parent
SPEND = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))
HOLES, SEED = 0.2, 2026
METHODS = ("independent", "mst", "pairs", "aim", "aim-printed")
BESIDE = ("mst", "aim")
SLOW = ("aim",)
OURS, MISSING = "reticent", ", a fifth missing"
DPMM = HERE / "out" / "synth-others"
LIBRARIES = {
    "mbi": (OTHERS, PACKAGES, "synth_others.py"),
    "dpmm": (DPMM, ("dpmm==0.1.9",), "synth_dpmm.py"),
}


@dataclass(frozen=True)
class Rows:
    """Cells as an array; a missing answer is the last cell of its column."""

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
    """The mean over pairs of half the L1 distance of their tables, each among rows that have both answers."""
    off = []
    for a, b in combinations(range(len(shape)), 2):
        one, two = (_table(each[:, a], each[:, b], shape[a], shape[b]) for each in (rows, made))
        off.append(float(np.abs(one - two).sum()) / 2)
    return float(np.mean(off))


def _table(one: np.ndarray, other: np.ndarray, size: int, width: int) -> np.ndarray:
    both = (one < size) & (other < width)
    counts = np.bincount(one[both] * width + other[both], minlength=size * width)
    return counts / max(1, both.sum())


def with_holes(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The same rows with a fifth of all answers missing by chance, the same ones in every run."""
    lost = np.random.default_rng(SEED).random(rows.shape) < HOLES
    return np.where(lost, np.array(shape), rows)


def ours(
    name: str, rows: np.ndarray, shape: tuple[int, ...], missing: MissingMethod = MissingMethod.COMPLETE
) -> dict[str, Any]:
    """Seconds of the processor, from rows to rows; with holes where something is to be done about missing answers."""
    domain, noise = declared(shape), SystemSynthNoise()
    held = Rows(rows if missing is MissingMethod.COMPLETE else with_holes(rows, shape), domain)
    cpu = time.process_time()
    network = find(name).fit(FitTask(held, domain, missing, SPEND, noise=noise, step=lambda _: None))
    made = network.draw(len(rows), noise.bits)
    took = time.process_time() - cpu
    return {"cpu": took, "pairs": apart(rows, made.astype(np.int64), shape)}


def theirs(library: str, name: str, rows: np.ndarray, shape: tuple[int, ...]) -> dict[str, Any]:
    """The same by another library, in an interpreter of its own, to its end; empty where it is not there."""
    folder, packages, program = LIBRARIES[library]
    if not installed(folder, packages):
        return {}
    with_missing = with_holes(rows, shape)
    made = {}
    for label, given, sizes in (
        ("", rows, shape),
        (MISSING, with_missing, tuple(size + 1 for size in shape)),
    ):
        if not _is_asked(library, name, label):
            continue
        made[label] = _elsewhere([str(folder / "bin" / "python"), str(HERE / program), name], given, sizes)
    return {label: {"cpu": cpu, "pairs": apart(rows, cells, shape)} for label, (cpu, cells) in made.items()}


def _is_asked(library: str, name: str, label: str) -> bool:
    """Whether this line is to be measured: all are, unless one is named."""
    only = os.environ.get("RETICENT_BENCH_ONLY", "")
    table = label.removeprefix(", ") or "complete"
    return not only or f"{library}/{name}/{table}/".startswith(f"{only.rstrip('/')}/")


def check_only() -> None:
    """Refuse a line that there is not."""
    every = [(OURS, name) for name in METHODS] + [(library, name) for library in LIBRARIES for name in BESIDE]
    if not any(_is_asked(*each, label) for each in every for label in ("", MISSING)):
        sys.exit(f"there is no such line; there are {', '.join(map('/'.join, every))}")


def _elsewhere(call: list[str], rows: np.ndarray, shape: tuple[int, ...]) -> tuple[float, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, rows=rows, shape=shape)
        done = subprocess.run([*call, str(given), str(found)], check=True, stdout=subprocess.PIPE, text=True)
        return float(json.loads(done.stdout.splitlines()[-1])["cpu"]), np.load(found)


def lines() -> Iterator[dict[str, Any]]:
    """One row for each method, as it is done."""
    real = adult()
    rows, shape = simulated() if real is None else real
    find("mst").fit(
        FitTask(  # compiles, once for all
            Rows(rows[:50], declared(shape)),
            declared(shape),
            MissingMethod.COMPLETE,
            SPEND,
            noise=SystemSynthNoise(),
            step=lambda _: None,
        )
    )
    data = "simulated" if real is None else "Adult"
    for name in (each for each in METHODS if _is_asked(OURS, each, "")):
        yield {"data": data, "library": OURS, "method": name, **ours(name, rows, shape)}
    for name in (each for each in METHODS if _is_asked(OURS, each, MISSING)):
        for missing in dict.fromkeys((MissingMethod.AVAILABLE, usual_missing(find(name)))):
            label = f"{name}, {missing.value}"
            found = ours(name, rows, shape, missing)
            yield {"data": f"{data}{MISSING}", "library": OURS, "method": label, **found}
    is_large = bool(os.environ.get("RETICENT_BENCH_LARGE") or os.environ.get("RETICENT_BENCH_ONLY"))
    for library in LIBRARIES:
        for name in BESIDE if is_large else [each for each in BESIDE if each not in SLOW]:
            if not any(_is_asked(library, name, label) for label in ("", MISSING)):
                continue
            for label, found in theirs(library, name, rows, shape).items():
                yield {"data": f"{data}{label}", "library": library, "method": name, **found}


def run() -> list[dict[str, Any]]:
    """All of them."""
    return list(lines())


COLUMNS = (("cpu", 10, 2), ("pairs", 8, 4))


def main() -> None:
    """Print the table."""
    check_only()
    heads = "".join(f"{name:>{width}}" for name, width, _ in COLUMNS)
    print(f"{'data':<28}{'library':<10}{'method':<32}{heads}")
    for row in lines():
        cells = (f"{row[k]:>{w},.{d}f}" for k, w, d in COLUMNS)
        print(f"{row['data']:<28}{row['library']:<10}{row['method']:<32}{''.join(cells)}", flush=True)
    for library, (folder, _, _) in LIBRARIES.items():
        if any(_is_asked(library, name, MISSING) for name in BESIDE) and not (folder / "ready").exists():
            print(f"{library} could not be installed; it needs a network once.")
    if not (os.environ.get("RETICENT_BENCH_LARGE") or os.environ.get("RETICENT_BENCH_ONLY")):
        print("AIM of the other libraries takes hours; --large runs it, to its end.")


if __name__ == "__main__":
    sys.exit(main())
