"""DonorImputer: the frame that a release would have asked, for the curator alone."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import reticent
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import ZeroNoise
from tests.tables import make_plan

CODEBOOK = {
    "survey": {"name": "small", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "age": {"kind": "integer", "bounds": [0, 9]},
        "rent": {"kind": "decimal", "bounds": ["0", "100"], "grid": "0.05"},
        "work": {"kind": "categorical", "levels": ["no", "yes"]},
    },
}
ROWS = {
    "sex": ["f", "f", "m", "m", "f"],
    "age": [1, 1, 8, 8, 1],
    "rent": [10.15, None, 70.05, None, None],
    "work": ["yes", None, "no", "yes", None],
}
SAID = {"column": "rent", "match": ["sex", "age"], "bound": "hubs"}


def test_gaps_take_the_nearest_donor_and_keep_a_mark():
    """One donor for women of 1, one for men of 8: every gap has its own group's rent, exactly."""
    made = reticent.DonorImputer(CODEBOOK, **SAID).fit_transform(pd.DataFrame(ROWS))
    assert made["rent"].tolist() == [10.15, 10.15, 70.05, 70.05, 10.15]
    assert made["rent_filled"].tolist() == [False, True, False, True, True]
    assert made["sex"].tolist() == ROWS["sex"] and made["age"].tolist() == ROWS["age"]


def test_the_frame_comes_back_as_it_came():
    """pandas with its index, Polars, Arrow: the same answers in each."""
    frame = pd.DataFrame(ROWS, index=list("vwxyz"))
    made = reticent.DonorImputer(CODEBOOK, **SAID).fit_transform(frame)
    assert made.index.tolist() == list("vwxyz")
    polar = reticent.DonorImputer(CODEBOOK, **SAID).fit_transform(pl.DataFrame(ROWS))
    arrow = reticent.DonorImputer(CODEBOOK, **SAID).fit_transform(pa.table(ROWS))
    assert isinstance(polar, pl.DataFrame) and isinstance(arrow, pa.Table)
    assert polar["rent"].to_list() == arrow["rent"].to_pylist() == made["rent"].tolist()


def test_edits_come_first_and_several_columns_are_filled_from_given_answers():
    edits = [{"if": "rent > 50", "then": {"work": "yes"}, "replace": True}]
    imputer = reticent.DonorImputer(
        CODEBOOK, columns=["rent", "work"], match=["sex", "age"], bound="hubs", edits=edits
    )
    made = imputer.fit_transform(pd.DataFrame(ROWS))
    # The first man's rent is above 50, so he works; the second man's rent is filled after the edits.
    assert made["work"].tolist() == ["yes", "yes", "yes", "yes", "yes"]
    assert made["work_filled"].tolist() == [False, True, False, False, True]


def test_the_order_of_rows_changes_nothing_but_the_order():
    """Row shuffles: the same multiset of filled rows (naive filling from the row above would fail)."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 200),
            "age": rng.integers(0, 10, 200),
            "rent": rng.integers(0, 100, 200),
        }
    ).assign(work="no")
    frame["rent"] = frame["rent"].astype(float).mask(rng.random(200) < 0.3)
    imputer = reticent.DonorImputer(CODEBOOK, **SAID)
    order = rng.permutation(200)
    here, there = imputer.fit_transform(frame), imputer.fit_transform(frame.iloc[order])
    columns = list(here.columns)
    assert here.sort_values(columns).to_numpy().tolist() == there.sort_values(columns).to_numpy().tolist()
    naive = [f.ffill().bfill()["rent"].sort_values().tolist() for f in (frame, frame.iloc[order])]
    assert naive[0] != naive[1]


def test_arguments_can_be_read_and_changed_by_name():
    imputer = reticent.DonorImputer(CODEBOOK, **SAID)
    assert reticent.DonorImputer(**imputer.get_params()).get_params() == imputer.get_params()
    assert imputer.set_params(k=3, scheme="mean").k == 3
    with pytest.raises(PlanError):
        imputer.set_params(seed=1)


def test_refusals_are_those_of_a_plan():
    with pytest.raises(PlanError, match=r"names work, which is filled.*match on columns that no donor fills"):
        reticent.DonorImputer(CODEBOOK, columns=["rent", "work"], match=["work"]).fit(pd.DataFrame(ROWS))


def test_the_docstring_says_that_it_is_no_release():
    assert "not a release" in (reticent.DonorImputer.__doc__ or "")


def test_capped_donors_fill_as_a_release_of_the_same_words_does():
    """Once a release labelled records by the columns it was asked about, and the two disagreed."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 400),
            "age": rng.integers(0, 10, 400),
            "rent": np.where(rng.random(400) < 0.2, np.nan, rng.integers(0, 100, 400)),
            "work": rng.choice(["no", "yes"], 400),
        }
    )
    said = {"column": "rent", "match": ["sex", "age"], "default": "50"}
    filled = reticent.DonorImputer(CODEBOOK, **said).fit_transform(frame)
    plan = make_plan(
        [{"total": "rent"}, {"count": "*", "where": "rent < 50"}, {"count": "*", "where": "work = 'yes'"}],
        CODEBOOK,
        repair=[{"method": "donors", **said, "donors": 1}],
    )
    engine = DuckDBEngine(open_frame(frame), threads=2)
    answers = evaluate(plan, engine.tally(plan.schema, wants_of(plan), plan.repair), ZeroNoise())
    engine.close()
    assert float(answers["ask 0"].estimates[0].value) == pytest.approx(filled["rent"].sum())
    assert answers["ask 1"].estimates[0].value == (filled["rent"] < 50).sum()
    assert filled["rent"].notna().all() and filled["rent_filled"].sum() == frame["rent"].isna().sum()
