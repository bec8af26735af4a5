"""Rows in memory count as the engine's do, and fill each row from itself."""

import numpy as np
import pytest

from reticent.lab.noise import NoSynthNoise, QuickSynthNoise, SeededBits
from reticent.lab.trials.fitting import Held
from reticent.lab.trials.tables import cells_of, trial, with_missing
from reticent.synth.base import Conditional


@pytest.fixture(scope="module")
def held() -> Held:
    table = trial("census", rows=1_000)
    mask = np.random.default_rng(1).random(table.codes.shape) < 0.2
    return Held(domain=table.domain(), cells=cells_of(with_missing(table.codes, mask), table.domain()))


def test_counts_are_numpys(held):
    sets = [(2,), (0, 5), (1, 3, 8)]
    for places, counted in zip(sets, held.count(sets), strict=True):
        sizes = held.domain.sizes(places)
        edges = [np.arange(size + 1) - 0.5 for size in sizes]
        assert np.array_equal(counted, np.histogramdd(held.cells[:, places], bins=edges)[0])


def test_complete_rows_are_those_without_a_silent_cell(held):
    silent = np.array([axis.silence for axis in held.domain.axes])
    kept = held.complete().cells
    assert 0 < len(kept) < len(held.cells) and not (kept == silent).any()
    assert len(kept) == sum(all(row != silent) for row in held.cells)


def test_a_fill_uses_the_row_itself_and_touches_silence_alone(held):
    """Sex filled by age's cell: even cells one, odd ones the other; nothing else moves."""
    sex, age = held.domain.columns.index("sex"), held.domain.columns.index("age")
    table = np.zeros((held.domain.axes[age].size, held.domain.axes[sex].size))
    table[::2, 0] = table[1::2, 1] = 1
    fill = Conditional(place=sex, given=(age,), table=table)
    filled = held.filled([fill], SeededBits(np.random.default_rng(2))).cells
    silent = held.cells[:, sex] == held.domain.axes[sex].silence
    assert silent.any() and np.array_equal(filled[silent, sex], held.cells[silent, age] % 2)
    assert np.array_equal(
        np.where(silent[:, None] & (np.arange(11) == sex), -1, filled) < 0, filled != held.cells
    )


def test_a_fill_has_the_stated_chances(held):
    """All 1,000 rows silent: a chance of 0.3 gives 300, within five standard errors (1e-6)."""
    sex = held.domain.columns.index("sex")
    cells = held.cells.copy()
    cells[:, sex] = held.domain.axes[sex].silence
    fill = Conditional(place=sex, given=(), table=np.array([0.3, 0.7, 0.0]))
    drawn = Held(domain=held.domain, cells=cells).filled([fill], SeededBits(np.random.default_rng(3))).cells
    assert abs((drawn[:, sex] == 0).sum() - 300) < 5 * np.sqrt(210)
    assert set(drawn[:, sex]) == {0, 1}


def test_choices_have_the_odds_of_the_exponential_mechanism():
    """Scores two sensitivities apart at epsilon 1: odds of e; 4,000 draws, five standard errors (1e-6)."""
    noise = QuickSynthNoise(np.random.default_rng(4))
    drawn = [noise.choose([0, 6], sensitivity=3, epsilon=1) for _ in range(4000)]
    chance = np.e / (1 + np.e)
    assert abs(np.mean(drawn) - chance) < 5 * np.sqrt(chance * (1 - chance) / 4000)
    assert not noise.is_private and not NoSynthNoise(noise.rng).is_private
    assert NoSynthNoise(noise.rng).choose([1, 5, 5], sensitivity=1, epsilon=1) == 1
