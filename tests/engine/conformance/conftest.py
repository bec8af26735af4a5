"""The one fixture: every engine beside the local one, which all are compared with."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from reticent.engine.protocol import CuratorEngine
from tests.engine.conformance.openers import OPENERS, REMOTE

Open = Callable[[pa.Table], CuratorEngine]


@pytest.fixture(scope="module", params=REMOTE)
def remote(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens the engine on a table; all that were opened are closed at the end."""
    opener = OPENERS[request.param]
    if why := opener.why_not():
        pytest.skip(why)
    opened: list[CuratorEngine] = []

    def open_it(table: pa.Table) -> CuratorEngine:
        opened.append(opener.open(table))
        return opened[-1]

    yield open_it
    for engine in opened:
        engine.close()


@pytest.fixture
def local() -> Iterator[Open]:
    opened: list[CuratorEngine] = []

    def open_it(table: pa.Table) -> CuratorEngine:
        opened.append(OPENERS["local"].open(table))
        return opened[-1]

    yield open_it
    for engine in opened:
        engine.close()
