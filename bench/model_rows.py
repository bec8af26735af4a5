"""Sums for a private line: ten million rows and ten predictors, beside DuckDB computing the same cross-products alone.

Run as `python -m bench.model_rows [rows]`. DuckDB reads the same Parquet file and adds up the same 66 products and 11 sums
of raw columns, without gaps, bounds or codes. Ours cleans the rows first: it clamps, leaves out rows with a gap, and checks
types; then it fits the line from what it added, with the system's noise. Both have the same number of threads, and the
best of three runs counts.
"""

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.models.fit import SystemModelNoise
from reticent.models.sums import Centred
from reticent.plan.plan import Plan, plan_from
from reticent.release.models import design_of, products, sums_of

HERE = Path(__file__).parent / "out"
ROWS, PREDICTORS, THREADS, SEED = 10_000_000, 10, 2, 2026
NAMES = [f"x{k}" for k in range(PREDICTORS)]


def plan() -> Plan:
    """A mean of y, its gaps filled from a line on ten predictors."""
    columns = {name: {"kind": "integer", "bounds": [0, 100]} for name in (*NAMES, "y")}
    line = {"method": "regression", "column": "y", "from": NAMES, "epsilon": "1"}
    return plan_from(
        {
            "survey": {"source": "rows.parquet", "codebook": "book.toml", "ledger": "book.db"},
            "release": {"id": "bench"},
            "protect": {"change": "one respondent added or removed", "epsilon": "2"},
            "impute": [line],
            "statistic": [{"name": "mean", "query": {"mean": "y"}, "epsilon": "1"}],
        },
        {"survey": {"name": "bench", "unit": "row"}, "columns": columns},
    )


def rows(size: int) -> Path:
    """The file, made once: codes from 0 to 100, y with a fifth of it missing."""
    path = HERE / f"model-rows-{size}.parquet"
    if path.exists():
        return path
    HERE.mkdir(exist_ok=True)
    rng = np.random.default_rng(SEED)
    step = 1_000_000
    with pq.ParquetWriter(path, pa.schema([(name, pa.int16()) for name in (*NAMES, "y")])) as out:
        for start in range(0, size, step):
            n = min(step, size - start)
            x = rng.integers(0, 101, (PREDICTORS, n), dtype=np.int16)
            y = np.clip(x[:2].mean(axis=0) + rng.normal(0, 10, n), 0, 100).astype(np.int16)
            held = [*map(pa.array, x), pa.array(y, mask=rng.random(n) < 0.2)]
            out.write_table(pa.table(dict(zip((*NAMES, "y"), held, strict=True))))
    return path


def best(work: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the quickest run."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def alone(path: Path) -> None:
    """The same sums by DuckDB, of raw columns."""
    names = (*NAMES, "y")
    sums = [f"sum({name})" for name in names]
    sums += [f"sum({a}::BIGINT * {b})" for a, b in combinations_with_replacement(names, 2)]
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.sql(f"SELECT count(*), {', '.join(sums)} FROM '{path}' WHERE y IS NOT NULL").fetchall()


def ours(path: Path) -> None:
    """Clean, add up, add noise, fit."""
    made = plan()
    engine = DuckDBEngine(open_path(str(path)), threads=THREADS)
    try:
        wanted = products(made.models[0])
        found = engine.tally(made.schema, [want for want in wanted.values() if want], made.repair).statistics
        sums = sums_of(design_of(made.models[0], made.schema), wanted, found)
        noise = SystemModelNoise()
        Centred().fit(sums, epsilon=Fraction(1), neighbours=made.neighbours, noise=noise)
    finally:
        engine.close()


def run(size: int = ROWS) -> list[dict[str, Any]]:
    """Seconds of both, and how many times as long ours takes."""
    path = rows(size)
    theirs, mine = best(lambda: alone(path)), best(lambda: ours(path))
    return [{"rows": size, "predictors": PREDICTORS, "duckdb": theirs, "fit": mine, "times": mine / theirs}]


def main() -> None:
    """Print the line."""
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else ROWS):
        print(f"{row['rows']:,} rows, {row['predictors']} predictors, {THREADS} threads:", end=" ")
        print(
            f"DuckDB alone {row['duckdb']:.2f} s, private line {row['fit']:.2f} s, {row['times']:.2f} times"
        )


if __name__ == "__main__":
    sys.exit(main())
