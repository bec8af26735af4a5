"""One more respondent with an odd cell changes nobody else: no code, no respondent, no lot, no place, no failure.

pandas and Polars choose a column's type from all of its cells, so an odd one gives every cell another type. The naive
twin reads by that type, and the same comparison rejects it.
"""

import csv
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.donors.filling import PEOPLE
from reticent.engine.sources.open import Source, open_frame, open_path
from reticent.engine.sql.sampling import BITS, Lot
from reticent.prepare.repair import NO_REPAIR, Donors, Match, Repair, Scheme
from reticent.schema import Levels
from reticent.schema.codebook import schema_from
from tests.engine.carriers import engine_on, written

pytestmark = pytest.mark.usefixtures("every_engine")

BOOK = schema_from(
    {
        "survey": {"name": "s", "unit": "pid", "at_most": 3},
        "columns": {
            "pid": {"kind": "identifier"},
            "grade": {"kind": "categorical", "levels": ["01", "02", "03"]},
            "vote": {"kind": "categorical", "levels": ["false", "true"]},
            "day": {"kind": "categorical", "levels": ["2026-01-01", "2026-01-02"]},
            "age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9"]},
            "pay": {"kind": "decimal", "bounds": ["0", "100"], "grid": "0.01"},
        },
    }
)
COUNT = 12
PEOPLE_HELD: dict[str, list[Any]] = {
    "pid": [17 + i // 2 for i in range(COUNT)],
    "grade": [1 + i % 3 for i in range(COUNT)],
    "vote": [i % 2 == 0 for i in range(COUNT)],
    "day": [datetime(2026, 1, 1 + i % 2) for i in range(COUNT)],
    "age": [-9, *(7 * i for i in range(1, COUNT))],
    "pay": [0.005 + i / 8 for i in range(COUNT)],  # half a step of the grid
}
NEWCOMER = {"pid": 99, "grade": 1, "vote": True, "day": datetime(2026, 1, 1), "age": 30, "pay": 12.5}
ODD = {
    "mark": "?",
    "nothing": None,
    "NaN": float("nan"),
    "truth": True,
    "date": date(2026, 1, 1),
    "complex": 1 + 2j,
    "list": [1],
    "huge": 10**400,
    "far": 2**63,
    "half": 0.5,
    "accent": "é",
    "bytes": b"\xff\xfe",
    "surrogate": "\ud800",
}
CASES = [(name, odd) for name in BOOK.columns for odd in ODD]
COLUMNS = BOOK.in_universe_order
DONORS = Donors(column="age", near=(Match(column="grade"),), k=1, scheme=Scheme.NEAREST, defaults=(30,))
REPAIR = Repair(donors=(DONORS,), key="cd" * 32)
Seen = dict[str, Counter[Any]]


def columns_with(name: str, odd: object) -> dict[str, list[Any]]:
    """Everybody, and the newcomer behind them with one odd cell."""
    return {column: [*held, (NEWCOMER | {name: odd})[column]] for column, held in PEOPLE_HELD.items()}


def seen(source: Source) -> Seen:
    """All that a release could rest on: records with their owners, the pieces, the places on the ring."""
    with engine_on(source) as engine:
        engine.check(BOOK)
        found: Seen = {}
        for piece in range(3):
            ends = {"first": (piece << BITS) // 3, "last": ((piece + 1) << BITS) // 3}
            lot = Lot(key="ab" * 32, chance=True, **ends)
            clean, rows = engine._clean(engine._source, BOOK, COLUMNS, NO_REPAIR, lot=lot)
            found[f"piece {piece}"] = Counter(engine.fetch(rows, clean.values))
        with engine._holding(BOOK, REPAIR):
            found["ring"] = Counter(
                engine._connection.execute(f"SELECT * EXCLUDE (id) FROM {PEOPLE}").fetchall()
            )
    return found


def moved(before: Seen, after: Seen) -> int:
    """How many records of others are not where they were."""
    return sum(sum((before[place] - after[place]).values()) for place in before)


def added(before: Seen, after: Seen) -> list[int]:
    return [sum((after[place] - before[place]).values()) for place in before]


PLAIN = seen(open_frame(pd.DataFrame(PEOPLE_HELD)))


# covers T31 T32 T13
@pytest.mark.parametrize(("name", "odd"), CASES)
def test_an_odd_cell_in_a_frame_moves_nobody_else(name: str, odd: str):
    after = seen(open_frame(pd.DataFrame(columns_with(name, ODD[odd]))))
    assert moved(PLAIN, after) == 0
    assert sum(added(PLAIN, after)) == 2  # the newcomer, in one piece and on the ring


def as_polars(columns: dict[str, list[Any]], folder: Path) -> Source:
    return open_frame(pl.DataFrame(columns, strict=False))


def as_csv(columns: dict[str, list[Any]], folder: Path) -> Source:
    path = folder / "rows.csv"
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*texts(columns).values(), strict=True)])
    return open_path(str(path))


def as_parquet(columns: dict[str, list[Any]], folder: Path) -> Source:
    pq.write_table(pa.table(texts(columns)), folder / "rows.parquet")
    return open_path(str(folder / "rows.parquet"))


