"""Answers that nobody gave: they can be drawn all the same, and none of them is told from another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod, Spend, SynthesisMethod
from reticent.synth.network import Network
from reticent.synth.spending import Accountant
from tests.attacks.synth_worlds import METHODS, Records, allows
from tests.noise.seeded import SeededBits
from tests.synth.marginals.trees import table
from tests.synth.replay import run
from tests.synth.standins import NoSynthNoise, QuickSynthNoise, sized, toy

# covers T10 T11 T27

DOMAIN = sized(toy([4, 2]), 20)
CELLS = np.array([[0, 0], [2, 1], [0, 1], [2, 0]] * 4 + [[0, 2], [2, 2]] * 2)
HERE = Records(CELLS, tuple(range(20)), DOMAIN)
"""Levels 1 and 3 of four are met by nobody; some are silent in the other column."""
SPEND = Spend(epsilon=Fraction(1, 2), change=Change.REPLACE)
RUNS = 12
CASES = [
    pytest.param(method, holes, id=f"{method.name}-{holes.value}")
    for method in METHODS
    for holes in MissingMethod
    if allows(method, holes, SPEND)
]


@dataclass
class Lifted(NoSynthNoise):
    """Three more in every cell, whoever is in it."""

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return [answer + 3 for answer in answers]


def unseen(network: Network) -> np.ndarray:
    """The lines of levels 1 and 3 beside all cells of the other column."""
    return table(network, (0, 1))[[1, 3]]


@pytest.mark.parametrize(("method", "holes"), CASES)
def test_levels_that_nobody_gave_are_drawn_and_not_told_apart(
    method: SynthesisMethod, holes: MissingMethod
) -> None:
    """With the same noise on both, both have the same chance, beside every answer of the other column; and it is not 0."""
    one, other = unseen(run(method, HERE, holes, SPEND, Lifted()))  # type: ignore[arg-type]
    np.testing.assert_allclose(one, other, rtol=1e-9)
    assert one.sum() > 0.01


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_level_that_nobody_gave_appears_in_some_draw(method: SynthesisMethod) -> None:
    """12 networks, 100 rows each: noise lifts an empty cell about every other time (seeded; else missed once in 2^12)."""
    holes = MissingMethod.RANDOM if method.name == "privbayes-printed" else MissingMethod.AVAILABLE
    networks = [run(method, HERE, holes, SPEND, QuickSynthNoise(seed)) for seed in range(RUNS)]  # type: ignore[arg-type]
    drawn = np.concatenate([each.draw(100, SeededBits(1))[:, 0] for each in networks])
    assert {0, 1, 2, 3} <= set(drawn.tolist())


def test_levels_up_to_the_largest_that_was_given_are_caught(monkeypatch) -> None:
    """The naive twin ends the list of levels where the answers end: level 3 is never drawn, and level 1 is."""
    honest = Accountant.measure

    def shortened(self: Accountant, tables: Sequence[np.ndarray], *, amount: Fraction) -> list:
        noisy = honest(self, tables, amount=amount)
        ends = [np.flatnonzero(each[:-1]).max() + 1 for each in tables]
        beyond = [np.arange(len(each)) >= end for each, end in zip(tables, ends, strict=True)]
        return [replace(a, cells=np.where(b, 0.0, a.cells)) for a, b in zip(noisy, beyond, strict=True)]

    monkeypatch.setattr(Accountant, "measure", shortened)
    one, other = unseen(run(METHODS[0], HERE, MissingMethod.AVAILABLE, SPEND, Lifted()))  # type: ignore[arg-type]
    assert one.sum() > 0.01 and other.sum() == 0
