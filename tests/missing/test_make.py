"""Masks: their rates, what they may depend on, and that nobody loses an answer who was not asked."""

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.masks import (
    MAKERS,
    clustered,
    driven_by,
    like,
    logistic,
    make,
    mar,
    mcar,
    mnar,
    quantile,
    rate_leaving,
    self_masking,
)
from tests.lab.bounds import ALARM, fits
from tests.missing.worlds import codes

ROWS, COLUMNS, RATE = 8_000, 8, 0.2
VALUES = codes(ROWS, COLUMNS, seed=1)


def rng(seed: int = 2) -> np.random.Generator:
    return np.random.default_rng(seed)


def masked(made):
    return [k for k in range(COLUMNS) if k not in made.complete]


@pytest.mark.parametrize("name", MAKERS)
def test_every_masked_column_loses_its_rate_and_every_complete_one_nothing(name):
    """8,000 rows; false alarm at most 1e-9 a column."""
    made = make(name, VALUES, RATE, rng())
    assert all(fits(int(made.mask[:, k].sum()), ROWS, RATE) for k in masked(made))
    assert not made.mask[:, list(made.complete)].any()
    assert made.mask.dtype == bool and made.mask.shape == VALUES.shape


@pytest.mark.parametrize("name", MAKERS)
def test_a_question_that_was_not_asked_is_never_lost_and_the_rate_is_of_those_asked(name):
    asked = VALUES[:, [0] * COLUMNS] > 9
    asked[:, 0] = True
    made = make(name, VALUES, RATE, rng(), asked=asked)
    assert not (made.mask & ~asked).any()
    if name != "clustered":  # there the rate is that of everybody
        counts = [(int(made.mask[:, k].sum()), int(asked[:, k].sum())) for k in masked(made)]
        assert all(fits(hits, n, RATE) for hits, n in counts)


@pytest.mark.parametrize("name", MAKERS)
def test_a_mask_is_its_seed_and_nothing_else(name):
    first, second = (make(name, VALUES, RATE, rng(7)).mask for _ in range(2))
    assert (first == second).all()
    assert (make(name, VALUES, RATE, rng(8)).mask != first).any()


@pytest.mark.parametrize("name", MAKERS)
def test_a_name_that_is_unknown_and_a_rate_that_is_none_are_refused(name):
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(PlanError):
            make(name, VALUES, rate, rng())
    with pytest.raises(PlanError, match="mcar"):
        make("nobody", VALUES, RATE, rng())


def test_the_mean_chance_is_the_rate():
    """By bisection, to 1e-12, for rates near both ends and pulls of any width; beyond the asked cells too."""
    asked = rng().random(ROWS) < 0.7
    for rate in (1e-6, 0.01, 0.2, 0.5, 0.99):
        for width in (0.0, 1.0, 30.0, 1000.0):
            chance = logistic(width * rng(3).normal(size=ROWS), asked, rate)
            assert abs(chance[asked].mean() - rate) < 1e-12
    assert (logistic(np.ones(3), np.ones(3, dtype=bool), 1) == 1).all()


def test_as_many_columns_drive_as_the_definition_says():
    """MAR: half, rounded down, which stay complete. MNAR: three in ten, which are lost themselves."""
    for columns in range(1, 12):
        values = VALUES[:50, [0] * columns]
        at_random, not_at_random = mar(values, 0.5, rng()), mnar(values, 0.5, rng())
        assert len(at_random.drivers) == columns // 2 and at_random.complete == at_random.drivers
        assert len(not_at_random.drivers) == int(0.3 * columns + 1e-9) and not_at_random.complete == ()


def test_the_pull_has_unit_variance_whatever_the_drivers_scale():
    """The chances of a mask do not change when a driver is counted in other units."""
    asked = np.ones(VALUES.shape, dtype=bool)
    plain = driven_by(VALUES, (0, 1, 2), (3,), RATE, rng(5), asked=asked)
    scaled = driven_by(VALUES * np.array([1000, 1, 7] + [1] * 5), (0, 1, 2), (3,), RATE, rng(5), asked=asked)
    assert np.allclose(plain, scaled, atol=1e-12)
    pull = np.log(plain / (1 - plain))
    assert abs(pull.std() - 1) < 1e-9


def changed(maker, columns, seed=11):
    """Whether the mask of the same lots changes when these columns' values are shuffled among rows."""
    other = VALUES.copy()
    for k in columns:
        other[:, k] = rng(99 + k).permutation(other[:, k])
    return (maker(VALUES, RATE, rng(seed)).mask != maker(other, RATE, rng(seed)).mask).any(axis=0)


def test_at_random_depends_on_complete_columns_alone():
    """With the lots held, shuffling what may be lost changes nothing; shuffling what drives changes every driven one."""
    made = mar(VALUES, RATE, rng(11))
    driven = [k for k in range(COLUMNS) if k not in made.drivers]
    assert not changed(mar, driven).any()
    assert changed(mar, made.drivers)[driven].all()


def test_not_at_random_depends_on_values_that_are_lost_themselves():
    """The twin that the test above must reject: here drivers are lost."""
    made = mnar(VALUES, RATE, rng(11))
    driven = [k for k in range(COLUMNS) if k not in made.drivers]
    assert made.mask[:, list(made.drivers)].any(axis=0).all()
    assert changed(mnar, made.drivers)[driven].all() and not changed(mnar, driven).any()
    for maker in (self_masking, quantile):
        assert changed(maker, range(COLUMNS)).all()


