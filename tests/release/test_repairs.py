"""Repairs are read as they are written, or refused in a sentence before a row is read."""

from fractions import Fraction

import pytest

from reticent.errors import PlanError
from reticent.plan.repairs import read_repairs, ring_key
from reticent.prepare.repair import NO_REPAIR, Bounding, Donors, Match, Metric, Repair, Scheme
from reticent.schema.bind import truth
from reticent.schema.codebook import schema_from
from tests.answer.weighing import weighted_plan
from tests.tables import book, make_plan, steps

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "region": {"kind": "categorical", "levels": ["north", "south"], "role": "stratum"},
    "schooling": {"kind": "ordinal", "levels": ["low", "middle", "high"]},
    "employed": {"kind": "categorical", "levels": ["yes", "no"]},
    "job": {"kind": "integer", "bounds": [0, 1000], "universe": "employed = 'yes'"},
    "income": {"kind": "decimal", "bounds": [-50, 150], "grid": "0.5"},
    "debt": {"kind": "integer", "bounds": [1, 100000]},
    "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.25", "role": "weight"},
    "who": {"kind": "identifier"},
}
SCHEMA = schema_from({"survey": {"name": "tiny", "unit": "who"}, "columns": COLUMNS})
EDIT = {"if": "job > 0", "then": {"employed": "yes"}}
DONORS = {"method": "donors", "column": "income", "match": ["age", "sex"], "bound": "hubs"}


def read(*repairs, **options) -> Repair:
    made = steps(repairs)
    return read_repairs(made.get("impute", []), SCHEMA, edited=made.get("edit", []), **options).repair


def only(**changed) -> Donors:
    (donors,) = read({**DONORS, **changed}).donors
    return donors


def test_no_repair_is_no_repair():
    assert read() == NO_REPAIR and make_plan([{"count": "*"}]).repair == NO_REPAIR


def test_an_edit_is_read():
    """Levels by name, numbers on their grid, one edit for each column, in order."""
    rule = {"if": "job > 0", "then": {"employed": "yes", "income": "12.5"}, "replace": True}
    first, second = read(rule).edits
    assert (first.column, first.code, first.replaces) == ("employed", 0, True)
    assert (second.column, second.code, second.replaces) == ("income", 25, True)
    assert truth(first.when, {"job": 1}) is True and truth(first.when, {"job": 0}) is False


def test_the_plainest_donors_are_read():
    """The nearest donor, hubs, and the middle of the bounds on the grid, or the first level, stand last."""
    near = (Match(column="age"), Match(column="sex"))
    assert only() == Donors(column="income", near=near, defaults=(100,))
    assert only(column="employed").defaults == (0,)
    assert only(column="debt").defaults == (50000,)  # 50000.5 rounded down to the grid


def test_donors_are_read_in_full():
    near = [
        {"column": "age", "groups": [0, 18, 65], "weight": "2.5"},
        {"column": "debt", "by": "25000"},
        "sex",
    ]
    unweighted = [{"column": "age", "by": 10}, "sex"]
    made = only(
        match=near,
        k=3,
        default=["1", "2.5", -50],
        bound="newcomer",
        scheme="mean",
    )
    assert made.near == (
        Match(column="age", starts=(0, 18, 65), weight=Fraction(5, 2)),
        Match(column="debt", starts=(1, 25001, 50001, 75001)),
        Match(column="sex"),
    )
    assert (made.k, made.scheme, made.defaults) == (3, Scheme.MEAN, (2, 5, -100))
    assert (made.metric, made.bounding) == (Metric.DECLARED, Bounding.NEWCOMER)
    assert only(match=unweighted, distance="one-hot euclidean").metric is Metric.ONE_HOT


def test_several_donors_are_averaged_or_vote():
    """One default may be said for all of them."""
    assert (only(k=2).scheme, only(k=2, default=3).defaults) == (Scheme.MEAN, (6, 6))
    levels = only(column="employed", k=3, default="no")
    assert (levels.scheme, levels.defaults) == (Scheme.MAJORITY, (1, 1, 1))


