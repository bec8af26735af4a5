"""What the engine counts for the curator and for the noise: the same as counted by hand from the rows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.confidential import look_tables, pattern_lines, patterns
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame, open_path
from reticent.lab.masks import make
from reticent.missing.describe import describe, each_column, pairs, patterns_of, tables_of
from reticent.missing.little import little, moments_from, moments_of, ordered_columns
from reticent.missing.private import public_columns
from reticent.schema.codebook import schema_from
from tests.missing.worlds import codes

NAMES = ["age", "sex", "pay", "rent"]
COLUMNS = {
    "age": {"kind": "integer", "bounds": [-20, 40]},
    "sex": {"kind": "categorical", "levels": ["f", "m", "x"]},
    "pay": {"kind": "decimal", "bounds": [-20, 40], "grid": "0.5"},
    "rent": {"kind": "integer", "bounds": [-20, 40]},
}
SCHEMA = schema_from({"survey": {"name": "t", "unit": "row"}, "columns": COLUMNS})


@pytest.fixture(scope="module")
def survey():
    """Codes, mask, and an engine on the same rows."""
    values = codes(700, 4, seed=1)
    values[:, 1] %= 3
    mask = make("mar", values, 0.3, np.random.default_rng(1)).mask
    texts = {
        "age": values[:, 0].astype(str),
        "sex": np.array(["f", "m", "x"])[values[:, 1]],
        "pay": (values[:, 2] / 2).astype(str),
        "rent": values[:, 3].astype(str),
    }
    table = pa.table({name: pa.array(texts[name], mask=mask[:, k]) for k, name in enumerate(NAMES)})
    engine = DuckDBEngine(open_frame(table))
    yield values, mask, engine
    engine.close()


def test_patterns_are_those_of_the_mask(survey):
    _, mask, engine = survey
    found = patterns(engine, SCHEMA, public_columns(SCHEMA))
    assert dict(found.counts) == dict(patterns_of(mask, NAMES).counts)
    assert np.allclose(describe(found).rates, mask.mean(axis=0))


def test_tables_are_those_of_the_rows(survey):
    values, mask, engine = survey
    looks = (*each_column(SCHEMA, groups=3), *pairs(SCHEMA, [("pay", "age"), ("age", "sex")]))
    for counted, expected in zip(
        look_tables(engine, SCHEMA, looks), tables_of(values, mask, NAMES, looks), strict=True
    ):
        assert np.array_equal(counted, expected) and counted.sum() > 0


def test_moments_give_the_test_that_rows_give(survey):
    """Codes are counted from the lower bound there and from 0 here, which the test does not mind."""
    values, mask, engine = survey
    names = ordered_columns(SCHEMA)
    assert names == ("age", "pay", "rent")
    told = little(moments_from(pattern_lines(engine, SCHEMA, names), 3))
    by_hand = little(moments_of(values[:, [0, 2, 3]], mask[:, [0, 2, 3]]))
    assert abs(told.statistic - by_hand.statistic) < 1e-6 and told.freedom == by_hand.freedom


def test_who_was_not_asked_is_not_silent_and_is_in_no_group():
    """Children are not asked for their pay: in the look at pay they are in no cell, elsewhere they count."""
    columns = {
        "age": {"kind": "integer", "bounds": [0, 99]},
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "pay": {"kind": "integer", "bounds": [0, 99], "universe": "age >= 15"},
    }
    schema = schema_from({"survey": {"name": "t", "unit": "row"}, "columns": columns})
    rows = {
        "age": ["7", "8", "40", "50", None],
        "sex": ["f", None, "m", None, "f"],
        "pay": ["3", None, "80", "10", "90"],
    }
    engine = DuckDBEngine(open_frame(pa.table(rows)))
    try:
        by_age, by_sex, by_pay = look_tables(engine, schema, each_column(schema, groups=2))
        assert by_age.tolist() == [[2, 0], [1, 1]]  # sex silent or not, by below 50 or not
        assert by_sex.tolist() == [[1, 1], [1, 0]]
        assert by_pay.tolist() == [
            [0, 1],
            [1, 1],
            [0, 0],
        ]  # none silent: 80; one: 10 without sex, 90 without age
        assert describe(patterns(engine, schema, public_columns(schema))).rates == (0.2, 0.4, 0.0)
    finally:
        engine.close()


def test_a_respondent_counts_at_most_as_often_as_allowed():
    """Five rows of one respondent, two of which are kept. # covers T08"""
    columns = {**COLUMNS, "id": {"kind": "identifier"}}
    schema = schema_from({"survey": {"name": "t", "unit": "id", "at_most": 2}, "columns": columns})
    rows = {"id": ["a"] * 5, "age": ["1"] * 5, "sex": [None] * 5, "pay": ["3"] * 5, "rent": [None] * 5}
    engine = DuckDBEngine(open_frame(pa.table({k: pa.array(v, pa.string()) for k, v in rows.items()})))
    try:
        assert patterns(engine, schema, NAMES).rows == 2
        assert all(table.sum() in (0, 2) for table in look_tables(engine, schema, each_column(schema)))
    finally:
        engine.close()


def test_a_cell_that_is_no_text_stops_nothing(tmp_path):
    """Bytes that are not UTF-8 make a cell missing; whether anything fails must not depend on a row. # covers R01"""
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"f", b"\xff\xfe"], pa.binary()).buffers())
    pq.write_table(
        pa.table({"sex": bad, "age": ["1", "2"], "pay": ["1", "1"], "rent": ["1", "1"]}),
        tmp_path / "t.parquet",
    )
    engine = DuckDBEngine(open_path(str(tmp_path / "t.parquet")))
    try:
        assert dict(patterns(engine, SCHEMA, NAMES).counts) == {frozenset(): 1, frozenset({"sex"}): 1}
    finally:
        engine.close()
