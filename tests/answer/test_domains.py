"""Statistics by domain: one epsilon for all of them, whoever moves where; each is what the same statistic says of it."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from reticent.answer import domains
from reticent.answer.domains import DomainRoute
from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.release.run import try_plan
from reticent.release.sampling import Sampled
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import Call, FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, Row, answer, book, make_plan, plain_tallies, visible

SMALL: dict[str, Any] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "age": {"kind": "integer", "bounds": [0, 3]},
    "pay": {"kind": "integer", "bounds": [-1, 3], "universe": "age >= 1"},
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
KINDS: list[dict[str, Any]] = [
    {"count": "*"},
    {"count": "*", "weight": "w"},
    {"total": "pay"},
    {"total": "pay", "weight": "w"},
    {"proportion": "pay > 1"},
    {"mean": "pay"},
    {"mean": "age", "weight": "w", "centre": "1"},
    {"variance": "pay"},
    {"median": "age", "step": "1"},
    {"quantile": "pay", "at": "0.25", "step": "1", "weight": "w"},
]
BARS = {9: {"interval": {"level": "0.9", "epsilon": "0.5"}}}


def plan_by(
    by: list[str], kinds: Sequence[dict[str, Any]] = tuple(KINDS), *, codebook: Any = None, **options: Any
) -> Plan:
    return make_plan(
        [{**query, "by": by} for query in kinds],
        codebook or book(SMALL),
        asks=BARS if len(kinds) == len(KINDS) else {},
        **options,
    )


def lost(plan: Plan, one: Sequence[Row], other: Sequence[Row]) -> dict[str, Fraction]:
    """For each statistic, what its calls to the noise lose together between two tables, along one transcript.

    A Laplace call, or a choice, of sensitivity D at epsilon loses epsilon d/D where its answers are d apart. In rho a
    Gaussian call loses rho (d/D)^2, and the exponential mechanism an eighth of (epsilon d/D)^2.
    """
    found: dict[str, Fraction] = {}
    for name, calls, others in _calls(plan, one, other):
        pairs = zip(calls, others, strict=True)
        found[name] = sum((_loss(a, Fraction(a.distance(b)) / a.sensitivity) for a, b in pairs), Fraction(0))
    return found


def _loss(call: Call, far: Fraction) -> Fraction:
    if call.kind.startswith("gaussian"):
        return call.epsilon * far**2
    return (call.epsilon * far) ** 2 / 8 if call.kind == "choose" else call.epsilon * far


def _calls(plan: Plan, one: Sequence[Row], other: Sequence[Row]) -> Iterator[tuple[str, Any, Any]]:
    first, made = FrozenNoise(), [0]
    evaluate(plan, plain_tallies(plan, one), first, step=lambda _: made.append(len(first.calls)))
    second = FrozenNoise(prescribed=first.outputs)
    evaluate(plan, plain_tallies(plan, other), second)
    assert [a.parameters for a in first.calls] == [b.parameters for b in second.calls]
    for place, route in enumerate(plan.routes):
        here = slice(made[place], made[place + 1])
        yield route.statistic.name, first.calls[here], second.calls[here]


PEOPLE: list[Row] = [
    {"sex": 0, "age": 0, "pay": None, "w": 2},
    {"sex": 1, "age": 3, "pay": 4, "w": 2},
    {"sex": 0, "age": 3, "pay": -1, "w": 2},
    {"sex": None, "age": 1, "pay": 3, "w": 1},
    {"sex": 1, "age": None, "pay": 0, "w": 2},
    {"sex": 1, "age": 2, "pay": None, "w": None},
]
PEOPLE = [{**row, "pay": None if row["pay"] is None else min(row["pay"], 3)} for row in PEOPLE]
OTHERS: list[list[Row]] = [[], PEOPLE[1:4]]


def changes(change: str, records: int) -> Iterator[tuple[list[Row], list[Row]]]:
    """Every pair of a respondent's records before and after, of the kinds above, beside two sets of others."""
    owned = [list(rows) for n in range(records + 1) for rows in combinations_with_replacement(PEOPLE, n)]
    for mine in owned:
        for theirs in owned if change == REPLACE else [[]]:
            for rest in OTHERS:
                yield [*rest, *mine], [*rest, *theirs]


