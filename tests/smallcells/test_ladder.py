"""Smooth bounds of small cells: over every neighbour of many small tables, and against wrong variants."""

from fractions import Fraction
from math import exp, floor

import numpy as np
import pytest
from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise import calibrate
from reticent.smallcells import ladder
from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.ladder import pooled_bound, rungs, smooth_bounds
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.points import GridPoints
from reticent.smallcells.table import Estimand, steps_of
from tests.smallcells.tiny import ESTIMATORS, Cell, estimate, neighbours, points_of, random_cells

GRID = {"x_steps": 5, "y_steps": 3}
CELLS = random_cells(40, most=9, seed=1, **GRID)
EACH = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
BETAS = [Fraction(1, 10), Fraction(1), Fraction(5, 2)]


def _aim(estimator: Estimator, *, steps: int = 1000, reach: int = 8) -> Estimand:
    return Estimand(estimator=estimator, low=Fraction(-reach), high=Fraction(reach), steps=steps)


def _around(cell: Cell) -> GridPoints:
    """A table whose cell 0 is the given one and whose other cells are all its neighbours."""
    return points_of([cell, *neighbours(cell, **GRID)], **GRID)


def _vector() -> GridPoints:
    """The twenty points of THEORY 8.6."""
    return points_of([[(i, 7 * i % 20) for i in range(20)]], x_steps=19, y_steps=20)


FINE = Estimand(estimator=Predict(at=Fraction(1, 4)), steps=10**12)


def test_rungs_are_those_of_the_theory():
    """THEORY 8.6, U_0 to U_4; the extra grid step is below the digits shown."""
    expected = [0.212285457, 0.306056521, 0.452279004, 0.678038668, 1]
    assert np.array(rungs(_vector(), FINE, cell=0, count=5)) / 1e12 == pytest.approx(expected, abs=6e-10)


@pytest.mark.parametrize(("beta", "bound"), [("0.1", 0.670320046), ("0.5", 0.212285457), ("1", 0.212285457)])
def test_bounds_are_those_of_the_theory(beta: str, bound: float):
    """THEORY 8.6, S at three betas."""
    assert smooth_bounds(_vector(), FINE, beta=Fraction(beta))[0] / 1e12 == pytest.approx(bound, abs=6e-10)


def test_the_tightest_points_are_those_of_the_theory():
    """THEORY 8.6, S_1, S_2, S_3: n - j points have w Q - P^2 = w S_j in squared grid steps."""
    x = np.arange(20)
    p, q = (np.concatenate([[0], np.cumsum(each)]) for each in (x, x * x))
    found = [ladder.least_in_one(p, q, 20, j) / (20 - j) / 19**2 for j in (1, 2, 3)]
    assert found == pytest.approx([1.578947368, 1.342105263, 1.130193906], abs=6e-10)


SIX = [(10, 20), (20, 10), (40, 30), (50, 50), (70, 40), (90, 80)]
CLUSTERED = [(48, 40), (49, 50), (50, 50), (51, 60), (52, 50), (50, 40)]


@pytest.mark.parametrize(
    ("cell", "theta", "local"), [(SIX, 0.222426471, 0.227908351), (CLUSTERED, None, 2.339906147)]
)
def test_the_first_rung_covers_the_local_sensitivity_of_the_theory(cell, theta, local):
    """THEORY 8.6: estimates exactly, and U_0 above the exact local sensitivity."""
    points = points_of([cell], x_steps=100, y_steps=100)
    aim = Estimand(estimator=Predict(at=Fraction(1, 4)), low=Fraction(-50), high=Fraction(50), steps=10**12)
    if theta is not None:
        assert aim.value(steps_of(points, aim)[0]) == pytest.approx(theta, abs=6e-10)
    assert rungs(points, aim, cell=0, count=1)[0] * float(aim.step) >= local


@EACH
def test_estimates_are_the_textbook_s(estimator: Estimator):
    """Rounded half up to the grid, kept within the range, the fallback where there is none."""
    aim = Estimand(estimator=estimator, low=Fraction(-1, 3), high=Fraction(2, 3), steps=77, fallback=5)
    for cell, step in zip(CELLS, steps_of(points_of(CELLS, **GRID), aim), strict=True):
        exact = estimate(cell, estimator, **GRID)
        nearest = 5 if exact is None else floor((exact - aim.low) / aim.step + Fraction(1, 2))
        assert step == min(max(nearest, 0), 77)


