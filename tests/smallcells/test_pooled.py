"""The pooled envelope: its delta by summing over all that can be published, and what is withheld."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import exp

import numpy as np
import pytest
from flint import ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.refine.quantiles import laplace_coverage
from reticent.smallcells import pooled
from reticent.smallcells.estimators import CellMean, Predict
from reticent.smallcells.ladder import pooled_bound
from reticent.smallcells.pooled import PooledCells, log_above
from reticent.smallcells.table import Estimand, steps_of
from tests.noise.seeded import SeededBits
from tests.smallcells.tiny import Cell, neighbours, points_of, random_cells

GRID = {"x_steps": 2, "y_steps": 2}
ASKED = PooledCells(
    aim=Estimand(estimator=CellMean(), steps=60),
    epsilon=Fraction(2),
    count_epsilon=Fraction(1),
    noise_epsilon=Fraction(1),
    delta=Fraction(1, 20),
    least=2,
    m=2,
)
BIG = tuple((0, i % 3) for i in range(30))
TINY = ((0, 0), (0, 2), (0, 2))
TELLING = tuple((0, 2) for _ in range(6))


def _hockey(p: np.ndarray, q: np.ndarray, moved: int, scale: np.ndarray) -> float:
    """The sum over z of max(0, p L(z) - q L(z - moved)), L the discrete Laplace law: two tails and what is between."""
    r, tail = np.exp(-1 / scale), np.tanh(1 / (2 * scale)) / -np.expm1(-1 / scale)
    total = np.maximum(0.0, p - q * r**moved) * tail
    if moved:
        total += np.maximum(0.0, p * r**moved - q) * tail
    for z in range(1, moved):
        total += np.maximum(0.0, p * r**z - q * r ** (moved - z)) * np.tanh(1 / (2 * scale))
    if not moved:
        total += np.maximum(0.0, p - q) * (tail - np.tanh(1 / (2 * scale)))
    return float(total.sum())


@cache
def _chi(told: int, asked: PooledCells) -> int:
    return asked.chi_of(told)


@cache
def _height(cell: Cell, asked: PooledCells) -> int:
    points = points_of([cell], **GRID)
    bound = pooled_bound(points, asked.aim, beta=asked.beta, is_left_out=np.zeros(1, np.bool_))
    return log_above(Fraction(bound), asked.grid)


def _delta(here: Cell, there: Cell, asked: PooledCells) -> float:
    """The exact delta at epsilon = cost between two tables of one cell: counts, chi and estimate together."""
    steps = [steps_of(points_of([c], **GRID), asked.aim)[0] for c in (here, there)]
    counts = np.arange(len(here) - 16, len(here) + 17)
    heights = [_height(c, asked) for c in (here, there)]
    reach = 12 * pooled.FINENESS
    told = np.arange(heights[0] - reach, heights[0] + reach)
    count_p, count_q = (_laplace(counts - len(c), float(1 / asked.count_epsilon)) for c in (here, there))
    chi_p, chi_q = (_laplace(told - h, float(asked.chi_scale)) for h in heights)
    chis, which = np.unique([_chi(int(t), asked) for t in told], return_inverse=True)
    chi_p, chi_q = (np.bincount(which, weights=each) for each in (chi_p, chi_q))
    total, factor, moved = 0.0, exp(float(asked.cost)), abs(steps[0] - steps[1])
    for count, p, q in zip(counts.tolist(), count_p, count_q, strict=True):
        if count < asked.least:  # the cell does not count; chi is 1 on both sides, and nothing else is told
            total += max(0.0, p - factor * q)
            continue
        size = max(0, count - asked.count_margin)
        scale = np.minimum(asked.aim.steps, chis / (size + 1)) / float(asked.epsilon)
        total += _hockey(p * chi_p, factor * q * chi_q, moved, scale)
    return total


def _laplace(k: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-np.abs(k) / scale) * np.tanh(1 / (2 * scale))


@pytest.mark.parametrize("cell", [TINY, TELLING, BIG[:12]])
def test_delta_is_at_most_what_is_claimed(cell: Cell):  # covers T07 T23
    """All neighbours, both ways, by summing the law over counts, chi and estimates; what is cut off is below 1e-5."""
    for other in {tuple(sorted(each)) for each in neighbours(cell, x_steps=0, y_steps=2)}:
        assert _delta(cell, other, ASKED) <= float(ASKED.delta) >= _delta(other, cell, ASKED)


class NoMargins(PooledCells):
    """The naive twin: counts and chi are taken as they come."""

    @property
    def count_margin(self) -> int:
        return 0

    @property
    def chi_margin(self) -> int:
        return 0


def test_margins_left_out_would_be_caught():  # covers T23
    """Half the time chi is too low to cover a neighbour, and the same sum says so."""
    naive = NoMargins(**{name: getattr(ASKED, name) for name in ASKED.__dataclass_fields__})
    assert _delta((*TELLING, (0, 0)), TELLING, naive) > float(ASKED.delta)


def test_margins_are_the_least_that_do():
    """P(noise > margin) is at most delta / 2, and more than that one step earlier, decided in balls."""
    for delta in (Fraction(1, 20), Fraction(1, 10**6), Fraction(1, 10**12)):
        asked = replace(ASKED, delta=delta)
        for scale, margin in ((Fraction(1), asked.count_margin), (asked.chi_scale, asked.chi_margin)):
            with ctx.workprec(200):
                assert (1 - laplace_coverage(scale, margin)) / 2 <= ball(delta / 2)
                assert (1 - laplace_coverage(scale, margin - 1)) / 2 > ball(delta / 2)


def test_chi_is_rounded_up():  # covers T24
    """ln chi up to its grid, chi itself up to a whole step, never below the truth."""
    with ctx.workprec(300):
        for value in (Fraction(1), Fraction(3, 2), Fraction(10**9, 7), Fraction(2**40)):
            k = log_above(value, ASKED.grid)
            assert ball(ASKED.grid * k).exp() >= ball(value) or value == 1 == k + 1
            assert value == 1 or ball(ASKED.grid * (k - 1)).exp() < ball(value)
            assert ball(ASKED.chi_of(k)) >= ball(ASKED.grid * (k + ASKED.chi_margin)).exp()


def test_small_cells_are_withheld_by_their_noisy_count_alone():  # covers T10 T12
    """None exactly where the published count is below the least one; empty cells are no exception."""
    cells = random_cells(60, most=8, seed=4, **GRID)
    asked = replace(ASKED, aim=Estimand(estimator=Predict(at=Fraction(1, 2))), least=4)
    table = asked.measure(points_of(cells, **GRID), bits=SeededBits(5))
    assert [step is None for step in table.steps] == [count < 4 for count in table.counts]
    assert [each is None for each in table.estimates()] == [count < 4 for count in table.counts]
    assert {len(cell) for cell, step in zip(cells, table.steps, strict=True) if step is None} - {0, 1, 2, 3}


def test_the_scale_is_public_and_its_variance_exact():
    """Every cell's scale follows from its published count and chi; the variance is that of the discrete law."""
    table = ASKED.measure(points_of([BIG, TINY, TELLING], **GRID), bits=SeededBits(6))
    for count, scale, variance in zip(table.counts, table.scales(), table.noise_variance(), strict=True):
        size = max(0, count - ASKED.count_margin)
        assert scale == min(Fraction(60), Fraction(table.chi, size + 1)) / 2
        k, step = np.arange(-4000, 4001), float(ASKED.aim.step)
        assert variance == pytest.approx(float((k**2 * _laplace(k, float(scale))).sum()) * step**2)
    level = Fraction(9, 10)
    for scale, width in zip(table.scales(), table.half_widths(level), strict=True):
        w = round(width / float(ASKED.aim.step) - 0.5)
        assert laplace_coverage(scale, w) >= ball(level)


