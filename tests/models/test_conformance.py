"""One suite that every estimator meets: what it spends, what a neighbour sees, what is left without noise."""

from fractions import Fraction
from math import isfinite

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.papers.objective import curvature_loss, least_ridge
from reticent.lab.papers.robust import Robust
from reticent.models.design import records
from reticent.models.fit import Fit, SystemModelNoise
from reticent.models.perturbed import Output
from reticent.models.privgene import STEPS, PrivGene
from reticent.models.residual import SHARE
from reticent.privacy.claim import Change
from reticent.privacy.convert import zcdp_to_epsilon
from reticent.sensitivity.bounds import Neighbours
from tests.models.doubles import FrozenModelNoise, ZeroModelNoise
from tests.models.worlds import (
    ADD,
    DELTA,
    ESTIMATORS,
    REPLACE,
    design,
    extremes,
    fitted,
    least_squares,
    neighbours_of,
    some_rows,
)

# covers T07 T11 T12 T20

NAMES = list(ESTIMATORS)
TILTED = {"objective"}  # the noise goes in before the minimum is taken; see test_objective.py
CHANGES = [ADD, REPLACE, Neighbours(replaced=True, records=2)]


def numbers(fit: Fit) -> list[float]:
    return [float(v) for v in (*fit.coefficients, fit.variance)]


@pytest.mark.parametrize("neighbours", CHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_the_claim_is_what_was_spent(name, neighbours):
    """Amounts of all calls, added by the rules of their kind."""
    plan, noise, epsilon = design(2), FrozenModelNoise(), Fraction(3, 4)
    claim = fitted(
        name, records(plan, *some_rows(plan, 9)), neighbours=neighbours, noise=noise, epsilon=epsilon
    ).claim
    spent = sum(call.epsilon for call in noise.calls)
    assert claim.epsilon == epsilon
    assert claim.change is (Change.REPLACE if neighbours.replaced else Change.ADD_REMOVE)
    if ESTIMATORS[name][1] is not None:
        assert claim.delta == DELTA
        assert epsilon * Fraction(999, 1000) < zcdp_to_epsilon(rho=spent, delta=DELTA) <= epsilon
    elif name in TILTED:
        share = (1 - SHARE) * epsilon
        ridge = least_ridge(Fraction(3), Fraction(50), rank=1, epsilon=share, neighbours=neighbours)
        told = curvature_loss(Fraction(3), rank=1, ridge=ridge, neighbours=neighbours)
        assert spent + told == epsilon and claim.arithmetic == "ideal reals"
    else:
        assert spent == epsilon and claim.arithmetic == "exact"


def replay(name, one, other, neighbours):
    """Both data sets along one transcript: the calls of each, and both fits."""
    first = FrozenModelNoise()
    seen = fitted(name, one, neighbours=neighbours, noise=first)
    second = FrozenModelNoise(prescribed=first.outputs)
    return first.calls, second.calls, seen, fitted(name, other, neighbours=neighbours, noise=second)


def obeys(calls, others) -> bool:
    return len(calls) == len(others) and all(
        a.parameters == b.parameters and a.distance(b) <= a.sensitivity
        for a, b in zip(calls, others, strict=True)
    )


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("name", [n for n in NAMES if n not in TILTED])
def test_neighbours_along_one_transcript_make_the_same_calls_and_the_same_fit(name, neighbours):
    """Every extreme row, one that does not answer, one far outside; public and private sizes; with and without intercept."""
    for plan in (design(2), design(1, intercept=False), design(1, size=8 if neighbours.replaced else None)):
        x, y = some_rows(plan, 8)
        base = records(plan, x, y)
        for other in neighbours_of(plan, x, y, replaced=neighbours.replaced):
            calls, others, one, two = replay(name, base, other, neighbours)
            assert obeys(calls, others)
            assert one == two


@pytest.mark.parametrize("bug", ["half", "count", "bounds"])
def test_the_replay_sees_planted_bugs(bug):
    """Naive twins: half the bound, the exact count in a parameter, bounds taken from the rows."""
    plan = design(1)
    x, y = some_rows(plan, 8)

    def calls(rows):
        noise = FrozenModelNoise()
        sums = rows.sums()
        wide = max(1, int(np.abs(rows.z).max()))
        bound = {"half": 2, "count": 4 * len(rows.z), "bounds": 4 * wide}[bug]
        answers = [int(sums.unit(i, j)) for i in range(3) for j in range(i, 3)]
        noise.laplace_many(answers, sensitivity=bound, epsilon=Fraction(1))
        return noise.calls

    seen = calls(records(plan, x, y))
    others = [calls(other) for other in neighbours_of(plan, x, y, replaced=False)]
    assert not all(obeys(seen, other) for other in others)


@pytest.mark.parametrize("name", NAMES)
def test_values_outside_the_bounds_count_as_the_bounds(name):
    """Clipping comes first: two tables that clip to the same rows give the same fit."""
    plan = design(2)
    x, y = some_rows(plan, 8)
    top = [float(c.origin + c.grid * c.high) for c in plan.columns]
    edge = records(plan, np.vstack([x, top[:-1]]), np.append(y, top[-1]))
    beyond = records(plan, np.vstack([x, [1e9, np.inf]]), np.append(y, 1e300))
    made = [fitted(name, rows, neighbours=REPLACE, noise=FrozenModelNoise()) for rows in (edge, beyond)]
    assert made[0] == made[1]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["centred", "adassp", "adassp with delta", "robust", "robust with delta"])
