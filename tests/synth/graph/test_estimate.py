"""The fit is the least squares optimum over all joint tables, and factors over what was measured."""

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.synth.graph import estimate as module
from reticent.synth.graph.estimate import NoisyTable, Zeroes, estimate, passes
from tests.synth.graph.joint import best_joint, joint_from, loss_of, noisy, onto_simplex, summed

SHAPE = (2, 3, 4, 2)
TOTAL = 400.0
RING = [(0, 1), (1, 2), (2, 3), (0, 3)]
CASES = {
    "chain": [(0, 1), (1, 2), (2, 3)],
    "ring": RING,
    "ones": [(0,), (1,), (2,), (3,)],
    "nested": [(0,), (1,), (0, 1), (1, 2, 3), (2, 3)],
    "partly": [(1, 2)],
    "twice": [(0, 1), (0, 1), (1, 2), (0,)],
}


def truth(seed=0, spread=0.4):
    return np.random.default_rng(seed).dirichlet(np.full(48, spread)).reshape(SHAPE) * TOTAL


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("deviation", [2.0, 30.0])
def test_the_fit_is_the_best_of_all_joint_tables(name, deviation):
    """Against long projected gradient descent on every cell. With noise of 30 many tables are mostly negative."""
    sets = CASES[name]
    deviations = [deviation * (1 + 0.5 * (i % 3)) for i in range(len(sets))]
    measured = noisy(truth(), sets, deviations, np.random.default_rng(1))
    best = best_joint(SHAPE, measured, TOTAL)
    fitted = estimate(SHAPE, measured, total=TOTAL, iterations=1500, tolerance=0)
    assert loss_of(joint_from(fitted), measured) - loss_of(best, measured) < 1e-2
    for m in measured:
        # Strong convexity: an excess of loss e leaves marginals within sqrt(2 e) deviations.
        assert np.abs(fitted.marginal(m.places) - summed(best, m.places)).max() < 0.15 * m.deviation


def naive_clipped(measured):
    """The twin: cut negative cells off and divide by the sum."""
    table = np.maximum(measured.table, 0)
    return table / table.sum() * TOTAL


def test_cutting_negative_cells_off_is_not_the_best():
    measured = noisy(truth(), [(1, 2)], [20.0], np.random.default_rng(1))
    nearest = onto_simplex(measured[0].table, TOTAL)
    fitted = estimate(SHAPE, measured, total=TOTAL, iterations=1500, tolerance=0)
    assert np.abs(fitted.marginal((1, 2)) - nearest).max() < 0.5
    assert np.abs(naive_clipped(measured[0]) - nearest).max() > 5


@pytest.mark.parametrize("name", CASES)
def test_exact_tables_are_recovered(name):
    joint = truth(spread=2.0)
    measured = [NoisyTable(places=p, table=summed(joint, p), deviation=1.0) for p in CASES[name]]
    fitted = estimate(SHAPE, measured, total=TOTAL, iterations=1500, tolerance=0)
    for m in measured:
        assert np.allclose(fitted.marginal(m.places), m.table, atol=1e-2)


def test_the_fit_has_no_dependence_that_was_not_measured():
    """In a ring, opposite axes are independent given the other two: the odds ratios are one."""
    measured = noisy(truth(spread=2.0), RING, [3.0] * 4, np.random.default_rng(2))
    joint = joint_from(estimate(SHAPE, measured, total=TOTAL))
    assert largest_odds(joint) < 1e-6
    assert largest_odds(truth(spread=2.0)) > 1


def largest_odds(joint):
    """Largest logarithm of an odds ratio between axes 0 and 2, given 1 and 3."""
    logs = np.log(joint)
    mixed = logs - logs.mean(axis=0, keepdims=True) - logs.mean(axis=2, keepdims=True)
    return np.abs(mixed + logs.mean(axis=(0, 2), keepdims=True)).max()


