"""The sampling variance of means of binned numbers: never less than that of the numbers, wherever in their bins they lie."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.schema.codebook import schema_from
from reticent.synth.answer import answer_directly
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.domain import bins, domain_of
from reticent.synth.functionals import _most
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.questions import read_question
from reticent.synth.residuals import with_fine_axes
from tests.synth.standins import ArrayCounts, NoSynthNoise

COLUMNS = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "gain": {"kind": "integer", "bounds": [0, 79]},
}
DOMAIN = domain_of(schema_from({"survey": {"name": "g", "unit": "row"}, "columns": COLUMNS}), bins=8)
STARTS, WIDTHS = bins(DOMAIN.axes[1], DOMAIN.schema)
GROUPS = ["sex = 'f'", "sex = 'm'"]


def told(sex: np.ndarray, gain: np.ndarray, raw) -> float:
    """The variance of sampling that an answer from noiseless tables claims, times the number of rows."""
    wide = with_fine_axes(DOMAIN)
    cells = np.stack([sex, np.searchsorted(STARTS, gain, side="right") - 1, gain], axis=1)
    task = FitTask(
        ArrayCounts(cells, wide),
        DOMAIN,
        MissingMethod.WEIGHTED,
        Spend(epsilon=Fraction(1000), delta=Fraction(1, 10**6)),
        noise=NoSynthNoise(),
        step=lambda _: None,
    )
    lists = AllPairs(most_pairs=0, iterations=1, last=1).fit(task).lists
    (answer,) = answer_directly(read_question(raw, DOMAIN), lists)
    return len(gain) * answer.sampling**2


def at_midpoints(gain: np.ndarray) -> np.ndarray:
    return (STARTS + (WIDTHS - 1) / 2)[np.searchsorted(STARTS, gain, side="right") - 1]


def people(seed: int, rows: int = 4_000) -> tuple[np.ndarray, np.ndarray]:
    """Each sex has some of the bins, and in each bin answers near one end or spread over it."""
    rng = np.random.default_rng(seed)
    sex = (rng.random(rows) < 0.4).astype(int)
    shares = rng.dirichlet(np.full(8, 0.5), size=2)
    cell = np.array([rng.choice(8, p=shares[each]) for each in sex])
    ends = rng.choice([0.02, 1.0, 50.0], size=(2, 2, 8))
    inside = rng.beta(ends[0][sex, cell], ends[1][sex, cell])
    return sex, STARTS[cell] + np.minimum((inside * WIDTHS[cell]).astype(int), WIDTHS[cell] - 1)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_variance_of_sampling_is_never_less_than_that_of_the_numbers(seed):
    """Of the mean of all, of a group, and of a difference; what the tables claim is exact but for where answers lie in bins."""
    sex, gain = people(seed)
    one, other = gain[sex == 0], gain[sex == 1]
    shares = len(one) / len(gain), len(other) / len(gain)
    assert told(sex, gain, {"mean": "gain"}) >= gain.var() * (1 - 1e-6)
    assert told(sex, gain, {"mean": "gain", "where": GROUPS[0]}) >= one.var() / shares[0] * (1 - 1e-6)
    both = one.var() / shares[0] + other.var() / shares[1]
    assert told(sex, gain, {"difference": "gain", "between": GROUPS}) >= both * (1 - 1e-6)


def test_answers_at_the_outer_ends_of_bins_need_all_of_it():
    """Attained there; the twin, which adds the square of half a bin, has two thirds of the variance."""
    gain = np.where(np.arange(4_000) % 2, 39, 20)
    sex = (np.arange(4_000) // 2) % 2
    assert told(sex, gain, {"mean": "gain"}) == pytest.approx(gain.var(), rel=1e-6)
    assert at_midpoints(gain).var() + ((WIDTHS.max() - 1) / 2) ** 2 < 0.67 * gain.var()


def test_where_nearly_all_lie_at_one_end_little_is_added():
    """Of most people, who gain nothing, the mean says where in their bin they are: the twin claims nearly twice what there is."""
    gain = np.where(np.arange(4_000) % 400, 0, 75)
    sex = np.arange(4_000) % 2
    found = told(sex, gain, {"mean": "gain"})
    assert gain.var() <= found < 1.5 * gain.var()
    assert at_midpoints(gain).var() + ((WIDTHS.max() - 1) / 2) ** 2 > 1.8 * gain.var()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_the_program_is_solved(seed):
    """No way to lie in bins that agrees with the mean gains more, of 200 drawn; and the one found agrees with it."""
    rng = np.random.default_rng(seed)
    gains, shares, half = rng.normal(size=6), rng.dirichlet(np.ones(6)), rng.random(6)
    drawn = rng.choice([-1.0, 1.0], size=(200, 6)) * rng.random((200, 6)) ** 0.2 * half
    for r in drawn:
        assert _most(gains, shares, half, float(shares @ r)) >= gains @ (shares * r) - 1e-12
    assert _most(np.ones(6), shares, half, float(shares @ drawn[0])) == pytest.approx(shares @ drawn[0])