def as_arrow(columns: dict[str, list[Any]], folder: Path) -> Source:
    table = pa.table(texts(columns))
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return open_path(str(folder / "rows.arrow"))


def as_duckdb(columns: dict[str, list[Any]], folder: Path) -> Source:
    (folder / "rows.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("given", pa.table(texts(columns)))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return open_path(str(folder / "rows.duckdb"), table="people")


def texts(columns: dict[str, list[Any]]) -> dict[str, list[str | None]]:
    return {name: [written(cell) for cell in cells] for name, cells in columns.items()}


FILES = [as_csv, as_parquet, as_arrow, as_duckdb]
SOME = ["mark", "nothing", "truth", "list", "half", "accent"]


# covers T31 T32
@pytest.mark.parametrize("hold", FILES, ids=lambda hold: hold.__name__)
def test_files_hold_what_the_frame_holds(hold: Callable[..., Source], tmp_path: Path):
    """The same people as text, and with newcomers: everybody is read, owned, dealt and placed as in the frame."""
    assert seen(hold(PEOPLE_HELD, tmp_path)) == PLAIN
    for odd in SOME:
        after = seen(hold(columns_with("pid" if odd == "nothing" else "grade", ODD[odd]), tmp_path))
        assert moved(PLAIN, after) == 0


# covers T32
def test_zeros_in_front_deal_nobody_another_lot(tmp_path: Path):
    """Measured before: "0007" in CSV and 7 in Parquet, and two pieces shared an eighth of the respondents."""
    padded = PEOPLE_HELD | {"pid": [f"{who:04d}" for who in PEOPLE_HELD["pid"]]}
    pq.write_table(pa.table(PEOPLE_HELD), tmp_path / "typed.parquet")
    assert seen(as_csv(padded, tmp_path)) == PLAIN == seen(open_path(str(tmp_path / "typed.parquet")))


# covers T31 T32
@pytest.mark.parametrize("name", BOOK.columns)
def test_an_odd_cell_in_a_polars_frame_moves_nobody_else(name: str, tmp_path: Path):
    """What Polars refuses to put into a column is no frame. Where it makes numbers of truth values that stand beside
    one, which takes `strict=False`, the frame holds those numbers: they are left out here."""
    assert seen(as_polars(PEOPLE_HELD, tmp_path)) == PLAIN
    for odd in SOME:
        source = None
        with suppress(pl.exceptions.PolarsError, TypeError, ValueError):
            source = as_polars(columns_with(name, ODD[odd]), tmp_path)
        if source is not None and (name, odd) != ("vote", "half"):
            assert moved(PLAIN, seen(source)) == 0, odd


@pytest.mark.parametrize("kind", ["category", "object", "Int64", "float64", "Float64", "float32", "str"])
@pytest.mark.parametrize("name", ["pid", "grade", "age"])
def test_a_column_of_another_type_holds_the_same_people(name: str, kind: str):
    # covers T32
    frame = pd.DataFrame(PEOPLE_HELD)
    assert seen(open_frame(frame.astype({name: kind}))) == PLAIN
    if kind in ("category", "object"):
        other = pd.DataFrame(columns_with(name, "?")).astype({name: kind})
        assert moved(PLAIN, seen(open_frame(other))) == 0


# --- the naive twin: by the type of the column, as it was once done here -------------------------------------------------


def naive(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """Levels by number in columns of numbers and by letters elsewhere; doubles here, exact decimals there."""
    read = {name: _by_type(name, frame[name]) for name in frame.columns}
    return list(zip(*read.values(), strict=True))


def _by_type(name: str, cells: Any) -> list[object]:
    column, is_number = BOOK.columns[name], cells.dtype.kind in "iuf"
    if name == "pid":
        return [str(cell) for cell in cells]
    if isinstance(column, Levels):
        levels = [float(level) for level in column.levels] if is_number else list(column.levels)
        told = list(cells) if is_number else [str(cell) for cell in cells]
        return [levels.index(cell) if cell in levels else None for cell in told]
    if is_number:
        return [None if np.isnan(cell) else floor(cell * 100 + 0.5) for cell in cells]
    return [
        floor(Fraction(str(c)) * 100 + Fraction(1, 2)) if isinstance(c, int | float) else None for c in cells
    ]


@pytest.mark.parametrize(("name", "odd"), [("grade", "?"), ("pay", "?"), ("pid", None)])
def test_reading_by_type_moves_everybody(name: str, odd: object):
    """Measured before: levels "01" among integers with one "?"; a half step; 17 and 17.0 on the ring."""
    base = {"pid": PEOPLE_HELD["pid"], "grade": PEOPLE_HELD["grade"], "pay": [1.005] * COUNT}
    whole = pd.DataFrame({column: [*cells, cells[0]] for column, cells in base.items()})
    other = pd.DataFrame({c: [*cells, odd if c == name else cells[0]] for c, cells in base.items()})
    before, after = naive(whole)[:COUNT], naive(other)[:COUNT]
    assert sum(one != two for one, two in zip(before, after, strict=True)) > 1
