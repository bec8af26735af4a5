"""One ledger, one writer: charge first, answer once, exact sums, no quiet raise."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.privacy.ledger import Ledger
from reticent.privacy.ledger import entries as chain
from tests.privacy.ledgers import FACTS, FILES, make, release, reserve


def test_a_release_goes_from_none_to_published(path):
    """Each state is on disk before the next: a second reader sees it."""
    # covers L02
    ledger = make(path)
    seen = [Ledger.open(path).state("r1")]
    held = reserve(ledger)
    seen.append(Ledger.open(path).state("r1"))
    ledger.commit(held, b"answer")
    seen.append(Ledger.open(path).state("r1"))
    ledger.publish("r1", FILES)
    seen.append(Ledger.open(path).state("r1"))
    assert seen == ["none", "reserved", "committed", "published"]


def test_nothing_is_published_before_its_answer_is_kept(path):
    # covers L02
    ledger = make(path)
    with pytest.raises(LedgerError):
        ledger.publish("r1", FILES)
    reserve(ledger)
    with pytest.raises(LedgerError):
        ledger.publish("r1", FILES)


def test_ten_tenths_make_one(path):
    """Exactly ten releases of 0.1 fit a budget of 1."""
    # covers T17 L08
    ledger = make(path, budget="1")
    done = 0
    with pytest.raises(BudgetError):
        for done in range(20):
            reserve(ledger, f"r{done}", "0.1")
    assert done == 10 and ledger.left == 0


def test_floats_do_not_make_one():
    """The naive twin of the test above: 0.1 summed in floats leaves room for an eleventh."""
    # covers T17
    spent, done = 0.0, 0
    while spent < 1.0:  # "something is left"
        spent, done = spent + 0.1, done + 1
    assert done == 11 and spent > 1


def test_sums_are_of_decimals(path):
    """0.1 and 0.2 are 0.3."""
    # covers L08
    ledger = make(path, budget="0.3")
    reserve(ledger, "a", "0.1")
    last = reserve(ledger, "b", "0.2")
    assert ledger.spent == Fraction("0.3") and last.receipt.left_after == "0"
    assert 0.1 + 0.2 > 0.3  # the naive sum would have been refused


@pytest.mark.parametrize(
    "amount",
    [Fraction(1, 3), Fraction(-1), Fraction(0), Fraction(1, 10**13), Fraction(10**12), 0.5, True, "1"],
)
def test_amounts_without_an_exact_decimal_are_refused(path, amount):
    # covers L08
    ledger = make(path)
    with pytest.raises(PlanError):
        ledger.reserve(release_id="r", plan_hash="p", amount=amount, claim={}, **FACTS)
    assert ledger.spent == 0


@pytest.mark.parametrize(
    "budget", ["0", "1e3", "-1", "+1", "1.", ".5", "٣", "1/3", "inf", "NaN", "", "1 ", "1\n", 1, 1.5]
)
def test_budgets_are_plain_decimals(path, budget):
    # covers L08
    with pytest.raises(PlanError):
        make(path, budget=budget)
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(path)


def test_a_refused_release_says_what_is_left(path):
    ledger = make(path, budget="2")
    reserve(ledger, "r1", "1.25")
    with pytest.raises(BudgetError, match=r"costs 1, but 0.75 of 2 is left") as refused:
        reserve(ledger, "r2", "1")
    assert refused.value.status == 3 and ledger.state("r2") == "none"


def test_same_id_and_plan_give_the_same_bytes_and_no_charge(path):
    # covers T30 L06
    ledger = make(path)
    first = release(ledger, answer=b"noisy")
    again = reserve(Ledger.open(path))
    assert (again.fresh, again.answer, again.receipt) == (False, b"noisy", first.receipt)
    assert ledger.spent == 1


def test_a_new_id_is_a_new_charge(path):
    # covers T30
    ledger = make(path)
    release(ledger, "r1")
    assert reserve(ledger, "r2").fresh and ledger.spent == 2


def test_same_id_with_another_plan_is_refused(path):
    # covers L06
    ledger = make(path)
    release(ledger)
    with pytest.raises(PlanError, match="another plan"):
        reserve(ledger, plan="q")
    with pytest.raises(PlanError, match="another plan"):
        ledger.resume("r1", "q")


def test_a_release_at_work_is_not_run_twice(path):
    # covers L06
    ledger = make(path)
    reserve(ledger)
    with pytest.raises(LedgerError, match="resume r1"):
        reserve(ledger)
    assert ledger.spent == 1


def test_resume_gives_one_more_try_and_no_charge(path):
    # covers L04
    ledger = make(path)
    reserve(ledger)
    held = ledger.resume("r1", "p")
    assert held.fresh and ledger.spent == 1
    with pytest.raises(LedgerError, match="new release id"):
        ledger.resume("r1", "p")
    ledger.commit(held, b"late")
    assert ledger.answer("r1") == b"late"


def test_who_was_resumed_elsewhere_cannot_answer(path):
    """Two runs, two draws of noise, one right: only the resumed run's answer is kept."""
    # covers L04
    ledger = make(path)
    slow = reserve(ledger)
    quick = ledger.resume("r1", "p")
    with pytest.raises(LedgerError, match="another run"):
        ledger.commit(slow, b"slow")
    ledger.commit(quick, b"quick")
    assert ledger.answer("r1") == b"quick"