def test_without_noise_it_is_ordinary_least_squares(name, intercept):
    """4,000 rows on the grid, residuals within the robust cut."""
    plan = design(2, intercept=intercept)
    x, y = some_rows(plan, 4000)
    fit = fitted(name, records(plan, x, y), neighbours=REPLACE, noise=ZeroModelNoise(), epsilon=Fraction(4))
    wanted = least_squares(x, y, intercept=intercept)
    assert np.allclose(numbers(fit)[:-1], wanted, atol=2e-3 if name.startswith("robust") else 1e-6)
    if name == "centred":
        full = np.column_stack([np.ones(len(x)), x]) @ wanted
        assert numbers(fit)[-1] == pytest.approx(((y - full) ** 2).sum() / (4000 - plan.features), rel=1e-6)


@pytest.mark.parametrize("name", ["functional", "output", "objective"])
def test_without_noise_it_is_the_ridge_line(name):
    """Their regularised optimum, in unit columns, by plain algebra; it tends to least squares as the ridge falls."""
    plan, epsilon = design(2), Fraction(4)
    x, y = some_rows(plan, 4000)
    rows = records(plan, x, y)
    unit = np.column_stack([np.ones(len(x)), rows.z / np.array(plan.widths[1:])])
    # Ridges: four standard deviations of the diagonal's noise, 16 UNIT + 10 steps at epsilon 4; 500; 50.
    penalty = {"functional": 4 * 2**0.5 * (16 + 10 / 2**20) / 4, "output": 500.0, "objective": 50.0}[name]
    gram, cross = unit[:, :-1].T @ unit[:, :-1], unit[:, :-1].T @ unit[:, -1]
    b = np.linalg.solve(gram + penalty * np.eye(3), cross)
    fit = fitted(name, rows, neighbours=REPLACE, noise=ZeroModelNoise(), epsilon=epsilon)
    said = unit[:, :-1] @ b * plan.width(plan.response) / 4 + 10.0  # response: middle 10, half width 20
    line = np.column_stack([np.ones(len(x)), x]) @ numbers(fit)[:-1]
    assert np.allclose(line, said, atol=1e-3)
    assert not np.allclose(line, np.column_stack([np.ones(len(x)), x]) @ least_squares(x, y), atol=1e-3)


def test_without_noise_the_fittest_line_comes_near():
    """PrivGene, 12 generations: within a few of its last strides of least squares in unit columns."""
    plan = design(1)
    x, y = some_rows(plan, 2000)
    rows = records(plan, x, y)
    fit = PrivGene(generations=12).fit(rows, epsilon=Fraction(1), neighbours=ADD, noise=ZeroModelNoise())
    said = np.column_stack([np.ones(len(x)), x]) @ np.array(numbers(fit)[:-1])
    best = np.column_stack([np.ones(len(x)), x]) @ least_squares(x, y)
    assert np.abs(said - best).max() < 20 * 12 / STEPS * 4


