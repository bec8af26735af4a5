"""A release from repaired rows: filled, charged, published, and no more read off the rows than its noisy numbers."""

import json
from fractions import Fraction

import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.noise.source import SystemNoise
from reticent.privacy.ledger import Ledger
from reticent.release.check import gaps
from reticent.release.curator import Curator
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, book, make_plan, steps, visible

COLUMNS = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "age": {"kind": "integer", "bounds": [0, 99]},
    "job": {"kind": "categorical", "levels": ["yes", "no"]},
    "pay": {"kind": "integer", "bounds": [0, 200]},
}
REPAIR = [
    {"if": "pay > 0", "then": {"job": "yes"}},
    {
        "method": "donors",
        "bound": "hubs",
        "column": "pay",
        "match": ["sex", {"column": "age", "by": 25}],
        "default": 50,
    },
]
ASKS = [
    {"name": "pay bill", "query": {"total": "pay"}, "epsilon": "1", "interval": {"epsilon": "0.5"}},
    {"name": "mean pay", "query": {"mean": "pay", "where": "age >= 30"}, "epsilon": "1"},
    {"name": "poor", "query": {"count": "*", "where": "pay < 60"}, "epsilon": "1"},
    {"name": "women", "query": {"count": "*", "where": "sex = 'f'"}, "epsilon": "0.5"},
    {"name": "workers", "query": {"count": "*", "where": "job = 'yes'"}, "epsilon": "0.5"},
]
QUERIES = [ask["query"] for ask in ASKS]
BAR = {0: {"interval": {"epsilon": "0.5"}}}


def table(people) -> pa.Table:
    sex, age, job, pay = zip(*people, strict=True)
    return pa.table(
        {"sex": sex, "age": age, "job": pa.array(job, pa.string()), "pay": pa.array(pay, pa.int64())}
    )


# Four who answered, three who did not; the nearest donors by hand: x and y from B, z from D.
PEOPLE = [
    ("f", 20, "yes", 30),
    ("f", 40, None, 70),
    ("m", 40, "no", None),
    ("m", 70, "no", 110),
    ("f", 45, None, None),
    ("f", 30, "no", None),
    ("m", 80, "no", None),
]
FILLED = 30 + 70 + 110 + 110 + 70 + 70 + 110


def plan_of(**options):
    return make_plan(QUERIES, book(COLUMNS), repair=REPAIR, asks=BAR, **options)


def answers_of(plan, people, noise):
    engine = DuckDBEngine(open_frame(table(people)), threads=1)
    try:
        return evaluate(plan, engine.tally(plan.schema, wants_of(plan), plan.repair), noise)
    finally:
        engine.close()


def test_without_noise_it_is_the_textbook_answer():
    """Filled by hand; the edit makes B a worker."""
    answers = answers_of(plan_of(), PEOPLE, ZeroNoise())
    values = [answer.estimates[0].value for answer in answers.values()]
    assert values[0] == FILLED and values[2:] == [1, 4, 2]
    assert values[1] == Fraction(FILLED - 30, 6)


def test_the_same_noisy_numbers_give_the_same_document_whatever_the_rows():  # covers T20 T22
    """No scale, no hub and no count shows through: forty recipients on one donor, or nobody missing.

    The naive twin prints the bound beside the answer, and the two surveys can be told apart.
    """
    plan = plan_of()
    crowd = [("f", 20, "yes", 30), *[("f", 20, None, None)] * 40]
    first = FrozenNoise()
    shown = visible(plan, answers_of(plan, PEOPLE, first))
    again = FrozenNoise(prescribed=first.outputs)
    assert visible(plan, answers_of(plan, crowd, again)) == shown
    bounds = [[call.sensitivity for call in noise.calls if call.kind == "lomax"] for noise in (first, again)]
    assert len(bounds[0]) == 3 and all(a != b for a, b in zip(*bounds, strict=True))


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "a.db", dataset="tiny", change=ADD, unit="epsilon", budget="10")


def test_it_is_charged_with_its_bar_and_says_what_was_filled(ledger, tmp_path):
    """The claim rests on the donors' theorems; parts of confidential scale say so and hold no number."""
    survey = Survey(table(PEOPLE * 20), codebook=book(COLUMNS))
    plan = survey.plan("r-1", epsilon="6", statistics=ASKS, **steps(REPAIR))
    seen: list[str] = []
    out = tmp_path / "out"
    made = Curator(ledger).release(plan, survey, out, step=seen.append)
    assert ledger.spent == plan.cost == Fraction(9, 2)
    document = json.loads((out / "r-1.json").read_bytes())
    assert document["imputation"] == list(plan.repair_words) and len(document["imputation"]) == 2
    assert "proofs/sensitivity/hubs.md" in {each["proof"] for each in document["guarantee"]["rests_on"]}
    hidden, scale = document["statistics"][0]["parts"]
    assert hidden["hidden"] and hidden["scale"] is None and hidden["sensitivity"] is None
    assert scale["what"] == "noise scale" and scale["scale"] > 0
    bill = made["pay bill"][0]
    assert bill["privacy_low"] < bill["value"] < bill["privacy_high"]
    assert (made["women"][0]["privacy_low"] is not None) and not any(
        "hidden" in p for p in document["statistics"][3]["parts"]
    )
    meanings = {each["name"]: each["interval"]["meaning"] for each in document["statistics"]}
    lent = [name for name, meaning in meanings.items() if "published for an earlier one" in meaning]
    assert lent == ["poor"]  # the only other one over all recipients
    assert Curator(ledger).release(plan, survey, out).to_bytes() == made.to_bytes()
    # One step for each ask, and one for each filled column's bound, named before the asks that need it.
    asked = [ask["name"] for ask in ASKS]
    assert seen[:2] == ["charged", "tallied"] and [name for name in seen if name in asked] == asked
    assert seen[2].startswith("bound of pay")


def test_the_curator_sees_how_many_gaps_there_are():
    """Before and after the edits; nothing of it is in a repr."""
    plan = plan_of()
    engine = DuckDBEngine(open_frame(table(PEOPLE)), threads=1)
    try:
        job, pay = gaps(engine, plan)
    finally:
        engine.close()
    assert (job.column, job.before, job.after, job.has_donors) == ("job", 2, 1, False)
    assert (pay.column, pay.before, pay.after, pay.donors, pay.has_donors) == ("pay", 4, 4, 3, True)
    assert not any(character.isdigit() for character in repr(pay))


def test_a_plan_below_what_the_published_noise_is_proved_for_is_refused_before_the_charge(ledger, tmp_path):
    """A mean leaves three quarters of its epsilon to the sum: 1.8 is too little, 1.9 is enough."""
    survey = Survey(table(PEOPLE), codebook=book(COLUMNS))
    repair = [{**REPAIR[1], "bound": "published"}]

    def plan(epsilon: str):
        ask = {"name": "mean pay", "query": {"mean": "pay"}, "epsilon": epsilon}
        return survey.plan("r-1", epsilon="9", statistics=[ask], **steps(repair))

    with pytest.raises(PlanError, match=r"2 ln 2") as problem:
        Curator(ledger).release(plan("1.8"), survey, tmp_path / "out")
    assert problem.value.field == "statistic[0].epsilon" and ledger.spent == 0
    assert wants_of(plan("1.9"))


def test_nobody_answered_is_the_default_and_not_an_error():  # covers B069 B096
    silent = [("f", 20, None, None)] * 3
    plan = plan_of()
    answers = answers_of(plan, silent, ZeroNoise())
    assert answers["ask 0"].estimates[0].value == 150
    assert answers_of(plan, silent, SystemNoise())
