"""Multiple imputation from one private line: its promise by replay, and intervals that cover as they say."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.experiments import model_imputation as lab
from reticent.lab.quickmodels import NoModelNoise, QuickModelNoise
from reticent.lab.seeded import SeededBits
from reticent.models.design import Design
from reticent.models.multiple import complete, drawn_from, line_sums, multiple_mean
from reticent.models.solve import leftover
from tests.models.doubles import FrozenModelNoise
from tests.models.worlds import design, extremes, some_rows


def made(shape: Design, x: Any, y: Any, noise: Any, seed: int = 1, **more: Any) -> Any:
    bits = SeededBits(np.random.default_rng(seed))
    return multiple_mean(shape, x, y, bits=bits, noise=noise, **{"epsilon": Fraction(1), **more})


@pytest.mark.parametrize("copies", [2, 7])
def test_replay_on_every_neighbour(copies: int) -> None:  # covers T08 T20
    """Same calls, same parameters, sums no further apart than their noise is for; the same draws for all rows.

    The naive twin has noise for one copy: the answers together move further than that.
    """
    shape = design(2)
    x, y = some_rows(shape, 12)
    y[[2, 5, 11]] = np.nan
    first = FrozenModelNoise()
    made(shape, x, y, first, copies=copies)
    farthest = 0
    for row in extremes(shape):
        other = FrozenModelNoise(prescribed=first.outputs)
        made(shape, np.vstack([x[:-1], row[:-1]]), np.append(y[:-1], row[-1]), other, copies=copies)
        assert [c.parameters for c in other.calls] == [c.parameters for c in first.calls]
        for mine, theirs in zip(first.calls, other.calls, strict=True):
            assert mine.distance(theirs) <= mine.sensitivity
        farthest = max(farthest, int(first.calls[1].distance(other.calls[1])))
    assert [c.kind for c in first.calls] == ["laplace_many", "laplace_many", "laplace"]
    assert sum(c.epsilon for c in first.calls) == 1
    assert farthest > shape.response.high - shape.response.low


def test_the_line_costs_the_same_however_many_copies_there_are() -> None:
    shape = design(1)
    x, y = some_rows(shape, 30)
    y[:9] = np.nan
    few, many = FrozenModelNoise(), FrozenModelNoise()
    made(shape, x, y, few, copies=2)
    made(shape, x, y, many, copies=50)
    assert few.calls[0] == many.calls[0]
    assert many.calls[1].sensitivity == 25 * few.calls[1].sensitivity


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """300 runs of 3,000 rows, sampling, silence and noise anew: within five binomial standard deviations, 1e-6 each.

    Intervals without the uncertainty of the line, the naive twin, are too narrow, and are noticed.
    """
    rng, runs, shape = np.random.default_rng(2), 300, lab.design(2)
    held, naive = {0.5: 0, 0.8: 0, 0.95: 0}, 0
    for _ in range(runs):
        drawn = lab.sample(lab.Setting(n=3_000), rng)
        found = multiple_mean(
            shape,
            drawn.x,
            drawn.told,
            epsilon=Fraction(1),
            bits=SeededBits(rng),
            noise=QuickModelNoise(rng),
        ).combined
        for level in held:
            low, high = found.interval(level)
            held[level] += low <= lab.TRUTH <= high
        naive += abs(found.value - lab.TRUTH) <= 1.96 * (0.33**2 / 3_000) ** 0.5
    for level, count in held.items():
        assert abs(count - runs * level) <= 5 * (runs * level * (1 - level)) ** 0.5
    assert naive < runs * 0.95 - 5 * (runs * 0.95 * 0.05) ** 0.5


def test_the_uncertainty_of_the_line_is_what_its_lines_show() -> None:
    """400 noisy lines of the same rows: their variance is that stated for the noise, within a third.

    A variance of so many has a standard error of 7 %, or 11 % with Laplace tails: three of these.
    """
    rng = np.random.default_rng(3)
    drawn = lab.sample(lab.Setting(n=20_000), rng)
    shape = lab.design(2)
    quick = QuickModelNoise(rng)
    sums = [line_sums(shape, drawn.x, drawn.told, epsilon=Fraction(1, 2), noise=quick) for _ in range(400)]
    lines = np.array([drawn_from(each)[0] for each in sums])
    exact = line_sums(shape, drawn.x, drawn.told, epsilon=Fraction(1, 2), noise=NoModelNoise())
    line, root = drawn_from(exact)
    sampling = leftover(exact, line) * np.linalg.inv(exact.gram)
    stated = np.diag(root @ root.T) - np.diag(sampling)
    assert np.all(np.abs(lines.var(axis=0) / stated - 1) < 1 / 3)


def test_draws_keep_the_mean_of_the_line_near_a_bound() -> None:
    """20,000 rows a tenth above the bound: draws held alike on both sides; clamped ones, the naive twin, drift."""
    shape = lab.design(1)
    x, y = np.full((20_000, 1), 0.1), np.full(20_000, np.nan)
    fit = made(shape, np.random.default_rng(4).random((500, 1)), np.linspace(0, 1, 500), NoModelNoise()).fit
    flat = type(fit)(intercept=Fraction(0), slopes=(Fraction(1),), variance=Fraction(1, 10), claim=fit.claim)
    found = complete(flat, shape, x, y, bits=SeededBits(np.random.default_rng(5))) / 2048
    error = 6 * 0.1 / 20_000**0.5
    assert abs(found.mean() - 0.1) < error
    clamped = np.clip(0.1 + np.random.default_rng(6).normal(0, 0.1**0.5, 20_000), 0, 1)
    assert abs(clamped.mean() - 0.1) > error


@pytest.mark.parametrize(
    "more", [{"copies": 1}, {"copies": 101}, {"share": Fraction(1)}, {"epsilon": Fraction(0)}]
)
def test_what_cannot_be_is_refused(more: dict[str, Any]) -> None:
    shape = design(1)
    x, y = some_rows(shape, 5)
    with pytest.raises(PlanError):
        made(shape, x, y, NoModelNoise(), **more)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nobody_answered_is_an_answer_too(n: int) -> None:
    shape = design(1)
    x, _ = some_rows(shape, max(n, 1))
    found = made(shape, x[:n], np.full(n, np.nan), QuickModelNoise(np.random.default_rng(7)))
    assert np.isfinite(found.combined.value) and np.isfinite(found.combined.variance)
