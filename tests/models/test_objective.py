"""Objective perturbation: the density of the line, and the minimum over a ball."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from reticent.lab.papers.objective import Objective, curvature_loss, least_ridge
from reticent.models.perturbed import slope_bound, within_ball
from tests.models.doubles import FrozenModelNoise
from tests.models.worlds import ADD, REPLACE


def losses(one, other, *, ridge: float, scale: float, radius: float) -> list[float]:
    """Log ratios of one coefficient's law at every place: its density inside, its mass on either end.

    Rows are y (x = 1). The line is (c - t)/(G + r) cut to the radius, t Laplace.
    """

    def parts(rows):
        h, c = len(rows) + ridge, sum(rows)
        at = np.linspace(-radius, radius, 201)
        inside = np.log(h) - np.abs(c - h * at) / scale
        tails = [-max(0.0, g) / scale - np.log(2) if g > 0 else np.log1p(-np.exp(g / scale) / 2) for g in
                 (radius * h - c, radius * h + c)]  # fmt: skip
        return np.concatenate([inside, tails])

    return np.abs(parts(one) - parts(other)).tolist()


PAIRS = [
    ([], [1.0]),
    ([], [-1.0]),
    ([1.0, 1.0], [1.0, -1.0]),
    ([1.0], []),
    ([-1.0, 0.0], [1.0, 0.0]),
    ([1.0, 1.0], [1.0]),
]


def worst(epsilon: Fraction, *, halve: bool = False, curve: bool = True) -> float:
    """The largest loss over all pairs, with the tilt and the ridge that the estimator asks for."""
    found = []
    for one, other in PAIRS:
        neighbours = REPLACE if len(one) == len(other) else ADD
        noise = FrozenModelNoise()
        asked = Fraction(1, 1000)
        ridge, _ = Objective(ridge=asked)._tilt(1, epsilon=epsilon, neighbours=neighbours, noise=noise)
        call = noise.calls[0]
        scale = float(call.sensitivity / call.epsilon) / 2**20
        if halve:
            scale /= 2
        if not curve:  # the naive twin: all of epsilon for the tilt, and the ridge as asked
            ridge, scale = asked, float(call.sensitivity / epsilon) / 2**20
        found += losses(one, other, ridge=float(ridge), scale=scale, radius=1.0)
    return max(found)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_the_law_of_one_coefficient_loses_at_most_epsilon(epsilon):  # covers T07
    """Exactly, inside the ball and on its ends; half the tilt, or no care for curvature, loses more."""
    assert worst(epsilon) <= float(epsilon) + 1e-9
    assert worst(epsilon, halve=True) > float(epsilon)
    assert worst(epsilon, curve=False) > float(epsilon)


@pytest.mark.parametrize("p", [2, 4])
def test_gradients_and_determinants_stay_within_their_bounds(p):
    """Random rows at the ends of their range, random lines in the ball and on its surface: 400 of each."""
    rng = np.random.default_rng(p)
    ridge, radius = 3.0, 1.5
    steepest = float(slope_bound(p, Fraction(3, 2)))
    told = float(curvature_loss(Fraction(p), rank=1, ridge=Fraction(3), neighbours=ADD))
    for _ in range(400):
        x, y = rng.choice([-1.0, 1.0], p), rng.choice([-1.0, 1.0])
        b = rng.standard_normal(p)
        b *= radius / np.linalg.norm(b)
        assert np.linalg.norm(x * (x @ b - y)) <= steepest
        rows = rng.uniform(-1, 1, (rng.integers(0, 5), p))
        h = rows.T @ rows + ridge * np.eye(p)
        plane = np.linalg.svd(b[None, :])[2][1:].T
        lifted = h + rng.exponential() * np.eye(p)
        for basis in (np.eye(p), plane):
            small, large = (
                np.linalg.slogdet(basis.T @ m @ basis)[1] for m in (lifted, lifted + np.outer(x, x))
            )
            assert 0 <= large - small <= told + 1e-9
    assert np.log1p(p / ridge) == pytest.approx(told)  # attained with no other row


def test_the_ridge_is_raised_until_curvature_tells_half_at_most():
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10)):
        ridge = least_ridge(Fraction(3), Fraction(1), rank=2, epsilon=epsilon, neighbours=REPLACE)
        assert curvature_loss(Fraction(3), rank=2, ridge=ridge, neighbours=REPLACE) <= epsilon / 2


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_over_a_ball_is_the_minimum(seed):
    """Against projected gradient steps in doubles, with the ball touched and not; within the stated error."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-8, 9, (20, 3))
    gram = [[Fraction(int(v), 64) for v in row] for row in rows.T @ rows]
    cross = [Fraction(int(v), 64) for v in rng.integers(-4000, 4000, 3) // (1 if seed % 2 else 500)]
    found = within_ball(gram, cross, ridge=Fraction(2), radius=Fraction(1), error=Fraction(1, 2**21))
    g = np.array(gram, dtype=float) + 2 * np.eye(3)
    c, b = np.array(cross, dtype=float), np.zeros(3)
    for _ in range(3000):
        b = b - (g @ b - c) / np.linalg.eigvalsh(g)[-1]
        b /= max(1.0, np.linalg.norm(b))
    assert np.linalg.norm(np.array(found, dtype=float) - b) < 2**-20
    assert (np.linalg.norm(b) > 0.999) == bool(seed % 2)
    assert sum(v * v for v in found) <= 1


def test_shortening_the_free_minimum_is_not_the_same():
    """The naive twin: scale the free line back to the ball; its neighbours may lie further apart than proved."""
    gram = [[Fraction(100), Fraction(0)], [Fraction(0), Fraction(0)]]
    found = within_ball(
        gram, [Fraction(300), Fraction(3)], ridge=Fraction(1), radius=Fraction(1), error=Fraction(1, 2**20)
    )
    free = np.array([300 / 101, 3.0])
    assert np.linalg.norm(np.array(found, dtype=float) - free / np.linalg.norm(free)) > 0.2


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("p", [2, 3])
def test_the_tilt_covers_every_move_of_the_gradient(p, neighbours):  # covers T07
    """All corners that come, or that change places, at lines on the surface of the ball; half the bound is exceeded."""
    noise = FrozenModelNoise()
    Objective()._tilt(p, epsilon=Fraction(1), neighbours=neighbours, noise=noise)
    bound = float(noise.calls[0].sensitivity) / 2**20
    corners = np.array(list(product((-1.0, 1.0), repeat=p + 1)))
    farthest = 0.0
    for way in corners[:, :-1] / np.sqrt(p):
        pulls = corners[:, :-1] * (corners[:, :-1] @ way - corners[:, -1])[:, None]
        others = pulls if neighbours.replaced else np.zeros((1, p))
        farthest = max([farthest, *(np.linalg.norm(pulls - other, axis=1).max() for other in others)])
    assert bound / 2 < farthest <= bound + 1e-9
