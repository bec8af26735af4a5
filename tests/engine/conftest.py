"""One fixture for all engines: a module that is marked with it runs once on each."""

from collections.abc import Iterator

import pytest

from reticent.engine.open import LOCAL
from tests.engine.opening import NAMES, now


@pytest.fixture(scope="module", params=NAMES)
def every_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    now[0] = request.param
    yield request.param
    now[0] = LOCAL
