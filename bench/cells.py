"""Small cells: exact local sensitivity beside a loop of refits, and a whole release from a Parquet file to its CSV.

Run as `python -m bench.cells`. 73,000 simulated tracts with ten million people, made once and kept in bench/out. The
loop refits a line for every removal and for an addition in each corner, in cells taken evenly along their size; its
time for all cells is that of a refit times their number. The release runs in a process of its own.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.people import OUT
from bench.tally import show
from reticent.lab.world import atlas
from reticent.smallcells.estimators import Floats, Predict
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.points import GridPoints

SEED, AT = 2026, Fraction(1, 4)
LOOPED = 100  # cells that the loop goes through
LEAST_TIMES, MOST_SECONDS, MOST_GIB = 100.0, 180.0, 4.0
CORNERS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
PLAN = """[survey]
source = "people.parquet"
codebook = "atlas.codebook.toml"
ledger = "atlas.ledger.db"

[release]
id = "atlas-1"

[protect]
change = "one respondent added or removed"
epsilon = "6"

[[cells]]
name = "mobility by tract"
cell = "tract"
y = "child_rank"
x = "parent_rank"
estimate = { predict = "0.25" }
method = "smooth"
epsilon = "4"
noise_epsilon = "1"
count_epsilon = "1"
range = ["0", "1"]
"""


def sensitivity() -> list[dict[str, Any]]:
    """All cells at once, beside the loop on some of them; both give the same numbers there."""
    points = atlas.atlas(seed=SEED).ranks
    works = {
        "anywhere in the square": lambda: local_sensitivity(points, Predict(at=AT)),
        "corners alone": lambda: local_sensitivity(points, Predict(at=AT), corners_only=True),
    }
    took = {name: _best(work) for name, work in works.items()}
    loop = _whole_loop(points, works["corners alone"]())
    rows = [
        {"name": name, "wall": wall, "cpu": cpu, "times_cpu": loop / cpu, "ok": loop / cpu >= LEAST_TIMES}
        for name, (wall, cpu) in took.items()
    ]
    return [*rows, {"name": "loop of refits", "wall": "", "cpu": loop, "times_cpu": 1.0, "ok": ""}]


def _best(work: Any) -> tuple[float, float]:
    """Wall and processor seconds of the best of three."""
    found = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def _whole_loop(points: GridPoints, expected: Floats) -> float:
    """What the loop would need for all cells, in processor seconds, from the time of one refit."""
    sizes = np.diff(points.starts)
    by_size = np.argsort(sizes, kind="stable")
    cells = by_size[np.linspace(0, len(sizes) - 1, LOOPED).round().astype(int)]
    start = time.process_time()
    moved = [_looped(points, int(g)) for g in cells]
    each = (time.process_time() - start) / int((sizes[cells] + len(CORNERS) + 1).sum())
    if not np.allclose(moved, expected[cells], rtol=1e-6, equal_nan=True):
        raise AssertionError("the loop and the closed form disagree")
    return each * int((sizes + len(CORNERS) + 1).sum())


def _looped(points: GridPoints, cell: int) -> float:
    """The largest move of one cell's prediction over removals and corners, by refitting each time."""
    here = slice(points.starts[cell], points.starts[cell + 1])
    x, y = points.x[here] / points.x_steps, points.y[here] / points.y_steps
    now = _refit(x, y)
    moves = [abs(_refit(np.append(x, a), np.append(y, b)) - now) for a, b in CORNERS]
    moves += [abs(_refit(np.delete(x, i), np.delete(y, i)) - now) for i in range(len(x))]
    return float(np.nanmax(moves)) if not np.isnan(now) else np.nan


def _refit(x: Floats, y: Floats) -> float:
    """The least-squares line at x = 0.25; not a number where there is none."""
    if len(x) < 2:
        return np.nan
    about = x - x.mean()
    spread = about @ about
    return float(y.mean() + (about @ y) / spread * (float(AT) - x.mean())) if spread else np.nan


def release() -> list[dict[str, Any]]:
    """The whole way from the Parquet file to the CSV: ledger, engine, bounds, exact noise, report."""
    with tempfile.TemporaryDirectory(dir=_made().parent) as name:
        folder = Path(name)
        (folder / "atlas.codebook.toml").write_text(atlas.codebook())
        (folder / "plan.toml").write_text(PLAN)
        os.link(_made(), folder / "people.parquet")
        _reticent(folder, "ledger", "open", "--plan", "plan.toml", "--epsilon", "6")
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        _reticent(folder, "release", "plan.toml")
        wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        (written,) = (folder / "releases").rglob("*.cells.csv")
        lines = sum(1 for _ in written.open()) - 1
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss / 2**20  # the largest child so far; opening a ledger is small beside a release
    ok = wall < MOST_SECONDS and peak < MOST_GIB and lines == atlas.TRACTS
    return [{"name": "smooth", "wall": wall, "cpu": cpu, "peak_gib": peak, "lines": lines, "ok": ok}]


def _made() -> Path:
    path = OUT / "atlas.parquet"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        atlas.write_people(part, seed=SEED)
        part.rename(path)
    return path


def _reticent(folder: Path, *words: str) -> None:
    line = "from reticent.cli import main; main()"
    subprocess.run([sys.executable, "-c", line, *words], cwd=folder, check=True, capture_output=True)


PARTS = {
    f"Exact local sensitivity of {atlas.TRACTS:,} cells; at least {LEAST_TIMES:g} times a loop": sensitivity,
    f"From Parquet to CSV; under {MOST_SECONDS:g} s and {MOST_GIB:g} GiB": release,
}


def run() -> list[dict[str, Any]]:
    """Every measurement as one row."""
    return [{"part": title.split(";")[0], **row} for title, part in PARTS.items() for row in part()]


def main() -> None:
    """Print the tables."""
    for title, part in PARTS.items():
        print(f"\n{title}")
        show(part())


if __name__ == "__main__":
    main()
