"""Sign-off: no charge without as many valid signatures as the ledger asks for, whoever writes and whatever is rewritten."""

import json
import sqlite3
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.privacy.ledger import Approval, ApproverKey, Ledger, SignOff
from reticent.privacy.ledger.approvals import MissingPartError, message
from reticent.privacy.ledger.entries import canonical, entry_hash
from tests.privacy.ledgers import die, in_child, make, reserve

pytest.importorskip("cryptography", reason="signatures need the extra [sign]")

ANNA, BEN, EVE = (ApproverKey.make() for _ in range(3))
PEOPLE = {"Anna": ANNA.public, "Ben": BEN.public, "Cleo": ApproverKey.make().public}


def signed_off(folder: Path, needed: int = 2, **more) -> Ledger:
    return make(folder / "a.db", sign_off=SignOff(needed=needed, approvers=PEOPLE), **more)


def approval(book: Ledger, key: ApproverKey, by: str, **changes) -> Approval:
    facts = {"ledger": book.facts.ledger, "release": "r1", "plan": "p", "amount": Fraction(1), **changes}
    return key.approve(by=by, **facts)


def test_a_charge_waits_for_as_many_approvals_as_are_asked_for(folder):
    ledger = signed_off(folder)
    for by, key in (("Anna", ANNA), ("Ben", BEN)):
        with pytest.raises(BudgetError, match=r"asks for 2 approvals .* Nothing was charged"):
            reserve(ledger)
        ledger.approve(approval(ledger, key, by))
    held = reserve(Ledger.open(folder / "a.db"))
    assert held.fresh and held.receipt.as_dict()["approved_by"] == ["Anna", "Ben"]
    ledger.verify([held.receipt.as_dict()])
    assert [each.kind for each in ledger.entries()] == ["open", "sign-off", "approve", "approve", "reserve"]


def test_one_person_twice_is_one_person(folder):
    """Nor does it grow the ledger. The naive twin counts entries."""
    ledger = signed_off(folder)
    for _ in range(2):
        ledger.approve(approval(ledger, ANNA, "Anna"))
    with pytest.raises(BudgetError, match="has 1"):
        reserve(ledger)
    assert len(list(ledger.entries())) == 3


@pytest.mark.parametrize(
    ("key", "by", "changes"),
    [
        (EVE, "Anna", {}),
        (EVE, "Eve", {}),
        (ANNA, "Ben", {}),
        (ANNA, "Anna", {"ledger": "0" * 32}),
    ],
)
def test_a_signature_of_somebody_else_or_for_something_else_is_refused(folder, key, by, changes):
    ledger = signed_off(folder)
    with pytest.raises(PlanError, match="nothing was added"):
        ledger.approve(approval(ledger, key, by, **changes))
    assert len(list(ledger.entries())) == 2


@pytest.mark.parametrize("changes", [{"release": "r2"}, {"plan": "q"}, {"amount": Fraction(2)}])
def test_an_approval_holds_for_one_release_plan_and_amount(folder, changes):
    """What was approved for another plan, or at another price, opens nothing."""
    ledger = signed_off(folder, needed=1)
    ledger.approve(approval(ledger, ANNA, "Anna", **changes))
    with pytest.raises(BudgetError):
        reserve(ledger)
    assert ledger.spent == 0


def test_words_that_are_swapped_inside_an_approval_are_noticed():
    """Every pair of charges has another message: no text can be read as two charges."""
    names = ("a", "b", 'a","b', "1", "")
    seen = {message(*each) for each in product(names, repeat=4)}
    assert len(seen) == len(names) ** 4


def rewritten(path: Path, kind: str, change) -> None:
    """Change one entry and mend every hash after it, as one would who knows how the chain is made."""
    path.with_name(path.name + ".head").unlink()
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT number, kind, body FROM entry ORDER BY number").fetchall()
        previous = "0" * 64
        for number, own, body in rows:
            text = canonical(change(json.loads(body))) if own == kind else body
            hashed = entry_hash(number, own, text, previous)
            connection.execute(
                "UPDATE entry SET body = ?, previous = ?, hash = ? WHERE number = ?",
                (text, previous, hashed, number),
            )
            previous = hashed
    connection.close()


def naive_covers(bodies: list[dict], needed: int) -> bool:
    """The naive twin: names are counted and signatures believed."""
    return len({body["by"] for body in bodies}) >= needed


def test_an_approval_that_was_rewritten_with_all_hashes_mended_is_noticed(folder):
    """Anna's approval turned into Ben's: the chain fits, the signature does not."""
    ledger = signed_off(folder)
    for by, key in (("Anna", ANNA), ("Ben", BEN)):
        ledger.approve(approval(ledger, key, by))
    forged = approval(ledger, EVE, "Cleo").as_dict()
    assert naive_covers([approval(ledger, ANNA, "Anna").as_dict(), forged], 2)
    rewritten(folder / "a.db", "approve", lambda body: {**body, **forged} if body["by"] == "Ben" else body)
    with pytest.raises(LedgerError, match="entry 4 breaks the rules"):
        Ledger.open(folder / "a.db")


def test_a_charge_without_approvals_cannot_stand_in_the_chain(folder):
    """A ledger without sign-off, turned into one with it: the charge that was made no longer fits."""
    ledger = make(folder / "a.db")
    ledger.note("in the place of the entry on sign-off")
    reserve(ledger)
    path = folder / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET kind = 'sign-off' WHERE number = 2")
    connection.close()
    rewritten(path, "sign-off", lambda body: {**body, "needed": 1, "approvers": PEOPLE})
    with pytest.raises(LedgerError, match="entry 3 breaks the rules"):
        Ledger.open(path)


