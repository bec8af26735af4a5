"""Levels that nobody gave have their share of the noise: every learned method draws them, and a list that was cut does not."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.synth.base import MissingMethod
from reticent.synth.learned import chain, descent, kamino
from reticent.synth.learned.adversarial import Game
from reticent.synth.learned.autogan import AutoGan
from reticent.synth.learned.chain import AutoregressiveChain
from reticent.synth.learned.ctgan import CtGan
from reticent.synth.learned.descent import Pace
from reticent.synth.learned.kamino import ColumnPace, Kamino
from reticent.synth.learned.misgan import MisGan
from tests.noise.seeded import SeededBits
from tests.synth.replay import APPROXIMATE, run
from tests.synth.standins import ArrayCounts, QuickSynthNoise, toy

# covers T10 T27

SMALL = Game(steps=3, turns=1, batch=16, fakes=32, hidden=4, settled=64)
KAMINO = Kamino(pace=ColumnPace(steps=3))
METHODS = (
    AutoregressiveChain(pace=Pace(steps=4)),
    KAMINO,
    replace(KAMINO, fills=True, name="kamino-i"),
    MisGan(game=SMALL),
    CtGan(game=SMALL),
    AutoGan(game=SMALL),
)
ROWS = ArrayCounts(np.array([[0, 0], [2, 1], [0, 1], [2, 0]] * 50), toy([4, 2]))
"""Levels 1 and 3 of four are met by nobody."""
RUNS = 12


@pytest.fixture(autouse=True)
def few_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (descent, kamino):
        monkeypatch.setattr(module, "SIMULATED", 256)


def drawn(method) -> set[int]:
    """The levels of the first column in 100 rows from each of 12 models."""
    holes = MissingMethod.COMPLETE if method.name in ("dpctgan", "dpautogan") else MissingMethod.AVAILABLE
    models = [run(method, ROWS, holes, APPROXIMATE, QuickSynthNoise(seed)) for seed in range(RUNS)]
    return {int(level) for each in models for level in each.draw(100, SeededBits(1))[:, 0]}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_level_that_nobody_gave_appears_in_some_draw(method) -> None:
    """Noise lifts an empty cell about every other time: missed by all twelve once in 2^12, and the noise is seeded."""
    assert drawn(method) == {0, 1, 2, 3}


def test_levels_up_to_the_largest_that_was_given_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive twin ends the list of levels where the answers end: level 3 is never drawn, and level 1 is."""
    honest = chain.columns

    def shortened(rows, view, holes, accountant, *, amount):
        total, shares = honest(rows, view, holes, accountant, amount=amount)
        ends = [np.flatnonzero(each[:-1]).max() + 1 for each in rows.count([(0,), (1,)])]
        for share, end in zip(shares, ends, strict=True):
            share[end:] = 0
        return total, shares

    monkeypatch.setattr(chain, "columns", shortened)
    assert drawn(METHODS[0]) == {0, 1, 2}