@EACH
@pytest.mark.parametrize("steps", [3, 1000])
def test_bounds_cover_every_neighbour(estimator: Estimator, steps: int):  # covers T19
    """All neighbours of 40 small tables: |change| <= U_0 <= S, and S drifts by at most e^beta."""
    aim = _aim(estimator, steps=steps)
    for cell in CELLS:
        points = _around(cell)
        answers = np.array(steps_of(points, aim))
        moved = np.abs(answers - answers[0]).max()
        assert moved <= rungs(points, aim, cell=0, count=1)[0]
        for beta in BETAS:
            bounds = smooth_bounds(points, aim, beta=beta)
            assert moved <= bounds[0]
            assert np.abs(np.log(bounds / bounds[0])).max() <= float(beta)


@EACH
def test_rungs_are_a_ladder(estimator: Estimator):
    """All neighbours of ten tables: U_k(D) <= U_{k+1}(D') for k up to 6, both ways."""
    aim = _aim(estimator)
    for cell in CELLS[:10]:
        points = _around(cell)
        table = np.array([rungs(points, aim, cell=g, count=8) for g in range(points.cells)])
        assert (table[0, :-1] <= table[:, 1:]).all() and (table[:, :-1] <= table[0, 1:]).all()


@EACH
def test_the_finished_mechanism_loses_at_most_epsilon(estimator: Estimator):  # covers T07 T19
    """Exact log density ratio of Lomax noise at the bounds, over all neighbours and 400 places; U_0 alone fails."""
    epsilon, m = 1.0, 8
    beta, worst, naive = Fraction(1, 8), 0.0, 0.0
    a = float(calibrate.lomax(epsilon=Fraction(1), beta=beta))
    aim = _aim(estimator)
    for cell in CELLS:
        points = _around(cell)
        q = np.array(steps_of(points, aim), float)
        first = smooth_bounds(points, aim, beta=Fraction(50))  # nothing beyond U_0 counts
        worst = max(worst, _loss(q, smooth_bounds(points, aim, beta=beta) / a, m))
        naive = max(naive, _loss(q, first / a, m))
    assert worst <= epsilon < naive


def _loss(q: np.ndarray, scale: np.ndarray, m: int) -> float:
    far = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 199)])
    y = q[0] + np.concatenate([-far, far])[:, None] * scale.max()

    def log_density(center, width):
        return -np.log(width) - (m + 1) * np.log1p(np.abs(y - center) / width)

    return float(np.abs(log_density(q, scale) - log_density(q[0], scale[0])).max())


def test_other_cells_do_not_feel_a_neighbour():
    """What parallel composition rests on: estimates and bounds of all other cells stay as they are."""
    aim, beta = _aim(ESTIMATORS[0]), Fraction(1, 8)
    before = points_of(CELLS, **GRID)
    after = points_of([*CELLS[:7], (*CELLS[7], (0, 3)), *CELLS[8:]], **GRID)
    others = np.arange(len(CELLS)) != 7
    assert (np.array(steps_of(before, aim)) == steps_of(after, aim))[others].all()
    assert (smooth_bounds(before, aim, beta=beta) == smooth_bounds(after, aim, beta=beta))[others].all()


def test_bounds_lie_above_the_exact_local_sensitivity():
    """Against the closed form of the observed method, on 300 cells of a finer grid."""
    grid = {"x_steps": 60, "y_steps": 60}
    points = points_of(random_cells(300, most=60, seed=5, **grid), **grid)
    for estimator in ESTIMATORS:
        local = local_sensitivity(points, estimator, span=Fraction(16)) / float(_aim(estimator).step)
        assert (smooth_bounds(points, _aim(estimator), beta=Fraction(50)) >= local).all()


def _true_bound(cell: Cell, aim: Estimand, beta: Fraction, x_steps: int) -> arb:
    """THEORY 8.4 for a prediction in balls, from subsets of x, with the extra step and the shorter beta."""
    xs = sorted(Fraction(x, x_steps) for x, _ in cell)
    n, best = len(xs), ball(Fraction(0))
    assert isinstance(aim.estimator, Predict)
    x0, top = aim.estimator.at, ball(aim.steps)
    for k in range(n):
        j, w = k + 1, n - k - 1
        rung = top
        spread = (
            min((_squares(xs[i : i + w]) for i in range(j + 1)), default=Fraction(0))
            if w > 1
            else Fraction(0)
        )
        if spread:
            mean = sum(xs) / n
            rho = min(max(x0, 1 - x0), abs(x0 - mean) + Fraction(j, w))
            far = min(Fraction(1), max(mean, 1 - mean) + Fraction(j, w))
            h = Fraction(1, w) + far**2 / spread
            hat = ball(h).sqrt() / ball(1 + h) if h < 1 else ball(Fraction(1, 2))
            miss = (1 + ball(1 + far**2 * (n + k) / spread).sqrt()) / 2
            rung = top.min(ball(Fraction(1, w) + rho**2 / spread).sqrt() * hat * miss / ball(aim.step) + 1)
        best = best.max(ball(-(beta - Fraction(1, 2**34)) * k).exp() * rung)
    return best


