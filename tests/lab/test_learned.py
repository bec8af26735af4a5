"""Learned nonresponse: known laws are recovered, real flags are matched on households not seen."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.errors import PlanError
from reticent.lab.world import nonresponse as learned
from reticent.lab.world import workers as acs
from reticent.lab.world.nonresponse import Form
from tests.lab.bounds import fits

ITEMS = ("schooling", "hours", "wage")


@pytest.fixture(scope="module")
def adults(state):
    return state.filter(pa.array(state["age"].to_numpy() >= 15))


@pytest.fixture(scope="module")
def known(adults):
    """A law made by hand: the young skip more, and who skips schooling skips hours and wage."""
    width = learned.features(adults).shape[1]
    base = np.zeros(width)
    base[:2] = (-2.0, -0.8)
    betas = tuple(np.concatenate([base, np.full(j, 2.5)]) for j in range(3))
    return learned.Silence(Form.BOTH, ITEMS, betas)


def test_fitting_recovers_a_known_law(adults, known):
    """About 24,000 records: chances fitted to drawn flags are the true ones, on average within 0.02."""
    drawn = known.draw(adults, seed=5)
    fitted = learned.fit(adults, drawn, Form.BOTH)
    y = learned.matrix(drawn)
    assert np.abs(fitted.chances(adults, y) - known.chances(adults, y)).mean() < 0.02


def test_the_form_that_holds_the_truth_scores_best_on_unseen_households(adults, known):
    drawn = known.draw(adults, seed=5)
    loss = {form: learned.validate(adults, drawn, form, seed=1)[1].log_loss for form in Form}
    assert loss[Form.BOTH] < min(loss[Form.FLAGS], loss[Form.ANSWERS]) < loss[Form.RATE]


def test_draws_are_fresh_reproduce_and_spare_what_was_not_asked(state, known):
    mask = known.draw(state, seed=1)
    assert mask.equals(known.draw(state, seed=1)) and not mask.equals(known.draw(state, seed=2))
    for item in ITEMS:
        assert not (mask[item].to_numpy() & ~state[item].is_valid().to_numpy()).any()


def test_drawn_rates_are_the_fitted_ones(adults, known):
    """The first item's chances are known; false alarm 1e-9."""
    drawn = learned.matrix(known.draw(adults, seed=9))
    chance = known.chances(adults, drawn)[:, 0]
    assert fits(int(drawn[:, 0].sum()), len(chance), float(chance.mean()))
    assert not fits(int(drawn[:, 0].sum()), len(chance), float(1.2 * chance.mean()))


def test_auc_counts_pairs():
    rng = np.random.default_rng(4)
    chance, flag = rng.integers(0, 5, 60) / 5, rng.random(60) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in chance[flag] for b in chance[~flag]]
    assert learned.auc(chance, flag) == pytest.approx(np.mean(pairs))
    assert np.isnan(learned.auc(chance, np.zeros(60, dtype=bool)))


def test_newton_meets_the_score_equations():
    """At the optimum the gradient of the penalised likelihood is zero."""
    rng = np.random.default_rng(6)
    x = np.column_stack([np.ones(500), rng.normal(size=(500, 3))])
    y = rng.random(500) < learned.sigmoid(x @ np.array([-1, 0.5, 0, 1]))
    beta = learned.logistic_regression(x, y)
    ridge = np.array([1e-3, 1, 1, 1]) * learned.RIDGE
    assert np.abs(x.T @ (y - learned.sigmoid(x @ beta)) - ridge * beta).max() < 1e-6
    assert np.isfinite(learned.logistic_regression(x, np.zeros(500, dtype=bool))).all()


def test_rows_that_do_not_match_are_refused(adults, known):
    with pytest.raises(PlanError):
        learned.fit(adults, known.draw(adults.slice(0, 5), seed=1), Form.RATE)


@pytest.fixture(scope="module")
def workers():
    folder = acs.data_folder()
    if folder is None:
        pytest.skip("the ACS workers are not at hand; set RETICENT_DATA to the data folder")
    return acs.read_workers(folder)


@pytest.mark.data
def test_real_answers_speak_the_state_s_words(workers):
    answers, flags = workers
    assert answers.num_rows == flags.num_rows == 22_241
    for name in ("sex", "race", "marital", "relationship", "schooling"):
        assert set(answers[name].unique().to_pylist()) <= set(learned.LEVELS[name])
    assert np.mean(flags["wage"].to_numpy()) == pytest.approx(0.230, abs=0.001)


@pytest.mark.data
def test_laws_of_real_flags_beat_each_other_in_order(workers):
    """Held-out households: answers help, earlier flags help more, both together most."""
    scores = {form: learned.validate(*workers, form, seed=1)[1] for form in Form}
    loss = {form: score.log_loss for form, score in scores.items()}
    assert loss[Form.BOTH] + 0.04 < loss[Form.FLAGS] < loss[Form.ANSWERS] - 0.3 < loss[Form.RATE] - 0.4
    assert scores[Form.ANSWERS].auc["wage"] > 0.63 and scores[Form.BOTH].auc["wage"] > 0.78
    # Real silence is clustered: independent rates leave far too few records complete.
    assert abs(scores[Form.BOTH].complete_drawn - scores[Form.BOTH].complete) < 0.03
    assert scores[Form.RATE].complete_drawn < scores[Form.RATE].complete - 0.12
