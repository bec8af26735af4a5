"""PrivateImputer: chained as the textbook would without noise, private by replay, total, and scikit-learn's manners."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.noise import NoModelNoise, QuickModelNoise
from reticent.lab.papers.robust import Robust
from reticent.python.private_imputer import PrivateImputer
from tests.models.doubles import FrozenModelNoise

BOUNDS = [(0, 10), (-5.0, 5.0), (0, 40)]


def imputer(noise: Any = None, **more: Any) -> PrivateImputer:
    made = PrivateImputer(**{"epsilon": "400", "bounds": BOUNDS, "columns": [1, 2], **more})
    if noise is not None:
        made._noise = noise
    return made


def rows(n: int = 500, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.uniform(0, 10, n)
    b = 0.5 * a - 2 + rng.normal(0, 0.5, n)
    c = 20 + a + 2 * b + rng.normal(0, 1, n)
    x = np.column_stack([a, b, c])
    x[rng.random(n) < 0.3, 1] = np.nan
    x[rng.random(n) < 0.3, 2] = np.nan
    return x


def least(x: np.ndarray, on: list[int], column: int) -> np.ndarray:
    full = np.column_stack([np.ones(len(x)), x[:, on]])
    seen = ~np.isnan(full).any(axis=1) & ~np.isnan(x[:, column])
    line = np.linalg.lstsq(full[seen], x[seen, column], rcond=None)[0]
    return np.where(np.isnan(x[:, column]), full @ line, x[:, column])


def test_without_noise_it_is_a_chain_of_least_squares() -> None:
    """To a few steps of the grid. In the order given: the other order is another chain, and is noticed."""
    x = rows()
    found = imputer(NoModelNoise()).fit_transform(x)
    x[:, 1] = least(x, [0], 1)
    x[:, 2] = least(x, [0, 1], 2)
    assert np.allclose(found, x, atol=4 * 40 / 2048)
    other = imputer(NoModelNoise(), columns=[2, 1]).fit_transform(rows())
    assert not np.allclose(other, x, atol=4 * 40 / 2048)


@pytest.mark.parametrize("replaced", [False, True])
def test_replay_on_every_neighbour(replaced: bool) -> None:  # covers T08 T20
    """Whatever the last row holds, no line's sums move further than its noise is for; budgets add up.

    The naive twin fits without noise: one row moves 900 filled ones, together by more than its own width.
    """
    x, first = rows(20), FrozenModelNoise()
    imputer(first, epsilon="1", replaced=replaced, shares=["0.3", "0.7"]).fit(x)
    assert [call.epsilon for call in first.calls] == [Fraction(3, 10), Fraction(7, 10)]
    base = x[:-1] if replaced else x
    for row in (
        [0, -5, 40],
        [10, 5, 0],
        [np.nan] * 3,
        [np.inf, -np.inf, 1e308],
        [5, np.nan, 40],
        [5, 5, np.nan],
    ):
        again = FrozenModelNoise(prescribed=first.outputs)
        other = np.vstack([base, row])
        imputer(again, epsilon="1", replaced=replaced, shares=["0.3", "0.7"]).fit(other)
        assert [c.parameters for c in again.calls] == [c.parameters for c in first.calls]
        for mine, theirs in zip(first.calls, again.calls, strict=True):
            assert mine.distance(theirs) <= mine.sensitivity
    silent = np.column_stack([np.linspace(0, 10, 900), *[np.full(900, np.nan)] * 2])
    naive = [imputer(NoModelNoise()).fit(e).transform(silent)[:, 2] for e in (x, np.vstack([x, [10, -5, 0]]))]
    assert abs(naive[0].sum() - naive[1].sum()) > 40


def test_it_claims_what_it_spent() -> None:
    made = imputer(epsilon="0.5").fit(rows(50))
    assert made.claim_.epsilon == Fraction(1, 2) and len(made.lines_) == 2
    other = imputer(epsilon="0.5", estimator=Robust(), replaced=True).fit(rows(50))
    assert other.claim_.epsilon == Fraction(1, 2)


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize(
    "x",
    [
        np.zeros((0, 3)),
        np.full((4, 3), np.nan),
        np.full((4, 3), 3.0),
        np.array([[1e308, -np.inf, np.inf], [np.nan, 1, 2]]),
        np.array([["a", None, "7"], [True, "nan", 3]], dtype=object),
    ],
)
def test_whatever_it_is_given_comes_back_within_bounds(x: np.ndarray, draws: bool) -> None:
    found = imputer(draws=draws, epsilon="1").fit_transform(x)
    low, high = (np.array([pair[side] for pair in BOUNDS]) for side in (0, 1))
    assert found.shape == x.shape and not np.isnan(found[:, 1:]).any()
    assert np.all(np.isnan(found) | ((low <= found) & (found <= high)))


def test_draws_differ_and_answers_do_not() -> None:
    x = rows()
    made = imputer(QuickModelNoise(np.random.default_rng(1)), draws=True).fit(x)
    one, two = made.transform(x), made.transform(x)
    gaps = np.isnan(x)
    assert np.array_equal(one[~gaps], x[~gaps]) and np.array_equal(two[~gaps], x[~gaps])
    assert (one[gaps] != two[gaps]).mean() > 0.9


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"columns": []}, "each once"),
        ({"columns": [1, 1]}, "each once"),
        ({"columns": [3]}, "each once"),
        ({"columns": [0, 1, 2]}, "nothing to predict"),
        ({"bounds": BOUNDS[:2], "columns": [1]}, "a pair for each"),
        ({"bounds": [(0, 0), *BOUNDS[1:]]}, "lower one first"),
        ({"bounds": [(0, float("nan")), *BOUNDS[1:]]}, "lower one first"),
        ({"shares": ["0.5", "0.4"]}, "add up to 1"),
        ({"shares": ["1"]}, "add up to 1"),
    ],
)
def test_arguments_are_refused_and_values_are_not(more: dict[str, Any], word: str) -> None:
    with pytest.raises(PlanError, match=word):
        imputer(**more).fit(rows(5))


def test_it_keeps_scikit_learns_manners() -> None:
    made = imputer()
    assert made.get_params()["columns"] == [1, 2]
    assert made.set_params(epsilon="0.5", draws=True).get_params()["epsilon"] == "0.5"
    with pytest.raises(PlanError, match="no argument"):
        made.set_params(seed=1)
    with pytest.raises(PlanError, match="call fit first"):
        made.transform(rows(3))
    assert made.fit(rows(5)) is made and made.n_features_in_ == 3
