"""PrivBayes as printed: refused where its bound does not hold, and sound where it does."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import EngineError, PlanError
from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod, Spend
from reticent.synth.marginals.privbayes_printed import EVERY_ROW, PrivBayesPrinted
from tests.synth import replay
from tests.synth.replay import faults, is_drawable, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, sized, toy

REPLACE = Spend(epsilon=Fraction(1), change=Change.REPLACE)


def table(rows: int, seed: int, levels: tuple[int, ...] = (2, 3, 2)) -> ArrayCounts:
    made = random_rows(toy(levels), rows, seed)
    return ArrayCounts(made.cells, sized(made.domain, rows))


def replacements(counts: ArrayCounts) -> Iterator[ArrayCounts]:
    """Every row in turn gives the first answers, then the last cells."""
    for row in range(len(counts.cells)):
        for new in ([0] * len(counts.domain.axes), [size - 1 for size in counts.domain.shape]):
            cells = counts.cells.copy()
            cells[row] = new
            yield ArrayCounts(cells, counts.domain)


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_replay_on_replacements(degree: int, monkeypatch: pytest.MonkeyPatch) -> None:  # covers T20
    """60 neighbours of 30 rows."""
    monkeypatch.setattr(replay, "neighbours", replacements)
    assert faults(PrivBayesPrinted(degree=degree), table(30, 1), MissingMethod.VALUES, REPLACE) == []


@pytest.mark.parametrize("holes", EVERY_ROW)
@pytest.mark.parametrize("degree", [1, 2, 3, 9])
def test_networks_can_be_drawn_from(holes: MissingMethod, degree: int) -> None:
    counts = table(200, 2, (2, 3, 2, 3))
    network = run(PrivBayesPrinted(degree=degree), counts, holes, REPLACE, QuickSynthNoise(3))
    assert is_drawable(network)
    assert all(len(step.given) == min(degree, at) for at, step in enumerate(network.steps))


def test_without_noise_and_with_all_parents_it_is_the_table_itself() -> None:
    """Three columns, two parents: the product of the steps is the joint table."""
    counts = table(500, 4)
    network = run(PrivBayesPrinted(degree=2), counts, MissingMethod.VALUES, REPLACE, NoSynthNoise(5))
    (joint,) = counts.count([(0, 1, 2)])
    made = np.ones(joint.shape)
    for step in network.steps:
        for cell in np.ndindex(*joint.shape):
            made[cell] *= step.table[tuple(cell[p] for p in (*step.given, step.place))]
    np.testing.assert_allclose(made, joint / 500, atol=1e-12)


@pytest.mark.parametrize("holes", [MissingMethod.AVAILABLE, MissingMethod.COMPLETE])
def test_tables_with_a_confidential_number_of_rows_are_refused(holes: MissingMethod) -> None:
    with pytest.raises(PlanError, match="confidential"):
        PrivBayesPrinted().check(table(10, 5).domain, holes, REPLACE)


def test_a_confidential_sample_size_is_refused() -> None:
    """Added or removed respondents, groups of records, no declared size: each by name, with a way out."""
    domain = table(10, 6).domain
    for spend in (
        Spend(epsilon=Fraction(1)),
        Spend(epsilon=Fraction(1), change=Change.REPLACE, records=2),
    ):
        with pytest.raises(PlanError, match="'privbayes'"):
            PrivBayesPrinted().check(domain, MissingMethod.VALUES, spend)
    with pytest.raises(PlanError, match="sample_size"):
        PrivBayesPrinted().check(toy([2, 2]), MissingMethod.VALUES, REPLACE)
    with pytest.raises(PlanError, match="degree"):
        PrivBayesPrinted(degree=0).check(domain, MissingMethod.VALUES, REPLACE)
    with pytest.raises(PlanError, match="too large"):
        PrivBayesPrinted(degree=9).check(sized(toy([20] * 10), 9), MissingMethod.VALUES, REPLACE)


def test_rows_that_donors_filled_are_refused() -> None:
    """One respondent is then three of them, and the bound for one row is passed: the twin that was accepted once."""
    filled = replace(REPLACE, stability=3)
    with pytest.raises(PlanError, match="one respondent is 3; use 'privbayes'"):
        PrivBayesPrinted().check(table(10, 6).domain, MissingMethod.VALUES, filled)
    counts = ArrayCounts(np.array([[i % 2, i % 2] for i in range(30)]), sized(toy([2, 2]), 30))
    cells = counts.cells.copy()
    cells[:3, 1] = 1 - cells[:3, 1]
    one = counts.cells.copy()
    one[0, 1] = 1 - one[0, 1]
    method, found = PrivBayesPrinted(degree=1), list[float]()
    for other in (one, cells):
        first = FrozenSynthNoise()
        run(method, counts, MissingMethod.VALUES, REPLACE, first)
        again = FrozenSynthNoise(script=first.given)
        run(method, ArrayCounts(other, counts.domain), MissingMethod.VALUES, REPLACE, again)
        moves = [a.distance(b) / a.sensitivity for a, b in zip(first.met, again.met, strict=True)]
        found.append(max(moves))
    assert found[0] <= 1 < found[1]


def test_a_codebook_that_miscounts_its_rows_stops_the_fit() -> None:
    """Neighbours have equally many rows, so both stop; the words hold no number."""
    counts = table(10, 7)
    wrong = ArrayCounts(counts.cells, sized(counts.domain, 11))
    with pytest.raises(EngineError) as stopped:
        run(PrivBayesPrinted(), wrong, MissingMethod.VALUES, REPLACE, NoSynthNoise())
    assert not any(character.isdigit() for character in str(stopped.value))
