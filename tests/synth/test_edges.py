"""What shows at an edge alone: a limit that follows a confidential number, and a sum near 64 bits."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.synth.base import MissingMethod, Spend
from reticent.synth.marginals import privbayes
from reticent.synth.marginals.privbayes import PrivBayes
from reticent.synth.marginals.privbayes_printed import information, information_reach
from reticent.synth.marginals.scores import UNIT, distance
from reticent.synth.registry import KNOWN, find
from tests.synth.replay import neighbours, random_rows, run
from tests.synth.standins import FrozenSynthNoise, toy

# covers T04 T05 T12 T20

SPEND = Spend(epsilon=Fraction(1))
MORE = np.array([1, 0])


class Exact(PrivBayes):
    """The naive twin: measures the number of rows, and then goes by the exact one."""

    def _rows(self, search):
        super()._rows(search)
        return float(search.counts.count([(0,)])[0].sum())


def limits(method: PrivBayes, holes: MissingMethod, monkeypatch: pytest.MonkeyPatch) -> set[float]:
    """By how many cells tables are judged, for one transcript on all neighbours."""
    found = []
    whole = privbayes._network
    monkeypatch.setattr(
        privbayes,
        "_network",
        lambda search, most, **given: found.append(most) or whole(search, most, **given),
    )
    counts = random_rows(toy([2, 3]), 12, 1)
    first = FrozenSynthNoise()
    run(method, counts, holes, SPEND, first)
    for other in neighbours(counts):
        run(method, other, holes, SPEND, FrozenSynthNoise(script=first.given))
    return set(found)


@pytest.mark.parametrize("holes", [MissingMethod.COMPLETE, MissingMethod.AVAILABLE])
def test_what_a_table_may_hold_follows_released_numbers(holes, monkeypatch):
    """Candidates follow the limit, and a limit by the exact number of rows tells it."""
    assert len(limits(PrivBayes(), holes, monkeypatch)) == 1
    assert len(limits(Exact(), holes, monkeypatch)) > 1


def wrapping(table: np.ndarray, model: np.ndarray) -> int:
    """The naive twin: takes a model as large as it comes."""
    return int(np.abs(UNIT * table - np.rint(UNIT * model).astype(np.int64)).sum())


@pytest.mark.parametrize("size", [2.0**57, 2.0**58, 2.0**59, 1e300])
def test_a_model_too_large_for_the_sum_does_not_turn_it_round(size):
    """Noise can make a model as large as it likes; one record still moves a distance by one."""
    model, table = np.full(2, size), np.zeros(2, dtype=np.int64)
    assert abs(distance(table + MORE, model) - distance(table, model)) <= UNIT


def test_the_naive_distance_turns_round():
    model, table = np.full(2, 2.0**58), np.zeros(2, dtype=np.int64)
    assert abs(wrapping(table + MORE, model) - wrapping(table, model)) > UNIT


@pytest.mark.parametrize("n", [7, 15, 31, 57, 63])
def test_roundings_of_mutual_information_are_counted(n):
    """Tables that attain the bound: rounded down term by term they pass it, and the stated reach allows for it."""
    half = (n - 1) // 2
    rest = np.array([[0, half, 0], [half, 0, 0], [0, 0, 0]])
    here, there = rest.copy(), rest.copy()
    here[0, 0] += 1
    there[2, 2] += 1
    moved = information(there) - information(here)
    naive = information_reach(n, [(0, 0)]) - 1  # the naive twin: the bound, and nothing for rounding
    assert naive < moved <= information_reach(n, [here.shape])


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "privbayes-printed"])
@pytest.mark.parametrize("holes", MissingMethod)
def test_what_cannot_be_spent_is_refused_before_a_row_is_read(name, holes):
    """An epsilon with no rho of 12 places at its delta: whoever finds out when fitting has been charged by then."""
    counts = random_rows(toy([2, 3]), 12, 1)
    tiny = Spend(epsilon=Fraction(1, 10**6), delta=Fraction(1, 10**12))
    with pytest.raises(PlanError, match="too small"):
        find(name).check(counts.domain, holes, tiny)
    with pytest.raises(PlanError, match="too small"):  # the naive twin: no check
        run(find(name), counts, holes, tiny, FrozenSynthNoise())