def test_sign_off_comes_with_the_first_entry_or_never(folder):
    ledger = make(folder / "a.db")
    ledger.note("one"), ledger.note("two")
    path = folder / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET kind = 'sign-off' WHERE number = 3")
    connection.close()
    rewritten(path, "sign-off", lambda body: {**body, "needed": 1, "approvers": PEOPLE})
    with pytest.raises(LedgerError, match="entry 3 breaks the rules"):
        Ledger.open(path)


def test_what_was_charged_cannot_be_approved_and_what_needs_none_neither(folder):
    ledger = signed_off(folder, needed=1)
    ledger.approve(approval(ledger, ANNA, "Anna"))
    reserve(ledger)
    with pytest.raises(PlanError, match="was charged already"):
        ledger.approve(approval(ledger, BEN, "Ben"))
    plain = make(folder / "b.db", dataset="another")
    with pytest.raises(PlanError, match="asks for no approval"):
        plain.approve(approval(plain, ANNA, "Anna"))


@pytest.mark.parametrize("needed", [0, 4, True, "2"])
def test_terms_that_cannot_be_met_are_refused(needed):
    with pytest.raises(PlanError):
        SignOff(needed=needed, approvers=PEOPLE)


def test_two_names_for_one_key_are_refused():
    """Otherwise one person would be two."""
    with pytest.raises(PlanError, match="key of their own"):
        SignOff(needed=2, approvers={"Anna": ANNA.public, "Also Anna": ANNA.public})


def test_a_ledger_cut_off_before_its_head_is_still_one_with_sign_off(folder):
    ledger = signed_off(folder)
    (folder / "a.db.head").unlink()
    again = Ledger.open(folder / "a.db")
    assert again.sign_off is not None and again.sign_off.needed == 2 and ledger.left == again.left


def test_an_approver_who_dies_inside_the_transaction_leaves_nothing(folder, monkeypatch):
    ledger = signed_off(folder, needed=1)
    given = approval(ledger, ANNA, "Anna")

    def work():
        monkeypatch.setattr("reticent.privacy.ledger.entries.entry_hash", lambda *_: die())
        ledger.approve(given)

    assert in_child(work)() < 0
    with pytest.raises(BudgetError):
        reserve(Ledger.open(folder / "a.db", timeout=5))


def test_without_the_part_the_ledger_says_what_to_install(folder, monkeypatch):
    ledger = signed_off(folder, needed=1)
    ledger.approve(approval(ledger, ANNA, "Anna"))
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(MissingPartError, match=r"reticent\[sign\]"):
        Ledger.open(folder / "a.db")


def test_keys_are_their_owners_alone_and_locked_ones_need_their_passphrase(folder):
    ANNA.save(folder / "plain.key")
    BEN.save(folder / "locked.key", "open sesame")
    assert (folder / "plain.key").stat().st_mode & 0o777 == 0o600
    assert ApproverKey.load(folder / "plain.key").public == ANNA.public
    assert ApproverKey.load(folder / "locked.key", lambda: "open sesame").public == BEN.public
    with pytest.raises(PlanError, match="passphrase"):
        ApproverKey.load(folder / "locked.key", lambda: "another")
    with pytest.raises(PlanError):
        ApproverKey.load(folder / "a.db")
    assert "Ed25519" not in repr(ANNA)


PLAN = """
format = 2
[survey]
source = "rows.csv"
codebook = "codebook.toml"
ledger = "survey.ledger.db"
[release]
id = "first"
[protect]
change = "one respondent added or removed"
epsilon = 1
[[statistic]]
name = "everybody"
query = { count = "*" }
epsilon = 1
"""
CODEBOOK = """
format = 2
[survey]
name = "a survey"
unit = "row"
[columns.age]
kind = "integer"
bounds = [0, 99]
"""


def call(*words: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in words], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_the_whole_way_on_the_command_line(folder, monkeypatch):
    """Two keys, a ledger, one approval here and one signed elsewhere; then the release goes through, and not before."""
    monkeypatch.setattr("reticent.cli.plans.drawn", tuple)
    (folder / "plan.toml").write_text(PLAN)
    (folder / "codebook.toml").write_text(CODEBOOK)
    (folder / "rows.csv").write_text("age\n30\n40\n")
    plan = folder / "plan.toml"
    for name in ("anna", "ben"):
        call("ledger", "key", name.title(), "--out", folder / f"{name}.key")
    told = call(
        *("ledger", "open", "--plan", plan, "--epsilon", 5, "--sign-off", 2),
        *("--approver", folder / "anna.pub", "--approver", folder / "ben.pub"),
    )
    assert "every charge needs 2 approvals, by any of: Anna, Ben" in told
    assert "1 of 2 approvals: Anna" in call("ledger", "approve", plan, "--key", folder / "anna.key")
    with pytest.raises(BudgetError, match="asks for 2 approvals"):
        call("release", plan)
    (folder / "ben.json").write_text(
        call("ledger", "approve", plan, "--key", folder / "ben.key", "--detached")
    )
    assert "has 1" in str(_refused(plan))
    assert "2 of 2" in call("ledger", "approve", plan, "--approval", folder / "ben.json")
    call("release", plan)
    receipt = json.loads((folder / "releases/first.json").read_text())["receipt"]
    assert receipt["approved_by"] == ["Anna", "Ben"]
    shown = call("ledger", "show", folder / "survey.ledger.db")
    assert "approve" in shown and "signature" not in shown
    plan.write_text(PLAN.replace("epsilon = 1", "epsilon = 2").replace('"first"', '"second"'))
    with pytest.raises(PlanError, match="another plan"):
        call("ledger", "approve", plan, "--approval", folder / "ben.json")


def _refused(plan: Path) -> BudgetError:
    with pytest.raises(BudgetError) as refused:
        call("release", plan)
    return refused.value