def test_several_columns_share_their_matching_attributes():
    made = read({**DONORS, "column": None, "columns": ["income", "employed"]} | {"smoothness": 6})
    assert [each.column for each in made.donors] == ["income", "employed"] and made.smoothness == 6
    assert made.filled() == {"income", "employed"} and made.donors[0].near == made.donors[1].near


def test_edits_come_first_and_smoothness_is_eight_unless_said():
    made = read(EDIT, DONORS)
    assert len(made.edits) == 1 and len(made.donors) == 1 and made.smoothness == 8


def test_the_key_is_a_function_of_the_name_and_differs_between_surveys():
    """So every release of one survey fills the same gaps from the same donors, and no row is looked at."""
    assert read(DONORS).key == read(EDIT, DONORS).key == ring_key("tiny") != ring_key("tiny ")


CHAIN = "changes would chain"
REFUSED = {
    "no method": ({"match": ["age"]}, "method", "is one of donors, regression"),
    "misspelt method": ({**DONORS, "method": "donor"}, "method", "did you mean 'donors'"),
    "hot deck": ({**DONORS, "method": "hot deck"}, "method", "depends on the recipients before it"),
    "rotation": ({**DONORS, "method": "rotation"}, "method", "Figure 2"),
    "misspelt key": ({**DONORS, "mach": ["age"]}, "mach", "did you mean 'match'"),
    "no matching attribute": ({**DONORS, "match": []}, "match", "at least 1"),
    "match not said": ({"method": "donors", "column": "income"}, "match", "is not given"),
    "no column": ({"method": "donors", "match": ["age"]}, "column", "one column or several"),
    "column twice over": ({**DONORS, "columns": ["debt"]}, "column", "one column or several"),
    "columns empty": ({"method": "donors", "columns": [], "match": ["age"]}, "columns", "at least 1"),
    "same column twice": (
        {"method": "donors", "columns": ["debt", "debt"], "match": ["age"]},
        "column",
        "twice",
    ),
    "unknown column": ({**DONORS, "column": "incom"}, "column", "did you mean 'income'"),
    "unknown attribute": ({**DONORS, "match": ["agee"]}, "match[0]", "did you mean 'age'"),
    "imputed weight": ({**DONORS, "column": "w"}, "column", "cannot be imputed"),
    "imputed identifier": ({**DONORS, "column": "who"}, "column", "cannot be imputed"),
    "matched weight": ({**DONORS, "match": ["age", "w"]}, "match[1]", "cannot be matched on"),
    "matched identifier": ({**DONORS, "match": ["who"]}, "match[0]", "cannot be matched on"),
    "matched on itself": ({**DONORS, "match": ["income"]}, "match", CHAIN),
    "attribute twice": ({**DONORS, "match": ["age", {"column": "age", "by": 10}]}, "match", "twice"),
    "attribute misspelt": (
        {**DONORS, "match": [{"column": "age", "group": [0]}]},
        "match[0].group",
        "groups",
    ),
    "groups of levels": ({**DONORS, "match": [{"column": "sex", "by": "1"}]}, "match[0]", "not grouped"),
    "groups and by": (
        {**DONORS, "match": [{"column": "age", "by": 5, "groups": [0]}]},
        "match[0]",
        "keep one",
    ),
    "groups start late": (
        {**DONORS, "match": [{"column": "age", "groups": [1, 5]}]},
        "match[0].groups",
        "from 0",
    ),
    "groups fall": (
        {**DONORS, "match": [{"column": "age", "groups": [0, 5, 5]}]},
        "match[0].groups",
        "increasing",
    ),
    "groups outside": ({**DONORS, "match": [{"column": "age", "groups": [0, 100]}]}, "groups[1]", "bounds"),
    "groups off grid": ({**DONORS, "match": [{"column": "age", "groups": [0, "5.5"]}]}, "groups[1]", "grid"),
    "no width": ({**DONORS, "match": [{"column": "age", "by": 0}]}, "match[0].by", "multiple"),
    "odd width": ({**DONORS, "match": [{"column": "age", "by": "2.5"}]}, "match[0].by", "multiple"),
    "too many groups": ({**DONORS, "match": [{"column": "debt", "by": 2}]}, "match[0].by", "wider"),
    "too many values": ({**DONORS, "match": ["debt"]}, "match[0]", "group it"),
    "domain too large": (
        {**DONORS, "match": ["age", "sex", {"column": "debt", "by": 100}]},
        "match",
        "at most 262144 are compared",
    ),
    "weights of the published distance": (
        {**DONORS, "match": [{"column": "age", "weight": 2}], "distance": "one-hot euclidean"},
        "match",
        "no weights",
    ),
    "no weight": ({**DONORS, "match": [{"column": "age", "weight": 0}]}, "match[0].weight", "above 0"),
    "negative weight": ({**DONORS, "match": [{"column": "age", "weight": "-1"}]}, "weight", "above 0"),
    "no donor": ({**DONORS, "k": 0}, "k", "greater than or equal to 1"),
    "half a donor": ({**DONORS, "k": "1"}, "k", "integer"),
    "too many donors": ({**DONORS, "k": 101}, "k", "less than or equal to 100"),
    "mean of levels": ({**DONORS, "column": "employed", "k": 3, "scheme": "mean"}, "scheme", "no mean"),
    "mean of an order": ({**DONORS, "column": "schooling", "scheme": "mean"}, "scheme", "no mean"),
    "several nearest": ({**DONORS, "k": 2, "scheme": "nearest"}, "scheme", "is one, but k is 2"),
    "unknown scheme": ({**DONORS, "scheme": "median"}, "scheme", "is one of nearest, mean, majority"),
    "default outside": ({**DONORS, "default": "151"}, "default", "outside the bounds of income, -50 to 150"),
    "default off grid": ({**DONORS, "default": "0.25"}, "default", "off the grid"),
    "default a word": ({**DONORS, "default": "much"}, "default", "plain decimal"),
    "default no level": (
        {**DONORS, "column": "employed", "default": "yess"},
        "default",
        "did you mean 'yes'",
    ),
    "default true": ({**DONORS, "column": "employed", "default": True}, "default", "not a level"),
    "defaults too few": ({**DONORS, "k": 3, "default": [1, 2]}, "default", "or 3 of them"),
    "unknown distance": (
        {**DONORS, "distance": "euclidean"},
        "distance",
        "is one of declared, one-hot euclidean",
    ),
    "unknown bound": ({**DONORS, "bound": "hub"}, "bound", "did you mean 'hubs'"),
    "too rough": ({**DONORS, "smoothness": 2}, "smoothness", "greater than or equal to 3"),
    "too smooth": ({**DONORS, "smoothness": 65}, "smoothness", "less than or equal to 64"),
    "edit without if": ({"then": {"employed": "yes"}}, "if", "is not given"),
    "edit without then": ({**EDIT, "then": {}}, "then", "at least 1"),
    "edit of an unknown level": ({**EDIT, "then": {"employed": "yep"}}, "then.employed", "not a level"),
    "edit of an unknown column": ({**EDIT, "then": {"employd": "yes"}}, "then.employd", "did you mean"),
    "edit off the grid": ({**EDIT, "then": {"age": "1.5"}}, "then.age", "grid"),
    "edit of the weight": ({**EDIT, "then": {"w": 1}}, "then.w", "cannot be edited"),
    "edit of an identifier": ({**EDIT, "then": {"who": "x"}}, "then.who", "cannot be edited"),
    "edit by an unknown column": ({**EDIT, "if": "jobb > 0"}, "if", "did you mean"),
    "edit that is no condition": ({**EDIT, "if": "job >"}, "if", ""),
    "edit by who was not asked": ({**EDIT, "if": "job is structural"}, "if", "decided after the edits"),
    "edit by silence of a filter question": (
        {**EDIT, "if": "sex = 'f' or not job is missing"},
        "if",
        "after the edits",
    ),
    "edit by structural of all": ({**EDIT, "if": "age is structural"}, "if", "decided after the edits"),
    "edit of its own condition": (
        {**EDIT, "then": {"job": 1, "employed": "yes"}},
        "then",
        "one edit for each",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_repair_that_does_not_fit_is_refused_in_one_sentence(name):  # covers B090 B091 B096
    """The field is named, and the way out; the same repair mended is accepted."""
    raw, field, words = REFUSED[name]
    with pytest.raises(PlanError) as problem:
        read(raw)
    assert problem.value.field.startswith(("impute", "edit")) and problem.value.field.endswith(field)
    assert words in str(problem.value) and "\n" not in str(problem.value)
    assert read(EDIT, DONORS).donors


def test_an_edit_may_ask_whether_an_answer_is_there_where_everybody_is_asked():
    assert read({**EDIT, "if": "income is missing and age < 15", "then": {"income": 0}}).edits
    assert read({**EDIT, "if": "age > 90", "then": {"age": 90}, "replace": True}).edits


TOGETHER = {
    "matched on what another fills": (
        [{**DONORS, "match": ["employed"]}, {**DONORS, "column": "employed"}],
        "impute.match",
        CHAIN,
    ),
    "matched on what an earlier one fills": (
        [{**DONORS, "column": "employed"}, {**DONORS, "match": ["employed"]}],
        "impute.match",
        CHAIN,
    ),
    "filled twice": ([DONORS, {**DONORS, "match": ["sex"]}], "impute[1].column", "filled twice"),
    "two kinds of smoothness": (
        [{**DONORS, "smoothness": 8}, {**DONORS, "column": "debt", "smoothness": 9}],
        "impute.smoothness",
        "say one",
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_repairs_that_do_not_go_together_are_refused(name):  # covers T08 B091
    raw, field, words = TOGETHER[name]
    with pytest.raises(PlanError) as problem:
        read(*raw)
    assert problem.value.field == field and words in str(problem.value)


def test_a_plan_cannot_ask_for_endless_comparing():  # covers B099
    """One attribute of as many values as can be compared is read, and may serve many columns; a second is not."""
    columns = {f"y{i}": {"kind": "integer", "bounds": [0, 9]} for i in range(20)}
    wide = {name: {"kind": "integer", "bounds": [0, 2000]} for name in ("a", "b", "c", "d", "e")}
    schema = schema_from({"survey": {"name": "wide", "unit": "row"}, "columns": {**columns, **wide}})
    same = [{"method": "donors", "column": f"y{i}", "match": ["a"], "bound": "hubs"} for i in range(20)]
    assert len(read_repairs(same, schema).repair.donors) == 20
    other = [{**each, "match": [name]} for each, name in zip(same, wide, strict=False)]
    with pytest.raises(PlanError, match="too many values, taken together"):
        read_repairs(other, schema)


def test_donors_do_not_go_with_weights_that_depend_on_who_answered():  # covers T09
    with pytest.raises(PlanError, match="depends on who answered"):
        read(DONORS, weight=weighted_plan().weight)
    assert read(EDIT, weight=weighted_plan().weight).edits


def test_a_repair_is_part_of_the_digest_and_is_said_in_words():
    """Another default is another plan; what a preview and a report say names column, attributes and default."""
    plans = [
        make_plan([{"count": "*"}], book(COLUMNS_OF_ONE), repair=[{**DONORS, "default": default}])
        for default in (0, 1)
    ]
    assert plans[0].digest != plans[1].digest and plans[0].repair != plans[1].repair
    (words,) = plans[1].repair_words
    assert (
        words
        == "missing income was taken from the nearest donor in age and sex; where donors were lacking, 1 stood in"
    )


COLUMNS_OF_ONE = {name: column for name, column in COLUMNS.items() if name != "who"}
