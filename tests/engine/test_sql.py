"""Names pass one gate into SQL, and values never do: whatever a plan or a codebook calls them."""

import duckdb
import pytest
from hypothesis import given
from hypothesis.strategies import text

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Values

HOSTILE = [
    'x"; drop table people; --',
    'x" from secrets --',
    "x y",
    "",
    "1x",
    "a-b",
    "ä",
    "x\n",
    "x\0",
    "a.b",
    "x" * 66,
]


def naive(name: str) -> str:
    """Quotes around, and hope."""
    return f'"{name}"'


# covers R13 B102
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_plain_name_does_not_pass(name: str) -> None:
    for door in (sql.name, sql.column, lambda each: sql.alias(sql.number(1), each)):
        with pytest.raises(ValueError, match="a name for SQL"):
            door(name)


def test_naive_quotes_let_a_statement_through() -> None:
    statements = duckdb.extract_statements(f"select 1 as {naive(HOSTILE[0])}")
    assert len(statements) > 1


# covers R13
@given(text(max_size=80))
def test_a_name_that_passes_is_one_word_of_plain_letters(name: str) -> None:
    try:
        made = sql.name(name).sql("duckdb")
    except ValueError:
        return
    assert made == f'"{name}"' and name.isascii() and name.replace("_", "a").isalnum()


@given(text(max_size=80))
def test_a_value_is_never_part_of_the_statement(value: str) -> None:
    values = Values()
    assert values.put(value).sql("duckdb") == "$v0" and values.bound == {"v0": value}
