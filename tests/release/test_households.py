"""Households: counted once, protected whole, named as such; refused where a column is a person's."""

from copy import deepcopy
from fractions import Fraction
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from reticent.errors import PlanError, SchemaError
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from reticent.preview.preview import expectations
from reticent.preview.tables import foresee_tables
from reticent.release.document import document, wave_section
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey
from reticent.report.methodology import methodology
from reticent.report.words import promise
from reticent.schema.codebook import schema_from
from tests.doubles import Call, FrozenNoise, ZeroNoise

BOOK: dict[str, Any] = {
    "survey": {"name": "homes", "unit": "home", "unit_name": "household", "at_most": 3},
    "columns": {
        "home": {"kind": "identifier"},
        "tenure": {"kind": "categorical", "levels": ["own", "rent"], "of": "household"},
        "rooms": {"kind": "integer", "bounds": [1, 9], "of": "household"},
        "age": {"kind": "integer", "bounds": [0, 99]},
    },
}
ASKS: list[dict[str, Any]] = [
    {"name": "households", "query": {"count": "*", "per": "household"}, "epsilon": "1"},
    {"name": "people", "query": {"count": "*"}, "epsilon": "1"},
    {"name": "owners", "query": {"proportion": "tenure = 'own'", "per": "household"}, "epsilon": "1"},
    {"name": "rooms", "query": {"mean": "rooms", "per": "household"}, "epsilon": "1"},
    {"name": "by tenure", "query": {"mean": "rooms", "per": "household", "by": ["tenure"]}, "epsilon": "1"},
    {"name": "table", "query": {"table": ["tenure"], "per": "household"}, "epsilon": "1"},
]
# Households of one to four members (one is cut off), one without an answer, and a person without a household.
HOMES: dict[str | None, list[tuple[Any, ...]]] = {
    "a": [("own", 5, 40), ("own", 5, 38), ("own", 5, 3)],
    "b": [("rent", 2, 70)],
    "c": [("own", 9, 50), ("own", 9, 51), ("own", 9, 20), ("own", 9, 18)],
    "d": [(None, None, 33), (None, None, 8)],
    "e": [("rent", 9, 30)],
    None: [("rent", 1, 25)],
}


def frame(homes: tuple[str | None, ...], turn: bool = False) -> pa.Table:
    people = [(home, *each) for home in homes for each in HOMES[home]]
    people = people[::-1] if turn else people
    kinds = [("home", pa.string()), ("tenure", pa.string()), ("rooms", pa.int64()), ("age", pa.int64())]
    return pa.table({n: pa.array([p[i] for p in people], kind) for i, (n, kind) in enumerate(kinds)})


def plan_of(asks: list[dict[str, Any]] = ASKS, book: dict[str, Any] = BOOK, **sections: Any) -> Plan:
    survey = Survey(frame(tuple(HOMES)), codebook=book)
    return survey.plan("h-1", epsilon="40", statistics=asks, protect={"accept_large": True}, **sections)


ROOMS = {"total": "rooms", "per": "household"}


def test_a_plan_may_say_household_where_it_is_the_unit() -> None:
    """The ledger and the release say so, and their words can be written back; another unit's name is no change."""
    survey, given = Survey(frame(tuple(HOMES)), codebook=BOOK), {"epsilon": "9", "statistics": ASKS[:1]}
    plain, own = (
        survey.plan("h-1", protect={"change": f"one {unit} added or removed"}, **given)
        for unit in ("respondent", "household")
    )
    assert own.change is plain.change and own.worded(own.claim) == plain.worded(plain.claim)
    replaced = survey.plan("h-1", protect={"change": "one household's answers replaced"}, **given)
    assert "one household's answers replaced" in replaced.worded(replaced.claim)
    with pytest.raises(PlanError, match="is 'one household added or removed' or"):
        survey.plan("h-1", protect={"change": "one school added or removed"}, **given)


