"""What an ask of repaired rows costs and rests on is known before a row is read, and no bar is sold that is free."""

from fractions import Fraction

import pytest

from reticent.answer.context import split
from reticent.errors import PlanError
from reticent.plan.statistics import claim_of_parts
from reticent.privacy.claim import Change
from tests.doubles import FrozenNoise
from tests.tables import ADD, EVERY_KIND, REPLACE, answer, every_plan, make_plan

DONORS = {"method": "donors", "bound": "hubs", "column": "pay", "match": ["sex", {"column": "age", "by": 10}]}
BAR = {"interval": {"epsilon": "0.25"}}
SMOOTH = [
    {"total": "pay"},
    {"mean": "pay", "where": "age >= 30"},
    {"variance": "pay"},
    {"proportion": "pay > 20"},
    {"count": "*", "where": "pay > 20"},
    {"total": "age", "where": "pay > 20", "weight": "w"},
]
PUBLIC = [
    {"count": "*", "where": "age >= 30"},
    {"total": "age"},
    {"mean": "age"},
    {"proportion": "sex = 'f'"},
    {"table": ["sex"]},
    {"count": "*", "where": "age is missing"},
]


def repaired(query, *, bar=None, repair=DONORS, **options):
    return make_plan([query], asks={0: bar or {}}, repair=[repair], **options)


def grounds(plan) -> set[str]:
    return {page for _, page in plan.claim.rests_on}


@pytest.mark.parametrize("query", SMOOTH, ids=str)
def test_an_ask_of_a_filled_column_costs_its_epsilon_and_its_bar(query):
    """It rests on the ladder, its constants and the noise; on the pivot only where a bar is bought."""
    bare, bought = repaired(query), repaired(query, bar=BAR)
    assert bare.cost == 1 and bought.cost == Fraction(5, 4)
    pages = {f"proofs/{name}.md" for name in ("sensitivity/hubs", "sensitivity/constants", "noise/lomax")}
    assert pages < grounds(bare) and grounds(bought) - grounds(bare) == {"proofs/refine/pivot.md"}


@pytest.mark.parametrize("query", PUBLIC, ids=str)
def test_an_ask_of_answers_given_is_as_it_was(query):
    """Also beside a repair: its claim does not speak of donors."""
    assert repaired(query).claim == make_plan([query]).claim
    assert not {page for page in grounds(repaired(query)) if "hubs" in page or "lomax" in page}


FREE = [query for query in EVERY_KIND if not {"median", "quantile"} & set(query)]


@pytest.mark.parametrize("query", FREE, ids=str)
def test_a_bar_that_is_free_cannot_be_bought(query):
    """It used to be accepted and not charged: a promise to spend that was not kept. A quantile's is sold as before."""
    with pytest.raises(PlanError, match="is not needed") as problem:
        make_plan([query], asks={0: BAR})
    assert problem.value.field == "statistic[0].interval.epsilon"
    assert make_plan([{"median": "age", "step": "5"}], asks={0: BAR}).cost == Fraction(5, 4)


def test_a_bar_of_a_difference_cannot_be_bought_either():
    queries = [{"mean": "age"}, {"mean": "age", "where": "sex = 'f'"}, {"difference": ["ask 0", "ask 1"]}]
    with pytest.raises(PlanError, match="follows from the statistics it uses"):
        make_plan(queries, asks={2: BAR})


def test_a_quantile_rests_on_its_own_page():
    assert "proofs/answer/value_ladder.md" in grounds(repaired({"median": "pay", "step": "5"}))


@pytest.mark.parametrize("query", [{"table": ["pay"], "bins": {"pay": [-50, 0, 150]}}])
def test_what_no_theorem_covers_is_refused(query):  # covers T08
    assert make_plan([query])
    with pytest.raises(PlanError, match="no theorem"):
        repaired(query)


def test_the_published_noise_rests_on_its_own_page():
    plan = repaired({"total": "pay"}, repair={**DONORS, "bound": "published"}, epsilon="3")
    assert "proofs/noise/cauchy.md" in grounds(plan) and "proofs/noise/lomax.md" not in grounds(plan)


def test_an_edit_alone_changes_no_claim():
    """A record uses only itself."""
    edit = {"if": "age < 15", "then": {"sex": "f"}}
    assert repaired({"total": "pay"}, repair=edit).claim == make_plan([{"total": "pay"}]).claim


def test_nothing_run_is_nothing_claimed():
    assert claim_of_parts(make_plan([{"count": "*"}]).routes[0], (), Change.ADD_REMOVE) is None


def test_the_cap_counts_bars():
    with pytest.raises(PlanError, match=r"the plan needs 1\.25"):
        repaired(SMOOTH[0], bar=BAR, protect={"change": "one respondent added or removed", "epsilon": "1.2"})


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_in_rho_every_kind_of_ask_spends_what_is_charged(change: str) -> None:  # covers T17 B087
    """A choice at epsilon costs an eighth of its square, and is rounded down to 12 places: never more than was given.

    The naive twin asks permute-and-flip for as much epsilon, which costs up to half of the square.
    """
    plan, noise = every_plan(change=change, in_rho=True), FrozenNoise()
    answer(plan, [], noise)
    given = sum((ask.epsilon + ask.bar for ask in plan.asks), Fraction(0))
    choices = [call.epsilon for call in noise.calls if call.kind == "choose"]
    sums = sum((call.epsilon for call in noise.calls if call.kind != "choose"), Fraction(0))
    spent = sums + sum((each**2 / 8 for each in choices), Fraction(0))
    assert plan.unit == "rho" and plan.cost == given == plan.claim.rho
    assert given - Fraction(1, 10**9) < spent <= given
    assert sums + sum((each**2 / 2 for each in choices), Fraction(0)) > given


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_every_kind_of_ask_spends_what_it_was_given_and_that_is_charged(
    change: str,
) -> None:  # covers T17 B087
    """The epsilons that met the noise, what the plan costs, and what its asks were given: one number, exactly.

    The naive twin splits an ask's epsilon into parts that do not add up: its calls spend more than was given.
    """
    plan, noise = every_plan(change=change), FrozenNoise()
    answer(plan, [], noise)
    given = sum((ask.epsilon + ask.bar for ask in plan.asks), Fraction(0))
    assert sum((call.epsilon for call in noise.calls), Fraction(0)) == plan.cost == given
    naive = [Fraction(1, 4), Fraction(1)]  # for the count and for the sum of a mean
    assert sum(naive) != 1 == sum(split(Fraction(1), None)) == sum(split(Fraction(1), 40))
