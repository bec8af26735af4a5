"""Capped donors as a plan says them: levels, caps, defaults, what is expected, and what is refused with the way out."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from reticent.errors import PlanError
from reticent.plan.capped import caps_for, unserved
from reticent.plan.plan import Plan
from reticent.plan.repairs import read_repairs
from reticent.prepare.repair import Bounding, CappedDonors, Default, Match, Repair
from reticent.release.curator import Curator
from reticent.release.survey import Survey
from reticent.schema.codebook import schema_from
from tests.release.synthetic import open_ledger
from tests.tables import arrow, book, make_plan

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "job": {"kind": "categorical", "levels": ["yes", "no"]},
    "flag": {"kind": "categorical", "levels": ["own", "allocated"]},
    "pay": {"kind": "integer", "bounds": [0, 100]},
    "mood": {"kind": "ordinal", "levels": ["low", "mid", "missing"]},
}
SCHEMA = schema_from({"survey": {"name": "tiny", "unit": "row"}, "columns": COLUMNS})
DONORS: dict[str, Any] = {
    "method": "donors",
    "column": "pay",
    "match": ["job", {"column": "age", "by": 10}, "sex"],
}


def read(*imputed: dict[str, Any], **options: Any) -> Repair:
    return read_repairs(list(imputed), SCHEMA, **options).repair


def only(**changed: Any) -> CappedDonors:
    (group,) = read({**DONORS, **changed}).capped
    return group


def on(group: CappedDonors) -> list[list[str]]:
    return [[match.column for match in level.on] for level in group.levels]


def test_a_list_becomes_a_ladder_that_gives_up_the_last_attribute_first():
    group = only()
    assert on(group) == [["job", "age", "sex"], ["job", "age"], ["job"], []]
    assert [level.serve for level in group.levels] == [2, 1, 1, 1] and group.serve == 5
    assert group.levels[0].on[1] == Match(column="age", starts=tuple(range(0, 100, 10)))
    assert on(only(match=["job"])) == [["job"], []]
    wide = only(match=["job", "sex", "flag", {"column": "age", "by": 10}, "mood"])
    assert [len(each) for each in on(wide)] == [5, 4, 3, 0]
    assert read(DONORS).rings == 5 and read({**DONORS, "donors": 1}).rings == 1


def test_levels_are_read_as_written():
    group = only(match=[{"on": ["sex", {"column": "age", "groups": [0, 18]}], "serve": 4}, {"on": []}])
    assert on(group) == [["sex", "age"], []] and [level.serve for level in group.levels] == [4, 1]


@pytest.mark.parametrize(
    ("share", "levels", "caps"),
    [
        (None, 4, (2, 1, 1, 1)),
        ("0.15", 4, (2, 1, 1, 1)),
        ("0.25", 4, (3, 1, 1, 1)),
        ("0.15", 1, (3,)),
        ("0.25", 1, (4,)),
        ("0.99", 3, (99, 1, 1)),  # by the rule 458: no plan may say more than 100
    ],
)
def test_caps_follow_from_what_is_expected(share: str | None, levels: int, caps: tuple[int, ...]):
    """THEORY 11.4: in all 3 for 15 %, 4 for 25 %, 5 for a third, where there is one level."""
    assert caps_for(Fraction(share) if share else None, levels) == caps
    assert caps_for(Fraction(1, 3), 1) == (5,)


def test_expected_shares_are_read_and_printed():
    plan = make_plan([{"mean": "pay"}], book(COLUMNS), repair=[DONORS], expect={"missing": {"pay": "0.25"}})
    (group,) = plan.repair.capped
    assert group.expected == Fraction(1, 4) and [level.serve for level in group.levels] == [3, 1, 1, 1]
    assert unserved(group) == 0.25**6
    (words,) = plan.repair_words
    assert "at most 6 filled rows of others" in words and "25 % are missing, as expected" in words
    assert "5 donors, each for a fraction" in words and "0.024 %" in words
    why = (
        "levels give up the last attribute first",
        "caps are made for the first two levels to leave about one missing value in a hundred",
    )
    assert all(each in words for each in why)
    own = {**DONORS, "match": [{"on": ["sex"], "serve": 4}, {"on": ["job"], "serve": 1}]}
    (told,) = make_plan([{"mean": "pay"}], book(COLUMNS), repair=[own]).repair_words
    assert not any(each in told for each in why)


def test_defaults():
    assert only().defaults == (Default(code=50),) and only(default=7).defaults == (Default(code=7),)
    by = {"by": "sex", "values": {"f": 30, "m": 40}, "otherwise": 35}
    assert only(default=by).defaults == (Default(code=35, by="sex", codes=(30, 40)),)
    both = {"method": "donors", "columns": ["pay", "mood"], "match": ["job"], "together": True}
    (group,) = read({**both, "default": {"pay": 3, "mood": "mid"}}).capped
    assert group.columns == ("pay", "mood") and group.defaults == (Default(code=3), Default(code=1))
    apart = read({**both, "together": False}).capped
    assert [each.columns for each in apart] == [("pay",), ("mood",)]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "the k nearest": ({"k": 3}, "impute[0].k", "donors = 3"),
    "a scheme": ({"scheme": "mean"}, "impute[0].scheme", "bound = 'hubs'"),
    "a distance": ({"distance": "one-hot euclidean"}, "impute[0].distance", "bound = 'hubs'"),
    "smoothness": ({"smoothness": 6}, "impute[0].smoothness", "bound = 'hubs'"),
    "a weight": (
        {"match": [{"column": "sex", "weight": "2"}]},
        "impute[0].match[0].weight",
        "later in the list",
    ),
    "levels and names": ({"match": [{"on": ["sex"]}, "job"]}, "impute[0].match[1]", "level like the others"),
    "nobody served": (
        {"match": [{"on": [], "serve": 0}]},
        "impute[0].match[0].serve",
        "greater than or equal to 1",
    ),
    "caps off the data": ({"match": [{"on": [], "serve": "all"}]}, "impute[0].match[0].serve", "serve = 2"),
    "a cap as a rule": (
        {"match": [{"on": [], "serve": {"at": 0.9}}]},
        "impute[0].match[0].serve",
        "serve = 2",
    ),
    "one cap for all": ({"serve": 2}, "impute[0].serve", "[[impute.match]]"),
    "cells off the data": ({"match": [{"on": "auto"}]}, "impute[0].match[0].on", "on = [] for everybody"),
    "groups off the data": (
        {"match": [{"column": "age", "groups": "quantiles"}]},
        "impute[0].match[0].groups",
        "groups = [0, 18, 65]",
    ),
    "widths off the data": ({"match": [{"column": "age", "by": "auto"}]}, "impute[0].match[0].by", "width"),
    "donors off the data": ({"donors": "enough"}, "impute[0].donors", "donors = 5"),
    "levels off the data": ({"match": "auto"}, "impute[0].match", "list attributes"),
    "levels off a file": ({"match": {"file": "cells.csv"}}, "impute[0].match", "list attributes"),
    "matched on itself": ({"match": ["pay"]}, "impute[0].match", "chain"),
    "one together": ({"together": True}, "impute[0].together", "several columns"),
    "many rings": ({"donors": 21}, "impute[0].donors", "20"),
    "a default off the bounds": ({"default": 101}, "impute[0].default", "bounds"),
    "a default by a number": (
        {"default": {"by": "age", "values": {"1": 1}, "otherwise": 1}},
        "impute[0].default.by",
        "levels",
    ),
    "a default lacking a level": (
        {"default": {"by": "sex", "values": {"f": 1}, "otherwise": 1}},
        "impute[0].default.values",
        "f, m",
    ),
    "a default of another column": ({"default": {"mood": 1}}, "impute[0].default", "not filled here"),
    "an unknown bound": ({"bound": "caps"}, "impute[0].bound", "capped, hubs"),
    "levels with hubs": ({"bound": "hubs", "match": [{"on": ["sex"]}]}, "impute[0].match", "leave bound out"),
    "fractions with hubs": ({"bound": "hubs", "donors": 3}, "impute[0].donors", "leave bound out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_field_and_the_way_out(name: str):
    changed, field, words = REFUSED[name]
    with pytest.raises(PlanError) as problem:
        read({**DONORS, **changed})
    assert problem.value.field == field and words in str(problem.value)


def test_sections_that_do_not_go_together_are_refused():
    hubs = {**DONORS, "bound": "hubs", "column": "mood"}
    with pytest.raises(PlanError, match="say one for all columns"):
        read(DONORS, hubs)
    with pytest.raises(PlanError, match="say one number"):
        read({**DONORS, "donors": 2}, {**DONORS, "column": "mood", "donors": 3})
    with pytest.raises(PlanError, match="filled twice"):
        read(DONORS, DONORS)
    with pytest.raises(PlanError, match="chain"):
        read(DONORS, {**DONORS, "column": "mood", "match": ["pay"]})
    by = {"by": "mood", "values": {"low": 1, "mid": 1, "missing": 1}, "otherwise": 1}
    for default in (by, {"line": ["mood"], "epsilon": "1"}):
        with pytest.raises(
            PlanError, match="that of pay is made of mood, which donors fill or decide"
        ) as problem:
            read({**DONORS, "default": default}, hubs | {"bound": "capped"})
        assert problem.value.field == "impute.default"
    with pytest.raises(PlanError, match="share above 0"):
        make_plan([{"count": "*"}], book(COLUMNS), expect={"missing": {"pay": "1"}})
    with pytest.raises(PlanError, match="no column 'play'"):
        make_plan([{"count": "*"}], book(COLUMNS), expect={"missing": {"play": "0.1"}})
    assert read(hubs).donors[0].bounding is Bounding.HUBS


def test_an_edit_takes_an_answer_out_and_donors_answer_anew():
    """A survey's own allocation flags; a level that is called missing is a level."""
    edit = {"if": "flag = 'allocated'", "then": {"pay": "missing"}}
    made = read_repairs([DONORS], SCHEMA, edited=[edit])
    (first,) = made.repair.edits
    assert (first.column, first.code, first.replaces) == ("pay", None, True)
    assert made.words[0] == "where flag = 'allocated', pay was taken for missing, whatever was answered"
    (level,) = read_repairs([], SCHEMA, edited=[{"if": "age < 9", "then": {"mood": "missing"}}]).repair.edits
    assert level.code == 2 and not level.replaces


