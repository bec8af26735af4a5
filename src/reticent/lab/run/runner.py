"""Run an experiment many times: in parallel, resumable, and with the same numbers on any number of workers.

Batches of runs that are on disk are not made again; see `shards`.

Which code made a number: one digest over everything that a simulated number can pass through.

Outcomes on disk: one Parquet file for every batch of runs under OUT/NAME, and a note of what they belong to.

A file has its name only when it is whole, so its name alone says which runs it holds.
"""

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reticent.errors import PlanError, ResourceError
from reticent.files import refusal, write_new
from reticent.lab.run.experiment import COLUMNS, Experiment, table_of

# They show numbers and make none; and one experiment does not care about another.
BESIDE = ("cli/", "report/", "web/", "lab/run/figures.py", "lab/run/summary.py", "lab/experiments/")
PARTS = ("duckdb", "numpy", "pyarrow")


@cache
def code_digest(module: str) -> str:
    """A digest of our sources, of the experiment's own module, and of the versions of the parts that compute."""
    digest = hashlib.sha256()
    own = module.removeprefix("reticent.").replace(".", "/") + ".py"
    for name, text in sorted(_sources(files("reticent"), "")):
        if name == own or not name.startswith(BESIDE):
            digest.update(f"{name}\0{len(text)}\0".encode() + text)
    for part in PARTS:
        digest.update(f"{part} {version(part)}\0".encode())
    return digest.hexdigest()[:16]


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{name}/")
        elif name.endswith((".py", ".toml")):
            yield name, entry.read_bytes()


BELONGS = "experiment.json"


def open_folder(experiment: Experiment, out: Path, seed: int) -> Path:
    """OUT/NAME, made if needed; refused if what is there was made by other code or for other numbers."""
    folder = out / experiment.name
    belongs: dict[str, Any] = {
        "name": experiment.name,
        "code": code_digest(experiment.module),
        "params": json.loads(json.dumps(dict(experiment.params), default=str)),
        "seed": seed,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(error, folder.name) from None
    note = folder / BELONGS
    if not note.exists():
        write_new(note, json.dumps(belongs, indent=1, sort_keys=True).encode() + b"\n", private=False)
    found = _noted(note)
    changed = sorted(key for key, value in belongs.items() if found.get(key) != value)
    if changed:
        raise PlanError(
            f"{folder.name} there was made with other {' and '.join(changed)}; name another folder",
            field="out",
        )
    return folder


def _noted(note: Path) -> dict[str, Any]:
    try:
        found = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _shards(folder: Path) -> list[Path]:
    digit = "[0-9]" * 7
    return sorted(folder.glob(f"runs-{digit}-{digit}.parquet"))


def _held(path: Path) -> range:
    first, last = path.stem.split("-")[1:]
    return range(int(first), int(last) + 1)


def done(folder: Path) -> set[int]:
    """Runs whose file is there."""
    return {index for path in _shards(folder) for index in _held(path)}


def batches_of(missing: list[int], size: int) -> Iterator[range]:
    """The missing runs in stretches of consecutive ones, none longer than `size`."""
    start = 0
    for place in range(1, len(missing) + 1):
        ends = place == len(missing) or missing[place] != missing[place - 1] + 1
        if ends or place - start == size:
            yield range(missing[start], missing[place - 1] + 1)
            start = place


def read(folder: Path, *, runs: int) -> pa.Table:
    """The outcomes of the first `runs` runs, in their order.

    Two commands at once on one folder may have made a run twice, with the same numbers: it is read once.
    """
    taken: set[int] = set()
    found = [COLUMNS.empty_table()]
    for path in _shards(folder):
        wanted = [index for index in _held(path) if index < runs and index not in taken]
        taken.update(wanted)
        table = pq.read_table(path, schema=COLUMNS)
        found.append(table.filter(pc.is_in(table["run"], pa.array(wanted, pa.int64()))))
    whole = pa.concat_tables(found)
    # The sort is stable: the lines of a run stay in their order.
    return whole.take(pc.sort_indices(whole["run"])).combine_chunks()


def write(folder: Path, batch: range, table: pa.Table) -> None:
    """The file of these runs. Another process may have been faster, with the same numbers; then its file stays."""
    path = folder / f"runs-{batch.start:07d}-{batch.stop - 1:07d}.parquet"
    if not path.exists():
        data = BytesIO()
        pq.write_table(table, data, compression="zstd")
        write_new(path, data.getvalue(), private=False)


MOST_RUNS = 10_000_000

_stop: Any = threading.Event()  # in a worker, the one that its parent sets


def run(
    experiment: Experiment,
    *,
    out: Path,
    runs: int | None = None,
    workers: int | None = None,
    seed: int = 1,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
) -> pa.Table:
    """All outcomes of the first `runs` repeats; those that are under `out` already are read, the others made.

    `only` and `skip` restrict an experiment in pieces to some of them; the others can be made later, beside them.
    """
    count = 1 if experiment.exact else experiment.runs if runs is None else runs
    workers = workers or os.cpu_count() or 1
    if not 1 <= count <= MOST_RUNS or seed < 0:
        raise PlanError(f"are between 1 and {MOST_RUNS}, and a seed is 0 or more", field="runs")
    wanted = experiment.wanted(count, only, skip)
    folder = open_folder(experiment, out, seed)
    missing = sorted(set(wanted) - done(folder))
    if experiment.check is not None and missing:
        experiment.check([experiment.pieces[index % len(experiment.pieces)] for index in missing])
    # Small batches where there is little to do, so that every worker has some; the numbers do not depend on it.
    batches = list(batches_of(missing, max(1, min(experiment.batch, -(-len(missing) // (2 * workers))))))
    with _bar(experiment.name, total=len(wanted), done=len(wanted) - len(missing)) as step:
        for made in _made(experiment, folder, batches, min(workers, len(batches)), seed):
            step(made)
    made = read(folder, runs=max(wanted) + 1)
    return made.filter(pc.is_in(made["run"], pa.array(wanted, pa.int64())))


def make_batch(experiment: Experiment, folder: Path, batch: range, seed: int) -> int:
    """Make these runs and write their file; how many they are. A batch that is stopped leaves nothing."""
    made = {}
    for index in batch:
        if _stop.is_set():
            return 0
        made[index] = experiment.run(index, experiment.seed_of(index, seed))
    write(folder, batch, table_of(made))
    return len(batch)


def _made(
    experiment: Experiment, folder: Path, batches: list[range], workers: int, seed: int
) -> Iterator[int]:
    """How many runs each finished batch held, as they finish."""
    if workers <= 1:
        yield from (make_batch(experiment, folder, batch, seed) for batch in batches)
        return
    # Spawned, not forked: a fork would share an engine's threads and whatever random state is about.
    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin, initargs=(stop,))
    try:
        waiting = [pool.submit(make_batch, experiment, folder, batch, seed) for batch in batches]
        yield from (finished.result() for finished in as_completed(waiting))
    except BrokenProcessPool:
        raise ResourceError(
            "one was ended from outside, perhaps for memory; give the command again to go on", field="workers"
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(stop: Any) -> None:
    """A worker stops when it is told to, leaves Ctrl-C to its parent, and does not outlive it."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _bar(name: str, *, total: int, done: int) -> Iterator[Any]:
    """A bar that counts runs, when somebody is watching."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=total, completed=done)
        yield lambda made: progress.update(task, advance=made)
