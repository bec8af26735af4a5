"""Synthetic answers whose sampling variance nobody tells: of imputed columns, and of respondents who own several rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import Curator, Release, Survey, Synthesizer
from reticent.plan.plan import Plan
from reticent.plan.repairs import ExternalImputation
from reticent.plan.synth import SyntheticTables
from reticent.preview.synth import foresee_synth
from tests.release.synthetic import open_ledger

BOOK: dict[str, Any] = {
    "survey": {"name": "tiny", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "hours": {"kind": "integer", "bounds": [0, 9]},
    },
}
MEAN, SHARE = {"mean": "hours"}, {"proportion": "sex = 'f'"}
TABLE = {
    "name": "people",
    "inference": True,
    "rows": 20,
    "epsilon": "8",
    "answer": [{"name": "mean", "query": MEAN}, {"name": "share", "query": SHARE}],
}
DONORS = {"method": "donors", "column": "hours", "default": "4", "match": [{"on": ["sex"], "serve": 1}]}


def people(rows: int = 400) -> pa.Table:
    """A third of the hours missing."""
    bits = np.random.default_rng(24)
    sex, hours = bits.integers(0, 2, rows), bits.integers(0, 10, rows)
    kept = [int(h) if tells else None for h, tells in zip(hours, bits.random(rows) < 0.66, strict=True)]
    return pa.table({"sex": ["fm"[each] for each in sex], "hours": pa.array(kept, pa.int64())})


def planned(name: str, **sections: Any):
    survey = Survey(people(), codebook=BOOK)
    sections = {"protect": {"accept_large": True}, "synth": [TABLE], **sections}
    return survey, survey.plan(name, epsilon="19", **sections)


def told(document: Any) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in document["synth"][0]["answers"]}


def test_an_answer_about_what_donors_fill_has_no_interval(tmp_path):
    """Filled cells look like answers to every table; the twin plan without donors has the interval."""
    ledger = open_ledger(tmp_path)
    survey, plan = planned("filled", impute=[DONORS])
    made = Curator(ledger).release(plan, survey, tmp_path)
    mean, share = (told(made.document)[name] for name in ("mean", "share"))
    assert (
        mean["total_low"] is mean["sampling_se"] is None and "answers to hours are filled" in mean["meaning"]
    )
    assert mean["estimate"] is not None and mean["noise_se"] > 0 and not mean["model_only"]
    assert share["total_low"] is not None
    again = Release.from_bytes((tmp_path / "filled.json").read_bytes())
    for question in (MEAN, {"difference": "hours", "between": ["sex = 'f'", "sex = 'm'"]}):
        (later,) = again.query(question, design_effect=2.0)
        assert later.low is None and "answers to hours are filled" in later.reason
    assert again.query(SHARE)[0].low == share["total_low"]
    _, plain = planned("plain")
    assert told(Curator(ledger).release(plain, survey, tmp_path).document)["mean"]["total_low"] is not None


def foreseen(plan: Plan) -> str:
    asked = plan.product(SyntheticTables)
    assert asked is not None
    return str(foresee_synth(asked, plan).told)


def test_the_preview_says_so_before_a_row_is_read():
    """Of what the plan fills, and of everything where rows came imputed."""
    (_, plain), (_, filled) = planned("plain"), planned("filled", impute=[DONORS])
    assert "before rows are counted" not in foreseen(plain)
    assert foreseen(filled).count("to hours are filled before") == 1
    came = foreseen(replace(plain, external=ExternalImputation(reach=4)))
    assert "to hours are filled" in came and "to sex are filled" in came


def test_respondents_who_own_several_rows_need_a_design_effect():
    """Five rows alike of each: as if they were drawn one by one the deviation would be the root of five too small."""
    owners = np.repeat(np.arange(300), 5)
    yes = (np.random.default_rng(2).random(300) < 0.4)[owners]
    rows = pa.table({"id": [str(each) for each in owners], "a": np.where(yes, "y", "n")})
    rows = rows.append_column("b", pa.array(np.where(np.arange(1500) % 2, "y", "n")))
    levels = {"kind": "categorical", "levels": ["n", "y"]}
    columns = {"id": {"kind": "identifier"}, "a": levels, "b": levels}
    for most, is_known in ((5, False), (1, True)):
        book = {"survey": {"name": "tiny", "unit": "id", "at_most": most}, "columns": columns}
        model = Synthesizer(epsilon="8", inference=True, codebook=book).fit(rows)
        (alone,) = model.answer({"proportion": "a = 'y'"})
        assert (alone.low is not None) == is_known
        assert is_known or "own several rows" in alone.reason
        assert model.answer({"proportion": "a = 'y'"}, design_effect=5.0)[0].low is not None


def test_a_question_who_answered_has_no_number_and_says_so_from_preview_to_release(tmp_path):
    """Rows of a model of complete respondents would say nobody or everybody; silence as a category has the share."""
    asked = {"answer": [{"name": "silent", "query": {"proportion": "hours is missing"}}]}
    survey, plan = planned("who", synth=[{**TABLE, **asked}])
    assert "without a number: it asks who answered" in foreseen(plan)
    silent = told(Curator(open_ledger(tmp_path)).release(plan, survey, tmp_path).document)["silent"]
    assert silent["estimate"] is None and silent["meaning"].startswith("no number: it asks who answered")
    _, category = planned("category", synth=[{**TABLE, **asked, "missing": "category"}])
    assert "without" not in foreseen(category)
