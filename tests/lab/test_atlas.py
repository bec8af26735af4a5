"""The simulated atlas: it reproduces, its file holds the same people, and its truths are true of them."""

import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.engine.wants import PointsByCell as Want
from reticent.engine.wants import Rows
from reticent.errors import PlanError
from reticent.lab.noise import SeededBits
from reticent.lab.world import atlas as lab
from reticent.lab.world.atlas import AT, BLOCK, FEWEST, MORE_BIRTHS, STATES, STEPS, Tracts
from reticent.schema.codebook import schema_from

SIGMAS = 6.0
"""A chance of a false alarm of 2e-9 for each comparison of a mean over tens of thousands."""


@pytest.fixture(scope="module")
def made() -> lab.Atlas:
    return lab.atlas(2 * BLOCK + 30, seed=5)


def same(one: Tracts, other: Tracts) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Tracts.__slots__)


def test_a_small_atlas_begins_a_large_one_across_blocks(made):
    for count in (1, 300, BLOCK, BLOCK + 7):
        small = lab.atlas(count, seed=5)
        people = int(small.tracts.people.sum())
        assert same(small.tracts, made.tracts.first(count))
        assert len(small.ranks.x) == people
        assert np.array_equal(small.ranks.y, made.ranks.y[:people])
        assert np.array_equal(small.births.y, made.births.y[: len(small.births.y)])


def test_another_seed_gives_another_atlas(made):
    assert not same(lab.atlas(10, seed=6).tracts, made.tracts.first(10))


def test_no_tract_and_no_seed_are_refused():
    for count, seed in ((0, 1), (3, -1)):
        with pytest.raises(PlanError):
            lab.atlas(count, seed=seed)


def test_the_engine_finds_in_the_file_the_points_of_the_atlas(tmp_path):
    """Across a block: the file is shuffled, and births are there for those who were asked."""
    count = BLOCK + 20
    lab.write_people(tmp_path / "people.parquet", count, seed=5)
    schema, truth = schema_from(tomllib.loads(lab.codebook(count))), lab.atlas(count, seed=5)
    ranks = Want(rows=Rows(), cell="tract", x="parent_rank", y="child_rank")
    births = Want(rows=Rows(), cell="tract", y="birth")
    engine = DuckDBEngine(open_path(str(tmp_path / "people.parquet")))
    found = engine.tally(schema, [ranks, births]).points
    engine.close()
    for want, points in ((ranks, truth.ranks), (births, truth.births)):
        for name in ("starts", "x", "y"):
            assert np.array_equal(getattr(found[want], name), getattr(points, name)), (want, name)
    tract = pq.read_table(tmp_path / "people.parquet")["tract"].to_numpy()
    assert (np.diff(tract[:1000]) < 0).any()


def is_on_the_line(made: lab.Atlas, prediction: np.ndarray, slope: np.ndarray) -> bool:
    """Residuals about these lines have mean zero, and none of it goes with x: over all people."""
    owner = np.repeat(np.arange(len(made.tracts.people)), made.tracts.people)
    x, y = made.ranks.x / STEPS, made.ranks.y / STEPS
    residual = y - prediction[owner] - slope[owner] * (x - AT)
    scores = (residual, residual * (x - AT))
    return all(abs(score.mean()) < SIGMAS * score.std() / np.sqrt(len(score)) for score in scores)


def test_the_true_line_of_a_tract_is_that_of_its_people(made):
    """140,000 people; a line one hundredth too high or a twentieth too steep would be seen."""
    truth = made.tracts
    assert is_on_the_line(made, truth.prediction, truth.slope)
    assert not is_on_the_line(made, truth.prediction + 0.01, truth.slope)
    assert not is_on_the_line(made, truth.prediction, truth.slope + 0.05)


def test_births_go_with_single_parents_as_stated(made):
    """Events beside their expected number, in the lower and the upper half of tracts."""
    truth = made.tracts
    assert np.allclose(truth.births.mean(), (FEWEST + MORE_BIRTHS * truth.single).mean(), rtol=0.05)
    for half in (truth.single < np.median(truth.single), truth.single >= np.median(truth.single)):
        expected = (truth.asked * truth.births)[half].sum()
        assert abs(made.events()[half].sum() - expected) < SIGMAS * np.sqrt(expected)


def test_tracts_are_skewed_like_tracts(made):
    """A median of a hundred, some below twenty, some many times larger, in many states."""
    sizes = made.tracts.people
    assert 85 < np.median(sizes) < 115 and sizes.mean() > 1.25 * np.median(sizes)
    assert 0.005 < (sizes < 20).mean() < 0.05 and sizes.min() >= 1
    assert len(np.unique(made.tracts.state)) > STATES / 2 and made.tracts.state.max() < STATES
    assert (made.tracts.asked <= sizes).all()


def test_seeded_bits_repeat_and_say_that_they_are_not_private():
    first, again, other = (SeededBits(np.random.default_rng(seed)) for seed in (1, 1, 2))
    drawn = [first.take(n) for n in (1, 7, 64, 100_003)]
    assert drawn == [again.take(n) for n in (1, 7, 64, 100_003)]
    assert drawn[3] != [other.take(n) for n in (1, 7, 64, 100_003)][3]
    assert all(value < 1 << n for value, n in zip(drawn, (1, 7, 64, 100_003), strict=True))
    assert not first.is_private
