"""The simulated state: it reproduces, it hangs together, and it looks like one."""

import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from reticent.errors import PlanError
from reticent.lab.world import state as lab
from reticent.lab.world.state import LEVELS
from reticent.schema.codebook import read_schema


def numpy(table, name):
    return table[name].to_numpy(zero_copy_only=False)


def test_a_seed_gives_the_same_people_and_another_does_not(state):
    assert lab.people(2000, seed=11).equals(state.slice(0, 2000))
    assert not lab.people(2000, seed=12).equals(state.slice(0, 2000))


def test_a_small_state_begins_a_large_one_across_blocks():
    large = lab.people(lab.BLOCK + 500, seed=3)
    assert large.num_rows == lab.BLOCK + 500
    assert large.slice(0, 700).equals(lab.people(700, seed=3))
    assert len(np.unique(numpy(large, "person_id"))) == large.num_rows


def test_the_file_holds_the_same_people(tmp_path):
    lab.write_people(tmp_path / "state.parquet", lab.BLOCK + 10, 5)
    written = pq.read_table(tmp_path / "state.parquet")
    assert written.equals(lab.people(lab.BLOCK + 10, seed=5))


def test_nobody_is_nobody_and_less_is_refused():
    assert lab.people(0, seed=1).num_rows == 0
    with pytest.raises(PlanError):
        lab.people(-1, seed=1)


def test_a_question_is_empty_exactly_where_it_is_not_asked(state):
    age = numpy(state, "age")
    least = {"schooling": 3, "marital": 15, "employment": 15, "hours": 15, "wage": 15}
    for name in state.column_names:
        asked = age >= least.get(name, 0)
        assert np.array_equal(state[name].is_valid().to_numpy(), asked), name


def test_every_cell_fits_the_codebook(state):
    for name, column in tomllib.loads(lab.codebook())["columns"].items():
        if "levels" in column:
            assert set(pc.unique(state[name].cast("string")).drop_null().to_pylist()) <= set(column["levels"])
            assert list(LEVELS[name]) == column["levels"]
        else:
            low, high = (float(bound) for bound in column["bounds"])
            ends = pc.min_max(state[name].cast("float64")).as_py()
            assert low <= ends["min"] and ends["max"] <= high, name


def test_the_codebook_is_one_the_library_reads():
    schema = read_schema(Path(str(files("reticent.lab") / "state.codebook.toml")))
    assert set(schema.columns) == set(lab.SCHEMA.names) - {"person_id", "household"}
    assert schema.weight("weight", field="weight").upper == 60


def test_households_hang_together(state):
    rows = state.to_pandas()
    homes = rows.groupby("household", sort=False)
    assert (rows["household"].diff().dropna() >= 0).all()
    assert (homes["relationship"].first() == "head").all()
    assert not rows["household"][rows["relationship"] == "head"].duplicated().any()
    assert not rows["household"][rows["relationship"] == "partner"].duplicated().any()
    for name in ("tract", "region", "stratum", "rent"):
        assert (homes[name].nunique() == 1).all(), name
    head = homes["age"].transform("first")
    children = rows["relationship"] == "child"
    assert (head[children] - rows["age"][children] >= 15).all()
    assert (head[rows["relationship"] == "partner"] >= 16).all()


def test_both_partners_are_married_or_neither(state):
    rows = state.to_pandas()
    head = rows.groupby("household")["marital"].transform("first").astype(str)
    partner = rows["relationship"] == "partner"
    assert ((head[partner] == "married") == (rows["marital"][partner] == "married")).all()


def test_a_tract_lies_in_one_region_and_stratum(state):
    rows = state.to_pandas()
    assert (rows.groupby("tract")[["region", "stratum"]].nunique() == 1).all().all()
    assert all(s.startswith(r) for s, r in zip(rows["stratum"], rows["region"], strict=True))


def test_hours_are_worked_by_the_employed_alone(state):
    adults = state.filter(pc.greater_equal(state["age"], 15))
    employed = numpy(adults, "employment") == "employed"
    assert np.array_equal(numpy(adults, "hours") > 0, employed)


def test_the_state_looks_like_one(state):
    """Wide bands round American figures; sampling error at this size is a tenth of them."""
    rows = state.to_pandas()
    adults = rows[rows["age"] >= 15]
    paid = adults[adults["employment"] == "employed"]
    assert 0.15 < (rows["age"] < 15).mean() < 0.22
    assert 0.45 < (rows["sex"] == "f").mean() < 0.55
    assert 2.2 < len(rows) / rows["household"].nunique() < 2.7
    assert 0.25 < (adults["wage"] == 0).mean() < 0.5
    assert 1.15 < paid["wage"].mean() / paid["wage"].median() < 1.6
    assert 30_000 < paid["wage"].median() < 60_000
    by_school = paid.groupby("schooling", observed=True)["wage"].median()
    assert by_school["graduate"] > by_school["bachelor"] > by_school["high-school"] > by_school["primary"]
    by_sex = paid.groupby("sex", observed=True)["wage"].median()
    assert 0.7 < by_sex["f"] / by_sex["m"] < 0.95


def test_known_totals_are_the_counts(state):
    totals, rows = lab.known_totals(state), state.to_pandas()
    assert totals.persons == sum(totals.by_age_sex.values()) == sum(totals.by_region.values()) == len(rows)
    assert totals.by_region == rows["region"].value_counts().to_dict()
    for (ages, sex), count in totals.by_age_sex.items():
        low, high = map(int, ages.split("-"))
        assert count == (rows["age"].between(low, high) & (rows["sex"] == sex)).sum()
