"""Run an experiment many times: in parallel, resumable, and with the same numbers on any number of workers.

Batches of runs that are on disk are not made again; see `shards`.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reticent.errors import PlanError, ResourceError
from reticent.lab import shards
from reticent.lab.experiment import Experiment, table_of

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
) -> pa.Table:
    """All outcomes of the first `runs` repeats; those that are under `out` already are read, the others made.

    `only` restricts an experiment in pieces to some of them; the others can be made later, beside them.
    """
    count = 1 if experiment.exact else experiment.runs if runs is None else runs
    workers = workers or os.cpu_count() or 1
    if not 1 <= count <= MOST_RUNS or seed < 0:
        raise PlanError(f"are between 1 and {MOST_RUNS}, and a seed is 0 or more", field="runs")
    wanted = experiment.wanted(count, only)
    folder = shards.open_folder(experiment, out, seed)
    missing = sorted(set(wanted) - shards.done(folder))
    # Small batches where there is little to do, so that every worker has some; the numbers do not depend on it.
    batches = list(shards.batches(missing, max(1, min(experiment.batch, -(-len(missing) // (2 * workers))))))
    with _bar(experiment.name, total=len(wanted), done=len(wanted) - len(missing)) as step:
        for made in _made(experiment, folder, batches, min(workers, len(batches)), seed):
            step(made)
    made = shards.read(folder, runs=max(wanted) + 1)
    return made.filter(pc.is_in(made["run"], pa.array(wanted, pa.int64())))


def make_batch(experiment: Experiment, folder: Path, batch: range, seed: int) -> int:
    """Make these runs and write their file; how many they are. A batch that is stopped leaves nothing."""
    made = {}
    for index in batch:
        if _stop.is_set():
            return 0
        made[index] = experiment.run(index, experiment.seed_of(index, seed))
    shards.write(folder, batch, table_of(made))
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