def rows_of(size: int) -> list[dict[str, Any]]:
    return [
        {
            "age": 20 + i % 50,
            "sex": "fm"[i % 2],
            "job": "yes",
            "flag": "own",
            "pay": None if i % 5 == 0 else i % 90,
        }
        for i in range(size)
    ]


def silent(**changed: Any) -> Plan:
    """A plan that says nothing of its donors' bound."""
    return make_plan([{"mean": "pay"}], book(COLUMNS), repair=[{**DONORS, **changed}], epsilon="1")


def test_a_release_of_before_repeats_from_the_ledger_and_is_not_computed_again(tmp_path, monkeypatch):
    """Made under hubs, asked for again by a plan that says nothing, and by one that says hubs: the same bytes."""
    survey = Survey(arrow(rows_of(60), SCHEMA), codebook=book(COLUMNS))
    hubs, today = silent(bound="hubs"), silent()
    charged = plan_like(hubs, digest=today.digest)  # as the library of before, for which both were one plan
    ledger = open_ledger(tmp_path)
    first = Curator(ledger).release(charged, survey, tmp_path / "out")
    monkeypatch.setattr("reticent.release.curator.run_plan", None)
    for plan in (today, hubs):
        again = Curator(ledger).release(plan, survey, tmp_path / "out")
        assert again.to_bytes() == first.to_bytes()
    assert "nearest donor" in str(first.document) and "fraction" not in str(first.document)


def plan_like(plan: Plan, *, digest: str) -> Plan:
    return replace(plan, digest=digest)


def test_what_a_plan_says_of_caps_is_in_its_digest():
    codebook = book(COLUMNS)
    made = {
        make_plan([{"mean": "pay"}], codebook, repair=[{**DONORS, **changed}]).digest
        for changed in (
            {},
            {"donors": 4},
            {"bound": "hubs"},
            {"match": [{"on": ["job"], "serve": 1}]},
            {"match": [{"on": ["job"], "serve": 2}]},
            {"match": [{"on": ["sex"], "serve": 2}]},
        )
    }
    assert len(made) == 6
    same = [{"on": ["job"], "serve": 2}], [{"on": [{"column": "job"}], "serve": 2}]
    assert (
        len(
            {
                make_plan([{"mean": "pay"}], codebook, repair=[{**DONORS, "match": each}]).digest
                for each in same
            }
        )
        == 1
    )
