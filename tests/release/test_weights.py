"""Weights to known totals in a plan: what is refused, what it costs, and a whole release."""

import json
from fractions import Fraction
from random import Random

import pytest

from reticent.answer.expect import AS_TOTALS, UNKNOWN
from reticent.answer.weighting import Choice
from reticent.errors import PlanError
from reticent.plan.plan import read_plan
from reticent.preview.preview import expectations
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.statistics import wants_of
from reticent.release.survey import Survey
from tests.answer.test_weighted import some_people
from tests.answer.weighing import AGES, BY, COLLAPSE, QUERIES, TOTALS, weighted_plan
from tests.tables import ADD, REPLACE, arrow, book, make_plan

COUNT = [QUERIES[0]]
COARSE = {"name": "young or not", "by": ["age"], "groups": {"age": [[AGES[0]], [AGES[1], AGES[2]]]}}


def refused(match: str, *, field: str | None = None, **weight) -> None:
    with pytest.raises(PlanError, match=match) as problem:
        weighted_plan(weight=weight)
    if field is not None:
        assert problem.value.field == field


# covers B091 B092 B095
@pytest.mark.parametrize(
    ("match", "weight"),
    [
        ("no total", {"totals": TOTALS[1:]}),
        ("two totals", {"totals": [*TOTALS, TOTALS[0]]}),
        ("0 or more", {"totals": [{**TOTALS[0], "total": "-1"}, *TOTALS[1:]]}),
        ("plain decimal", {"totals": [{**TOTALS[0], "total": "many"}, *TOTALS[1:]]}),
        ("no bin 'nobody'", {"totals": [{**TOTALS[0], "sex": "nobody"}, *TOTALS[1:]]}),
        ("has the columns", {"totals": [{**TOTALS[0], "pay": 1}, *TOTALS[1:]]}),
        ("all 0", {"totals": [{**line, "total": 0} for line in TOTALS]}),
        ("totals", {"totals": None}),
        (
            "same sum",
            {"strategy": [{"name": "a"}, {**COARSE, "totals": [{"age": a, "total": 9} for a in AGES]}]},
        ),
        ("not declared with role", {"base": "pay"}),
        ("no column", {"base": "weigth"}),
        ("base weight", {"by": [{"column": "w", "bins": [0, 4], "missing": "0 to 4"}]}),
        ("no bin", {"by": [{**BY[0], "missing": "unknown"}, BY[1]]}),
        ("bins", {"by": [{"column": "age", "missing": "1"}, BY[1]]}),
        ("bounds", {"by": [{**BY[0], "bins": [5, 18, 65, 99]}, BY[1]]}),
        ("costs nothing", {"epsilon": "0.1"}),
        ("may cost", {"collapse": COLLAPSE}),
        ("collapse", {"choose": "noisy counts", "epsilon": "0.1"}),
        ("there are 9", {"choose": "fixed", "collapse": COLLAPSE, "epsilon": "0.1"}),
        ("no stratifier", {"collapse": {"along": ["pay"]}, "epsilon": "0.1"}),
        ("every base bin once", {"strategy": [{**COARSE, "groups": {"age": [[AGES[0]], [AGES[1]]]}}]}),
        ("does not use", {"strategy": [{**COARSE, "groups": {"sex": [["f"]]}}]}),
        ("is one of", {"noise": "gaussian"}),
        ("proved for Lomax", {"noise": "student"}),
        ("a column of the codebook", {"name": "w"}),
        ("not a known key", {"trim": "3"}),
    ],
)
def test_what_contradicts_itself_is_refused_from_public_words(match, weight):
    refused(match, **weight)


def test_donors_and_derived_weights_do_not_go_together():
    donors = [{"method": "donors", "bound": "hubs", "column": "pay", "match": ["sex"]}]
    with pytest.raises(PlanError, match="nothing bounds"):
        weighted_plan(repair=donors, queries=COUNT, asks={})