def test_resume_of_a_kept_answer_gives_the_same_bytes_every_time(path):
    # covers L05
    ledger = make(path)
    ledger.commit(reserve(ledger), b"noisy")
    assert [ledger.resume("r1", "p").answer for _ in range(3)] == [b"noisy"] * 3
    ledger.publish("r1", FILES)
    assert ledger.resume("r1", "p").answer == b"noisy" and ledger.spent == 1


def test_an_answer_is_kept_once(path):
    """By no door: the same right twice, a right made up, or the reservation of one who only got the bytes."""
    ledger = make(path)
    held = reserve(ledger)
    with pytest.raises(LedgerError):
        ledger.commit(replace(held, holder="00" * 32), b"forged")
    ledger.commit(held, b"first")
    for again in (held, replace(reserve(ledger), fresh=True)):
        with pytest.raises(LedgerError, match="already"):
            ledger.commit(again, b"second")
    assert ledger.answer("r1") == b"first"


def test_publishing_the_same_files_twice_is_recorded_once(path):
    ledger = make(path)
    release(ledger)
    ledger.publish("r1", FILES)
    with pytest.raises(LedgerError):
        ledger.publish("r1", {"other.json": "cd" * 32})
    assert [each.kind for each in ledger.entries()] == ["open", "reserve", "commit", "publish"]


@pytest.mark.parametrize(
    "other", [{"dataset": "x"}, {"change": "one respondent's answers replaced"}, {"unit": "rho"}]
)
def test_a_plan_under_other_facts_is_refused(path, other):
    # covers L12
    ledger = make(path)
    with pytest.raises(PlanError) as refused:
        reserve(ledger, **other)
    assert refused.value.status == 2 and ledger.spent == 0


def test_a_raise_has_a_reason_and_every_later_receipt_says_so(path):
    # covers L12
    ledger = make(path, budget="1")
    before = release(ledger, "r1").receipt
    ledger.note("second wave", raise_budget_to="2.5")
    after = [release(ledger, name, "0.5").receipt for name in ("r2", "r3")]
    told = [{"entry": 5, "from": "1", "to": "2.5", "reason": "second wave"}]
    assert before.as_dict()["raises"] == []
    assert [each.as_dict()["raises"] for each in after] == [told, told]
    assert ledger.facts.budget == Fraction("2.5") and ledger.left == Fraction("0.5")


@pytest.mark.parametrize(
    ("text", "budget"), [("", "20"), (" ", "20"), ("why", "10"), ("why", "9"), ("a\nb", None)]
)
def test_a_raise_without_reason_or_downwards_is_refused(path, text, budget):
    # covers L12
    ledger = make(path)
    with pytest.raises(PlanError):
        ledger.note(text, raise_budget_to=budget)
    assert ledger.facts.budget == 10 and ledger.facts.raises == ()


def test_the_clock_orders_nothing(path, monkeypatch):
    """Back a year, forward ten, a leap second: same order, same sums, nothing renewed."""
    # covers L14
    ledger = make(path, budget="3")
    for name, time in (("r1", "2025-07-01"), ("r2", "2036-01-01"), ("r3", "2016-12-31T23:59:60")):
        monkeypatch.setattr(chain, "clock", lambda time=time: time)
        release(ledger, name)
    ledger.verify()
    assert [each.number for each in ledger.entries()] == list(range(1, 11))
    with pytest.raises(BudgetError):
        reserve(ledger, "r4")


def test_a_receipt_is_plain_json_and_holds_no_time(path):
    receipt = reserve(make(path), amount="1.50").receipt.as_dict()
    assert json.loads(json.dumps(receipt)) == receipt
    assert list(receipt) == [
        "ledger", "dataset", "entry", "hash", "previous", "release", "unit",
        "charged", "spent_before", "left_after", "raises",
    ]  # fmt: skip
    assert (receipt["charged"], receipt["spent_before"], receipt["left_after"]) == ("1.5", "0", "8.5")


def test_a_reader_cannot_find_the_time_of_an_answer_by_trying_seconds(path):
    """The hash in a later receipt covers an entry a reader can guess but for the clock; a salt hides it."""
    ledger = make(path)
    release(ledger)
    entry = list(ledger.entries())[2]
    guess = {name: value for name, value in entry.body.items() if name != "salt"}
    tries = {"with salt": entry.body, "without": guess}
    found = {
        name: chain.entry_hash(3, "commit", chain.canonical(body), entry.previous) == entry.hash
        for name, body in tries.items()
    }
    assert found == {"with salt": True, "without": False}


@pytest.mark.parametrize("claim", [{"x": float("nan")}, {"x": object()}, {1: "x"}, {"x": (1,)}])
def test_a_claim_reads_back_as_written_or_is_refused(path, claim):
    with pytest.raises(PlanError):
        reserve(make(path), claim=claim)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0b", "\u202etxt", "x" * 300])
def test_odd_release_ids_are_refused(path, name):
    # covers B098
    ledger = make(path)
    with pytest.raises(PlanError):
        reserve(ledger, name)
    assert ledger.spent == 0


def test_the_guide_runs(folder, monkeypatch):
    """Every example on the page about the ledger, in order."""
    page = Path(__file__).parents[2] / "docs" / "howto" / "ledger.md"
    monkeypatch.chdir(folder)
    examples = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    exec("\n".join(examples), {})  # noqa: S102 - our own page
    assert len(examples) == 7
