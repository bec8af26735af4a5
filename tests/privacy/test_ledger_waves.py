"""Waves in a ledger: of all waves as many count as a respondent can be in, exactly, and no rows count as two waves."""

import sqlite3
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.privacy.claim import Change
from reticent.privacy.ledger import ChargedWave, Ledger
from reticent.privacy.ledger.entries import canonical, entry_hash
from tests.privacy.ledgers import die, in_child, make, reserve
from tests.privacy.test_ledger_pieces import piece


def wave(name: str = "2026q1", at_most: int = 2, of: int = 5, **more) -> ChargedWave:
    return ChargedWave(name=name, at_most=at_most, of=of, **more)


def charge(ledger: Ledger, release: str, amount: str, of: ChargedWave | None = None, **more):
    return reserve(ledger, release, amount, unit=ledger.facts.unit, wave=of, **more)


def ledger_of(folder: Path, budget: str = "2", unit: str = "rho", **more) -> Ledger:
    return make(folder / "a.db", budget, unit=unit, **more)


def worst(spent: dict[str, Fraction], at_most: int) -> Fraction:
    """The most that anybody can lose: every set of waves that one respondent can be in, one by one."""
    sets = (each for size in range(at_most + 1) for each in combinations(spent.values(), size))
    return max(sum(each, Fraction(0)) for each in sets)


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
@pytest.mark.parametrize("at_most", [1, 2, 3])
def test_spent_is_the_worst_over_all_sets_of_waves(folder, unit, at_most):
    """50 random charges against all sets of waves; refused exactly when the worst set would be over budget."""
    ledger, dice = ledger_of(folder, "1.5", unit), Random(7 + at_most)
    whole, spent, refused = Fraction(0), dict[str, Fraction](), 0
    for turn in range(50):
        amount = dice.choice(["0.1", "0.25", "0.3", "0.000000000001"])
        name = dice.choice([None, "a", "b", "c", "d", "e"])
        after, total = dict(spent), whole + (0 if name else Fraction(amount))
        if name:
            after[name] = after.get(name, Fraction(0)) + Fraction(amount)
        of = wave(name, at_most, again=name in spent) if name else None
        if total + worst(after, at_most) <= Fraction("1.5"):
            held = charge(ledger, f"r{turn}", amount, of)
            grown = total + worst(after, at_most) - whole - worst(spent, at_most)
            assert not name or Fraction(held.receipt.counted) == grown
            whole, spent = total, after
        else:
            refused += 1
            with pytest.raises(BudgetError):
                charge(ledger, f"r{turn}", amount, of)
        assert ledger.spent == whole + worst(spent, at_most) <= Fraction("1.5")
    ledger.verify()
    assert refused and Ledger.open(folder / "a.db").spent == ledger.spent
    assert worst(spent, at_most) < sum(spent.values())  # the naive sum over all waves is larger


def test_twelve_quarters_of_which_four_count(folder):
    """THEORY 16.4: 12 waves of rho 0.02 at w = 4 cost 0.08; the naive largest wave, 0.02, is what one wave alone costs."""
    ledger = ledger_of(folder, "0.08")
    for quarter in range(12):
        charge(ledger, f"r{quarter}", "0.02", wave(f"q{quarter}", 4, 12))
    assert ledger.spent == Fraction("0.08") and ledger.left == 0
    with pytest.raises(BudgetError, match=r"adds 0\.01 to what counts"):
        charge(ledger, "more", "0.01", wave("q3", 4, 12, again=True))


def test_a_small_wave_after_large_ones_adds_nothing(folder):
    ledger = ledger_of(folder, "0.7")
    charge(ledger, "r1", "0.3", wave("a"))
    charge(ledger, "r2", "0.4", wave("b"))
    held = charge(ledger, "r3", "0.2", wave("c"))
    assert held.receipt.counted == "0" and held.receipt.charged == "0.2" and ledger.left == 0
    assert held.receipt.wave.startswith("c; of all waves the 2 most costly count: by design of the sample")