def test_an_axis_that_nobody_measured_is_uniform():
    measured = noisy(truth(), [(0, 1)], [1.0], np.random.default_rng(2))
    fitted = estimate(SHAPE, measured, total=TOTAL)
    assert np.allclose(fitted.marginal((2,)), TOTAL / 4)
    assert np.allclose(estimate(SHAPE, [], total=TOTAL).marginal((1, 3)), TOTAL / 6)


def test_structural_zeroes_hold_exactly_and_the_rest_is_fitted():
    """Against the optimum over the allowed cells alone."""
    allowed = np.ones((3, 4), dtype=bool)
    allowed[0, 1:] = False
    apart = np.array([[True, False], [True, True]])
    zeroes = [Zeroes(places=(1, 2), allowed=allowed), Zeroes(places=(0, 3), allowed=apart)]
    measured = noisy(truth(), CASES["chain"], [4.0] * 3, np.random.default_rng(3))
    fitted = estimate(SHAPE, measured, total=TOTAL, zeroes=zeroes, iterations=1500, tolerance=0)
    joint = joint_from(fitted)
    assert (summed(joint, (1, 2))[~allowed] == 0).all() and (summed(joint, (0, 3))[~apart] == 0).all()
    assert (fitted.marginal((1, 2))[~allowed] == 0).all()
    best = best_allowed(measured, allowed[None, :, :, None] & apart[:, None, None, :])
    assert loss_of(joint, measured) - loss_of(best, measured) < 1e-2


def best_allowed(measured, allowed, steps=3000):
    """Projected gradient descent that may use only the allowed cells."""
    here = last = allowed * TOTAL / allowed.sum()
    length = 1.0 / sum(48 / m.table.size / m.deviation**2 for m in measured)
    for k in range(steps):
        ahead = here + k / (k + 3) * (here - last)
        slope = np.zeros(SHAPE)
        for m in measured:
            sizes = [SHAPE[axis] if axis in m.places else 1 for axis in range(4)]
            slope += ((summed(ahead, m.places) - m.table) / m.deviation**2).reshape(sizes)
        moved = np.zeros(SHAPE)
        moved[allowed] = onto_simplex((ahead - length * slope)[allowed], TOTAL)
        last, here = here, moved
    return here


def test_zeroes_without_a_cell_left_are_refused():
    none = [
        Zeroes(places=(0, 1), allowed=np.array([[True] * 3, [False] * 3])),
        Zeroes(places=(0,), allowed=np.array([False, True])),
    ]
    with pytest.raises(PlanError, match="contradict each other"):
        estimate(SHAPE, [], total=TOTAL, zeroes=none)


def test_a_start_changes_the_time_and_not_the_fit():
    measured = noisy(truth(), CASES["ring"], [5.0] * 4, np.random.default_rng(4))
    cold = estimate(SHAPE, measured, total=TOTAL, iterations=1500, tolerance=0)
    three = estimate(SHAPE, measured[:3], total=TOTAL)
    warm = estimate(SHAPE, measured, total=TOTAL, start=three, iterations=1500, tolerance=0)
    for m in measured:
        assert np.allclose(warm.marginal(m.places), cold.marginal(m.places), atol=0.2)
    # From its own end, one step keeps the fit; from nowhere, it is far.
    again = estimate(SHAPE, measured, total=TOTAL, start=cold, iterations=1)
    fresh = estimate(SHAPE, measured, total=TOTAL, iterations=1)
    best = loss_of(joint_from(cold), measured)
    assert loss_of(joint_from(again), measured) <= best + 1e-9
    assert loss_of(joint_from(fresh), measured) > best + 1


def test_a_set_measured_twice_counts_for_both():
    """Two tables with deviations s and t are one with the weighted mean."""
    a, b = noisy(truth(), [(0, 1), (0, 1)], [3.0, 6.0], np.random.default_rng(6))
    mean = NoisyTable(places=(0, 1), table=(4 * a.table + b.table) / 5, deviation=(1 / 9 + 1 / 36) ** -0.5)
    both = estimate(SHAPE, [a, b], total=TOTAL).marginal((0, 1))
    assert np.allclose(both, estimate(SHAPE, [mean], total=TOTAL).marginal((0, 1)))
    assert not np.allclose(both, estimate(SHAPE, [a], total=TOTAL).marginal((0, 1)), atol=0.5)


