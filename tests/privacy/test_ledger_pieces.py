"""Pieces in a ledger: of a partition the piece that was charged most counts, exactly, and its key is never shown."""

import sqlite3
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.privacy.claim import Change
from reticent.privacy.ledger import ChargedPiece, Ledger
from tests.privacy.ledgers import make, reserve

REPLACE = Change.REPLACE.value
BINDS = "cd" * 32


def piece(number: int = 1, name: str = "purposes", *, pieces: int = 3, **changes) -> ChargedPiece:
    given = {"parts": ("10",) * pieces, "draw": "fixed sizes", "binds": BINDS, **changes}
    return ChargedPiece(partition=name, number=number, **given)


def charge(ledger: Ledger, release: str, amount: str, of: ChargedPiece | None = None):
    return reserve(ledger, release, amount, change=REPLACE, piece=of)


def ledger_of(tmp_path: Path, budget: str = "2") -> Ledger:
    return make(tmp_path / "a.db", budget, change=REPLACE)


def test_spent_is_the_whole_and_the_most_of_every_partition(tmp_path):
    """60 random charges against a model of three lines; refused exactly when the model is over budget."""
    ledger, dice = ledger_of(tmp_path, "3"), Random(5)
    whole, cuts = Fraction(0), {"a": [Fraction(0)] * 3, "b": [Fraction(0)] * 3}
    for turn in range(60):
        amount = dice.choice(["0.1", "0.25", "0.3", "0.000000000001"])
        name, number = dice.choice([None, "a", "b", "a", "b"]), dice.randint(1, 3)
        after = {key: list(spent) for key, spent in cuts.items()}
        total = whole + (0 if name else Fraction(amount))
        if name:
            after[name][number - 1] += Fraction(amount)
        fits = total + sum(max(spent) for spent in after.values()) <= 3
        of = piece(number, name) if name else None
        if fits:
            held = charge(ledger, f"r{turn}", amount, of)
            whole, cuts = total, after
            assert held.receipt.piece == (f"{number} of {name}" if name else "")
            assert ledger.left == Fraction(held.receipt.left_after)
        else:
            with pytest.raises(BudgetError):
                charge(ledger, f"r{turn}", amount, of)
        assert ledger.spent == whole + sum(max(spent) for spent in cuts.values()) <= 3
    ledger.verify()
    assert Ledger.open(tmp_path / "a.db").spent == ledger.spent
    assert set(ledger.pieces()) <= {"a", "b"} and not fits


def test_each_piece_has_the_full_budget_and_the_sum_does_not_count(tmp_path):
    """The naive twin adds up: it would refuse the second piece."""
    ledger = ledger_of(tmp_path)
    for number in (1, 2, 3):
        charge(ledger, f"r{number}", "2", piece(number))
    assert ledger.spent == 2 and ledger.left == 0 and sum(ledger.pieces()["purposes"]) == 6
    with pytest.raises(BudgetError):
        charge(ledger, "more", "0.1", piece(1))
    with pytest.raises(BudgetError):
        charge(ledger, "all", "0.1")


def test_a_key_is_drawn_once_kept_and_not_shown(tmp_path):
    ledger = ledger_of(tmp_path)
    held = charge(ledger, "r1", "0.5", piece(1))
    key = ledger.key("purposes")
    charge(ledger, "r2", "0.5", piece(2))
    charge(ledger, "r3", "0.5", piece(1, "other"))
    assert Ledger.open(tmp_path / "a.db").key("purposes") == key != ledger.key("other")
    assert len(key) == 64 and key not in repr(held) + str(held.receipt.as_dict())
    for command in ("show", "spent"):
        shown = CliRunner().invoke(app, ["ledger", command, str(tmp_path / "a.db")])
        assert shown.exit_code == 0 and key not in shown.output and "purposes" in shown.output
    with pytest.raises(LedgerError):
        ledger.key("none")


def test_nothing_public_gives_a_key_away(tmp_path):
    """The same partition of the same survey in two ledgers: other keys. A key made of its name, the naive twin, is one and the
    same, and whoever reads the plan has it."""
    keys = []
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        ledger = ledger_of(tmp_path / place)
        charge(ledger, "r1", "0.5", piece(1))
        keys.append(ledger.key("purposes"))
    naive = [sha256(piece(1).partition.encode()).hexdigest() for _ in keys]
    assert len(set(keys)) == 2 > len(set(naive))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"parts": ("10", "20")}, "other pieces"),
        ({"draw": "each on their own"}, "other pieces"),
        ({"binds": "ee" * 32}, "codebook has changed"),
    ],
)
def test_another_cut_under_the_same_name_is_refused(tmp_path, change, match):
    """It would put respondents into two pieces that are charged as if they were apart."""
    ledger = ledger_of(tmp_path)
    charge(ledger, "r1", "0.5", piece(1))
    with pytest.raises(PlanError, match=match):
        charge(ledger, "r2", "0.5", piece(2, **change))
    assert ledger.spent == Fraction("0.5") and ledger.state("r2") == "none"


def test_cuts_without_a_theorem_are_refused(tmp_path):
    """Fixed sizes against adding or removing, and a ledger in rho; a refusal leaves no partition behind."""
    for name, facts in (("a.db", {}), ("b.db", {"unit": "rho", "change": REPLACE, "separate_budget": True})):
        ledger = make(tmp_path / name, **facts)
        facts.pop("separate_budget", None)
        with pytest.raises(PlanError, match="worked out"):
            reserve(ledger, "r1", "1", piece=piece(), **facts)
        assert ledger.pieces() == {}
    add = Ledger.open(tmp_path / "a.db")
    reserve(add, "r1", "1", piece=piece(draw="each on their own"))
    assert add.spent == 1


@pytest.mark.parametrize("number", [0, 4])
def test_pieces_are_numbered_within_the_cut(number):
    with pytest.raises(PlanError, match="numbered"):
        piece(number)


def test_a_refused_charge_makes_no_partition(tmp_path):
    ledger = ledger_of(tmp_path)
    with pytest.raises(BudgetError):
        charge(ledger, "r1", "3", piece(1))
    assert ledger.pieces() == {} and ledger.spent == 0


def test_the_same_release_again_is_not_charged_again(tmp_path):
    ledger = ledger_of(tmp_path)
    held = charge(ledger, "r1", "0.5", piece(1))
    ledger.commit(held, b"answer")
    again = charge(ledger, "r1", "0.5", piece(1))
    assert again.answer == b"answer" and ledger.spent == Fraction("0.5")
    ledger.verify([held.receipt.as_dict()])
    forged = {**held.receipt.as_dict(), "piece": "2 of purposes"}
    with pytest.raises(LedgerError):
        ledger.verify([forged])


def test_a_changed_key_breaks_the_chain(tmp_path):
    ledger = ledger_of(tmp_path)
    charge(ledger, "r1", "0.5", piece(1))
    key = ledger.key("purposes")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(
            "UPDATE entry SET body = replace(body, ?, ?) WHERE kind = 'partition'", (key, "0" * 64)
        )
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path / "a.db")
