"""Outcomes on disk: one Parquet file for every batch of runs under OUT/NAME, and a note of what they belong to.

A file has its name only when it is whole, so its name alone says which runs it holds.
"""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reticent.errors import PlanError
from reticent.files import refusal, write_new
from reticent.lab.experiment import COLUMNS, Experiment
from reticent.lab.provenance import code_digest

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


def batches(missing: list[int], size: int) -> Iterator[range]:
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
