"""Strategies that fill rows first, replayed as a whole: a replaced record, the draws of all rows as they were."""

import pytest

from reticent.synth.base import MissingMethod, SynthesisMethod
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.privbayes import PrivBayes
from tests.synth.marginals.trees import faults_when_replaced
from tests.synth.replay import APPROXIMATE, PURE, random_rows
from tests.synth.standins import ArrayCounts, toy

# covers T08 T20 T27

METHODS = [
    Independent(),
    PrivBayes(useful=0.001),
    MST(iterations=2, merge=0),
    AIM(iterations=2, last=2, per_column=2, merge=0),
]
ROWS = random_rows(toy([2, 3], universes={"b": "a = '1'"}), 9, 4)


class FromTheRowAbove(ArrayCounts):
    """The naive twin: a hot deck, so that one record sits in many rows."""

    def filled(self, fills, bits):
        cells = self.cells.copy()
        for row in range(1, len(cells)):
            for place, axis in enumerate(self.domain.axes):
                if cells[row, place] == axis.silence:
                    cells[row, place] = cells[row - 1, place]
        return ArrayCounts(cells, self.domain)


@pytest.mark.parametrize("holes", [MissingMethod.RANDOM, MissingMethod.MEAN, MissingMethod.MODEL])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method.name))
def test_replay_where_rows_are_filled_first(method: SynthesisMethod, holes: MissingMethod) -> None:
    """The first and the last of nine records answer otherwise, in four ways each."""
    for spend in (PURE, APPROXIMATE):
        found, most = faults_when_replaced(method, ROWS, holes, spend)
        assert found == [] and 0 < most <= 1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method.name))
def test_the_replay_catches_a_hot_deck(method: SynthesisMethod, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ArrayCounts(ROWS.cells.copy(), ROWS.domain)
    rows.cells[1:] = [axis.silence for axis in ROWS.domain.axes]
    monkeypatch.setattr(ArrayCounts, "filled", FromTheRowAbove.filled)
    _, most = faults_when_replaced(method, rows, MissingMethod.RANDOM, PURE)
    assert most > 1
