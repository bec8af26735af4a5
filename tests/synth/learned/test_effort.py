"""What a preview says of memory is what a fit takes: measured by what is handed out while it runs, no clock involved."""

import tracemalloc

import numpy as np
import pytest

from reticent.synth.base import MissingMethod, in_brief
from reticent.synth.registry import find
from tests.synth.replay import APPROXIMATE, run
from tests.synth.standins import ArrayCounts, QuickSynthNoise, toy

DOMAIN = toy([30, 20, 12, 12, 8, 6, 4, 3, 2, 2])
ROWS = ArrayCounts(
    np.random.default_rng(1).integers(0, [axis.answers for axis in DOMAIN.axes], (50, 10)), DOMAIN
)
LEARNED = ("chain", "kamino", "kamino-i", "misgan", "dpctgan", "dpautogan")


def peak(name: str) -> float:
    """Megabytes that a fit of one step holds at most; the steps are alike."""
    method = in_brief(find(name))
    run(method, ROWS, way(name), APPROXIMATE, QuickSynthNoise(1))  # whatever is compiled or kept for good
    tracemalloc.start()
    try:
        run(method, ROWS, way(name), APPROXIMATE, QuickSynthNoise(1))
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def way(name: str) -> MissingMethod:
    return MissingMethod.VALUES if name in ("dpctgan", "dpautogan") else MissingMethod.AVAILABLE


@pytest.mark.parametrize("name", LEARNED)
def test_memory_is_foretold(name: str) -> None:
    """Within a third below and twice above."""
    told = find(name).effort(DOMAIN, way(name)).megabytes
    assert 2 / 3 < told / peak(name) < 2


def test_what_reads_rows_by_more_networks_takes_longer() -> None:
    """Two critics twice as long as one, an autoencoder by its width; and time goes with the steps."""
    each = {name: find(name).effort(DOMAIN, way(name)).seconds_each for name in LEARNED}
    assert each["misgan"] == pytest.approx(2 * each["dpctgan"]) and each["dpautogan"] > each["dpctgan"]
    for name in LEARNED:
        assert in_brief(find(name)).effort(DOMAIN, way(name)).seconds_each < each[name] / 10
