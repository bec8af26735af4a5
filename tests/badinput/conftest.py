"""A house in working order for every test, and a watch on how long a refusal takes."""

import time

import pytest

from tests.badinput.house import House


@pytest.fixture
def house(tmp_path) -> House:
    return House(tmp_path)


@pytest.fixture(autouse=True)
def _within_five_seconds(request):
    """The catalogue gives every case 5 s; CPU time of this process, so that a busy machine does no harm."""
    began = time.process_time()
    yield
    if "slow" not in request.node.name:
        assert time.process_time() - began < 5
