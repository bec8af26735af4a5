"""All pairs of fifteen columns of ten million rows: the engine's count over cells, DuckDB's grouping sets, mbi's `project`.

Run as `python -m bench.marginals`. The rows are simulated, a tenth of the cells missing, and kept in bench/out. Each side is given
the same cells in its own favourite form before the clock starts: the engine holds them, DuckDB has a table of bytes in
memory, mbi arrays of bytes. How long it takes to code the rows from Parquet is told apart. Ours is warm, best of three;
the others, which take long, best of two. All must count the same. mbi is installed under bench/out (see graph.py).
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.graph import HERE, OTHERS, PACKAGES, SEED, SHAPE
from bench.others import installed
from bench.tally import THREADS, opened, peak_gib, show
from reticent.schema.codebook import schema_from
from reticent.synth.domain import Domain, domain_of

ROWS, PART = 10_000_000, 1_000_000
NAMES = [f"c{place}" for place in range(len(SHAPE))]
PAIRS = list(combinations(range(len(SHAPE)), 2))
LEAST = {"DuckDB": 2.0, "mbi": 4.0}
MOST_GIB = 1.0
Tables = list[np.ndarray]


def domain() -> Domain:
    """The cells: every answer by itself, and silence."""
    columns = {
        name: {"kind": "integer", "bounds": [0, size - 1]} for name, size in zip(NAMES, SHAPE, strict=True)
    }
    book = {"survey": {"name": "marginals", "unit": "row"}, "columns": columns}
    return domain_of(schema_from(book), bins=max(SHAPE))


def parquet() -> Path:
    """Rows in which every column leans on an earlier one, written once."""
    path = HERE / "out" / f"marginals-{ROWS}.parquet"
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    rng, part = np.random.default_rng(SEED), path.with_suffix(".part")
    lines = [rng.dirichlet(np.full(size, 0.3), size=17) for size in SHAPE]
    with pq.ParquetWriter(part, pa.schema([(name, pa.int8()) for name in NAMES])) as writer:
        for _ in range(ROWS // PART):
            writer.write_table(_people(rng, lines))
    return part.rename(path)


def _people(rng: np.random.Generator, lines: list[np.ndarray]) -> pa.Table:
    columns: list[np.ndarray] = []
    for place, size in enumerate(SHAPE):
        given = columns[(place - 1) // 2] % 17 if place else np.zeros(PART, np.int8)
        reached = np.cumsum(lines[place], axis=1)[given]
        drawn = (rng.random((PART, 1)) > reached).sum(axis=1)
        columns.append(np.minimum(drawn, size - 1).astype(np.int8))
    silent = [rng.random(PART) < 0.1 for _ in SHAPE]
    arrays = [pa.array(column, mask=mask) for column, mask in zip(columns, silent, strict=True)]
    return pa.table(dict(zip(NAMES, arrays, strict=True)))


def seconds(work: Callable[[], Any], turns: int) -> float:
    """The best of some turns."""
    took = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def ours(found: Tables, cells: list[np.ndarray]) -> dict[str, Any]:
    """Coding, then counting with all threads; the tables and the cells are handed on."""
    where = domain()
    with opened(parquet()) as engine:
        engine.check(where.schema)
        start = time.perf_counter()
        with engine.coded(where.schema, [axis.key for axis in where.axes]) as held:
            coding = time.perf_counter() - start
            found += held.count(PAIRS)  # compiles
            counting = seconds(lambda: held.count(PAIRS), 3)
            cells += [np.concatenate([block[place] for block in held._held]) for place in range(len(SHAPE))]
    return {"name": "ours", "seconds": counting, "coding": coding, "times": None, "ok": True}


def grouping_sets(cells: list[np.ndarray], turns: int = 2) -> tuple[float, Tables]:
    """DuckDB on a table of bytes, one statement for all pairs."""
    plain = duckdb.connect(config={"threads": THREADS})
    plain.register("given", pa.table(dict(zip(NAMES, cells, strict=True))))
    plain.execute("CREATE TABLE held AS SELECT * FROM given")
    sets = ", ".join(f"({NAMES[a]}, {NAMES[b]})" for a, b in PAIRS)
    which = "+".join(f"(grouping({name})=0)::bigint*{1 << place}" for place, name in enumerate(NAMES))
    text = f"SELECT {', '.join(NAMES)}, {which} AS w, count(*) AS n FROM held GROUP BY GROUPING SETS ({sets})"
    rows: dict[str, Any] = {}
    took = seconds(lambda: rows.update(plain.execute(text).fetchnumpy()), turns)
    return took, [_dense(rows, pair) for pair in PAIRS]


def _dense(rows: dict[str, Any], pair: tuple[int, int]) -> np.ndarray:
    table = np.zeros([SHAPE[place] + 1 for place in pair], np.int64)
    mine = rows["w"] == sum(1 << place for place in pair)
    first, second = (np.ma.getdata(rows[NAMES[place]])[mine] for place in pair)
    table[first, second] = rows["n"][mine]
    return table


def projected(cells: list[np.ndarray], turns: int = 2) -> tuple[float, Tables] | None:
    """mbi on arrays of bytes, by an interpreter of its own."""
    if not installed(OTHERS, PACKAGES):
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "cells.npy", Path(folder) / "tables.npz"
        np.save(given, np.stack(cells))
        script = str(HERE / "marginals_others.py")
        call = [str(OTHERS / "bin" / "python"), script, str(given), str(made), str(turns)]
        done = subprocess.run(call, check=True, capture_output=True, text=True)
        tables = np.load(made)
        return json.loads(done.stdout)["seconds"], [tables[f"table{i}"] for i in range(len(PAIRS))]


def _counted_once() -> float:
    where = domain()
    with opened(parquet()) as engine, engine.coded(where.schema, [axis.key for axis in where.axes]) as held:
        held.count(PAIRS)
    return peak_gib()


def memory() -> dict[str, Any]:
    """The peak resident size of a process that codes the rows and counts all pairs, and does nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        peak = pool.submit(_counted_once).result()
    return {"name": "peak, GiB", "seconds": peak, "coding": None, "times": None, "ok": peak < MOST_GIB}


def run() -> list[dict[str, Any]]:
    """One row for each side, with how many times as long as ours it took, and the peak of memory."""
    tables: Tables = []
    cells: list[np.ndarray] = []
    rows = [ours(tables, cells)]
    others = {"DuckDB": grouping_sets(cells), "mbi": projected(cells)}
    for name, found in others.items():
        if found is None:
            continue
        took, theirs = found
        if any((a != b).any() for a, b in zip(tables, theirs, strict=True)):
            raise AssertionError(f"{name} counts otherwise")
        times = took / rows[0]["seconds"]
        rows.append(
            {"name": name, "seconds": took, "coding": None, "times": times, "ok": times >= LEAST[name]}
        )
    return [*rows, memory()]


def main() -> None:
    """Print the table."""
    print(f"All {len(PAIRS)} pairs of {len(SHAPE)} columns, {ROWS:,} rows, {THREADS} threads")
    show([{key: "" if value is None else value for key, value in row.items()} for row in run()])
    if not (OTHERS / "ready").exists():
        print("mbi could not be installed; it needs a network once.")


if __name__ == "__main__":
    main()
