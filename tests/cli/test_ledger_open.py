"""`reticent ledger open`: from a plan, or by name; never half a ledger."""

import pytest

from reticent.cli import main
from reticent.lab.demo import demo_survey
from reticent.privacy.ledger import Ledger


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["reticent", "ledger", "open", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code)


def test_a_plan_says_file_data_set_and_change(monkeypatch, tmp_path):
    demo_survey(tmp_path, rows=500)
    assert run(monkeypatch, "--plan", str(tmp_path / "plan.toml"), "--budget", "2.5") == 0
    facts = Ledger.open(tmp_path / "survey.ledger.db").facts
    assert (facts.dataset, facts.unit, float(facts.budget)) == ("state-2026", "epsilon", 2.5)
    assert facts.change == "one respondent added or removed"


def test_what_is_not_said_is_asked_for_and_nothing_is_made(monkeypatch, tmp_path, capsys):
    path = str(tmp_path / "a.db")
    assert run(monkeypatch, path, "--epsilon", "1") == 2
    assert run(monkeypatch, path, "--dataset", "town") == 2
    assert run(monkeypatch, path, "--dataset", "town", "--epsilon", "0") == 2
    assert run(monkeypatch, "--plan", str(tmp_path / "none.toml"), "--epsilon", "1") == 2
    assert not list(tmp_path.iterdir())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and all(line.startswith("error: ") for line in lines)


def test_a_ledger_in_rho_says_so_and_keeps_its_unit(monkeypatch, tmp_path, capsys):
    """`--rho` opens it; both units at once are refused, and nothing is made."""
    path = str(tmp_path / "a.db")
    assert run(monkeypatch, path, "--dataset", "town", "--epsilon", "1", "--rho", "1") == 2
    assert not list(tmp_path.iterdir())
    assert run(monkeypatch, path, "--dataset", "town", "--rho", "0.5") == 0
    assert "opened a.db for town: rho 0.5" in capsys.readouterr().out
    facts = Ledger.open(tmp_path / "a.db").facts
    assert (facts.unit, float(facts.budget)) == ("rho", 0.5)