def test_tables_known_badly_are_heard_beside_those_known_well(monkeypatch):
    """Deviations 0.2 and 20, a hundred passes: near the end. Without the even start the loose tables are not met."""
    sets = [*CASES["ones"], *RING]
    measured = noisy(truth(spread=2.0), sets, [0.2] * 4 + [20.0] * 4, np.random.default_rng(9))

    def loss_after(iterations):
        fitted = estimate(SHAPE, measured, total=TOTAL, iterations=iterations, tolerance=0)
        return loss_of(joint_from(fitted), measured)

    end = loss_after(1000)
    assert loss_after(100) < end + 0.1
    monkeypatch.setattr(module, "EVEN", 0.0)
    assert loss_after(100) > end + 5


def test_louder_noise_is_fitted_for_fewer_passes():
    """The scale of the table does not matter, only noise beside total; and the number is never out of hand."""

    def chosen(deviation, total):
        return passes([NoisyTable(places=(0,), table=np.zeros(2), deviation=deviation)], total=total)

    assert chosen(30.0, 30_000.0) == chosen(3.0, 3_000.0) == 200
    assert chosen(30.0, 3_000.0) < chosen(30.0, 30_000.0) < chosen(3.0, 30_000.0)
    assert (chosen(1e9, 1.0), chosen(1e-9, 1e9)) == (60, 1600)


@pytest.mark.parametrize("height", [0.0, -1e6, 1e6])
def test_no_table_is_too_odd_to_be_fitted(height):
    """Nought, far below and far above: finite, not negative, and of the given total."""
    measured = [
        NoisyTable(places=p, table=np.full([SHAPE[i] for i in p], height), deviation=1e-3) for p in RING
    ]
    measured[0].table[0, 0] = -height
    fitted = estimate(SHAPE, measured, total=1e-3)
    joint = joint_from(fitted)
    assert np.isfinite(joint).all() and (joint >= 0).all()
    assert joint.sum() == pytest.approx(1e-3)


ONE = NoisyTable(places=(0,), table=np.ones(2), deviation=1.0)


@pytest.mark.parametrize(
    ("shape", "measured", "total", "word"),
    [
        ((2, 3), [NoisyTable(places=(0,), table=np.ones(3), deviation=1.0)], 1.0, "other sizes"),
        ((2,), [NoisyTable(places=(1,), table=np.ones(3), deviation=1.0)], 1.0, "there are 1"),
        ((2,), [ONE], 0.0, "positive"),
        ((2,), [ONE], float("nan"), "positive"),
        ((2, 0), [ONE], 1.0, "at least one cell"),
        ((), [], 1.0, "at least one cell"),
    ],
)
def test_what_cannot_be_fitted_is_refused(shape, measured, total, word):
    with pytest.raises(PlanError, match=word):
        estimate(shape, measured, total=total)


@pytest.mark.parametrize(
    "wrong",
    [
        {"places": (1, 0)},
        {"places": ()},
        {"places": (0, 0)},
        {"places": (-1, 0)},
        {"places": (0,)},
        {"table": np.array([[np.nan, 1.0]])},
        {"table": np.array([[np.inf, 1.0]])},
        {"deviation": 0.0},
        {"deviation": -1.0},
        {"deviation": float("inf")},
    ],
)
def test_a_measurement_checks_itself(wrong):
    right = {"places": (0, 1), "table": np.ones((1, 2)), "deviation": 1.0}
    NoisyTable(**right)
    with pytest.raises(PlanError):
        NoisyTable(**{**right, **wrong})


def test_zeroes_check_themselves():
    with pytest.raises(PlanError):
        Zeroes(places=(0, 1), allowed=np.ones(2, dtype=bool))
    with pytest.raises(PlanError, match="other sizes"):
        estimate((2, 3), [], total=1.0, zeroes=[Zeroes(places=(0,), allowed=np.ones(3, dtype=bool))])