def test_without_noise_the_robust_line_resists():
    """A tenth of the answers thrown to the top of the range: Huber's line stays nearer the clean one, least squares goes."""
    plan = design(1)
    x, y = some_rows(plan, 2000)
    clean = least_squares(x, y)
    y = np.where(np.arange(2000) % 10 == 0, 30.0, y)
    robust = Robust(cut=Fraction(1, 8), rounds=60)
    fit = robust.fit(records(plan, x, y), epsilon=Fraction(1), neighbours=ADD, noise=ZeroModelNoise())
    thrown = np.abs(least_squares(x, y) - clean).max()
    assert np.abs(np.array(numbers(fit)[:-1]) - clean).max() < thrown / 3


def degenerate():
    plan = design(2)
    x, y = some_rows(plan, 6)
    yield "no rows", plan, x[:0], y[:0]
    yield "one row", plan, x[:1], y[:1]
    yield "nobody answered", plan, x, np.full(6, np.nan)
    yield "constant column", plan, np.column_stack([x[:, 0], np.full(6, 1.0)]), y
    yield "all equal", plan, np.full((6, 2), 2.0), np.full(6, 5.0)
    yield "collinear", plan, np.column_stack([x[:, 0], x[:, 0] / 4]), y
    yield (
        "only the ends",
        plan,
        np.array([r[:-1] for r in extremes(plan)]),
        np.array([r[-1] for r in extremes(plan)]),
    )
    yield "no intercept, no rows", design(1, intercept=False), np.zeros((0, 1)), np.zeros(0)
    yield "no predictor", design(0), np.zeros((4, 0)), y[:4]


@pytest.mark.parametrize("case", list(degenerate()), ids=lambda case: case[0])
@pytest.mark.parametrize("name", NAMES)
def test_degenerate_rows_never_raise_and_give_finite_lines(name, case):
    """Without noise, with frozen noise, and with the system's."""  # covers B068 B069
    _, plan, x, y = case
    for noise in (ZeroModelNoise(), FrozenModelNoise(), SystemModelNoise()):
        fit = fitted(name, records(plan, x, y), neighbours=REPLACE, noise=noise, epsilon=Fraction(1, 10))
        half = plan.response.grid * plan.width(plan.response) / 2
        assert all(isfinite(v) for v in numbers(fit))
        assert 0 <= fit.variance <= half**2


@pytest.mark.parametrize("name", NAMES)
def test_amounts_that_promise_nothing_are_refused(name):
    plan = design(1)
    estimator, delta = ESTIMATORS[name]
    rows = records(plan, *some_rows(plan, 5))
    sized = records(design(1, size=5), *some_rows(plan, 5))
    noise = FrozenModelNoise()
    with pytest.raises(PlanError):
        estimator.fit(rows, epsilon=Fraction(0), delta=delta, neighbours=ADD, noise=noise)
    with pytest.raises(PlanError):
        estimator.fit(rows, epsilon=Fraction(1), delta=Fraction(1), neighbours=ADD, noise=noise)
    with pytest.raises(PlanError):  # a public size and a change that alters it
        estimator.fit(sized, epsilon=Fraction(1), delta=delta, neighbours=ADD, noise=noise)
    if delta is None and name not in ("adassp", "robust"):
        with pytest.raises(PlanError):  # covers B085
            estimator.fit(rows, epsilon=Fraction(1), delta=DELTA, neighbours=ADD, noise=noise)
    assert noise.calls == []


def test_settings_out_of_range_are_refused():
    for made in (
        lambda: Output(ridge=Fraction(0)),
        lambda: Output(radius=Fraction(-1)),
        lambda: Robust(cut=Fraction(0)),
        lambda: Robust(rounds=0),
        lambda: PrivGene(generations=0),
        lambda: PrivGene(radius=Fraction(1, 3000)),
    ):
        with pytest.raises(PlanError):
            made()
    with pytest.raises(PlanError):
        plan = design(1)
        sums = records(plan, *some_rows(plan, 5)).sums()
        Robust().fit(sums, epsilon=Fraction(1), neighbours=ADD, noise=ZeroModelNoise())