def lost_minus_kept(made, k):
    """How many standard errors the mean of the lost answers is from that of the kept ones."""
    lost, kept = VALUES[made.mask[:, k], k], VALUES[~made.mask[:, k], k]
    return (lost.mean() - kept.mean()) / np.sqrt(lost.var() / len(lost) + kept.var() / len(kept))


def test_large_answers_are_lost_more_often_only_where_the_mask_says_so():
    """8,000 rows: |z| < 6.5 under MCAR has a false alarm of 1e-9 a column; self-masking is beyond 15."""
    at_all = make("mcar", VALUES, RATE, rng())
    assert all(abs(lost_minus_kept(at_all, k)) < 6.5 for k in range(COLUMNS))
    own = self_masking(VALUES, RATE, rng())
    assert all(lost_minus_kept(own, k) > 15 for k in range(COLUMNS))
    assert all(lost_minus_kept(quantile(VALUES, RATE, rng()), k) > 15 for k in range(COLUMNS))
    low = quantile(VALUES, RATE, rng(), side="lower")
    assert all(lost_minus_kept(low, k) < -15 for k in range(COLUMNS))


def test_quantile_masks_spare_the_rest_of_the_column():
    made = quantile(VALUES, RATE, rng(), share=0.3)
    edge = np.quantile(VALUES, 0.7, axis=0, method="higher")
    assert not (made.mask & (edge > VALUES)).any()
    assert made.mask.any(axis=0).all()
    ends = quantile(VALUES, RATE, rng(), share=0.5, side="both").mask
    assert ((VALUES < 8) & ends).any() and ((VALUES > 12) & ends).any()
    assert quantile(VALUES, RATE, rng(), nominal=(2,)).complete == (2,)
    with pytest.raises(PlanError):
        quantile(VALUES, 0.4, rng(), share=0.3)


def test_nominal_codes_have_no_order():
    """Renaming the levels of a nominal column in order keeps the mask; a numeric column's would change it."""
    squared = VALUES.copy()
    squared[:, 0] = squared[:, 0] ** 3
    places = tuple(range(COLUMNS))
    for maker in (mar, mnar, self_masking):
        named, renamed = (maker(v, RATE, rng(4), nominal=places).mask for v in (VALUES, squared))
        assert (named == renamed).all()
    assert (self_masking(VALUES, RATE, rng(4)).mask != self_masking(squared, RATE, rng(4)).mask).any()


@pytest.mark.parametrize("target", [0.0, 0.4, 0.6])
def test_clustered_flags_have_the_correlation_asked_for(target):
    """50,000 rows, six columns. A mean of 15 correlations has a standard error below 0.005; 6.5 of them: 1e-9."""
    rates = [0.05, 0.1, 0.1, 0.2, 0.2, 0.3]
    made = clustered(50_000, rates, rng(), correlation=target)
    found = np.corrcoef(made.mask.T)[np.triu_indices(6, 1)].mean()
    assert abs(found - target) < 0.033
    assert all(fits(int(made.mask[:, k].sum()), 50_000, rate) for k, rate in enumerate(rates))


def test_like_draws_whole_patterns_of_the_real_mask():
    """No pattern that was not there, each as often as it was: 8,000 draws, false alarm at most 1e-9."""
    real = clustered(500, [0.1, 0.2, 0.3], rng(), correlation=0.6).mask
    made = like(real, ROWS, rng())
    kinds, counts = np.unique(real, axis=0, return_counts=True)
    drawn, times = np.unique(made.mask, axis=0, return_counts=True)
    seen = {tuple(k): int(t) for k, t in zip(drawn, times, strict=True)}
    assert set(seen) <= {tuple(k) for k in kinds}
    assert all(
        fits(seen.get(tuple(k), 0), ROWS, count / 500, alarm=ALARM / len(kinds))
        for k, count in zip(kinds, counts, strict=True)
    )


def test_like_within_classes_draws_from_its_own_class_where_there_is_one():
    real = np.array([[True, False], [False, True], [False, True]])
    wanted = np.array([0] * 50 + [1] * 50 + [2] * 400)
    made = like(real, 500, rng(), classes=np.array([0, 1, 1]), wanted=wanted)
    assert (made.mask[:50] == real[0]).all() and (made.mask[50:100] == real[1]).all()
    assert (
        made.mask[100:].any(axis=0).all()
    )  # all real rows; that one pattern is absent has chance below 1e-70
    with pytest.raises(PlanError):
        like(real, 5, rng(), classes=np.array([0, 1, 1]))
    with pytest.raises(PlanError):
        like(real[:0], 5, rng())


def test_the_rate_that_leaves_as_many_complete_rows():
    """MAR leaves half of the columns complete, so it takes a larger rate to leave as few rows complete as MCAR."""
    small = VALUES[:2000]
    share = float(np.mean(~mcar(small.shape, 0.1, rng()).mask.any(axis=1)))
    rate = rate_leaving("mar", small, share, seed=3)
    left = float(np.mean(~mar(small, rate, rng(3)).mask.any(axis=1)))
    assert rate > 0.1 and abs(left - share) <= 2 / len(small)
