"""Bins chosen attribute by attribute in a plan: what it costs, what is refused, and what a release tells."""

from fractions import Fraction
from random import Random

import pytest

from reticent.answer.route_weighted import assumed_strategy
from reticent.answer.weighting import Choice
from reticent.errors import PlanError
from reticent.preview.preview import expectations
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.survey import Survey
from tests.answer.test_weighted import some_people
from tests.answer.weighing import AGES, COLLAPSE, QUERIES, TOTALS, weighted_plan
from tests.tables import ADD, REPLACE, arrow, book

YOUNG = {"name": "young or not", "groups": {"age": [[AGES[0]], [AGES[1], AGES[2]]]}}
AGE = {"by": ["age"], "strategy": [{"name": "three ages"}, YOUNG], "epsilon": "0.25"}
SEX = {"by": ["sex"], "strategy": [{"name": "by sex"}, {"name": "all alike", "by": []}], "epsilon": "0.5"}


def plan_of(*attributes, **weight):
    return weighted_plan(weight={"attribute": list(attributes), **weight})


def test_prices_add_up_and_every_crossing_is_a_candidate():
    """Two ways each: four strategies, all over the same totals; a single way costs nothing."""
    plan, known = plan_of(AGE, SEX), weighted_plan()
    assert plan.weight.choice is Choice.EACH and plan.weight.epsilon == Fraction("0.75")
    assert plan.cost == known.cost + Fraction("0.75") and plan.claim.epsilon == plan.cost
    names = {each.name: sum(each.totals) for each in plan.weight.candidates.strategies}
    assert set(names) == {
        f"{age}; {sex}" for age in ("three ages", "young or not") for sex in ("by sex", "all alike")
    }
    assert set(names.values()) == {264}
    single = plan_of(AGE, {"by": ["sex"]})
    assert single.weight.epsilon == Fraction("0.25")
    assert "proofs/answer/attributes.md" in [page for _, page in plan.claim.rests_on]
    assert plan_of({"by": ["age"]}, {"by": ["sex"]}).weight.choice is Choice.FIXED


def test_a_tolerated_chance_is_priced_for_the_worst_that_can_come_before():
    """The second attribute costs more when the first may be fine, and twice as much under replacement."""
    tolerate = {"chance": "0.05", "gap": "0.5"}
    sex = {**SEX, "tolerate": tolerate}
    sex.pop("epsilon")
    prices = [
        plan_of({"by": ["age"], "strategy": [way]}, sex).weight.epsilon for way in ({"name": "three"}, YOUNG)
    ]
    assert prices[0] > prices[1] > 0
    either = plan_of(AGE, sex).weight
    assert either.crossing.attributes[1].epsilon == prices[0]
    replaced = weighted_plan(weight={"attribute": [AGE, sex]}, change=REPLACE).weight
    assert replaced.crossing.attributes[1].epsilon == 2 * prices[0]


@pytest.mark.parametrize(
    ("match", "attributes", "weight"),
    [
        ("in one attribute", [AGE], {}),
        ("in one attribute", [AGE, SEX, {"by": ["age"]}], {}),
        ("no stratifier", [AGE, {**SEX, "by": ["pay"]}], {}),
        ("of their own", [AGE, SEX], {"epsilon": "0.1"}),
        ("of their own", [AGE, SEX], {"collapse": COLLAPSE}),
        ("may cost", [AGE, {**SEX, "epsilon": None}], {}),
        ("may cost", [AGE, {**SEX, "tolerate": {"chance": "0.1", "gap": "1"}}], {}),
        ("costs nothing", [AGE, {"by": ["sex"], "epsilon": "0.1"}], {}),
        ("all base cells need totals", [AGE, SEX], {"totals": None}),
        ("are those of the base cells", [AGE, {**SEX, "strategy": [{"name": "a", "totals": TOTALS}]}], {}),
        ("each named once", [AGE, {**SEX, "strategy": [{"name": "a"}, {"name": "a", "by": []}]}], {}),
        (
            "every base bin once",
            [{**AGE, "strategy": [{"name": "a", "groups": {"age": [[AGES[0]]]}}]}, SEX],
            {},
        ),
    ],
)
def test_what_contradicts_itself_is_refused_from_public_words(match, attributes, weight):
    with pytest.raises(PlanError, match=match):
        plan_of(*attributes, **weight)


def test_a_preview_takes_the_best_way_of_every_attribute_in_turn():
    plan = plan_of(AGE, SEX)
    assert assumed_strategy(plan.weight) in plan.weight.candidates.strategies
    assert expectations(plan)[0].margin > 0


def test_a_whole_release_tells_every_choice_with_its_price_and_alpha(tmp_path):
    plan = weighted_plan(weight={"attribute": [AGE, SEX], "base": "w"}, queries=[QUERIES[0]], asks={})
    ledger = Ledger.create(tmp_path / "l.db", dataset="tiny", change=ADD, unit="epsilon", budget="10")
    survey = Survey(arrow(some_people(Random(11), 300), plan.schema), codebook=book())
    made = Curator(ledger).release(plan, survey, tmp_path / "out")
    told = made.document["weights"]
    assert ledger.spent == plan.cost == Fraction("1.75")
    assert [each["epsilon"] for each in told["attributes"]] == ["0.25", "0.5"]
    assert told["strategy"] == "; ".join(each["way"] for each in told["attributes"])
    first = plan.weight.crossing.candidates(()).delta
    assert told["attributes"][0]["alpha"] == float(Fraction("0.25") / first)
