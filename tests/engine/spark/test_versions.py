"""Tables that keep versions: a release is of one of them, the newest or the one that its plan pins, whoever writes meanwhile."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from reticent.engine.open import open_engine
from reticent.engine.sources.open import RemoteTable
from reticent.engine.spark.connection import SparkConnection
from reticent.engine.wants import Rows, Sum
from reticent.errors import SourceError
from reticent.schema.codebook import schema_from
from tests.badinput.house import House, run
from tests.engine.faulty import BOOK, PEOPLE
from tests.engine.spark import lake

SCHEMA, COUNT = schema_from(BOOK), Sum(rows=Rows())
_numbers = count()


@pytest.fixture
def table(session: Any) -> Iterator[str]:
    """A table of two versions: 300 respondents, then 500."""
    lake.compiled(session)
    name = f"people{next(_numbers)}"
    lake.write(name, 1, PEOPLE.slice(0, 300))
    lake.write(name, 2, PEOPLE)
    yield name


def counted(session: Any, relation: str) -> int:
    engine = open_engine(RemoteTable(engine="spark", relation=relation, given=session))
    found: int = engine.tally(SCHEMA, [COUNT]).statistics[COUNT]
    engine.close()
    return found


def test_a_table_is_read_at_the_version_that_is_pinned_else_at_its_newest(session: Any, table: str):
    assert counted(session, f"lake.census.{table}@1") == 300
    assert counted(session, f"lake.census.{table}@2") == counted(session, f"lake.census.{table}") == 500
    lake.write(table, 3, PEOPLE.slice(0, 100))
    assert counted(session, f"lake.census.{table}@1") == 300
    assert counted(session, f"lake.census.{table}") == 100


def test_a_version_that_is_not_there_is_refused_before_a_row_is_read(session: Any, table: str):
    with pytest.raises(SourceError, match="cannot be read as a table") as problem:
        open_engine(RemoteTable(engine="spark", relation=f"lake.census.{table}@3", given=session))
    assert problem.value.__cause__ is None and table not in str(problem.value)


@pytest.mark.parametrize(("pin", "seen"), [("@2", 500), ("", 100)])
def test_all_numbers_are_of_one_version_whoever_writes(
    session: Any, table: str, pin: str, seen: int, monkeypatch: pytest.MonkeyPatch
):
    """Versions are written between the header and the rows, and between two statements. With a pin none is seen, without one
    that which was the newest when rows were read; no writer stops a release, as a changed file would. A statement on the table
    for every number, the naive twin, sees two states of it."""
    plain, naive = SparkConnection.make, []

    def written(self: Any, name: str, *given: Any) -> None:
        if name == "staged_":
            lake.write(table, 3, PEOPLE.slice(0, 100))
        plain(self, name, *given)

    monkeypatch.setattr(SparkConnection, "make", written)
    engine = open_engine(RemoteTable(engine="spark", relation=f"lake.census.{table}{pin}", given=session))
    found = []
    for version in (4, 5):
        found.append(engine.tally(SCHEMA, [COUNT]).statistics[COUNT])
        lake.write(table, version, PEOPLE.slice(0, version))
        naive.append(session.table(f"lake.census.{table}").count())
    assert found == [seen, seen] and naive == [4, 5]
    engine.close()


def test_a_plan_pins_a_version_and_its_release_says_what_the_file_says(
    session: Any, table: str, tmp_path: Path
):
    """From the plan to its files, and `check` beside it; a newer version of the table, half as large, changes neither."""
    house = House(tmp_path)
    texts = dict.fromkeys(("age", "rent", "sex", "weight"), pa.string())
    options = pa_csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=[""])
    rows = pa_csv.read_csv(house.rows, convert_options=options)
    lake.write(table, 3, rows)
    lake.write(table, 4, rows.slice(0, len(rows) // 2))

    def findings() -> list[str]:
        said = run("check", str(house.plan)).out
        return [line for line in said.splitlines() if not re.search(r"rows\.csv|relation|lake\.", line)]

    of_file = findings()
    house.edit('source = "rows.csv"', f'source = "spark"\nrelation = "lake.census.{table}@3"')
    assert findings() == of_file
    house.edit(f"{table}@3", f"{table}@4")
    assert findings() != of_file
    house.edit(f"{table}@4", f"{table}@3")
    assert house.release().status == 0 and (house.out / "town-1.json").exists()