def replace_asks(plan: Plan, asks: list[dict[str, Any]]) -> Plan:
    """The same change protected, other statistics."""
    survey = Survey(frame(tuple(HOMES)), codebook=BOOK)
    protect = {"accept_large": True, "change": plan.change.value}
    return survey.plan("h-2", epsilon="40", statistics=asks, protect=protect)


def told(plan: Plan, rows: pa.Table, noise: Any) -> dict[str, Any]:
    engine = Survey(rows, codebook=BOOK).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    made = evaluate_sampled(plan, tallies, noise)
    result = StatisticsResult(plan=plan, answers=made.answers, sampled=made.sampled)
    return document(plan, [result], receipt=None, engine="test")


@pytest.mark.parametrize("turn", [False, True])
def test_each_household_counts_once(turn: bool) -> None:
    """By hand: six households, of whom five told their tenure; eleven people, for one of twelve is beyond at_most."""
    made = told(plan_of(), frame(tuple(HOMES), turn), ZeroNoise())
    value = {s["name"]: s["estimates"][0]["value"] for s in made["statistics"]}
    assert (value["households"], value["people"]) == (6, 11)
    assert value["owners"] == 0.4 and value["rooms"] == pytest.approx((5 + 2 + 9 + 9 + 1) / 5)
    cells = {
        e["cell"]["tenure"]: e["value"] for s in made["statistics"] for e in s["estimates"][:2] if e["cell"]
    }
    assert cells["own"] == 2 and cells["rent"] == 3


def test_words_say_household_where_household_is_meant() -> None:
    plan = plan_of()
    made = told(plan, frame(tuple(HOMES)), ZeroNoise())
    assert "one household added or removed" in made["guarantee"]["words"]
    assert made["protects"]["unit_name"] == "household"
    words = {s["name"]: s["words"] for s in made["statistics"]}
    assert "all households" in words["households"] and "all respondents" in words["people"]
    units = {s["name"]: s["unit"] for s in made["statistics"]}
    assert (units["households"], units["table"], units["people"]) == (
        "households",
        "households",
        "respondents",
    )
    assert "whether a household took part" in promise({**made, "published": True})[1]
    (rooms,) = (each for each in expectations(plan_of(expect={"rows": 20})) if each.name == "rooms")
    assert rooms.how == "by rows"
    assert "one household added or removed" in repr(plan)
    assert "what one household can move" in methodology({**made, "published": True})
    table = {"name": "t", "margins": [["tenure"], ["age"]], "bins": {"age": [0, 50, 99]}, "epsilon": "1"}
    wave = {"name": "q", "at_most": 2, "of": 4}
    more = plan_of(tables=[table], wave=wave)
    (asked,) = (each for each in more.products if isinstance(each, AddUpTables))
    assert "one household added" in foresee_tables(asked, more).told[0]["guarantee"]
    assert "a household is in at most 2" in wave_section(more)["wave"]["words"]


@pytest.mark.parametrize("change", ["one respondent added or removed", "one respondent's answers replaced"])
def test_a_household_moves_a_statistic_of_households_by_one_record(change: str) -> None:
    """All sets of households, each with one taken away or exchanged: distances over sensitivities add up to at most one.

    Noise of a statistic of people is scaled to three records, that of households to one.
    """
    survey = Survey(frame(tuple(HOMES)), codebook=BOOK)
    plan = survey.plan("h-1", epsilon="40", statistics=ASKS, protect={"accept_large": True, "change": change})

    def calls(homes: tuple[str | None, ...], plan: Plan = plan) -> list[Call]:
        noise = FrozenNoise(prescribed=[(4,)] * 12 + [(4, 4, 4)])
        engine = Survey(frame(homes), codebook=BOOK).open()
        try:
            tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
        finally:
            engine.close()
        evaluate_sampled(plan, tallies, noise)
        return noise.calls

    sets = [s for n in range(1, 4) for s in combinations(HOMES, n)]
    found = {s: calls(s) for s in [(), *sets]}
    home, people = found[("a",)][:2]
    assert people.sensitivity == 3 * home.sensitivity
    for homes in sets:
        for place, _ in enumerate(homes):
            rest = homes[:place] + homes[place + 1 :]
            others = [rest]
            if "replaced" in change:
                others = [s for s in sets if len(s) == len(homes) and set(rest) < set(s)]
            for other in others:
                pairs = list(zip(found[homes], found[other], strict=True))
                assert all(one.distance(two) <= one.sensitivity for one, two in pairs)
    together = replace_asks(plan, [{"name": "n", "query": {**ROOMS, "by": ["tenure"]}, "epsilon": "1"}])
    found = {s: calls(s, together) for s in sets}
    for homes in sets:
        for other in sets:
            if len(homes) == len(other) and len(set(homes) & set(other)) == len(homes) - 1:
                moves = zip(found[homes], found[other], strict=True)
                lost = sum(Fraction(one.distance(two)) / one.sensitivity for one, two in moves)
                assert lost <= (1 if "replaced" in change else 2)
    by_name = {ask.name: route.parts[0].bound for ask, route in zip(plan.asks, plan.routes, strict=True)}
    assert by_name["people"] == 3 * by_name["households"]
    assert by_name["households"] == Fraction(1)


