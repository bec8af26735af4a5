"""Sums, margins and donors where the rows are: PostgreSQL and Spark beside DuckDB, in processor time of the same run.

Run as `python -m bench engines [--json] [--large] [--only spark,margins,growth]`. The same simulated respondents lie
in a Parquet file, which DuckDB and Spark read, and in a table of a server that is started for this. Processor time is
user and system time of all processes of an engine, the client's own among them: wall time on a shared machine says
more about the neighbours. Warm, best of two. `equal` says that all whole numbers before the noise were those of
DuckDB. `--large` adds a hundred million rows, for the client's memory. `--only` takes words for engines, works and
parts (ratios, growth, memory), and leaves the others out. RETICENT_BENCH_ROWS takes fewer rows than ten million. What
cannot be started here is left out, by name.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from tests.engine.conformance import openers, server
from tests.engine.spark import sessions

from bench import people, survey
from bench.asks import plans
from bench.tally import show
from reticent.engine.open import open_engine
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import RemoteTable, open_path
from reticent.engine.wants import Aggregate, Key, Rows, Sum, Table, Tallies
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.release.statistics import wants_of
from reticent.schema import Schema

ROWS = int(os.environ.get("RETICENT_BENCH_ROWS", "10000000"))
DONOR_ROWS, LARGE = min(ROWS, 1_000_000), 100_000_000
ONLY = [word for word in os.environ.get("RETICENT_BENCH_ONLY", "").split(",") if word]
TURNS, MOST_GROWTH, MOST_MEMORY = 2, 12.0, 1.2
GOALS = {
    ("postgres", "sums"): 3.0,
    ("spark", "sums"): 4.0,
    ("postgres", "105 margins"): 3.0,
    ("spark", "105 margins"): 10.0,
    ("postgres", "donors"): 6.0,
    ("spark", "donors"): 12.0,
}
WORKS, ENGINES = ("sums", "105 margins", "donors"), ("postgres", "spark")
Work = tuple[Path, Schema, list[Aggregate], Repair]


def only(names: Iterable[str]) -> list[str]:
    """Those of the names that a word of `--only` is part of; all where none is."""
    every = list(names)
    return [name for name in every if any(word in name for word in ONLY)] or every


def work_of(name: str, rows: int) -> Work:
    """What is asked, of which file: ten sums, all pairs of fifteen columns, or a total filled by capped donors."""
    if name == "donors":
        total: list[Aggregate] = [Sum(rows=Rows(), value="income", power=1)]
        return survey.parquet(rows), survey.schema(), total, survey.capped()
    asked = plans()["ten sums"]
    wants = list(wants_of(asked)) if name == "sums" else pairs(asked.schema)
    return people.parquet(rows), asked.schema, wants, NO_REPAIR


def rows_of(name: str) -> int:
    return DONOR_ROWS if name == "donors" else ROWS


def pairs(schema: Schema) -> list[Aggregate]:
    """The 105 two-way tables of fifteen columns: those with levels, and numbers in a few classes of several widths."""
    keys = [Key(column=name, silent=True) for name, each in schema.coded.items() if each.high - each.low < 20]
    numbers = [name for name, each in schema.coded.items() if each.high - each.low >= 20]
    for parts in range(4, 20):
        for name in numbers:
            low, high = schema.coded[name].low, schema.coded[name].high
            starts = tuple(dict.fromkeys(low + (high - low) * part // parts for part in range(parts)))
            keys.append(Key(column=name, starts=starts, silent=True))
    return [Table(rows=Rows(), keys=pair) for pair in combinations(keys[:15], 2)]


@cache
def loaded(path: Path) -> str:
    """The rows of a file in a table of the server's, by its name; made once in a run."""
    source, name = pq.ParquetFile(path), f"people.{path.stem.replace('-', '_')}"
    kinds = ", ".join(f'"{f.name}" {openers.kind_of(f.type)}' for f in people.plain(source.schema_arrow))
    options = pa_csv.WriteOptions(include_header=False)
    with server.server().connect(server.BOSS) as connection:
        connection.execute(f"CREATE TABLE {name} ({kinds})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT CSV)") as copy:
            for batch in source.iter_batches(2**17):
                held = pa.BufferOutputStream()
                pa_csv.write_csv(
                    pa.Table.from_batches([batch]).cast(people.plain(batch.schema)), held, options
                )
                copy.write(held.getvalue().to_pybytes())
    server.server().run(f"VACUUM ANALYZE {name}")
    return name


@contextmanager
def opened(engine: str, path: Path) -> Iterator[CuratorEngine]:
    """An engine on the rows of a file."""
    made: Any
    if engine == "duckdb":
        made = open_path(str(path))
    elif engine == "postgres":
        made = RemoteTable(engine="postgres", relation=loaded(path), service="tests")
    else:
        made = RemoteTable(engine="spark", relation=str(path), given=session())
    held = open_engine(made)
    try:
        yield held
    finally:
        held.close()


@cache
def session() -> Any:
    """A session on all cores of this machine."""
    from reticent.engine.spark.session import own_session

    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g --master local[*] pyspark-shell")
    return own_session()


def why_not() -> dict[str, str]:
    """The engines beside DuckDB, and what is missing for each."""
    found = {"postgres": server.why_not, "spark": sessions.why_not}
    return {engine: found[engine]() for engine in only(ENGINES)}


