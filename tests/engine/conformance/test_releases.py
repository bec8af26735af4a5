"""A whole release, from the plan to its files, is the file's byte for byte: the noise is frozen, and all else must be the same."""

import io
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from reticent.release import curator
from tests.badinput.house import run
from tests.engine.conformance.openers import OPENERS
from tests.engine.conformance.test_commands import placed
from tests.golden import office
from tests.golden.frozen import frozen
from tests.golden.town import HEADER, rows_csv

REFUSED = {"donors"}  # bound = "hubs"
PLANS = [("postgres", name) for name in office.PLANS if name not in REFUSED]
# Draws have a law of their own on Spark; the demonstration is the same there, too, and takes a minute.
PLANS += [("spark", name) for name in office.PLANS if name not in REFUSED | {"models", "copies", "demo"}]
ENTRY = re.compile(r'"entry": [0-9]+')  # a file leaves a mark in the ledger, by which it is known again


@contextmanager
def frozen_from_the_rows_on(name: str) -> Iterator[None]:
    """Bits begin anew where rows are read: only elsewhere a plan is tried before, and draws bits for that."""
    read = curator.run_plan

    def begun(plan: Any, engine: Any, lot: Any, **more: Any) -> Any:
        lot = plan.partition.lot("ab" * 32) if plan.partition else lot
        with frozen(name), patch.object(secrets, "token_hex", _names):
            return read(plan, engine, lot, **more)

    with patch.object(curator, "run_plan", begun):
        yield


def _names(size: int) -> str:
    """Names of temporary files and views, which take no bits of the noise."""
    _names.given += 1  # type: ignore[attr-defined]
    return f"{_names.given:0{2 * size}x}"  # type: ignore[attr-defined]


_names.given = 0  # type: ignore[attr-defined]


def released(name: str, folder: Path, engine: str | None) -> dict[str, str]:
    """The files of a plan's release, and what the terminal shows of it."""
    folder.mkdir()
    plan = office._furnished(name, folder)
    if engine is not None:
        texts = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(HEADER, pa.string()), strings_can_be_null=True, null_values=[""]
        )
        table = pa_csv.read_csv(io.BytesIO(rows_csv(office.ROWS).encode()), convert_options=texts)
        source, relation = placed(engine, table, folder)
        text = re.sub(
            r'^source = "[^"]*"',
            f'source = "{source}"\nrelation = "{relation}"',
            plan.read_text(),
            flags=re.MULTILINE,
        )
        plan.write_text(text)
    with ExitStack() as stack:
        stack.enter_context(frozen_from_the_rows_on(name))
        opened = run("ledger", "open", "--plan", str(plan), "--epsilon", "100")
        seen = run("release", str(plan), *(["--data", str(folder / "rows.csv")] if engine is None else []))
    assert (opened.status, opened.err, seen.status, seen.err) == (0, "", 0, "")
    written = {path.name: office.steady(path.read_text()) for path in office._texts(folder / "releases")}
    shown = office._shown(seen.out).replace(str(folder), "FOLDER")
    return {"terminal": shown} | {file: ENTRY.sub('"entry": 0', text) for file, text in written.items()}


@pytest.mark.parametrize(("engine", "name"), PLANS)
def test_a_release_is_that_of_the_file(engine: str, name: str, tmp_path: Path):
    if why := OPENERS[engine].why_not():
        pytest.skip(why)
    here, there = (released(name, tmp_path / (each or "file"), each) for each in (None, engine))
    assert len(here) > 1 and sorted(here) == sorted(there)
    for file, text in here.items():
        assert there[file] == text, file


def test_other_rows_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The naive twin: half of the respondents, and the same bits."""
    one = released("piece", tmp_path / "one", None)
    monkeypatch.setattr("tests.golden.office.rows_csv", lambda count: rows_csv(count // 2))
    assert released("piece", tmp_path / "other", None)["piece.json"] != one["piece.json"]
