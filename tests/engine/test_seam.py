"""The seam of an engine: work on every row stands behind protocols, and rows are named by what they hold."""

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from reticent.engine.donors.filling import LocalMatcher
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.protocol import Tables
from reticent.engine.sources.open import open_frame
from reticent.engine.sql import build as sql
from reticent.engine.sql.points import folded, points
from reticent.engine.sql.predict import DRAWS, HELD, NUMBER
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Key, PointsByCell, Rows, Sum, Table
from reticent.prepare.repair import Donors, Match, RegressionLine, Repair
from reticent.schema import Schema
from tests.engine.test_coded import keys_of
from tests.engine.test_tally import book, native, some_people

UNORDERED = re.compile(r"row_number\(\)\s+over\s+\(\s*\)|\browid\b", re.IGNORECASE)
POINTS = PointsByCell(rows=Rows(), cell="region", y="age")
MARGIN = Table(rows=Rows(), keys=(Key(column="age", silent=True),))
TOTAL = Sum(rows=Rows(answered=("age",)), value="age", power=2)


class Recorded:
    """A connection that keeps the text of what it is asked."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.texts = connection, list[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.connection, name)
        if name not in ("execute", "sql"):
            return found

        def asked(text: str, *more: Any) -> Any:
            self.texts.append(text)
            return found(text, *more)

        return asked


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(open_frame(native(some_people(Random(4), 150))), threads=2)
    yield made
    made.close()


def drawn(schema: Schema, draw: Callable[[int], Any]) -> Repair:
    """Ages filled around 40, each by a draw of its own."""
    age = schema.coded["age"]
    line = RegressionLine(
        column="age", low=age.low, high=age.high, base=40 << 32, terms=(), spread=1 << 30, draw=draw
    )
    return Repair(lines=(line,))


def test_no_statement_numbers_rows_without_an_order(engine: DuckDBEngine):
    """Donors, draws, pieces, points and cells of respondents with several rows. The statement that once was is found."""
    engine._connection = recorded = Recorded(engine._connection)
    for unit, at_most in (("row", 1), ("pid", 2)):
        schema = book(unit, at_most)
        lot = Lot(key="ab" * 32, first=0, last=2**59, chance=True)
        draws = drawn(schema, lambda n: np.zeros(n, np.int32))
        donors = Repair(
            donors=(Donors(column="income", near=(Match(column="region"),), defaults=(0,)),),
            key="k",
        )
        for repair in (draws, donors):
            engine.tally(schema, [TOTAL, MARGIN, POINTS], repair, lot)
        with engine.coded(schema, keys_of(schema), draws, lot) as held:
            held.count([(0,)])
    assert sum("ROW_NUMBER" in text.upper() for text in recorded.texts) >= 8
    assert not [text for text in recorded.texts if UNORDERED.search(text)]
    assert UNORDERED.search("SELECT *, (ROW_NUMBER() OVER ()) - (1) AS n_ FROM (SELECT 1) AS t")
    assert UNORDERED.search('SELECT "rowid" AS "line_" FROM held.main.t')


class SqlDraws:
    """Draws that never leave the engine: here, a row's number modulo seven."""

    def draw(self, tables: Tables, draws: Mapping[int, Any]) -> None:
        made = ", ".join(f"CAST({NUMBER} % 7 AS INTEGER) AS z{place}" for place in draws)
        tables.make(DRAWS, f'SELECT {NUMBER}, {made} FROM "{HELD}"')


class SqlPoints:
    """Points that leave as counts of equal ones."""

    def tables(self, on: Any, cells: Any, rows: Any, wants: Any, values: Any) -> Any:
        found = {}
        for want in wants:
            place = sql.column("p0")
            each = sql.select([place, sql.alias(sql.call("count"), "n")], points(cells, rows.copy(), [want]))
            counted = on.fetch_columns(each.group_by(place.copy()), values)
            lines = np.stack([counted["p0"], counted["n"]])[:, np.argsort(counted["p0"])]
            found |= folded(cells.schema, [want], [lines])
        return found


def test_draws_and_points_may_be_made_by_the_engine(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch):
    """Other hands behind the same protocols: the same sums, margins and points."""
    schema = book()
    repair = drawn(schema, lambda n: np.arange(n, dtype=np.int32) % 7)
    wants = [TOTAL, MARGIN, POINTS]
    local = engine.tally(schema, wants, repair)
    monkeypatch.setattr(engine, "draws", SqlDraws(), raising=False)
    monkeypatch.setattr(engine, "points", SqlPoints(), raising=False)
    other = engine.tally(schema, wants, repair)
    assert other.statistics == local.statistics and other.tables == local.tables
    for name in ("starts", "x", "y"):
        assert (getattr(other.points[POINTS], name) == getattr(local.points[POINTS], name)).all()


def test_donors_are_matched_by_the_engines_matcher(engine: DuckDBEngine):
    """Every record passes its two doors, once each for a column; without the first there are no records to fill."""
    calls: list[str] = []

    class Watched(LocalMatcher):
        def place(self, *given: Any) -> None:
            calls.append("place")
            super().place(*given)

        def match(self, *given: Any) -> None:
            calls.append("match")
            super().match(*given)

    schema = book()
    made = [
        Donors(column=name, near=(Match(column="region"),), defaults=(0,)) for name in ("income", "rooms")
    ]
    repair = Repair(donors=tuple(made), key="k")
    local = engine.tally(schema, [TOTAL, MARGIN], repair)
    engine.matcher = Watched()
    assert engine.tally(schema, [TOTAL, MARGIN], repair) == local and calls == ["place", "match", "match"]