def test_a_wave_twice_is_refused_and_said_what_to_write(folder):
    ledger = ledger_of(folder)
    charge(ledger, "r1", "0.5", wave())
    with pytest.raises(PlanError, match="again = true"):
        charge(ledger, "r2", "0.5", wave())
    assert ledger.spent == Fraction("0.5") and ledger.state("r2") == "none"
    charge(ledger, "r2", "0.5", wave(again=True))
    assert ledger.spent == 1 and ledger.waves().spent == {"2026q1": 1}


def test_the_same_rows_under_two_names_are_refused(folder):
    """With w = 1 two names would count once what was lost twice: the naive twin, without the marks, lets it through."""
    rows, link = folder / "rows.csv", folder / "link.csv"
    rows.write_text("x\n1\n")
    link.symlink_to(rows)
    ledger = ledger_of(folder)
    charge(ledger, "r1", "1.5", wave("a", 1), files=[(rows, "")])
    for again in (False, True):
        with pytest.raises(PlanError, match="released as wave 'a'"):
            charge(ledger, "r2", "1.5", wave("b", 1, again=again), files=[(link, "")])
    charge(ledger, "r3", "1.5", wave("c", 1))
    assert ledger.spent == Fraction("1.5") < 2 * Fraction("1.5")


def test_a_glob_over_two_waves_is_refused(folder):
    files = [(folder / name, "") for name in ("one.csv", "two.csv")]
    for path, _ in files:
        path.write_text("x\n1\n")
    ledger = ledger_of(folder)
    charge(ledger, "r1", "0.5", wave("a"), files=files[:1])
    with pytest.raises(PlanError, match="file of its own"):
        charge(ledger, "r2", "0.5", wave("b"), files=files)


def test_what_reads_all_waves_counts_in_full(folder):
    ledger = ledger_of(folder)
    charge(ledger, "r1", "0.5", wave("a", 1))
    charge(ledger, "r2", "0.5", wave("b", 1))
    charge(ledger, "r3", "0.25")
    assert ledger.spent == Fraction("0.75")


@pytest.mark.parametrize(("at_most", "of"), [(3, 5), (2, 6), (1, 5)])
def test_the_design_is_fixed_by_the_first_wave(folder, at_most, of):
    ledger = ledger_of(folder)
    charge(ledger, "r1", "0.5", wave("a"))
    with pytest.raises(PlanError, match="at_most = 2, of = 5, which cannot be changed"):
        charge(ledger, "r2", "0.5", wave("b", at_most, of))
    assert ledger.spent == Fraction("0.5")


def test_there_are_no_more_waves_than_the_design_has(folder):
    ledger = ledger_of(folder)
    for name in "ab":
        charge(ledger, name, "0.1", wave(name, 1, 2))
    with pytest.raises(PlanError, match="design has 2 waves"):
        charge(ledger, "c", "0.1", wave("c", 1, 2))


@pytest.mark.parametrize(
    "given",
    [
        {"at_most": 0},
        {"at_most": 6},
        {"of": 0},
        {"of": 10**5},
        {"name": ""},
        {"name": "a\nb"},
        {"at_most": True},
    ],
)
def test_a_design_is_a_few_whole_numbers(given):
    with pytest.raises(PlanError):
        wave(**{"name": "a", **given})


def test_pieces_and_waves_do_not_meet(folder):
    """A respondent of two waves may lie in another piece in each; both orders are refused, and both together."""
    facts = {"change": Change.REPLACE.value}
    ledger = make(folder / "a.db", **facts)
    reserve(ledger, "r1", "0.5", wave=wave("a"), **facts)
    with pytest.raises(PlanError, match="pieces or waves"):
        reserve(ledger, "r2", "0.5", piece=piece(), **facts)
    other = make(folder / "b.db", separate_budget=True, **facts)
    reserve(other, "r1", "0.5", piece=piece(), **facts)
    for more in ({}, {"piece": piece(2)}):
        with pytest.raises(PlanError, match="pieces or waves"):
            reserve(other, "r2", "0.5", wave=wave("a"), **facts, **more)
    assert other.waves() is None and ledger.pieces() == {}