@pytest.mark.parametrize(
    "query, says",
    [
        ({"mean": "age", "per": "household"}, "age may differ within one"),
        ({"count": "*", "where": "age < 18", "per": "household"}, "age may differ"),
        ({"count": "*", "per": "person"}, "is 'household'"),
        ({"mean": "rooms", "by": ["age"], "bins": {"age": [0, 18, 99]}, "per": "household"}, "may differ"),
    ],
)
def test_a_person_s_column_is_refused(query: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan_of([{"name": "a", "query": query, "epsilon": "1"}])


def test_households_need_a_name_and_an_identifier() -> None:
    book = deepcopy(BOOK)
    del book["survey"]["unit_name"]
    with pytest.raises(SchemaError, match="unit_name"):
        schema_from(book)
    book = {
        "survey": {"name": "x", "unit": "row", "unit_name": "household"},
        "columns": {"age": BOOK["columns"]["age"]},
    }
    with pytest.raises(SchemaError, match="identifier as unit"):
        schema_from(book)


@pytest.mark.parametrize("bound", [{}, {"bound": "hubs"}])
def test_filled_columns_are_refused_and_others_are_as_without_filling(bound: dict[str, str]) -> None:
    """Filled are rooms: their mean, and whatever is told apart by them, is refused; the rest has the noise of one record."""
    match = [{"on": ["tenure"], "serve": 1}] if not bound else ["tenure"]
    fill = {"method": "donors", "column": "rooms", "match": match, **bound}
    by_rooms = {"count": "*", "per": "household", "by": ["rooms"], "bins": {"rooms": [1, 4, 9]}}
    for query in (ASKS[3]["query"], {"count": "*", "where": "rooms > 4", "per": "household"}, by_rooms):
        with pytest.raises(PlanError, match="nobody filled"):
            plan_of([{"name": "a", "query": query, "epsilon": "1"}], impute=[fill])
    asks = [ASKS[0], ASKS[2], ASKS[5]]
    plain, filled = plan_of(asks), plan_of(asks, impute=[fill])
    for one, other in zip(plain.routes, filled.routes, strict=True):
        assert one.parts == other.parts
    rows = frame(tuple(HOMES))
    assert [s["estimates"] for s in told(plain, rows, ZeroNoise())["statistics"]] == [
        s["estimates"] for s in told(filled, rows, ZeroNoise())["statistics"]
    ]


def test_a_number_of_households_has_no_sampling_error_made_of_people() -> None:
    """Under a declared design effect a share of households has a total interval; their number has none, and says why."""
    plan = plan_of([ASKS[0], ASKS[2], ASKS[5]], design={"design_effect": "1.5"}, expect={"rows": 11})
    made = told(plan, frame(tuple(HOMES)), ZeroNoise())
    homes, owners, table = made["statistics"]
    assert owners["estimates"][0]["total_low"] is not None
    assert homes["estimates"][0]["total_low"] is None and table["estimates"][0]["total_low"] is None
    assert "how many households" in homes["total"]["empty"]
