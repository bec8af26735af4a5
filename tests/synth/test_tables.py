"""Noisy tables made fit: one scale, lines that sum to one, nothing negative, empty cells near empty."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reticent.synth.network import LEAST, clipped, lines, nearest, one_scale
from reticent.synth.spending import NoisyCounts

ONE = np.array([0, 0])  # two cells of one block
TABLES = arrays(np.float64, (3, 4), elements=st.floats(-50, 200))


@given(TABLES)
def test_lines_sum_to_one_whatever_the_noise_did(table: np.ndarray) -> None:
    for tidy in (nearest, clipped):
        made = lines(tidy(table))
        assert (made >= 0).all() and np.allclose(made.sum(axis=-1), 1)


def test_a_line_without_mass_gets_the_shares_of_the_column() -> None:
    assert lines(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist() == [[0.25, 0.75], [0.25, 0.75]]
    assert lines(np.zeros((2, 2))).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_empty_cells_stay_near_empty_unless_negatives_are_cut() -> None:
    """One cell of 1,000 rows and 999 empty ones, noise of deviation 10: cut, they gain about 4 each; nearest, little."""
    noisy = np.random.default_rng(1).normal(0, 10, 1000)
    noisy[0] += 1000
    cut, near = (tidy(noisy)[1:].sum() for tidy in (clipped, nearest))
    assert cut > 3000
    assert near < 300


def test_available_tables_come_to_one_scale_with_their_own_deviation() -> None:
    """Sums of .8 n and .64 n meet at n, the smaller one with the larger deviation; raw they cannot agree (the twin)."""
    shares = np.array([0.25, 0.75])
    raw = [
        NoisyCounts(cells=np.append(1000 * p * shares, 1000 * (1 - p)), deviation=5.0, size=4.0)
        for p in (0.8, 0.64)
    ]
    one, other = (one_scale(noisy, 1000.0, ONE) for noisy in raw)
    np.testing.assert_allclose(one.cells, other.cells)
    np.testing.assert_allclose(one.cells, 1000 * shares)
    assert (one.deviation, other.deviation) == pytest.approx((5 / 0.8, 5 / 0.64))
    assert not np.allclose(raw[0].cells[:-1], raw[1].cells[:-1])


def test_a_table_hardly_anybody_answered_is_not_blown_up() -> None:
    nobody = NoisyCounts(cells=np.array([3.0, -2.0, 1004.0]), deviation=5.0, size=4.0)
    made = one_scale(nobody, 1000.0, ONE)
    assert made.deviation <= 5 / LEAST
    assert np.abs(made.cells).max() <= 3 / LEAST


def test_who_was_not_asked_is_not_scaled_up() -> None:
    """1,000 people, 400 not asked; of the 600 asked a third is silent. On one share for all, the unasked are 3 in 6 (the twin)."""
    raw = NoisyCounts(cells=np.array([300.0, 100, 400, 200, 0]), deviation=5.0, size=4.0)
    made = one_scale(raw, 1000.0, np.array([0, 0, 1]))
    np.testing.assert_allclose(made.cells, [450, 150, 400])
    assert made.deviation == pytest.approx(5 * 600 / 400)
    naive = one_scale(NoisyCounts(cells=raw.cells[:4], deviation=5.0, size=4.0), 1000.0, np.array([0, 0, 0]))
    np.testing.assert_allclose(naive.cells, [375, 125, 500])


@given(arrays(np.float64, 8, elements=st.floats(-100, 2000)))
def test_no_block_shrinks_or_is_blown_up(cells: np.ndarray) -> None:
    """Whatever the noise did, each block is multiplied by one number from 1 to 64, its own."""
    blocks = np.array([0, 0, 1, 2, 2])
    made = one_scale(NoisyCounts(cells=cells, deviation=5.0, size=4.0), 1000.0, blocks)
    for block in range(3):
        here = np.flatnonzero((blocks == block) & (np.abs(cells[:5]) > 1))
        times = made.cells[here] / cells[here]
        assert ((times >= 1 - 1e-12) & (times <= 1 / LEAST + 1e-9)).all()
        assert np.allclose(times, times[:1] if len(times) else 1)


def test_one_block_of_few_cells_is_counted_and_the_widest_follows() -> None:
    """The block with most cells gets what the total leaves, whose noise is that of few cells and not of its own many."""
    rng = np.random.default_rng(5)
    blocks = np.append(np.zeros(400, dtype=np.int64), 1)
    kept = np.append(np.full(400, 1.5), 200.0)
    shares = []
    for _ in range(50):
        noisy = np.append(kept, [200.0, 0.0]) + rng.normal(0, 5, 403)
        made = one_scale(NoisyCounts(cells=noisy, deviation=5.0, size=4.0), 1000.0, blocks)
        shares.append(5.0 / made.deviation)
    # Counted from its own cells the share would have a deviation of about 3 %: left/rows with 100 of noise in 800.
    assert np.std(shares) < 0.012 and abs(np.mean(shares) - 0.75) < 0.005
