"""The exact step: one record moves the sum by its own whole vector, never longer than stated, whatever the others are."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.synth.base import MissingMethod
from reticent.synth.learned.gradient import (
    EXPONENTIALS,
    GRID,
    LENGTH,
    ChainGradient,
    ChainLayout,
    chances,
    divisor,
)
from reticent.synth.marginals.study import plain
from tests.synth.standins import toy

DOMAIN = toy([3, 2, 4, 5])
AVAILABLE = ChainLayout.of(plain(DOMAIN, MissingMethod.AVAILABLE))
CATEGORY = ChainLayout.of(plain(DOMAIN, MissingMethod.VALUES))
SIZES = np.array([axis.size for axis in DOMAIN.axes])


def rows_of(seed: int, n: int) -> np.ndarray:
    """A column of cells for each row, missing ones among them."""
    rng = np.random.default_rng(seed)
    return (rng.random((4, n)) * SIZES[:, None]).astype(np.uint8)


def weights_of(seed: int, layout: ChainLayout, size: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.rint(rng.normal(0, size * GRID, layout.parameters)).astype(np.int64)


def summed(layout: ChainLayout, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    totals = np.zeros(layout.parameters, dtype=np.int64)
    ChainGradient(layout=layout, weights=weights).add(rows, totals)
    return totals


@pytest.mark.parametrize("layout", [AVAILABLE, CATEGORY], ids=["available", "category"])
@pytest.mark.parametrize("size", [0.0, 1.0, 20.0])
def test_one_record_moves_the_sum_by_its_own_vector_of_bounded_length(
    layout: ChainLayout, size: float
) -> None:
    """Every record of 200, at weights from none to extreme; the bound is nearly met, so it is no empty one."""
    rows, weights = rows_of(1, 200), weights_of(2, layout, size)
    whole = summed(layout, weights, rows)
    lengths = []
    for i in range(rows.shape[1]):
        own = summed(layout, weights, rows[:, i : i + 1])
        assert (whole - summed(layout, weights, np.delete(rows, i, axis=1)) == own).all()
        lengths.append(int((own.astype(object) ** 2).sum()))
    assert max(lengths) <= LENGTH**2
    assert max(lengths) > (0.99 * LENGTH) ** 2


def test_order_and_blocks_do_not_matter() -> None:
    rows, weights = rows_of(3, 500), weights_of(4, AVAILABLE)
    whole = summed(AVAILABLE, weights, rows)
    order = np.random.default_rng(5).permutation(500)
    assert (summed(AVAILABLE, weights, rows[:, order]) == whole).all()
    parts = [summed(AVAILABLE, weights, rows[:, a:b]) for a, b in ((0, 1), (1, 77), (77, 500))]
    assert (sum(parts) == whole).all()


def test_sums_of_single_precision_depend_on_the_order() -> None:
    """The naive twin: with floats one row less moves cells that the row is not in, and so tells of others."""
    rows, weights = rows_of(3, 500), weights_of(4, AVAILABLE)
    each = [summed(AVAILABLE, weights, rows[:, i : i + 1]) / np.float32(3 * LENGTH) for i in range(500)]
    forth = np.add.accumulate(np.array(each, dtype=np.float32))[-1]
    back = np.add.accumulate(np.array(each[::-1], dtype=np.float32))[-1]
    assert (forth != back).any()
    moved = by_halves(np.array(each, dtype=np.float32)) - by_halves(np.array(each[1:], dtype=np.float32))
    others = summed(AVAILABLE, weights, rows[:, :1]) == 0
    assert (moved[others] != 0).any()


def by_halves(vectors: np.ndarray) -> np.ndarray:
    """A sum as libraries make it: of halves, and of their halves. One row less, and all pairs are others."""
    if len(vectors) == 1:
        return vectors[0]
    middle = len(vectors) // 2
    return by_halves(vectors[:middle]) + by_halves(vectors[middle:])


def test_missing_cells_have_no_part() -> None:
    """Two rows that differ only in which cell an unanswered column would hold are one row; all missing is no vector."""
    missing = np.array([[axis.silence] for axis in DOMAIN.axes], dtype=np.uint8)
    assert not summed(AVAILABLE, weights_of(6, AVAILABLE), missing).any()
    row = np.array([[1], [DOMAIN.axes[1].silence], [2], [4]], dtype=np.uint8)
    own = summed(AVAILABLE, weights_of(6, AVAILABLE), row)
    assert not own[AVAILABLE.starts[1] : AVAILABLE.starts[2]].any()
    for later in (2, 3):
        assert not AVAILABLE.block(own, later)[AVAILABLE.lines(1)].any()
        assert AVAILABLE.block(own, later)[AVAILABLE.lines(0)][1].any()


def test_biases_and_whoever_answered_one_question_have_no_part() -> None:
    """A row with a single answer says nothing of pairs: no vector. No row has a part in a bias."""
    weights = weights_of(6, AVAILABLE)
    for place in range(4):
        row = np.array([[axis.silence] for axis in DOMAIN.axes], dtype=np.uint8)
        row[place] = 1
        assert not summed(AVAILABLE, weights, row).any()
    whole = summed(AVAILABLE, weights, rows_of(1, 200))
    assert not any(AVAILABLE.block(whole, place)[-1].any() for place in range(4))


def float_gradient(layout: ChainLayout, weights: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The same by calculus in doubles, without a grid and without a bound on its length; biases have no part."""
    found, real = np.zeros(layout.parameters), weights / GRID
    seen: list[int] = []
    for place, group in enumerate(row):
        if group >= 0:
            block, own = layout.block(real, place), layout.block(found, place)
            used = [int(layout.offsets[k] + row[k]) for k in seen]
            logit = block[[*used, -1]].sum(axis=0)
            chance = np.exp(logit - logit.max())
            own[used] += chance / chance.sum() - np.eye(len(logit))[group]
            seen.append(place)
    return found


