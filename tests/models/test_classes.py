"""Models of classes: bounds of slope and curvature, the minimum, and lines that are always finite."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from reticent.errors import PlanError
from reticent.lab.papers.classes import SoftmaxRegression, labelled, shape
from reticent.lab.papers.objective import curvature_loss
from reticent.models.design import Bounded, RegressionDesign
from reticent.models.fit import SystemModelNoise
from reticent.models.table import minimum
from tests.models.doubles import FrozenModelNoise, ZeroModelNoise
from tests.models.worlds import ADD, REPLACE

X = Bounded(name="age", low=0, high=80)


def plan(levels: int) -> RegressionDesign:
    return RegressionDesign(predictors=(X,), response=Bounded(name="kind", low=0, high=levels - 1))


def some(levels: int, n: int = 300, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 81, (n, 1)).astype(float)
    score = np.outer(x[:, 0] / 40 - 1, np.linspace(-2, 2, levels)) + rng.gumbel(size=(n, levels))
    return x, score.argmax(axis=1).astype(float)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_without_noise_it_is_the_penalised_likelihood(levels):
    """Chances against a general minimiser of the same objective."""
    x, label = some(levels)
    data = labelled(plan(levels), x, label)
    fit = SoftmaxRegression(ridge=Fraction(10)).fit(
        data, epsilon=Fraction(8), neighbours=ADD, noise=ZeroModelNoise()
    )
    unit = data.unit()
    lines = 1 if levels == 2 else levels

    def objective(flat):
        b = flat.reshape(lines, 2)
        score = np.column_stack([np.zeros(len(unit)), unit @ b.T]) if lines == 1 else unit @ b.T
        return (
            np.logaddexp.reduce(score, axis=1) - score[np.arange(len(unit)), data.label]
        ).sum() + 5 * flat @ flat

    best = minimize(objective, np.zeros(2 * lines), tol=1e-10).x.reshape(lines, 2)
    score = np.column_stack([np.zeros(len(unit)), unit @ best.T]) if lines == 1 else unit @ best.T
    wanted = np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
    assert np.allclose(fit.chances(x), wanted, atol=1e-4)
    assert np.allclose(fit.chances(x).sum(axis=1), 1)


@pytest.mark.parametrize(("lines", "p"), [(1, 2), (3, 2), (4, 3)])
def test_one_row_s_slope_and_curvature_stay_within_their_bounds(lines, p):  # covers T07
    """500 random rows and lines; with half of either bound some row is outside."""
    rng = np.random.default_rng(lines)
    curve, slope, rank = shape(lines, p)
    told = float(curvature_loss(curve, rank=rank, ridge=Fraction(1), neighbours=ADD))
    steep, bent = [], []
    for _ in range(500):
        x = rng.choice([-1.0, 1.0], p)
        s = np.exp(rng.normal(0, rng.choice([0.0, 0.1, 5.0]), max(lines, 2)))
        s /= s.sum()
        e = np.eye(len(s))[s.argmin()]
        if lines == 1:
            s, e = s[1:], e[1:]
        steep.append(np.linalg.norm(np.outer(s - e, x)))
        one = np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))
        others = rng.uniform(-1, 1, (2, lines * p))
        base = np.eye(lines * p) + rng.choice([0, 1]) * others.T @ others
        bent.append(np.linalg.slogdet(base + one)[1] - np.linalg.slogdet(base)[1])
    assert float(slope) / 2 < max(steep) <= float(slope) + 1e-9
    assert told / 2 < max(bent) <= told + 1e-9


def test_a_class_table_is_the_rows_it_counts():
    """Cells with counts and rows one by one give the same fit; and order does not matter."""
    x, label = some(3, n=60)
    rows = labelled(plan(3), x, label)
    cells, counts = np.unique(np.column_stack([x, label]), axis=0, return_counts=True)
    table = labelled(plan(3), cells[:, :1], cells[:, 1], counts)
    made = [
        SoftmaxRegression().fit(data, epsilon=Fraction(1), neighbours=ADD, noise=FrozenModelNoise())
        for data in (rows, table)
    ]
    flat = [np.array([[float(v) for v in line] for line in fit.coefficients]) for fit in made]
    assert np.allclose(flat[0], flat[1], atol=1e-6)


def test_the_call_does_not_depend_on_the_rows_and_the_claim_is_what_was_spent():
    """The same tilt for every table, a class nobody chose included; epsilon is tilt and curvature together."""
    seen = set()
    for n in (0, 1, 50):
        noise = FrozenModelNoise()
        x, label = some(3, n=50)
        fit = SoftmaxRegression().fit(
            labelled(plan(4), x[:n], label[:n]), epsilon=Fraction(1), neighbours=REPLACE, noise=noise
        )
        (call,) = noise.calls
        seen.add(call.parameters)
        curve, _, rank = shape(4, 2)
        told = curvature_loss(curve, rank=rank, ridge=Fraction(10), neighbours=REPLACE)
        assert call.epsilon + told == fit.claim.epsilon == 1 and fit.claim.arithmetic == "ideal reals"
    assert len(seen) == 1


@pytest.mark.parametrize("label", [7.0, -1.0, 0.5, np.nan, np.inf])
def test_a_label_of_no_name_does_not_count(label):  # covers B039 B040
    x, good = some(3, n=5)
    assert len(labelled(plan(3), np.vstack([x, [[3.0]]]), np.append(good, label)).label) == 5


@pytest.mark.parametrize("levels", [2, 3])
def test_degenerate_rows_give_finite_chances(levels):
    """Nobody, one class only, one value only; with the system's noise."""
    x, label = some(levels, n=20)
    for rows in ((x[:0], label[:0]), (x, np.zeros(20)), (np.full((20, 1), 80.0), label)):
        data = labelled(plan(levels), *rows)
        for noise in (ZeroModelNoise(), SystemModelNoise()):
            fit = SoftmaxRegression().fit(data, epsilon=Fraction(1, 10), neighbours=REPLACE, noise=noise)
            assert np.isfinite(fit.chances(np.array([[0.0], [80.0], [1e6]]))).all()


