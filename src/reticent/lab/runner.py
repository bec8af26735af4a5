"""Run an experiment many times: in parallel, resumable, and with the same numbers on any number of workers.

Under OUT/NAME there is one Parquet file for every batch of runs, written whole or not at all, and a file that
says which code, parameters and seed they belong to. Batches that are there are not made again.
"""

import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reticent.errors import PlanError
from reticent.files import refusal, write_new
from reticent.lab.experiment import COLUMNS, Experiment, table_of
from reticent.lab.provenance import code_digest

BELONGS = "experiment.json"
MOST_RUNS = 10_000_000


def run(
    experiment: Experiment, *, out: Path, runs: int | None = None, workers: int | None = None, seed: int = 1
) -> pa.Table:
    """All outcomes of the first `runs` runs; those that are under `out` already are read, the others made."""
    count = 1 if experiment.exact else experiment.runs if runs is None else runs
    workers = workers or os.cpu_count() or 1
    if not 1 <= count <= MOST_RUNS or seed < 0:
        raise PlanError(f"are between 1 and {MOST_RUNS}, and a seed is 0 or more", field="runs")
    folder = _folder(experiment, out, seed)
    missing = sorted(set(range(count)) - _done(folder))
    # Small batches where there is little to do, so that every worker has some; the numbers do not depend on it.
    batches = list(_batches(missing, max(1, min(experiment.batch, -(-len(missing) // (2 * workers))))))
    with _bar(experiment.name, total=count, done=count - len(missing)) as step:
        for made in _made(experiment, folder, batches, min(workers, len(batches)), seed):
            step(made)
    return read(folder, runs=count)


def read(folder: Path, *, runs: int) -> pa.Table:
    """The outcomes of the first `runs` runs, in their order."""
    shards = [pq.read_table(path, schema=COLUMNS) for path in _shards(folder)]
    table = pa.concat_tables(shards) if shards else COLUMNS.empty_table()
    table = table.filter(pc.less(table["run"], runs))
    order = pc.sort_indices(table["run"])  # stable: the lines of a run stay in their order
    return table.take(order).combine_chunks()


def make_batch(experiment: Experiment, folder: Path, batch: range, seed: int) -> int:
    """Make these runs and write their file; how many they are. Where another process was faster, its file stays."""
    made = {index: experiment.run(index, experiment.seed_of(index, seed)) for index in batch}
    data = BytesIO()
    pq.write_table(table_of(made), data, compression="zstd")
    path = folder / f"runs-{batch.start:07d}-{batch.stop - 1:07d}.parquet"
    if not path.exists():
        write_new(path, data.getvalue(), private=False)
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
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_leave_with_parent)
    try:
        waiting = [pool.submit(make_batch, experiment, folder, batch, seed) for batch in batches]
        yield from (finished.result() for finished in as_completed(waiting))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _leave_with_parent() -> None:
    """A worker whose parent was killed ends too, instead of waiting for ever for the next batch."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _folder(experiment: Experiment, out: Path, seed: int) -> Path:
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
    return sorted(folder.glob("runs-*.parquet"))


def _done(folder: Path) -> set[int]:
    """Runs whose file is there, by its name: a file has its name only when it is whole."""
    ends = (path.stem.split("-")[1:] for path in _shards(folder))
    return {index for first, last in ends for index in range(int(first), int(last) + 1)}


def _batches(missing: list[int], size: int) -> Iterator[range]:
    """The missing runs in stretches of consecutive ones, none longer than `size`."""
    start = 0
    for place in range(1, len(missing) + 1):
        ends = place == len(missing) or missing[place] != missing[place - 1] + 1
        if ends or place - start == size:
            yield range(missing[start], missing[place - 1] + 1)
            start = place


@contextmanager
def _bar(name: str, *, total: int, done: int) -> Iterator[Any]:
    """A bar that counts runs, when somebody is watching."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=total, completed=done)
        yield lambda made: progress.update(task, advance=made)
