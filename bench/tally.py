"""Ten asks of ten million simulated respondents, beside DuckDB adding up ten numbers in one query.

Run as `python -m bench.tally`. Same file, same threads, warm, best of three, the two sides taking turns. The
peak of memory is that of a process which does nothing else. The people are made once and kept in bench/out.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb

from bench import people
from bench.asks import PLAIN, SUMS, plan, plans
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.engine.wants import Tallies
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of

ROWS = 10_000_000
SIZES = (100_000, 1_000_000, ROWS)
CSV_ROWS = 1_000_000
THREADS = os.cpu_count() or 1
MOST_TIMES, MOST_GIB, MOST_PASSES = 3.0, 2.0, 2


class Counting:
    """A connection that counts its statements, and how often their plans read the file."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.statements, self.scans = connection, 0, 0

    def execute(self, statement: str, values: Any = None) -> Any:
        """Explain the statement, then run it."""
        explained = self.connection.execute(f"EXPLAIN {statement}", values).fetchall()[0][1]
        self.statements += 1
        self.scans += explained.upper().count("READ_PARQUET")
        return self.connection.execute(statement, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


@contextmanager
def opened(path: Path) -> Iterator[DuckDBEngine]:
    """An engine on the file, closed at the end."""
    engine = DuckDBEngine(open_path(str(path)), threads=THREADS)
    try:
        yield engine
    finally:
        engine.close()


def best(*works: Callable[[], Any]) -> list[tuple[float, float]]:
    """Wall and processor seconds of each work: warm, best of three, taking turns."""
    found = [(float("inf"), float("inf"))] * len(works)
    for turn in range(4):
        for place, work in enumerate(works):
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            took = time.perf_counter() - wall, time.process_time() - cpu
            if turn:
                found[place] = min(found[place][0], took[0]), min(found[place][1], took[1])
    return found


def beside_plain_sql(name: str) -> dict[str, Any]:
    """A plan's tally and the whole evaluation, in units of the plain query's time."""
    asked, path = plans()[name], people.parquet(ROWS)
    plain = duckdb.connect(config={"threads": THREADS})
    with opened(path) as engine:
        engine.check(asked.schema)
        works: list[Callable[[], Any]] = [
            lambda: plain.execute(PLAIN, [str(path)]).fetchall(),
            lambda: engine.tally(asked.schema, wants_of(asked)),
            lambda: evaluate(asked, engine.tally(asked.schema, wants_of(asked)), SystemNoise()),
        ]
        theirs, tally, whole = best(*works)
        if name == "ten sums":
            _check_equal(asked, works[0]()[0], works[1]())
    return {
        "name": name,
        "plain_wall": theirs[0],
        "plain_cpu": theirs[1],
        "tally_wall": tally[0],
        "tally_cpu": tally[1],
        "whole_wall": whole[0],
        "whole_cpu": whole[1],
        "times_wall": tally[0] / theirs[0],
        "times_cpu": tally[1] / theirs[1],
        "ok": min(tally[0] / theirs[0], tally[1] / theirs[1]) <= MOST_TIMES,
    }


def _check_equal(asked: Plan, plain: tuple[Any, ...], tallies: Tallies) -> None:
    """Both sides have computed the same ten numbers, ours in steps of the grid."""
    for (ask, _), number, want in zip(SUMS, plain, wants_of(asked), strict=True):
        steps = 100 ** (("weight" in ask) + (ask.get("total") == "rent"))
        if tallies.statistics[want] != number * steps:  # type: ignore[index]
            raise AssertionError(f"the two sides disagree on {ask}")


def passes() -> list[dict[str, Any]]:
    """How often the file is read for one ask, for ten and for a hundred."""
    path, found = people.parquet(SIZES[0]), []
    kinds: list[dict[str, object]] = [{"total": "wage"}, {"median": "wage", "step": "500"}]
    for count in (1, 10, 100):
        asked = plan([{**kinds[i % 2], "where": f"age >= {18 + i // 2}"} for i in range(count)])
        with opened(path) as engine:
            engine._connection = counting = Counting(engine._connection)
            engine.tally(asked.schema, wants_of(asked))
        reads = {
            "name": f"{count} asks" if count > 1 else "1 ask",
            "statements": counting.statements,
            "scans": counting.scans,
        }
        found.append({**reads, "ok": counting.scans <= MOST_PASSES})
    return found


def _tally_once(name: str, path: str) -> float:
    asked = plans()[name]
    with opened(Path(path)) as engine:
        engine.tally(asked.schema, wants_of(asked))
    return peak_gib()


def peak_gib() -> float:
    """The peak resident size of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def memory() -> list[dict[str, Any]]:
    """The peak resident size of a process that tallies a plan, in GiB."""
    found = []
    for name in plans():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peak = pool.submit(_tally_once, name, str(people.parquet(ROWS))).result()
        found.append({"name": name, "peak_gib": peak, "ok": peak < MOST_GIB})
    return found


def _seconds(path: Path) -> tuple[float, float]:
    asked = plans()["ten of all kinds"]
    with opened(path) as engine:
        return best(lambda: engine.tally(asked.schema, wants_of(asked)))[0]


def growth() -> list[dict[str, Any]]:
    """The time of a tally as the rows grow tenfold, twice."""
    found: list[dict[str, Any]] = []
    for rows in SIZES:
        wall, cpu = _seconds(people.parquet(rows))
        before = found[-1]["cpu"] if found else None
        ok = before is None or cpu <= 10 * before
        found.append({"name": f"{rows:,} rows", "wall": wall, "cpu": cpu, "ok": ok})
    return found


def formats() -> list[dict[str, Any]]:
    """The same million people as Parquet and as CSV."""
    found = []
    for path in (people.parquet(CSV_ROWS), people.csv(CSV_ROWS)):
        wall, cpu = _seconds(path)
        found.append({"name": path.suffix[1:], "wall": wall, "cpu": cpu, "mb": path.stat().st_size / 1e6})
    return found


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    f"Beside plain SQL: {ROWS:,} respondents, {THREADS} threads; at most {MOST_TIMES:g} times": lambda: [
        beside_plain_sql(name) for name in plans()
    ],
    f"How often the file is read; at most {MOST_PASSES} times, whatever is asked": passes,
    f"Peak memory at {ROWS:,} respondents; under {MOST_GIB:g} GiB": memory,
    "Growth: ten times the rows, at most ten times the processor time": growth,
    f"Formats: {CSV_ROWS:,} respondents": formats,
}


def run() -> list[dict[str, Any]]:
    """Every measurement as one row."""
    return [
        {"part": title.split(":")[0].split(";")[0], **row} for title, part in PARTS.items() for row in part()
    ]


def main() -> None:
    """Print the tables."""
    for title, part in PARTS.items():
        print(f"\n{title}")
        show(part())


def show(rows: list[dict[str, Any]]) -> None:
    """Rows as a table under their own names."""
    print(f"{'':<22}" + "".join(f"{key:>12}" for key in rows[0] if key != "name"))
    for row in rows:
        cells = (
            f"{v:>12.2f}" if isinstance(v, float) else f"{v!s:>12}" for k, v in row.items() if k != "name"
        )
        print(f"{row['name']:<22}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
