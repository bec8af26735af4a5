"""Adversarial synthesizers from a plan to files: words, effort, holes or none, and no word that is not in the codebook."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from reticent import Curator
from reticent.errors import PlanError
from reticent.preview.synth import _section
from reticent.synth import registry
from reticent.synth.learned.adversarial import Game
from tests.release.synthetic import odd_row, open_ledger, plan, rows, said_of_odd, survey
from tests.tables import synths_of

# covers T27

SMALL = Game(steps=3, turns=1, batch=16, fakes=32, hidden=4, settled=64)
DELTA = {"delta": "0.000001"}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short games under the usual names."""
    for name in ("misgan", "dpctgan", "dpautogan"):
        monkeypatch.setitem(registry.KNOWN, name, replace(registry.KNOWN[name], game=SMALL))


def asked(method: str, missing: str, **rest):
    return plan({"method": method, "missing": missing, **DELTA, **rest}, protect=DELTA)


@pytest.mark.parametrize(
    ("method", "missing"),
    [("misgan", "available"), ("misgan", "category"), ("dpctgan", "category"), ("dpautogan", "complete")],
)
def test_a_release_has_the_planned_rows_and_only_words_of_the_codebook(
    method: str, missing: str, tmp_path: Path
) -> None:
    table = rows(300)
    table = pa.concat_tables([table, odd_row(table.schema)])
    rest = {"copies": 0} if missing == "category" else {}
    wanted = asked(method, missing, **rest)
    made = Curator(open_ledger(tmp_path)).release(wanted, survey(table), tmp_path)
    found = list(csv.DictReader(io.StringIO((tmp_path / "s1.1.synth.csv").read_text())))
    assert len(found) == 200 == made.synthetic("people").num_rows
    assert {row["Sex, as told"] for row in found} <= {"f", "'=1+1", ""}
    assert {row["job"] for row in found} <= {"yes", "no, never", ""}
    assert missing == "category" or all(row["Sex, as told"] for row in found)
    text = b"".join(path.read_bytes() for path in tmp_path.glob("s1*"))
    assert not said_of_odd(text)


def test_a_preview_says_what_is_done_about_missing_answers_and_how_long_it_takes() -> None:
    """Of misgan the usual sentence would not be true."""
    kept = asked("misgan", "category", copies=0)
    told = _section(synths_of(kept)[0], kept, 1)
    assert "a second critic read which are missing" in told["words"]
    assert told["words"].endswith("the synthetic rows have missing answers of their own")
    assert "MB beside the rows" in told["effort"]
    filled = synths_of(asked("misgan", "category", copies=2))[0].words()
    assert filled.endswith(
        "missing answers of their own that were then filled 2 times over, which costs nothing"
    )
    assert "counted over those who answered" not in synths_of(asked("misgan", "available"))[0].words()
    assert "left out before anything was counted" in synths_of(asked("misgan", "complete"))[0].words()


def test_rows_that_are_not_whole_are_refused_by_those_who_need_them() -> None:
    with pytest.raises(PlanError, match="impute first"):
        asked("dpctgan", "available")
    with pytest.raises(PlanError, match="needs a delta"):
        plan({"method": "misgan", "missing": "available"})