def test_a_refused_charge_fixes_no_design(folder):
    ledger = ledger_of(folder)
    with pytest.raises(BudgetError):
        charge(ledger, "r1", "3", wave("a", 1))
    assert ledger.waves() is None
    charge(ledger, "r1", "1", wave("a", 2))
    assert ledger.waves().at_most == 2


def test_a_killed_charge_is_kept_whole_or_not_at_all(folder):
    """The child dies after the charge: the wave was charged once, resumes without a charge, and cannot be charged anew."""
    ledger = ledger_of(folder)
    in_child(lambda: (charge(Ledger.open(folder / "a.db"), "r1", "0.5", wave("a")), die()))()
    assert ledger.waves().spent == {"a": Fraction("0.5")}
    ledger.commit(ledger.resume("r1", "p"), b"late")
    again = charge(ledger, "r1", "0.5", wave("a"))
    assert again.answer == b"late" and ledger.spent == Fraction("0.5")
    ledger.verify([again.receipt.as_dict()])


def test_a_receipt_with_another_wave_is_forged(folder):
    ledger = ledger_of(folder)
    told = charge(ledger, "r1", "0.5", wave("a")).receipt.as_dict()
    ledger.verify([told])
    for changed in ({"wave": told["wave"].replace("a;", "b;")}, {"counted": "0"}):
        with pytest.raises(LedgerError):
            ledger.verify([{**told, **changed}])


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("waves", '"at_most":2', '"at_most":1'),
        ("reserve", '"name":"b"', '"name":"a"'),
        ("waves", '"of":5', '"of":1'),
    ],
)
def test_an_entry_that_breaks_the_rules_is_noticed_though_its_hash_fits(folder, kind, old, new):
    """Rewritten with a fresh chain of hashes: the second wave under the first one's name, one wave too many, or two
    charges that no longer fit the head file."""
    ledger = ledger_of(folder)
    charge(ledger, "r1", "0.5", wave("a"))
    charge(ledger, "r2", "0.5", wave("b"))
    with sqlite3.connect(folder / "a.db") as connection:
        rows = connection.execute("SELECT number, kind, body FROM entry ORDER BY number").fetchall()
        previous = "0" * 64
        for number, what, body in rows:
            body = body.replace(old, new) if what == kind else body
            own = entry_hash(number, what, body, previous)
            connection.execute(
                "UPDATE entry SET body = ?, previous = ?, hash = ? WHERE number = ?",
                (body, previous, own, number),
            )
            previous = own
    with pytest.raises(LedgerError):
        Ledger.open(folder / "a.db")


def test_the_marks_of_files_are_not_shown(folder):
    rows = folder / "rows.csv"
    rows.write_text("x\n1\n")
    ledger = ledger_of(folder)
    held = charge(ledger, "r1", "0.5", wave("a"), files=[(rows, "")])
    (marks,) = ledger.waves().marks.values()
    shown = CliRunner().invoke(app, ["ledger", "show", str(folder / "a.db")])
    assert shown.exit_code == 0 and "at_most 2" in shown.output
    told = shown.output + canonical(held.receipt.as_dict()) + repr(ledger.waves())
    assert marks and not any(mark in told for mark in marks)


def test_spent_tells_the_waves_and_both_units(folder):
    ledger = ledger_of(folder)
    for place, name in enumerate("abc"):
        charge(ledger, name, f"0.0{place + 2}", wave(name))
    told = CliRunner().invoke(app, ["ledger", "spent", str(folder / "a.db"), "--delta", "0.00001"])
    assert told.exit_code == 0
    assert "rho 0.07 spent of 2, 1.93 left" in told.output
    assert "spent: rho = 0.07, that is (1." in told.output and "0.00001)-DP" in told.output
    assert (
        "charged to a 0.02, b 0.03, c 0.04; the 2 most costly count: by design of the sample" in told.output
    )