def test_refuses_what_promises_nothing():
    """Budgets that are not positive, a delta of 0 or 1, a negative least count."""
    for wrong in (
        {"epsilon": Fraction(0)},
        {"noise_epsilon": Fraction(0)},
        {"delta": Fraction(1)},
        {"delta": Fraction(0)},
        {"least": -1},
        {"m": 0},
    ):
        with pytest.raises(PlanError):
            replace(ASKED, **wrong)


@pytest.mark.parametrize("delta", [Fraction(1, 20), Fraction(1, 10**6)])
def test_a_scale_holds_while_the_noise_is_at_most_the_margin(delta: Fraction):  # covers T23
    """A count whose noise is just the margin gets the scale of its true size. At one less, the naive threshold, it does not,
    though a noise that large has more than half of delta as its chance."""
    asked, chi = replace(ASKED, delta=delta), 50
    for size in range(12):
        enough = Fraction(chi, size + 1) / asked.epsilon
        assert asked.scale(size + asked.count_margin, chi) == enough
        assert asked.scale(size + asked.count_margin + 1, chi) < enough
    larger, least = (
        1 - laplace_coverage(1 / asked.count_epsilon, asked.count_margin - each) for each in (1, 0)
    )
    assert least / 2 <= ball(delta / 2) < larger / 2