def worst(plan: Plan, change: str, records: int) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for one, other in changes(change, records):
        for a, b in ((one, other), (other, one)):
            for name, loss in lost(plan, a, b).items():
                found[name] = max(found.get(name, Fraction(0)), loss)
    return found


@pytest.mark.parametrize(("change", "records"), [(ADD, 1), (REPLACE, 1), (ADD, 2)], ids=str)
def test_all_domains_together_lose_no_more_than_one_epsilon(change, records):
    """Every neighbour of small tables, ten statistics by sex: silent people and people who move among them."""
    schema = book(SMALL, unit="who", at_most=records) if records > 1 else book(SMALL)
    plan = plan_by(["sex"], codebook=schema, change=change)
    allowed = {route.statistic.name: route.epsilon for route in plan.routes}
    found = worst(plan, change, records)
    assert all(found[name] <= allowed[name] for name in allowed)
    assert found["ask 0"] == 1, "attained, so no smaller noise would do"


@pytest.mark.parametrize(("change", "records"), [(ADD, 1), (REPLACE, 1), (ADD, 2)], ids=str)
def test_all_domains_together_lose_no_more_than_one_rho(change, records):
    """The same in rho, where squares add: attained by records that stay together, and not by those that move."""
    schema = book(SMALL, unit="who", at_most=records) if records > 1 else book(SMALL)
    plan = plan_by(["sex"], codebook=schema, change=change, in_rho=True)
    allowed = {route.statistic.name: route.epsilon for route in plan.routes}
    found = worst(plan, change, records)
    assert all(found[name] <= allowed[name] for name in allowed)
    assert found["ask 0"] == (Fraction(1, 2) if change == REPLACE else 1)


def test_the_noise_of_a_single_ask_is_too_small_where_people_move(monkeypatch):
    """The naive twin: each domain answered as one statistic would be under replacement."""
    monkeypatch.setattr(domains, "within_domains", lambda neighbours: neighbours)
    plan = plan_by(["sex"], change=REPLACE)
    found = worst(plan, REPLACE, 1)
    assert found["ask 0"] == 2
    assert sum(loss > 1 for loss in found.values()) >= 5


COARSE: dict[str, Any] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "pay": {"kind": "integer", "bounds": [0, 3 * 2**20 + 1]},
}


@pytest.mark.parametrize("kind", [{"total": "pay"}, {"mean": "pay"}, {"variance": "pay"}], ids=str)
def test_sums_in_coarser_steps_lose_no_more_either(kind):
    """A respondent moves from one domain to the other with an answer that rounds up in both."""
    plan = make_plan([{**kind, "by": ["sex"]}], book(COARSE), change=REPLACE)
    far = 3 * 2**20 + 1
    for pay in (far, far - 1, 2**20 + 1, 5):
        for beside in range(8):
            rest = [{"sex": 0, "pay": beside}, {"sex": 1, "pay": beside}]
            one = [*rest, {"sex": 0, "pay": pay}]
            other = [*rest, {"sex": 1, "pay": pay}]
            assert lost(plan, one, other)["ask 0"] <= 1


TOWN: list[Row] = [
    {"sex": s, "age": a, "pay": p, "w": w}
    for s, a, p, w in [
        ("f", 30, 10, 1),
        ("f", 40, 55.5, 2),
        ("f", 50, 20, 0.5),
        ("m", 20, 80, 1),
        ("m", 64, None, 1),
        ("m", 33, -20, 3),
        ("x", 12, None, 1),
        (None, 44, 12, 2),
        ("f", None, 5, 1),
    ]
]
PLAIN: list[dict[str, Any]] = [
    {"count": "*"},
    {"count": "*", "where": "age >= 30", "weight": "w"},
    {"total": "pay"},
    {"proportion": "pay > 11"},
    {"mean": "pay", "weight": "w"},
    {"variance": "age"},
    {"median": "age", "step": "1"},
]


def value_of(answers: dict[str, Any], name: str, cell: tuple[tuple[str, str], ...] = ()) -> Fraction:
    (found,) = [each.value for each in answers[name].estimates if each.cell == cell]
    return found