def _squares(xs: list[Fraction]) -> Fraction:
    mean = sum(xs) / len(xs)
    return sum(((x - mean) ** 2 for x in xs), Fraction(0))


@pytest.mark.parametrize("x_steps", [50, 2**26, 2**30])
def test_doubles_are_rounded_up_and_no_further_than_stated(x_steps: int):
    """S <= S~ <= (1 + 2^-35) S against balls of 300 bits, with sums in one word, in two, and of any length."""
    cells = random_cells(12, most=24, x_steps=x_steps, y_steps=4, seed=9)
    aim = Estimand(estimator=Predict(at=Fraction(3, 10)), low=Fraction(-2), high=Fraction(3), steps=10**6)
    found = smooth_bounds(points_of(cells, x_steps=x_steps, y_steps=4), aim, beta=Fraction(1, 3))
    with ctx.workprec(300):
        for cell, bound in zip(cells, found.tolist(), strict=True):
            if len(cell) > 2:
                true = _true_bound(cell, aim, Fraction(1, 3), x_steps)
                assert true <= ball(Fraction(bound)) <= true * (1 + ball(Fraction(1, 2**35)))


def test_sums_that_cancel_would_be_caught():  # covers T04
    """The naive twin keeps prefix sums in doubles: 24 neighbouring points near the end of a fine grid, 40 places."""
    steps, n, j = 2**28, 24, 3
    ratios = []
    for shift in range(40):
        x = steps - shift - np.arange(n)[::-1]
        p, q = (np.concatenate([[0], np.cumsum(each)]) for each in (x, x * x))
        totals, squares = (each[n - j :].astype(object) - each[: j + 1].astype(object) for each in (p, q))
        exact = min((n - j) * squares - totals * totals)
        assert ladder.least_in_two(p, q, n, j) == exact
        sums = [np.concatenate([[0.0], np.cumsum(each)]) for each in (x / steps, (x / steps) ** 2)]
        t, s = (each[n - j :] - each[: j + 1] for each in sums)
        ratios.append(float(min(s - t * t / (n - j)) * (n - j) * steps**2 / exact))
    assert max(ratios) > 1.1 and min(ratios) < 0.9


def test_corners_alone_would_be_caught():
    """The naive twin of U_0 looks at additions in the corners: on the clustered cell a neighbour moves twice as far."""
    grid = {"x_steps": 100, "y_steps": 100}
    here = estimate(tuple(CLUSTERED), Predict(at=Fraction(1, 4)), **grid)
    assert here is not None

    def moved(point: tuple[int, int]) -> float:
        there = estimate((*CLUSTERED, point), Predict(at=Fraction(1, 4)), **grid)
        assert there is not None
        return float(abs(there - here))

    corners = max(moved(point) for point in [(0, 0), (0, 100), (100, 0), (100, 100)])
    anywhere = max(moved((x, y)) for x in range(101) for y in (0, 100))
    aim = Estimand(estimator=Predict(at=Fraction(1, 4)), low=Fraction(-50), high=Fraction(50))
    first = rungs(points_of([CLUSTERED], **grid), aim, cell=0, count=1)[0] * float(aim.step)
    assert corners < anywhere / 2 and anywhere <= first


def test_forgetting_the_grid_step_would_be_caught():
    """On a coarse grid rounding alone moves an estimate by a step, more than U_0 without its extra step."""
    aim = Estimand(estimator=CellMean(), steps=2)
    cell = ((0, 0),) + ((0, 1),) * 2 + ((0, 3),) * 6
    points = _around(cell)
    answers = np.array(steps_of(points, aim))
    first = rungs(points, aim, cell=0, count=1)[0]
    assert first - 1 < np.abs(answers - answers[0]).max() <= first


