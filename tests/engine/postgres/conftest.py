"""A server, or a reason why there is none."""

from collections.abc import Iterator

import pytest

from tests.engine.conformance.server import Server, server, why_not


@pytest.fixture(scope="session")
def pg() -> Iterator[Server]:
    if why := why_not():
        pytest.skip(why)
    yield server()
