"""A folder in memory where there is one: what is flushed there is flushed at once, and tests stay quick; and both stores."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conformance.server import server, why_not


@pytest.fixture
def folder() -> Iterator[Path]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="reticent-test-") as name:
        yield Path(name)


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The place of a ledger on a server that has no ledger yet; heads are kept in a folder of the test's own."""
    if why := why_not():
        pytest.skip(why)
    server().run("TRUNCATE reticent.entry")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return "postgres:ledgers/survey"


@pytest.fixture(params=["file", "server"])
def path(request: pytest.FixtureRequest, folder: Path) -> Path | str:
    """Where a ledger may be kept: what is promised of one is promised of the other."""
    return folder / "survey.ledger.db" if request.param == "file" else request.getfixturevalue("served")