@pytest.mark.parametrize("query", [{"variance": "pay"}, {"median": "age", "step": "5"}, {"table": ["sex"]}])
def test_asks_without_a_theorem_are_refused(query):
    with pytest.raises(PlanError, match="counts, totals, means and proportions"):
        weighted_plan(queries=[{**query, "weight": "poststratified"}], asks={})


def test_a_section_that_nobody_uses_and_a_weight_that_nobody_made_are_refused():
    with pytest.raises(PlanError, match="no statistic says"):
        weighted_plan(queries=[{"count": "*"}], asks={})
    with pytest.raises(PlanError, match="no column 'poststratified'"):
        make_plan(COUNT)


def test_an_epsilon_that_no_ladder_carries_is_refused_early():
    with pytest.raises(PlanError, match="at least"):
        weighted_plan(queries=COUNT, asks={}, epsilon="0.0001")


# covers T05
def test_a_base_weight_of_too_many_steps_is_refused():
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "w": {"kind": "decimal", "bounds": [0, 9999], "grid": "0.000001", "role": "weight"},
    }
    section = {"base": "w", "by": [{"column": "sex", "missing": "f"}]}
    section["totals"] = [{"sex": sex, "total": 10} for sex in "fm"]
    query = {"count": "*", "weight": "poststratified"}
    with pytest.raises(PlanError, match="coarser grid"):
        make_plan([query], book(columns), weight=section)


def test_the_choice_is_charged_once_beside_the_asks():
    plain, chosen = weighted_plan(), weighted_plan(weight={"collapse": COLLAPSE, "epsilon": "0.25"})
    assert plain.cost == 4 + 1 and chosen.cost == plain.cost + Fraction("0.25")
    assert plain.claim.epsilon == plain.cost and chosen.claim.epsilon == chosen.cost
    pages = [page for _, page in chosen.claim.rests_on]
    assert "proofs/answer/weighing.md" in pages and "proofs/answer/weighted.md" in pages


def test_a_tolerated_chance_of_a_poor_choice_has_a_price():
    """Twice as much under replacement, where two records come and go."""
    tolerate = {"tolerate": {"chance": "0.05", "gap": "0.5"}, "collapse": COLLAPSE}
    add, replaced = (weighted_plan(weight=tolerate, change=change) for change in (ADD, REPLACE))
    assert replaced.weight.epsilon == 2 * add.weight.epsilon > 0


def test_strategies_may_have_totals_of_their_own_and_several_attribute_sets():
    by_age = [{"age": age, "total": total} for age, total in zip(AGES, (63, 155, 46), strict=True)]
    by_sex = [{"sex": sex, "total": total} for sex, total in zip("fmx", (135, 126, 3), strict=True)]
    strategies = [
        {"name": "age", "by": ["age"], "totals": by_age},
        {"name": "sex", "by": ["sex"], "totals": by_sex},
        {"name": "everybody", "by": [], "totals": [{"total": 264}]},
    ]
    plan = weighted_plan(weight={"totals": None, "strategy": strategies, "epsilon": "0.1"})
    assert [each.size for each in plan.weight.candidates.strategies] == [3, 3, 1]
    assert plan.weight.choice is Choice.PRIVATE


def test_kept_weights_follow_from_the_smallest_share():
    """K weights suffice for the expected rows at the smallest beta; equal weights need none."""
    assert weighted_plan().weight.base.kept == 0
    plan = weighted_plan(weight={"base": "w"})
    assert plan.weight.least_beta == Fraction(1, 32)  # a quarter of epsilon 1 for a count, over 8
    assert plan.weight.base.kept == 119  # e^(-119/32) < 1/41 <= e^(-118/32)


def test_a_preview_says_what_follows_if_people_are_spread_as_the_totals_are():
    seen = expectations(weighted_plan())
    assert [each.how for each in seen] == [AS_TOTALS, AS_TOTALS, UNKNOWN, UNKNOWN]
    assert all(each.margin > 0 for each in seen[:2]) and "known totals by age and sex" in seen[0].words
    plan = weighted_plan(queries=COUNT, asks={0: {"expect": {"value": 100}}})
    loose, tight = (plan.routes[0].epsilon_for(cv) for cv in (0.5, 0.05))
    assert loose < tight