def test_a_sum_of_capped_ladders_would_be_caught():
    """A slope's ladder is no sum of two predictions' ladders each cut at R.

    Points crowded near x = 1 fix the line there and leave its other end loose: one point at (0, 0) turns the slope
    from -R to R, and the sum of the cut rungs is below 2 R.
    """
    crowd, grid = [(1000, 950)] * 950 + [(897, 1000)] * 50, {"x_steps": 1000, "y_steps": 1000}
    reach = Fraction(465, 1000)
    slope = Estimand(estimator=Slope(), low=-reach, high=reach)
    ends = [Estimand(estimator=Predict(at=Fraction(at)), high=reach) for at in (0, 1)]
    points = points_of([crowd, [*crowd, (0, 0)]], **grid)
    here, there = steps_of(points, slope)
    capped = sum(rungs(points, aim, cell=0, count=1)[0] * float(aim.step) for aim in ends)
    own = rungs(points, slope, cell=0, count=1)[0] * float(slope.step)
    assert (here, there) == (0, slope.steps)
    assert capped < 0.91 * float(2 * reach) < own


@EACH
def test_chi_covers_every_neighbour_and_is_smooth(estimator: Estimator):  # covers T19
    """(n + 1) |change| <= chi and chi drifts by at most e^beta; with n + 1 for n + 1 + k it would not."""
    aim, beta, nothing = _aim(estimator), Fraction(1, 10), np.zeros(1, np.bool_)
    naive_drift = 0.0
    for cell in CELLS[:12]:
        points = _around(cell)
        answers = np.array(steps_of(points, aim))
        sizes = np.diff(points.starts)
        chi = [
            pooled_bound(points_of([c], **GRID), aim, beta=beta, is_left_out=nothing)
            for c in [cell, *neighbours(cell, **GRID)]
        ]
        assert (sizes[0] + 1) * np.abs(answers - answers[0]).max() <= chi[0]
        assert np.abs(np.log(np.array(chi) / chi[0])).max() <= float(beta)
        naive = (sizes + 1) * smooth_bounds(points, aim, beta=beta)
        naive_drift = max(naive_drift, float(np.abs(np.log(naive / naive[0])).max()))
    assert naive_drift > float(beta)


def test_chi_is_over_the_cells_that_count():
    """The largest of the cells alone; at least one step even when none counts."""
    aim, beta = _aim(ESTIMATORS[0]), Fraction(1, 2)
    alone = [
        pooled_bound(points_of([cell], **GRID), aim, beta=beta, is_left_out=np.zeros(1, np.bool_))
        for cell in CELLS
    ]
    points, left_out = points_of(CELLS, **GRID), np.arange(len(CELLS)) % 2 == 0
    assert pooled_bound(points, aim, beta=beta, is_left_out=left_out) == max(alone[1::2])
    assert pooled_bound(points, aim, beta=beta, is_left_out=left_out | True) == 1.0


def test_a_large_cell_goes_the_long_way_to_the_same_bound(monkeypatch: pytest.MonkeyPatch):
    """Python's integers and compiled words agree; where words end is a matter of time alone."""
    points, aim = points_of(CELLS, **GRID), _aim(ESTIMATORS[0])
    quick = smooth_bounds(points, aim, beta=Fraction(1, 8))
    monkeypatch.setattr(ladder, "_ROOM", 1)
    assert smooth_bounds(points, aim, beta=Fraction(1, 8)) == pytest.approx(quick, rel=1e-14)


def test_weights_lie_just_above_the_powers():
    """e^(-rate k) <= table <= (1 + 2^-50) e^(-rate k) at 600 places, and the table is long enough for any search."""
    rate, top = Fraction(1, 97), 10**6
    fine, coarse = ladder._decay(rate, top)
    last = len(coarse) * 1024 - 1
    assert (1 + last) * exp(-float(rate) * last) * top < 1
    with ctx.workprec(200):
        for k in range(0, last, max(1, last // 600)):
            true, held = (
                ball(-rate * k).exp(),
                ball(Fraction(float(fine[k % 1024])) * Fraction(float(coarse[k // 1024]))),
            )
            assert true <= held <= true * (1 + ball(Fraction(1, 2**50)))


def test_refuses_what_it_cannot_bound():
    """A beta too small to search for, a grid too fine for its squares, points out of order."""
    aim, points = _aim(ESTIMATORS[0]), points_of(CELLS, **GRID)
    with pytest.raises(PlanError, match="beta"):
        smooth_bounds(points, aim, beta=Fraction(1, 2**21))
    with pytest.raises(PlanError, match="step"):
        smooth_bounds(points_of([[(0, 0)]], x_steps=2**31, y_steps=1), aim, beta=Fraction(1))
    mixed = GridPoints(starts=np.array([0, 2]), x=np.array([1, 0]), y=np.array([0, 0]), x_steps=1, y_steps=1)
    with pytest.raises(ValueError, match="sorted"):
        smooth_bounds(mixed, aim, beta=Fraction(1))