def test_without_noise_a_domain_has_the_answer_of_those_in_it():
    """By sex, and by age in bins and sex: the same statistic with the domain as its condition."""
    by_sex = make_plan([{**query, "by": ["sex"]} for query in PLAIN])
    answers = answer(by_sex, TOWN, ZeroNoise())
    for sex in ("f", "m", "x"):
        narrowed = [
            {
                **query,
                "where": f"{query['where']} and sex = '{sex}'" if "where" in query else f"sex = '{sex}'",
            }
            for query in PLAIN
        ]
        alone = answer(make_plan(narrowed), TOWN, ZeroNoise())
        for place in range(len(PLAIN)):
            name = f"ask {place}"
            assert value_of(answers, name, (("sex", sex),)) == value_of(alone, name)


def test_bins_cross_and_silence_has_domains_of_its_own():
    bins = {"age": [0, 30, 99]}
    plan = make_plan([{"count": "*", "by": ["sex", "age"], "bins": bins}])
    found = {each.cell: each.value for each in answer(plan, TOWN, ZeroNoise())["ask 0"].estimates}
    assert len(found) == 4 * 3
    assert found[("sex", "f"), ("age", "30 to 99")] == 3
    assert found[("sex", "f"), ("age", "(missing)")] == 1
    assert found[("sex", "(missing)"), ("age", "30 to 99")] == 1
    assert sum(found.values()) == len(TOWN)
    paid = make_plan([{"count": "*", "by": ["pay"], "bins": {"pay": [-50, 0, 150]}}])
    told = {each.cell[0][1]: each.value for each in answer(paid, TOWN, ZeroNoise())["ask 0"].estimates}
    assert told == {"-50 to under 0": 1, "0 to 150": 6, "(missing)": 1, "(not asked)": 1}


def test_nothing_is_published_of_domains_that_the_condition_empties():
    """Whoever is below 2, or did not say, is not among those from 2 on. They are measured all the same, so nothing else changes."""
    bins, kinds = {"age": [0, 2, 3]}, [{"count": "*", "where": "age >= 2"}]
    plan = make_plan([{**kinds[0], "by": ["sex", "age"], "bins": bins}], book(SMALL))
    given = evaluate(plan, plain_tallies(plan, PEOPLE), FrozenNoise())
    cells = [dict(each.cell) for each in next(iter(given.values())).estimates]
    assert {each["age"] for each in cells} == {"2 to 3"}
    assert {each["sex"] for each in cells} == {"f", "m", "(missing)"}
    loud = FrozenNoise()
    evaluate(plan, plain_tallies(plan, PEOPLE), loud)
    assert len(loud.calls) == 3 * 3
    with pytest.raises(PlanError, match="nobody in any domain"):
        make_plan([{"count": "*", "where": "sex in ('f') and sex = 'm'", "by": ["sex"]}], book(SMALL))


def test_domains_that_are_not_shown_are_measured_all_the_same():
    """As many calls to the noise, fewer numbers: which domains are left out is public."""
    seen = []
    for shown in (True, False):
        plan = make_plan([{"mean": "age", "by": ["sex"], "show_missing": shown}])
        noise = FrozenNoise()
        found = answer(plan, TOWN, noise)["ask 0"]
        seen.append((len(noise.calls), [each.cell[0][1] for each in found.estimates]))
    assert seen[0] == (8, ["f", "m", "x", "(missing)"])
    assert seen[1] == (8, ["f", "m", "x"])


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("kind", ["mean", "total"])
def test_a_variance_by_domain_serves_the_mean_by_domain(kind: str, shown: bool):
    """Shown or not: a domain that is left out of both is measured, and needs no variance. Where all are alike none is told."""
    by = {"by": ["sex"], "show_missing": shown}
    named = {1: {"variance": "ask 0"}}
    plan = make_plan(
        [{"variance": "age", **by}, {kind: "age", **by}],
        asks=named,
        expect={"rows": 8},
        design={"design_effect": "1"},
    )
    answers = answer(plan, TOWN, ZeroNoise())
    found = [
        Sampled(plan=plan).total(plan.asks[1], answers, place)
        for place in range(len(answers["ask 1"].estimates))
    ]
    spreads = [each.value for each in answers["ask 0"].estimates]
    assert len(found) == (4 if shown else 3) and max(spreads) > 0
    assert [total is not None for total in found] == [spread > 0 for spread in spreads]
    assert try_plan(plan) is None


