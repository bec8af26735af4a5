"""Synthetic rows in scikit-learn's manner: arguments checked before rows, frames like those given, models that load again."""

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from reticent import Survey, Synthesizer
from reticent.errors import PlanError, ReticentError, SourceError
from tests.release.synthetic import BOOK, COLUMNS, rows
from tests.tables import book

GIVEN = {"method": "independent", "epsilon": "1", "codebook": BOOK}


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    return Synthesizer(**GIVEN, never=["age > 80"]).fit(rows())


def test_rows_come_in_the_kind_of_frame_that_was_given(fitted: Synthesizer):
    """As many as are asked for, as often as wanted, under one claim."""
    table = rows()
    kinds = {pd.DataFrame: table.to_pandas(), pl.DataFrame: pl.DataFrame(table), pa.Table: table}
    for kind, frame in kinds.items():
        made = Synthesizer(**GIVEN).fit(frame).sample(17)
        assert isinstance(made, kind) and len(made) == 17
        assert list(made.columns if kind is not pa.Table else made.column_names) == table.column_names[:-1]
    survey = Synthesizer(method="independent", epsilon="1").fit(Survey(table, codebook=BOOK))
    assert isinstance(survey.sample(3), pa.Table)
    before = fitted.claim_
    assert [fitted.sample(n).num_rows for n in (1, 900)] == [1, 900]
    assert fitted.claim_ == before and str(before).startswith("1-DP")


def test_rules_hold_whatever_is_drawn(fitted: Synthesizer):
    assert max(fitted.sample(500)["age"].to_pylist()) <= 80


def test_copies_are_of_the_same_rows():
    """Where an answer was drawn it is the same in every copy; only what was silent differs."""
    made = Synthesizer(**{**GIVEN, "epsilon": "20"}, missing="category", copies=3).fit(rows()).sample(300)
    assert len(made) == 3 and all(table["age"].null_count == 0 for table in made)
    ages = [table["age"].to_pylist() for table in made]
    same = sum(len(set(each)) == 1 for each in zip(*ages, strict=True))
    assert 0.8 * 300 < same < 300  # a tenth is silent: 270 with a deviation of 5, a false alarm below 1e-7


def test_a_heap_is_drawn_as_it_is(tmp_path: Path):
    """Seven in ten are 40. Declared, 1,000 rows have 700 of them, give or take six deviations of 15; else a seventh of that."""
    people = pa.table({"age": [40 if i % 10 < 7 else 30 for i in range(2_000)]})
    given = {**GIVEN, "epsilon": "20", "columns": ["age"], "codebook": book({"age": COLUMNS["age"]})}

    def forties(model: Synthesizer) -> int:
        return sum(value == 40 for value in model.sample(1_000)["age"].to_pylist())

    heaped = Synthesizer(**given, point_masses={"age": (40,)}).fit(people)
    assert 610 < forties(heaped) < 790 and heaped.get_params()["point_masses"] == {"age": (40,)}
    assert forties(Synthesizer(**given).fit(people)) < 300
    heaped.save(tmp_path / "model")
    assert 610 < forties(Synthesizer.load(tmp_path / "model", codebook=given["codebook"])) < 790
    with pytest.raises(PlanError, match=r"Synthesizer\.point_masses: sex has levels"):
        Synthesizer(**GIVEN, point_masses={"sex": ["f"]}).fit(object())


def test_a_model_is_saved_and_loads_again(fitted: Synthesizer, tmp_path: Path):
    """Same claim, same columns; rules are arguments; another codebook, or a file that was changed, is refused."""
    fitted.save(tmp_path / "model")
    again = Synthesizer.load(tmp_path / "model", codebook=BOOK, never=["age > 50"])
    assert again.claim_ == fitted.claim_ and again.epsilon == "1"
    assert max(again.sample(200)["age"].to_pylist()) <= 50
    assert not [path for path in (tmp_path / "model").iterdir() if path.suffix not in (".npy", ".toml")]
    other = book({**COLUMNS, "sex": {"kind": "categorical", "levels": ["f"]}})
    with pytest.raises(SourceError):
        Synthesizer.load(tmp_path / "model", codebook=other)
    array = next((tmp_path / "model").glob("*.npy"))
    array.write_bytes(array.read_bytes()[:-1])
    with pytest.raises(SourceError):
        Synthesizer.load(tmp_path / "model", codebook=BOOK)


def test_arguments_are_checked_before_a_row_is_read():
    """A frame that cannot be read would fail otherwise."""
    misread = ({"columns": "age"}, {"never": "age > 80"}, {"known": ["age"]}, {"determines": "age"})
    wrongs = ({"method": "ami"}, {"missing": "none"}, {"epsilon": "0"}, {"bins": 1}, {"columns": ["aeg"]})
    for wrong in (*wrongs, *misread):
        with pytest.raises(PlanError, match=f"Synthesizer.{next(iter(wrong))}"):
            Synthesizer(**{**GIVEN, **wrong}).fit(object())
    with pytest.raises(PlanError, match="codebook"):
        Synthesizer(method="independent", epsilon="1").fit(rows())
    with pytest.raises(SourceError):
        Synthesizer(**GIVEN).fit(pa.table({"age": [1]}))
    with pytest.raises(PlanError, match="call fit first"):
        Synthesizer(**GIVEN).sample(1)
    few = Synthesizer(**GIVEN).fit(rows(5))
    for n in (0, -1, 2.5, "10", None, True):
        with pytest.raises(ReticentError, match="n: is a whole number"):
            few.sample(n)


def test_what_a_plan_would_refuse_is_refused_without_a_ledger_too():
    """A draft of a codebook, and a public number of rows beside a promise that hides it. No row is read."""
    for name, value, said in (
        ("unfinished", True, "is marked unfinished"),
        ("sample_size", 50, "public sample size"),
    ):
        draft = {**BOOK, "survey": {**BOOK["survey"], name: value}}
        with pytest.raises(PlanError, match=said):
            Synthesizer(**{**GIVEN, "codebook": draft}).fit(object())


def test_a_loaded_model_comes_back_with_its_promise(tmp_path: Path):
    """So that whoever fits again spends what was spent, or says otherwise."""
    made = Synthesizer(**GIVEN, delta="0.000001", replaced=True).fit(rows(50))
    made.save(tmp_path / "model")
    again = Synthesizer.load(tmp_path / "model", codebook=BOOK)
    assert (again.epsilon, again.delta, again.replaced) == ("1", "0.000001", True)
    assert Synthesizer.load(tmp_path / "model", codebook=BOOK, epsilon="2").epsilon == "2"
    assert again.claim_ == made.claim_


def test_arguments_can_be_read_and_set_by_name():
    made = Synthesizer(**GIVEN)
    again = Synthesizer(**made.get_params())
    assert again.get_params() == made.get_params()
    assert made.set_params(epsilon="2", bins=4).get_params()["bins"] == 4
    with pytest.raises(PlanError, match="no argument 'size'"):
        made.set_params(size=3)


def test_replaced_answers_are_protected_where_that_is_asked():
    made = Synthesizer(**GIVEN, replaced=True).fit(rows(50))
    assert "replaced" in made.claim_.change.value