def test_a_steep_tilt_is_still_minimised():
    """Tilts a thousand times the data: the gradient at the answer is zero."""
    x, label = some(3, n=30)
    data = labelled(plan(3), x, label)
    tilt = np.array([[3e4, -1e4], [-2e4, 5e3], [1e3, 1e3]])
    b = minimum(data.unit(), data.label, data.count, ridge=10.0, tilt=tilt)
    score = data.unit() @ b.T
    s = np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
    s[np.arange(30), data.label] -= 1
    assert np.abs(s.T @ data.unit() + 10 * b + tilt).max() < 1e-6


def test_too_many_coefficients_are_refused():
    with pytest.raises(PlanError):
        SoftmaxRegression().fit(
            labelled(plan(20), *some(20)), epsilon=Fraction(1), neighbours=ADD, noise=ZeroModelNoise()
        )
    with pytest.raises(PlanError):
        SoftmaxRegression(ridge=Fraction(0))


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("levels", [2, 3])
def test_the_tilt_covers_every_move_of_the_gradient(levels, neighbours):  # covers T07
    """All corners and classes that come, or that change places, at steep lines; half the bound is exceeded."""
    noise, lines = FrozenModelNoise(), 1 if levels == 2 else levels
    SoftmaxRegression()._tilt(lines, 2, epsilon=Fraction(1), neighbours=neighbours, noise=noise)
    bound = float(noise.calls[0].sensitivity) / 2**20
    rng, farthest = np.random.default_rng(levels), 0.0
    for _ in range(200):
        b = rng.normal(0, 20, (lines, 2))
        pulls = [np.zeros(lines * 2)]
        for x in np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]):
            score = np.concatenate([[0.0], b @ x]) if lines == 1 else b @ x
            s = np.exp(score - np.logaddexp.reduce(score))
            pulls += [np.outer((s - e)[-lines:], x).ravel() for e in np.eye(levels)]
        others = pulls if neighbours.replaced else pulls[:1]
        farthest = max([farthest, *(np.linalg.norm(a - c) for a in pulls for c in others)])
    assert bound / 2 < farthest <= bound + 1e-9
