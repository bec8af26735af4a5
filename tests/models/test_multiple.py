"""Multiple imputation from one private line: its promise by replay, and intervals that cover as they say."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.experiments import model_imputation as lab
from reticent.lab.noise import NoModelNoise, QuickModelNoise, SeededBits
from reticent.lab.papers.strategies import REPLACED, complete, gap_sums, multiple_mean, told
from reticent.models.design import RegressionDesign, records
from reticent.models.moments import uncertain
from reticent.models.sums import Centred
from tests.models.doubles import FrozenModelNoise
from tests.models.worlds import design, extremes, some_rows


def made(shape: RegressionDesign, x: Any, y: Any, noise: Any, seed: int = 1, **more: Any) -> Any:
    bits = SeededBits(np.random.default_rng(seed))
    return multiple_mean(shape, x, y, bits=bits, noise=noise, **{"epsilon": Fraction(1), **more})


@pytest.mark.parametrize("copies", [2, 7])
def test_replay_on_every_neighbour(copies: int) -> None:  # covers T08 T20
    """Same calls, same parameters, sums no further apart than their noise is for; the same draws for all rows.

    The naive twin has noise for one copy's sum: the sum over all copies moves further than that.
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
        farthest = max(farthest, int(first.calls[2].distance(other.calls[2])))
    assert [c.kind for c in first.calls] == ["laplace_many", "laplace_many", "laplace", "laplace"]
    assert sum(c.epsilon for c in first.calls) == 1
    assert farthest > shape.response.high - shape.response.low


def test_copies_cost_nothing() -> None:
    """Two or fifty: the same line, the same sums over gaps, and the mean over copies has noise of one scale."""
    shape = design(1)
    x, y = some_rows(shape, 30)
    y[:9] = np.nan
    few, many = FrozenModelNoise(), FrozenModelNoise()
    made(shape, x, y, few, copies=2)
    made(shape, x, y, many, copies=50)
    assert few.calls[:2] == many.calls[:2]
    for mine, theirs in zip(few.calls[2:], many.calls[2:], strict=True):
        assert Fraction(mine.sensitivity, 2) == Fraction(theirs.sensitivity, 50)
        assert mine.epsilon == theirs.epsilon


def test_sums_over_gaps_are_those_of_the_rows_with_gaps() -> None:
    """Without noise: their number, and their predictors in unit columns, a missing one in the middle."""
    shape = design(2)
    x, y = some_rows(shape, 40)
    y[::3], x[0, 1] = np.nan, np.nan
    found = gap_sums(shape, x, y, epsilon=Fraction(1), noise=NoModelNoise())
    low, high = (np.array([float(getattr(c, end)) for c in shape.predictors]) for end in ("low", "high"))
    codes = x / np.array([float(c.grid) for c in shape.predictors])
    middle = (low + high) // 2
    unit = (2 * np.where(np.isnan(codes), middle, codes) - low - high) / (high - low)
    assert found[0] == len(y[::3])
    assert np.allclose(found[1:], unit[::3].sum(axis=0), atol=1e-3)


RUNS, TWO_POINTS = 600, 0.02


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """600 runs of 1,500 rows, sampling, silence and noise anew: within two points, and five standard deviations of so
    many runs, 1e-6 each.

    Intervals of sampling and of the answer's own noise, the naive twin, leave out the line, and are noticed.
    """
    rng, shape = np.random.default_rng(2), lab.design(2)
    held, naive = {0.5: 0, 0.8: 0, 0.95: 0}, 0
    for _ in range(RUNS):
        drawn = lab.sample(lab.ImputationSetting(n=1_500), rng)
        bits, noise = SeededBits(rng), QuickModelNoise(rng)
        found = multiple_mean(
            shape, drawn.x, drawn.told, epsilon=Fraction(4), copies=3, bits=bits, noise=noise
        ).combined
        for level in held:
            low, high = found.interval(level)
            held[level] += low <= lab.TRUTH <= high
        naive += abs(found.value - lab.TRUTH) <= 1.96 * (0.38**2 / 1_500) ** 0.5
    for level, count in held.items():
        chance = (level * (1 - level) / RUNS) ** 0.5
        assert abs(count / RUNS - level) <= TWO_POINTS + 5 * chance
    assert naive / RUNS < 0.95 - TWO_POINTS - 5 * (0.95 * 0.05 / RUNS) ** 0.5


def test_the_mean_over_copies_has_the_noise_of_one() -> None:
    """1,500 answers of 2 and of 20 equal copies: one spread, within six standard errors of 3 % each."""
    shape = lab.design(1)
    rng = np.random.default_rng(8)
    copy = rng.integers(0, 2_049, 50)
    spread = [
        np.std(
            [
                told(shape, [copy] * m, epsilon=Fraction(1), noise=QuickModelNoise(rng))[0]
                for _ in range(1_500)
            ]
        )
        for m in (2, 20)
    ]
    assert abs(spread[1] / spread[0] - 1) < 6 * 2**0.5 * 0.03
    assert spread[0] < 10**0.5 * spread[1] / (
        1 + 6 * 2**0.5 * 0.03
    )  # m noisy answers, the naive twin, have more


def test_the_uncertainty_of_the_line_is_what_its_lines_show() -> None:
    """400 noisy lines of the same rows: their variance is that stated for the noise, within a third.

    A variance of so many has a standard error of 7 %, or 11 % with Laplace tails: three of these.
    """
    rng = np.random.default_rng(3)
    drawn = lab.sample(lab.ImputationSetting(n=20_000), rng)
    shape = lab.design(2)
    quick = QuickModelNoise(rng)
    exactly = records(shape, drawn.x, drawn.told).sums()

    def sums_with(noise: Any) -> Any:
        return Centred().moments(exactly, epsilon=Fraction(1, 2), neighbours=REPLACED, noise=noise)

    sums = [sums_with(quick) for _ in range(400)]
    lines = np.array([uncertain(each).theta for each in sums])
    stated = np.diag(uncertain(sums_with(NoModelNoise())).noise)
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
