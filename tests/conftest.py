"""What all tests share: no example of a property is held to a time, which says more of the machine than of the code.

Pages are drawn in tests of their own, each by a process; elsewhere they would only cost time.
"""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def pages_are_drawn_elsewhere() -> Iterator[None]:
    """`reticent.Curator` draws no page unless a test says so."""
    with patch("reticent.python.curator.installed", tuple):
        yield
