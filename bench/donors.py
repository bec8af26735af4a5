"""Donors for a tenth of a million incomes, beside a plain as-of join and scikit-learn's nearest neighbours.

Run as `python -m bench.donors`. One Parquet file of simulated respondents, six matching attributes, 57,600 cells. The
as-of join is given every record's cell and place, reads three columns, and gives up on cells without donors; ours
reads the survey, makes codes, labels, places and rings, and looks around. For comparison the join is also timed on the
survey itself, where it makes cells and places with a hash. Capped donors go through four levels, with caps for a tenth
missing; five of them for each recipient are timed beside five joins. `python -m bench.donors_large` has ten and a hundred
million. Warm, best of three, taking turns.
scikit-learn is installed under bench/out, in an environment of its own, and asked for a sample of the recipients.
"""

import json
import subprocess
import time
import venv
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from bench import survey
from bench.people import OUT
from bench.tally import THREADS, best, opened, peak_gib, show
from reticent.engine.donors.filling import PEOPLE
from reticent.engine.wants import Ring, Rows, Sum
from reticent.prepare.distance import distances_of
from reticent.prepare.repair import Repair
from reticent.sensitivity.bounds import smooth_bound
from reticent.sensitivity.donors import count
from reticent.sensitivity.hubs import Hubs, Rings

ROWS, MORE = 1_000_000, 10_000_000
MOST_TIMES, LEAST_FASTER, MOST_SECONDS, MOST_GROWTH = 3.0, 200.0, 20.0, 12.0
MOST_CAPPED, SEVERAL = 2.0, 5
TOTAL = Sum(rows=Rows(), value="income", power=1)
RING = Ring(column="income", rows=Rows())
OTHERS, PACKAGE, SAMPLE = OUT / "donors-others", "scikit-learn==1.9.1", 1_000
PLAIN = """
    WITH people AS ({people}),
        donors AS (SELECT cell, place, income FROM people WHERE income IS NOT NULL),
        recipients AS (SELECT cell, place FROM people WHERE income IS NULL),
        firsts AS (SELECT cell, arg_min(income, place) AS income FROM donors GROUP BY cell),
        filled AS (
            SELECT coalesce(d.income, f.income) AS income FROM recipients r
            ASOF LEFT JOIN donors d ON r.cell = d.cell AND d.place >= r.place
            LEFT JOIN firsts f ON f.cell = r.cell)
    SELECT sum(income), count(*) - count(income)
    FROM (SELECT income FROM donors UNION ALL SELECT income FROM filled)"""
GIVEN = PLAIN.format(people="SELECT * FROM read_parquet($1)")
GROUP = (
    "CASE " + " ".join(f"WHEN age >= {s} THEN {i}" for i, s in list(enumerate(survey.STARTS))[::-1]) + " END"
)
MADE = PLAIN.format(
    people=f"""SELECT income, hash({GROUP}, {", ".join(survey.LEVELS)}) AS cell,
        hash(age, {", ".join(survey.LEVELS)}, income) AS place FROM read_parquet($1)"""
)


def places(rows: int) -> Path:
    """What the as-of join is given: cell, place and income of every record, made once and kept."""
    path = OUT / f"donors-places-{rows}.parquet"
    if not path.exists():
        schema, repair = survey.schema(), survey.repair()
        with opened(survey.parquet(rows)) as engine, engine._holding(schema, repair) as held:
            income = held.packing.digits["income"].code().sql("duckdb")
            statement = f"SELECT cell0 AS cell, place, {income} AS income FROM {PEOPLE}"
            pq.write_table(engine._connection.sql(statement).to_arrow_table(), path)
    return path


def beside_plain_sql() -> list[dict[str, Any]]:
    """A tally with donors, alone and with its rings, in units of the as-of join's time, which makes no rings."""
    path, raw, schema, repair = str(places(ROWS)), survey.parquet(ROWS), survey.schema(), survey.repair()
    plain = duckdb.connect(config={"threads": THREADS})
    with opened(raw) as engine:
        given, made, *ours = best(
            lambda: plain.execute(GIVEN, [path]).fetchall(),
            lambda: plain.execute(MADE, [str(raw)]).fetchall(),
            lambda: engine.tally(schema, [TOTAL], repair),
            lambda: engine.tally(schema, [TOTAL, RING], repair),
        )
        total, unfilled = plain.execute(GIVEN, [path]).fetchall()[0]
        beyond = engine.tally(schema, [TOTAL], repair).statistics[TOTAL] - total
        if not 0 <= beyond <= unfilled * schema.coded["income"].high:
            raise AssertionError("the two sides have different donors")
    found = [_beside(name, given, each) for name, each in zip(("donors", "and rings"), ours, strict=True)]
    return [*found, {**_beside("donors, all made", made, ours[0]), "ok": True}]


def capped_beside_plain_sql() -> list[dict[str, Any]]:
    """Capped donors on four levels, one and five for each recipient, in units of one as-of join and of five."""
    path, raw, schema = str(places(ROWS)), survey.parquet(ROWS), survey.schema()
    plain = duckdb.connect(config={"threads": THREADS})
    with opened(raw) as engine:
        given, made, one, several = best(
            lambda: plain.execute(GIVEN, [path]).fetchall(),
            lambda: plain.execute(MADE, [str(raw)]).fetchall(),
            lambda: engine.tally(schema, [TOTAL], survey.capped()),
            lambda: engine.tally(schema, [TOTAL], survey.capped(SEVERAL)),
        )
    joins = (SEVERAL * given[0], SEVERAL * given[1])
    return [
        _beside("one donor, one join", given, one, MOST_CAPPED),
        _beside(f"{SEVERAL} donors, {SEVERAL} joins", joins, several, MOST_CAPPED),
        {**_beside(f"{SEVERAL} donors, one join", given, several), "ok": True},
        {**_beside("one donor, all made", made, one), "ok": True},
    ]