def test_a_table_of_domains_costs_what_one_statistic_costs():
    """Price, claim and the noise itself, under add or remove."""
    one, many = make_plan([{"mean": "age"}]), make_plan([{"mean": "age", "by": ["sex"]}])
    assert many.claim.epsilon == one.claim.epsilon
    assert [p.scale for p in many.routes[0].parts] == [p.scale for p in one.routes[0].parts]
    assert isinstance(many.routes[0], DomainRoute)
    assert set(many.claim.rests_on) - set(one.claim.rests_on) == {
        ("domains under one epsilon", "proofs/sensitivity/domains.md")
    }


def test_what_is_published_says_each_domain():
    plan = make_plan([{"mean": "age", "by": ["sex"]}])
    text = visible(plan, answer(plan, TOWN, FrozenNoise())).decode()
    assert "sex = f" in text and "sex = (missing)" in text and "by itself" in text


REFUSED = [
    ({"mean": "age", "by": ["town"]}, "town"),
    ({"mean": "age", "by": []}, "each once"),
    ({"mean": "age", "by": ["sex", "sex"]}, "each once"),
    ({"mean": "pay", "by": ["age"]}, "bins"),
    ({"mean": "pay", "by": ["age"], "bins": {"sex": [0, 1]}}, "not a number"),
    ({"table": ["sex"], "by": ["age"], "bins": {"age": [0, 99]}}, "does not go with table"),
    ({"mean": "age", "show_missing": False}, "goes with by"),
    ({"mean": "age", "by": ["sex"], "show_missing": "no"}, "true or false"),
    ({"median": "age", "step": "1", "by": ["pay"], "bins": {"pay": [b / 2 for b in range(-100, 301)]}}, None),
]


@pytest.mark.parametrize(("query", "words"), REFUSED, ids=str)
def test_what_cannot_be_asked_by_domain_is_refused_by_name(query, words):
    if words is None:
        make_plan([query])  # 403 domains of 100 candidates
        return
    with pytest.raises(PlanError, match=words):
        make_plan([query])


def test_too_many_domains_and_cells_are_refused():
    columns = {
        "zip": {"kind": "integer", "bounds": [0, 20_000]},
        "town": {"kind": "integer", "bounds": [0, 1999]},
        "pay": {"kind": "integer", "bounds": [0, 99_999]},
    }
    every = {"zip": list(range(20_001)), "town": list(range(2000))}
    with pytest.raises(PlanError, match=r"wider bins|edges"):
        make_plan([{"count": "*", "by": ["zip"], "bins": {"zip": every["zip"]}}], book(columns))
    with pytest.raises(PlanError, match="larger step"):
        query = {"median": "pay", "step": "1", "by": ["town"], "bins": {"town": every["town"]}}
        make_plan([query], book(columns))


def test_a_size_or_a_variance_of_others_is_refused():
    with pytest.raises(PlanError, match="public size"):
        make_plan([{"mean": "age", "by": ["sex"]}], asks={0: {"size": 40}})
    with pytest.raises(PlanError, match="variance"):
        wants_of(
            make_plan([{"variance": "age"}, {"mean": "age", "by": ["sex"]}], asks={1: {"variance": "ask 0"}})
        )


def test_what_uncapped_donors_filled_has_no_domains():
    """Neither the column that is asked about, nor the one that says where people are."""
    repair = [{"method": "donors", "column": "pay", "match": ["sex"], "bound": "hubs"}]
    for query in (
        {"mean": "pay", "by": ["sex"]},
        {"count": "*", "by": ["pay"], "bins": {"pay": [-50, 0, 150]}},
    ):
        with pytest.raises(
            PlanError,
            match=r"that respondents answered, or that capped donors fill|filled by the nearest donors",
        ):
            make_plan([query], repair=repair)
    make_plan([{"mean": "age", "by": ["sex"]}], repair=repair)


def test_domains_are_no_single_estimate_to_derive_from():
    with pytest.raises(PlanError, match="there is no statistic 'ask 0' to use"):
        make_plan([{"mean": "age", "by": ["sex"]}, {"mean": "age"}, {"ratio": ["ask 0", "ask 1"]}])