def here() -> list[str]:
    """The engines beside DuckDB that can be started."""
    return [engine for engine, missing in why_not().items() if not missing]


def spent(engine: str) -> float:
    """Processor seconds of this process and of those behind an engine, up to now."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    if engine == "postgres":
        first = int((server.server().data / "postmaster.pid").read_text().split()[0])
        total += sum(_seconds(pid, whole=pid == first) for pid in _family(first))
    if engine == "spark":
        total += _seconds(session().sparkContext._gateway.proc.pid, whole=True)
    return total


def _family(first: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True, check=False
    )
    return [first, *(int(each) for each in listed.stdout.split())]


def _seconds(pid: int, *, whole: bool) -> float:
    """User and system time of a process; with those of its children that have ended, if `whole`."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if whole else 13])) / os.sysconf("SC_CLK_TCK")


def numbers(found: Tallies) -> list[Any]:
    """All whole numbers of a tally."""
    return [list(found.statistics.sums.values()), [table.cells for table in found.tables.values()]]


@cache
def timed(engine: str, name: str, rows: int) -> tuple[float, list[Any]]:
    """Processor seconds of a tally, warm and the best, and its numbers. Spark stages codes at the first."""
    path, schema, wants, repair = work_of(name, rows)
    best, found = float("inf"), list[Any]()
    with opened(engine, path) as held:
        held.check(schema)
        for turn in range(TURNS + 1):
            before = spent(engine)
            found = numbers(held.tally(schema, wants, repair))
            best = min(best, spent(engine) - before) if turn else best
    return best, found


def ratios() -> list[dict[str, Any]]:
    """Every work on every engine that is here, in units of DuckDB's processor time."""
    found: list[dict[str, Any]] = []
    for name in only(WORKS):
        rows = rows_of(name)
        base, expected = timed("duckdb", name, rows)
        for engine in ("duckdb", *here()):
            took, numbers_ = timed(engine, name, rows)
            goal, equal = GOALS.get((engine, name), 1.0), numbers_ == expected
            row = {"engine": engine, "work": name, "rows": rows, "cpu": round(took, 2)}
            row |= {"ratio": round(took / base, 2), "goal": goal, "equal": equal}
            found.append(row | {"ok": equal and took / base <= goal})
    return found


def growth() -> list[dict[str, Any]]:
    """A tenth of the rows, then all: how much longer each work takes."""
    found = []
    for engine in ("duckdb", *here()):
        for name in only(WORKS):
            rows = rows_of(name)
            (before, _), (after, _) = timed(engine, name, rows // 10), timed(engine, name, rows)
            row = {"engine": engine, "work": f"{name}, growth", "rows": rows, "cpu": round(after, 2)}
            row |= {"ratio": round(after / before, 2), "goal": MOST_GROWTH, "equal": True}
            found.append(row | {"ok": after / before <= MOST_GROWTH})
    return found


def memory() -> list[dict[str, Any]]:
    """Peak memory of a client that does nothing else, at ten and a hundred million rows."""
    found = []
    for engine in here():
        for name in only(WORKS[:2]):
            peaks = [_peak(engine, name, rows) for rows in (ROWS, LARGE)]
            row = {"engine": engine, "work": f"{name}, client memory", "rows": LARGE, "cpu": 0.0}
            row |= {"ratio": round(peaks[1] / peaks[0], 2), "goal": MOST_MEMORY, "equal": True}
            found.append(row | {"ok": peaks[1] / peaks[0] <= MOST_MEMORY})
    return found


def _peak(engine: str, name: str, rows: int) -> float:
    """Of a process of its own; the server's table is made here, so that it is there."""
    if engine == "postgres":
        loaded(people.parquet(rows))
    script = (
        "import resource, sys\nfrom bench import engines\n"
        f"engines.loaded = lambda path: 'people.' + path.stem.replace('-', '_')\n"
        f"path, schema, wants, repair = engines.work_of({name!r}, {rows})\n"
        f"with engines.opened({engine!r}, path) as held:\n    held.tally(schema, wants, repair)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def parts() -> dict[str, Callable[[], list[dict[str, Any]]]]:
    """What is measured, by title."""
    titles = {
        "ratios": f"Processor time in units of DuckDB's: {ROWS:,} respondents, donors {DONOR_ROWS:,}",
        "growth": f"Growth: ten times the rows; at most {MOST_GROWTH:g} times the processor time",
    }
    if os.environ.get("RETICENT_BENCH_LARGE"):
        titles["memory"] = "Client memory, ten times the rows; at most 1.2 times"
    measured = {"ratios": ratios, "growth": growth, "memory": memory}
    return {titles[part]: measured[part] for part in only(titles)}


def run() -> list[dict[str, Any]]:
    """Every measurement as one row."""
    return [row for part in parts().values() for row in part()]


def main() -> None:
    """Print the tables."""
    for name, why in why_not().items():
        print(f"{name} is left out: {why}" if why else f"{name} is here")
    for title, part in parts().items():
        print(f"\n{title}", flush=True)
        show([{"name": f"{row.pop('engine')}, {row.pop('work')}", **row} for row in part()])


if __name__ == "__main__":
    main()