def test_a_file_of_totals_counts_as_part_of_the_plan(tmp_path):
    """Written out it gives the same plan; another total is another plan; the rows are no totals."""
    lines = ["age,sex,total", *(f"{t['age']},{t['sex']},{t['total']}" for t in TOTALS)]
    (tmp_path / "totals.csv").write_text("\n".join(lines))
    plan = write_plan(tmp_path, '"totals.csv"')
    assert plan.digest == write_plan(tmp_path, '"totals.csv"').digest
    assert plan.weight.candidates == weighted_plan().weight.candidates
    (tmp_path / "totals.csv").write_text("\n".join(lines).replace(",31", ",32"))
    assert write_plan(tmp_path, '"totals.csv"').digest != plan.digest
    for name, match in (("rows.parquet", "the rows"), ("../totals.csv", "inside"), ("none.csv", "read")):
        with pytest.raises(PlanError, match=match):
            write_plan(tmp_path, f'"{name}"')
    (tmp_path / "short.csv").write_text("age,sex,total\na,b")
    with pytest.raises(PlanError, match="fewer cells"):
        write_plan(tmp_path, '"short.csv"')


def write_plan(folder, totals: str):
    (folder / "codebook.toml").write_text(
        """
        [survey]
        name = "tiny"
        unit = "row"
        [columns]
        sex = { kind = "categorical", levels = ["f", "m", "x"] }
        age = { kind = "integer", bounds = [0, 99] }
        """
    )
    (folder / "plan.toml").write_text(
        f"""
        [survey]
        source = "rows.parquet"
        codebook = "codebook.toml"
        ledger = "ledger.db"
        [release]
        id = "w-1"
        [protect]
        change = "{ADD}"
        epsilon = "1"
        [weight]
        totals = {totals}
        [[weight.by]]
        column = "age"
        bins = [0, 18, 65, 99]
        missing = "18 to under 65"
        [[weight.by]]
        column = "sex"
        missing = "x"
        [[statistic]]
        name = "women"
        query = {{ count = "*", where = "sex = 'f'", weight = "poststratified" }}
        epsilon = "0.5"
        interval = {{ epsilon = "0.1" }}
        """
    )
    return read_plan(folder / "plan.toml")


def test_a_whole_release_charges_chooses_and_tells_what_was_chosen(tmp_path):
    """Charged for choice, asks and bars; the document tells the bins; the same again gives the same bytes."""
    codebook, people = book(), some_people(Random(11), 300)
    plan = weighted_plan(weight={"base": "w", "collapse": COLLAPSE, "epsilon": "0.25"})
    ledger = Ledger.create(tmp_path / "l.db", dataset="tiny", change=ADD, unit="epsilon", budget="10")
    survey = Survey(arrow(people, plan.schema), codebook=codebook)
    made = Curator(ledger).release(plan, survey, tmp_path / "out")
    told = made.document["weights"]
    assert ledger.spent == plan.cost == Fraction("5.25")
    assert made.document["guarantee"]["epsilon"] == "5.25"
    names = [each.name for each in plan.weight.candidates.strategies]
    assert told["strategy"] in names and sum(map(Fraction, told["totals"])) == 264
    first = made.document["statistics"][0]
    assert first["parts"][0]["hidden"].startswith("confidential: how many respondents share a bin")
    assert first["unit"] == "people" and first["estimates"][0]["privacy_low"] is not None
    again = Curator(ledger).release(plan, survey, tmp_path / "out")
    assert json.dumps(again.document) == json.dumps(made.document) and ledger.spent == plan.cost


def test_wants_share_one_base_and_so_one_pass():
    plan = weighted_plan(weight={"base": "w"})
    assert len({want.base for want in wants_of(plan)}) == 1
