"""A multinomial model from a noisy table: its promise by replay, textbook logistic regression without noise, and an audit."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.noise import NoModelNoise, QuickModelNoise
from reticent.models.table import Grouped, TableDesign, fit_table, minimum, softened
from reticent.sensitivity.bounds import Neighbours
from tests import audit
from tests.models.doubles import FrozenModelNoise
from tests.models.doubles import QuickModelNoise as FactorNoise

AGE = Grouped(name="age", answers=3, silent=1, ordered=True)
JOB = Grouped(name="job", answers=3, silent=2, ordered=False)
DESIGN = TableDesign(predictors=(AGE, JOB), levels=3)


def tables(rng: np.random.Generator, n: int) -> list[int]:
    return np.bincount(rng.integers(0, 60, n), minlength=60).tolist()


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("records", [1, 3])
def test_replay_on_every_neighbour(replaced: bool, records: int) -> None:  # covers T08
    """Every cell a respondent's records may come to or leave: same parameters, no further apart than the noise is for.

    The naive twin has noise for one record that comes or goes.
    """
    neighbours = Neighbours(replaced=replaced, records=records)
    base = tables(np.random.default_rng(1), 200)
    first, farthest = FrozenModelNoise(), 0
    told = fit_table(DESIGN, base, epsilon=Fraction(1), neighbours=neighbours, noise=first)
    for one, two in product((0, 17, 59), repeat=2):
        other = list(base)
        other[one] += records
        other[two] -= records if replaced else 0
        again = FrozenModelNoise(prescribed=first.outputs)
        found = fit_table(DESIGN, other, epsilon=Fraction(1), neighbours=neighbours, noise=again)
        (mine,), (theirs,) = first.calls, again.calls
        assert mine.parameters == theirs.parameters and mine.epsilon == 1
        assert mine.distance(theirs) <= mine.sensitivity
        assert np.array_equal(found.chances, told.chances)
        farthest = max(farthest, int(mine.distance(theirs)))
    assert farthest == records * (1 + replaced)


def test_without_noise_it_is_softmax_regression_on_rows() -> None:
    """400 rows, one at a time, the same ridge: the same chances in every cell."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 60, 400)
    counts = np.bincount(rows, minlength=60)
    told = fit_table(
        DESIGN, counts.tolist(), epsilon=Fraction(10**9), neighbours=Neighbours(), noise=NoModelNoise()
    )
    x = DESIGN.matrix()
    assert x.shape == (20, DESIGN.features) == (20, 1 + 2 + 4)
    found = minimum(x[rows // 3], rows % 3, np.ones(400, np.int64), ridge=1.0, tilt=np.zeros((3, 7)))
    grown = np.exp(x @ found.T)
    assert np.allclose(told.chances, grown / grown.sum(axis=1, keepdims=True), atol=1e-5)


def test_a_slope_is_found_and_silence_has_its_own_chances() -> None:
    """20,000 rows, two levels, log odds 2 age and -1 for the silent: chances within 0.03, six standard errors."""
    design = TableDesign(predictors=(Grouped(name="age", answers=5, silent=1, ordered=True),), levels=2)
    rng = np.random.default_rng(3)
    cell = rng.integers(0, 6, 20_000)
    odds = np.append(2 * np.linspace(-1, 1, 5), -1.0)
    truth = 1 / (1 + np.exp(-odds))
    label = rng.random(20_000) < truth[cell]
    counts = np.bincount(2 * cell + label, minlength=12).tolist()
    found = fit_table(
        design, counts, epsilon=Fraction(1), neighbours=Neighbours(), noise=QuickModelNoise(rng)
    )
    assert np.abs(found.chances[:, 1] - truth).max() < 0.03
    assert np.allclose(found.chances.sum(axis=1), 1)


@pytest.mark.parametrize("scale", [0.0, 50.0])
def test_any_table_gives_chances(scale: float) -> None:
    """Nobody, everybody in one cell, and nothing but noise: chances between 0 and 1 that add up."""
    rng = np.random.default_rng(4)
    one = np.zeros((20, 3), np.int64)
    one[3, 1] = 10**6
    noisy = np.floor(rng.laplace(0, 50, (20, 3))).astype(np.int64)
    for table in (np.zeros((20, 3), np.int64), one, noisy, -np.abs(noisy)):
        found = softened(DESIGN, table, scale=scale)
        assert np.isfinite(found).all() and (found >= 0).all() and np.allclose(found.sum(axis=1), 1)


def test_counts_below_zero_keep_the_fit_unbiased() -> None:
    """200 noisy tables of 40 cells: the mean chance of a rare level is within 0.02 of that without noise. Counts cut at
    zero, the naive twin, make it common."""
    wide = TableDesign(predictors=(Grouped(name="age", answers=20, silent=1, ordered=True),), levels=2)
    exact = np.tile([200, 8], (21, 1))
    rng = np.random.default_rng(5)
    rare, naive = [], []
    for _ in range(200):
        noisy = exact + np.floor(rng.laplace(0, 20, exact.shape) + 0.5).astype(np.int64)
        rare.append(softened(wide, noisy, scale=20)[:, 1].mean())
        naive.append(softened(wide, np.maximum(noisy, 0), scale=20)[:, 1].mean())
    truth = softened(wide, exact, scale=20)[:, 1].mean()
    assert abs(np.mean(rare) - truth) < 0.02 < np.mean(naive) - truth


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_no_event_tells_more_than_epsilon(epsilon: Fraction) -> None:  # covers T07
    """The coin audit on the chances, nobody against one respondent, 1,200 runs; false alarm 1e-9. A fiftieth of the
    noise, the naive twin, is seen."""
    design = TableDesign(predictors=(Grouped(name="age", answers=2, silent=1, ordered=True),), levels=2)
    surveys = [[0] * 6, [0, 0, 0, 1, 0, 0]]

    def p_value(factor: float) -> float:
        noise = FactorNoise(np.random.default_rng(6), factor)

        def draw(b: int, n: int) -> np.ndarray:
            made = [
                fit_table(design, surveys[b], epsilon=epsilon, neighbours=Neighbours(), noise=noise).chances
                for _ in range(n)
            ]
            return np.array([each[1, 1] for each in made])

        trial = [draw(b, 300) for b in (0, 1)]
        cuts = np.quantile(np.concatenate(trial), np.linspace(0.05, 0.95, 19))
        seen = [[int((y >= cut).sum()) for y in trial] for cut in cuts]
        best = min(
            range(19), key=lambda k: audit.Coins(ones=seen[k][1], zeros=seen[k][0]).p_value(float(epsilon))
        )
        return audit.coin_audit(draw, lambda y: y >= cuts[best], runs=1_200, seed=1).p_value(float(epsilon))

    assert p_value(1.0) > audit.ALARM > p_value(0.02)


@pytest.mark.parametrize(
    ("predictors", "levels"), [((AGE,), 1), ((AGE, JOB) * 3, 3), ((Grouped(name="t", answers=300, silent=1, ordered=False),), 2)]
)  # fmt: skip
def test_what_cannot_be_is_refused(predictors: Any, levels: int) -> None:
    with pytest.raises(PlanError):
        TableDesign(predictors=predictors, levels=levels)
    with pytest.raises(PlanError, match="positive"):
        fit_table(DESIGN, [0] * 60, epsilon=Fraction(0), neighbours=Neighbours(), noise=NoModelNoise())
