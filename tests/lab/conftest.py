"""One simulated state for all of the lab's tests."""

import pyarrow as pa
import pytest

from reticent.lab.world.state import people


@pytest.fixture(scope="session")
def state() -> pa.Table:
    return people(30_000, seed=11)
