"""CSV files as offices write them: semicolons, decimal commas, thousands marks, code pages."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers
from pydantic import ValidationError

from reticent.engine.confidential import read
from reticent.engine.open import open_engine
from reticent.engine.sources.dialect import plain_numbers, transcoded
from reticent.engine.sources.open import open_source
from reticent.engine.sql import build as sql
from reticent.errors import SchemaError, SourceError
from reticent.plan.sections import SurveySection
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.schema.schema import CsvDialect

COLUMNS = {
    "pay": {"kind": "decimal", "bounds": [-10000, 10000], "grid": "0.01"},
    "town": {"kind": "categorical", "levels": ["Köln", "Zürich", "1,5"]},
}


def book(**csv: str) -> Schema:
    survey: dict[str, Any] = {"name": "x", "unit": "row", **({"csv": csv} if csv else {})}
    return schema_from({"survey": survey, "columns": COLUMNS})


def codes(path: Path, schema: Schema) -> list[tuple[int | None, ...]]:
    engine = open_engine(open_source(str(path), schema=schema))
    try:
        engine.check(schema)
        return read(
            engine,
            schema,
            ["pay", "town"],
            lambda _, rows: sql.select([sql.column("c_pay"), sql.column("c_town")], rows),
        )
    finally:
        engine.close()


def test_a_german_file_is_read_as_it_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes('pay;town\n"1.234,5";Köln\n-3,25;Zürich\n12;1,5\n3.5;Köln\n1.23,4;\n'.encode("cp1252"))
    schema = book(separator=";", decimal=",", thousands=".", encoding="cp1252")
    found = codes(path, schema)
    assert found == [(123450, 0), (-325, 1), (1200, 2), (None, 0), (None, None)]


def test_a_file_with_commas_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('pay,town\n1234.5,Köln\n-3.25,"1,5"\n', encoding="utf-8")
    assert codes(path, book()) == [(123450, 0), (-325, 2)]


@pytest.mark.parametrize(("mark", "told"), [(";", "';'"), ("\t", "'\\t'"), ("|", "'|'")])
def test_the_error_says_which_separator_the_header_has(tmp_path: Path, mark: str, told: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"pay{mark}town\n1{mark}Köln\n", encoding="utf-8")
    with pytest.raises(SourceError) as refused:
        codes(path, book())
    assert "[survey.csv]" in str(refused.value) and told in str(refused.value)


@pytest.mark.parametrize(
    "csv",
    [
        {"separator": "ab"},
        {"separator": '"'},
        {"decimal": ";"},
        {"thousands": ".", "decimal": "."},
        {"encoding": "utf-16"},
        {"encoding": "gbk"},
        {"encoding": "no such"},
    ],
)
def test_what_cannot_be_read_cell_by_cell_is_refused(csv: dict[str, str]) -> None:
    with pytest.raises(SchemaError, match=f"survey.csv.{next(iter(csv))}"):
        book(**csv)


GERMAN = CsvDialect(decimal=",", thousands=".")


@given(integers(-(10**8), 10**8))
def test_a_number_means_the_same_in_either_writing(cents: int) -> None:
    """Written with marks and without, read back to the same text."""
    written = f"{cents / 100:,.2f}".translate(str.maketrans(",.", ".,"))
    assert plain_numbers(pa.array([written]), GERMAN).to_pylist() == [f"{cents / 100:.2f}"]


@pytest.mark.parametrize("cell", ["3.5", ".5", "1.234,5", "1.2.3", "1e3.5", "."])
def test_a_cell_of_another_writing_is_no_number_and_keeps_its_text(cell: str) -> None:
    """So that `check` can show it."""
    (made,) = plain_numbers(pa.array([cell]), CsvDialect(decimal=",")).to_pylist()
    assert made.endswith(cell) and made != cell


@pytest.mark.parametrize("cell", ["0,500", "-0,500", "00,500", "0,500.5"])
def test_thousands_begin_with_no_zero(cell: str) -> None:
    """A half that is written 0,500 is not five hundred."""
    assert plain_numbers(pa.array([cell]), CsvDialect(thousands=",")).to_pylist() == [cell]
    assert plain_numbers(pa.array(["1,500"]), CsvDialect(thousands=",")).to_pylist() == ["1500"]


@given(binary(max_size=60))
def test_a_code_page_keeps_lines_and_separators(data: bytes) -> None:
    """Whatever the bytes: no byte reaches over a separator or the end of its line."""
    made = transcoded(data, "cp1252")
    assert made.count(b"\n") == data.count(b"\n") and made.count(b";") == data.count(b";")
    assert b"".join(transcoded(data[i : i + 1], "cp1252") for i in range(len(data))) == made


@pytest.mark.parametrize(
    "source",
    ["postgresql://u:secret@host/db", "postgres://host/db", "jdbc:postgresql://h/d", "host=h dbname=d"],
)
def test_an_address_gets_a_sentence_of_its_own_and_is_not_repeated(source: str) -> None:
    with pytest.raises(SourceError) as refused:
        open_source(source)
    assert "postgres:SERVICE" in str(refused.value) and "secret" not in str(refused.value)


@pytest.mark.parametrize("source", ["postgresql://u:secret@host/db", "host=h dbname=d"])
def test_a_plan_with_an_address_gets_the_same_sentence(source: str) -> None:
    """And not that it lies outside the plan's folder."""
    survey = {"source": source, "codebook": "c.toml", "ledger": "l.db"}
    with pytest.raises(ValidationError) as refused:
        SurveySection(**survey)
    (problem,) = refused.value.errors()
    assert "postgres:SERVICE" in problem["msg"] and "secret" not in problem["msg"]


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match=r"'nowhere\.csv' does not exist"):
        open_source("some/folder/nowhere.csv")