def _beside(
    name: str, theirs: tuple[float, float], ours: tuple[float, float], most: float = MOST_TIMES
) -> dict[str, Any]:
    times = ours[0] / theirs[0], ours[1] / theirs[1]
    row = {"plain_wall": theirs[0], "plain_cpu": theirs[1], "ours_wall": ours[0], "ours_cpu": ours[1]}
    row |= {"times_wall": times[0], "times_cpu": times[1]}
    return {"name": name, **row, "ok": max(times) <= most}


def beside_scikit_learn() -> list[dict[str, Any]]:
    """All recipients by brute force, scaled up from a sample, in units of our time."""
    python = _others()
    if python is None:
        return [{"name": f"{PACKAGE} cannot be installed here: skipped", "ok": True}]
    given = [str(python), str(Path(__file__).with_name("donors_sklearn.py")), str(survey.parquet(ROWS))]
    told = subprocess.run([*given, str(SAMPLE)], capture_output=True, text=True, check=True).stdout
    found = json.loads(told)
    schema, repair = survey.schema(), survey.repair()
    with opened(survey.parquet(ROWS)) as engine:
        ((wall, cpu),) = best(lambda: engine.tally(schema, [TOTAL, RING], repair))
    whole = found["recipients"] / SAMPLE
    theirs = {"all_wall": found["wall"] * whole, "all_cpu": found["cpu"] * whole}
    faster = theirs["all_wall"] / wall, theirs["all_cpu"] / cpu
    row = {"sampled": SAMPLE, **theirs, "ours_wall": wall, "ours_cpu": cpu}
    row |= {"faster_wall": faster[0], "faster_cpu": faster[1]}
    return [{"name": "brute force", **row, "ok": min(faster) >= LEAST_FASTER}]


def _others() -> Path | None:
    python = OTHERS / "bin" / "python"
    if not python.exists():
        venv.create(OTHERS, with_pip=True)
    wanted = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", PACKAGE, "pyarrow"]
    return python if subprocess.run(wanted, check=False, capture_output=True).returncode == 0 else None


def the_bound() -> list[dict[str, Any]]:
    """The smooth bound of a count at epsilon 1, over the whole domain."""
    schema, repair = survey.schema(), survey.repair()
    with opened(survey.parquet(ROWS)) as engine:
        ring = engine.tally(schema, [RING], repair).rings[RING]
    rings = Rings(donors=ring.donors, recipients=ring.recipients, gaps=ring.gaps)
    distances, bounds = distances_of(repair.donors[0], schema), []

    def work() -> None:
        bounds.append(smooth_bound(Hubs(distances, rings).ladder(count()), Fraction(1, 8)).bound)

    ((wall, cpu),) = best(work)
    row = {"cells": distances.cells, "bound": float(bounds[0]), "wall": wall, "cpu": cpu}
    return [{"name": "count, epsilon 1", **row, "ok": wall <= MOST_SECONDS}]


def growth() -> list[dict[str, Any]]:
    """Ten times the respondents, the nearest donor and its rings."""
    return grown((ROWS, MORE), [TOTAL, RING], survey.repair())


def growth_capped() -> list[dict[str, Any]]:
    """The same for capped donors, one for each recipient."""
    return grown((ROWS, MORE), [TOTAL], survey.capped())


def grown(sizes: Sequence[int], wants: list[Any], repair: Repair, most: int = 3) -> list[dict[str, Any]]:
    """More respondents, in the same run, best of `most`; and the peak of memory of a process that does nothing else."""
    found: list[dict[str, Any]] = []
    for rows in sizes:
        with opened(survey.parquet(rows)) as engine:
            work = partial(engine.tally, survey.schema(), wants, repair)
            ((wall, cpu),) = best(work) if most > 1 else [once(work)]
        times = (wall / found[-1]["wall"], cpu / found[-1]["cpu"]) if found else (1.0, 1.0)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peak = pool.submit(_tally_once, str(survey.parquet(rows)), wants, repair).result()
        row = {"wall": wall, "cpu": cpu, "times_wall": times[0], "times_cpu": times[1], "peak_gib": peak}
        found.append({"name": f"{rows:,} rows", **row, "ok": times[1] <= MOST_GROWTH})
    return found


def once(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and processor seconds of one go."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _tally_once(path: str, wants: list[Any], repair: Repair) -> float:
    with opened(Path(path)) as engine:
        engine.tally(survey.schema(), wants, repair)
    return peak_gib()


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    f"Beside a cyclic as-of join: {ROWS:,} respondents, {THREADS} threads; at most {MOST_TIMES:g} times": (
        beside_plain_sql
    ),
    f"Capped donors beside as-of joins: {ROWS:,} respondents; at most {MOST_CAPPED:g} times": (
        capped_beside_plain_sql
    ),
    f"Beside scikit-learn's brute force; at least {LEAST_FASTER:g} times as fast": beside_scikit_learn,
    f"The bound over all cells; at most {MOST_SECONDS:g} s": the_bound,
    f"Growth: ten times the rows, at most {MOST_GROWTH:g} times the time": growth,
    f"Growth of capped donors: ten times the rows, at most {MOST_GROWTH:g} times the time": growth_capped,
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


if __name__ == "__main__":
    main()
