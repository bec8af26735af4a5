"""What all tests share: no example of a property is held to a time, which says more of the machine than of the code.

Pages are drawn in tests of their own, each by a process; elsewhere they would only cost time. So would waiting for a disk
each time a ledger is flushed: where memory can hold the tests' files, it does.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 * 2**30:
    # The calls that flush are made, and watched, all the same.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture(autouse=True, scope="session")
def pages_are_drawn_elsewhere() -> Iterator[None]:
    """`reticent.Curator` draws no page unless a test says so."""
    with patch("reticent.python.curator.installed", tuple):
        yield
