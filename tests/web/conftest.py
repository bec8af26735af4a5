"""One desk for all tests that change nothing, and a folder for those that do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.house import Running, fill, open_ledger, start

for part in ("starlette", "uvicorn"):
    pytest.importorskip(part, reason="the desk needs the extra [web]: requirements/web.lock")


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A desk somebody is logged in at."""
    folder = fill(tmp_path_factory.mktemp("desk"))
    open_ledger(folder)
    running = start(folder)
    running.login()
    yield running
    running.stop()


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A folder with a plan, a codebook, rows and a ledger."""
    fill(tmp_path)
    open_ledger(tmp_path)
    return tmp_path