@given(st.integers(0, 10**6))
def test_the_vector_points_where_the_gradient_does(seed: int) -> None:
    """Cosine above .9999 with the gradient in doubles, and its length the smaller of the gradient's and the bound."""
    cells, weights = rows_of(seed, 1), weights_of(seed, AVAILABLE)
    row = np.array([AVAILABLE.into[place, cells[place, 0]] for place in range(4)])
    own, real = summed(AVAILABLE, weights, cells) / LENGTH, float_gradient(AVAILABLE, weights, row)
    if (length := float(np.linalg.norm(real))) > 0.05:
        assert own @ real > 0.9999 * np.linalg.norm(own) * length
        assert abs(np.linalg.norm(own) - min(1.0, length)) < 0.002


@given(st.integers(0, 2**60))
def test_the_divisor_is_the_root_rounded_up(square: int) -> None:
    root = isqrt(square)
    assert divisor(square) == max(root + (root * root < square), 1 << 20)


def test_clipping_column_by_column_would_break_the_bound() -> None:
    """The naive twin: every column's part shortened to the bound by itself is, together, longer than the bound."""
    rows, weights = rows_of(1, 200), weights_of(2, AVAILABLE)
    longest = 0.0
    for i in range(200):
        row = np.array([AVAILABLE.into[place, rows[place, i]] for place in range(4)])
        real = float_gradient(AVAILABLE, weights, row)
        parts = [AVAILABLE.block(real, place) for place in range(4)]
        clipped = [part / max(1.0, float(np.linalg.norm(part))) for part in parts]
        longest = max(longest, sum(float((part**2).sum()) for part in clipped) ** 0.5)
    assert longest > 1.5


def test_chances_are_those_of_the_softmax() -> None:
    """Within the grid: 2**20 units, exponentials of twenty digits."""
    weights, row = weights_of(9, AVAILABLE), np.array([2, 1, -1, 0])
    out = np.zeros(5, dtype=np.int64)
    chances(row, 3, AVAILABLE.sizes, AVAILABLE.offsets, AVAILABLE.starts, weights, EXPONENTIALS, out)
    block = AVAILABLE.block(weights / GRID, 3)
    logit = block[-1] + block[AVAILABLE.lines(0)][2] + block[AVAILABLE.lines(1)][1]
    expected = np.exp(logit - logit.max()) / np.exp(logit - logit.max()).sum()
    assert np.allclose(out / 2**20, expected, rtol=0, atol=1e-5)


@given(st.integers(-(2**20), 2**20), st.integers(2**40, 2**59))
def test_division_in_doubles_is_whole_division(residual: int, square: int) -> None:
    """Towards zero, at every residual and every length that a row can have; the worst ones just below a whole quotient."""
    by = int(divisor(square))
    for value in (
        residual,
        *(sign * -(-k * by // 2**14) + d for k in (1, 2**14 - 1) for sign in (1, -1) for d in (-1, 0)),
    ):
        if abs(value) <= 2**20:
            whole = (abs(value) << 14) // by
            assert int(np.int64((value << 14) / np.float64(by))) == (whole if value > 0 else -whole)


@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=40))
def test_chances_are_divided_towards_zero(exponentials: list[int]) -> None:
    total = np.float64(sum(exponentials))
    for e in exponentials:
        assert int(np.int64((e << 20) / total)) == (e << 20) // sum(exponentials)
