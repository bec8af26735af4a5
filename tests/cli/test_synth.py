"""`reticent synth` and the other doors onto a plan with synthetic tables, end to end."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reticent.privacy.ledger import Ledger
from reticent.release import synth as synth_run
from tests.badinput.house import assert_refused, run
from tests.doubles import passed
from tests.release.synthetic import rows

CODEBOOK = """
[survey]
name = "town"
unit = "row"

[columns.age]
kind = "integer"
bounds = [0, 99]

[columns.sex]
kind = "categorical"
levels = ["f", "=1+1"]
source = "Sex, as told"

[columns.job]
kind = "categorical"
levels = ["yes", "no, never"]
universe = "age >= 15"
"""
PLAN = """
[survey]
source = "town.parquet"
codebook = "town.toml"
ledger = "town.db"

[release]
id = "town-1"

[protect]
change = "one respondent added or removed"
epsilon = "3"
delta = "0.000001"
"""
SYNTH = """
[[synth]]
name = "the town"
method = "mst"
rows = 150
epsilon = "1"
delta = "0.000001"
never = ["age >= 95 and sex = 'f'"]
point_masses = { age = ["40"] }
"""
ASK = """
[[statistic]]
name = "all"
query = { count = "*" }
epsilon = "0.5"
"""


class Town:
    """A folder with rows, codebook, plan and ledger."""

    def __init__(self, folder: Path, *sections: str) -> None:
        self.folder, self.path = folder, str(folder / "plan.toml")
        pq.write_table(rows(300), folder / "town.parquet")
        (folder / "town.toml").write_text(CODEBOOK)
        self.write(*sections)
        assert run("ledger", "open", "--plan", self.path, "--epsilon", "10").status == 0

    def write(self, *sections: str) -> None:
        (self.folder / "plan.toml").write_text("".join((PLAN, *sections)))

    @property
    def ledger(self) -> Ledger:
        return Ledger.open(self.folder / "town.db")

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.folder / "releases").iterdir()}


def test_a_preview_says_what_will_be_promised_spent_and_written(tmp_path: Path):
    """And reads no row: there is no file."""
    town = Town(tmp_path, ASK, SYNTH)
    (tmp_path / "town.parquet").unlink()
    seen = run("preview", town.path)
    assert seen.status == 0 and "cost 1.5 of at most 3" in seen.out
    assert "the town: (1, 0.000001)-DP, one respondent added or removed" in seen.out
    assert "150 rows of 3 columns by mst" in seen.out and "town-1.1.synth.csv" in seen.out
    assert (
        "no row with: age >= 95 and sex = 'f'" in seen.out
        and "point masses of age, each a bin of its own: 40" in seen.out
    )
    told = json.loads(run("preview", town.path, "--json").out)
    assert told["synth"][0]["rows"] == 150 and told["guarantee"]["delta"] == "0.000001"
    assert told["synth"][0]["cells"] == {"age": 19, "sex": 3, "job": 4}


def test_a_rehearsal_makes_rows_of_nobody_and_charges_nothing(tmp_path: Path):
    town = Town(tmp_path, SYNTH)
    (tmp_path / "town.parquet").unlink()
    seen = run("rehearse", town.path, "--out", str(tmp_path))
    assert seen.status == 0 and "REHEARSAL" in seen.out and "150 synthetic rows by mst" in seen.out
    assert town.ledger.spent == 0 and not list(tmp_path.glob("*.synth.csv"))
    assert b"Not a release" in (tmp_path / "rehearsal-town-1.html").read_bytes()


# covers L06
def test_a_plan_of_synthetic_tables_alone_is_released_by_either_door(tmp_path: Path):
    """The same id, the same digest, the same bytes, one charge."""
    town = Town(tmp_path, SYNTH)
    seen = run("synth", town.path)
    assert seen.status == 0 and seen.err == ""
    assert "the town: 150 synthetic rows by mst in town-1.1.synth.csv" in seen.out
    before = town.files()
    assert {"town-1.1.synth.csv", "town-1.1.synth.parquet", "town-1.json"} <= set(before)
    assert run("release", town.path).status == run("synth", town.path).status == 0
    assert town.files() == before and town.ledger.spent == 1


def test_beside_asks_the_synthetic_part_is_a_release_of_its_own(tmp_path: Path):
    """Neither answered nor charged; the whole plan can still be released, and is charged in full."""
    town = Town(tmp_path, ASK, SYNTH)
    assert run("synth", town.path).status == 0
    assert town.ledger.spent == 1
    document = json.loads(town.files()["town-1-synth.json"])
    assert document["statistics"] == [] and document["guarantee"]["epsilon"] == "1"
    assert run("release", town.path).status == 0
    assert town.ledger.spent == 1 + 1.5
    words = " ".join(run("synth", "--help").out.split())
    assert "followed by -synth" in words and "charges its synthetic tables once more" in words


def test_what_was_cut_off_is_resumed(tmp_path: Path, monkeypatch):
    """Status 130, charged; then finished without a new charge."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    town = Town(tmp_path, ASK, SYNTH)
    with monkeypatch.context() as patch:
        passed(patch)
        patch.setattr(synth_run, "learn", interrupted)
        assert_refused(run("synth", town.path), "interrupted", status=130)
    assert town.ledger.spent == 1 and not (tmp_path / "releases").exists()
    assert_refused(run("synth", town.path), "resume", status=5)
    assert run("synth", town.path, "--resume").status == 0
    assert town.ledger.spent == 1 and "town-1-synth.1.synth.csv" in town.files()


def test_statuses_are_those_of_release(tmp_path: Path):
    """2 for a plan without a synthetic table or with a wrong one, 3 for a short ledger."""
    town = Town(tmp_path, SYNTH)
    (tmp_path / "asks.toml").write_text(PLAN.replace('delta = "0.000001"', "") + ASK)
    assert_refused(run("synth", str(tmp_path / "asks.toml")), "synth: holds no synthetic table")
    town.write(SYNTH.replace("mst", "mts"))
    assert_refused(run("synth", town.path), "synth 'the town'.method", "did you mean 'mst'")
    run(
        "ledger",
        "open",
        str(tmp_path / "short.db"),
        "--dataset",
        "town",
        "--epsilon",
        "0.5",
        "--separate-budget",
    )
    town.write(SYNTH)
    assert_refused(run("synth", town.path, "--ledger", str(tmp_path / "short.db")), status=3)
    assert town.ledger.spent == 0


# covers T13 T14
@pytest.mark.parametrize("method", ["independent", "mst"])
def test_nothing_is_said_of_odd_rows(method: str, tmp_path: Path):
    """Cells that fit nothing, a table without a row: status and text are those of any other."""
    town = Town(tmp_path, SYNTH.replace("mst", method))
    said = []
    for place, table in enumerate((rows(300), rows(0), rows(1))):
        pq.write_table(table, tmp_path / "town.parquet")
        plan = (tmp_path / "plan.toml").read_text()
        (tmp_path / "plan.toml").write_text(
            plan.replace("town-1", f"t{place}-1").replace(f"t{place - 1}-1", f"t{place}-1")
        )
        seen = run("synth", town.path)
        said.append((seen.status, seen.err, seen.out.replace(f"t{place}-1", "ID")))
    assert len(set(said)) == 1 and said[0][0] == 0
