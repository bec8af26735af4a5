"""With frozen noise, every plan gives the release and the preview that it gave before, byte for byte.

If this fails after a move of code, the move changed something. If the change was meant, say why:
`python -m tests.golden --write "reason"`.
"""

import os
import re
from pathlib import Path

import pytest

from reticent.noise.bits import SystemBits
from tests.golden.frozen import frozen, stream
from tests.golden.office import EXPECTED, PLANS, made, steady
from tests.golden.town import rows_csv


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_gives_what_it_gave_before(name: str, tmp_path: Path):
    found = made(name, tmp_path)
    kept = {path.name: path.read_text(encoding="utf-8") for path in EXPECTED.glob(f"{name}.*")}
    assert sorted(found) == sorted(kept)
    for file, text in kept.items():
        assert found[file] == text, file


def test_expected_files_belong_to_a_plan():
    assert {path.name.split(".")[0] for path in EXPECTED.iterdir()} == set(PLANS)


def test_another_draw_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The naive twin: one bit more is taken before the rows are read, and the release is another one."""
    kept = (EXPECTED / "piece.json").read_text(encoding="utf-8")
    monkeypatch.setattr("tests.golden.office.frozen", lambda name: frozen(f"{name}, one draw later"))
    assert made("piece", tmp_path)["piece.json"] != kept


def test_nothing_frozen_is_left_behind():
    """Within, bits repeat; afterwards they are the system's, and nobody's noise is kept."""
    before = os.urandom
    with frozen("x"):
        assert SystemBits().take(64) == int.from_bytes(stream("x")(8))
    assert os.urandom is before
    assert SystemBits().take(128) != SystemBits().take(128)


def test_what_varies_is_taken_out_and_nothing_else():
    """Versions and the ledger's hashes go, the digits of a solver are cut; answers stay to the last digit."""
    text = '"hash": "ab12", "value": 12.3456789012345, "slope": 12.3456789012345, "engine": "DuckDB 9"'
    assert steady(text) == '"hash": "*", "value": 12.3456789012345, "slope": 12.3456789, "engine": "*"'


def test_the_town_has_gaps_and_cells_that_do_not_fit():
    rows = [line.split(",") for line in rows_csv(400).splitlines()[1:]]
    assert len(rows) == 400 and {len(row) for row in rows} == {10}
    assert sum(not row[7] for row in rows) > 80 and any(re.fullmatch("old", row[2]) for row in rows)
