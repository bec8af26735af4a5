"""Classifiers are asked a fair question of yes and no, and learn from the synthetic rows alone."""

import builtins

import numpy as np
import pytest

from reticent.errors import PlanError, ReticentError
from reticent.lab.judge import classify
from reticent.lab.judge.classify import learn
from reticent.lab.judge.mlp import SparseMLP
from reticent.synth.domain import HOLE, UNASKED

QUICK = ("logistic", "tree", "naive-bayes")


def test_f1_is_what_the_textbook_says():
    """3 called, 4 true, 2 hits: 2 x 2 / 7."""
    said = np.array([1, 1, 1, 0, 0, 0], dtype=bool)
    true = np.array([1, 1, 0, 1, 1, 0], dtype=bool)
    assert classify.f1(said, true) == 4 / 7
    assert classify.f1(said, said) == 1 and classify.f1(~true, true) == 0
    assert classify.f1(np.zeros(3, bool), np.zeros(3, bool)) == 0


def test_the_rarer_side_is_asked_for(census):
    """So that whoever always says the commoner side scores nothing: on every column."""
    for name in census.columns:
        asked = classify.target_of(census.codes, census.schema, census.columns, name)
        yes = asked.of(census.codes)
        assert 0 < yes.mean() <= 0.5, name
        assert classify.f1(np.zeros(len(yes), bool), yes) == 0


def test_who_was_not_asked_is_not_above_the_middle(census):
    asked = classify.target_of(census.codes, census.schema, census.columns, "wage")
    wage = census.codes[:, census.columns.index("wage")]
    assert (wage == UNASKED).any() and not (asked.of(census.codes) & (wage == UNASKED)).any()


def test_features_hold_no_target_and_no_code_of_silence(census):
    """Every feature is small: a hole's code would be nine quintillion."""
    places = [place for place, name in enumerate(census.columns) if name != "employment"]
    made = learn(census.codes, census.schema, census.columns, places)
    x = made.of(np.where(np.arange(len(census.codes))[:, None] % 5 == 0, HOLE, census.codes))
    assert np.abs(x).max() < 50 and np.isfinite(x).all()
    scrambled = census.codes.copy()
    scrambled[:, census.columns.index("employment")] = 0
    assert np.array_equal(made.of(census.codes), made.of(scrambled))


def test_rows_with_the_pairs_right_teach_and_shuffled_ones_do_not(census, shuffled):
    """Employment is told by hours and wage. 1,000 rows to learn from, 1,000 held out."""
    train, held_out = census.codes[:1000], census.codes[1000:]
    good = classify.mean_f1(
        train, held_out, census.schema, census.columns, targets=["employment"], using=QUICK
    )
    bad = classify.mean_f1(
        shuffled[:1000], held_out, census.schema, census.columns, targets=["employment"], using=QUICK
    )
    assert good > 0.9 and bad < 0.6


def test_the_truth_says_what_is_asked_and_not_the_rows_made(census):
    """Rows that make the rarer sex the commoner one are asked the same question: whoever then says yes to all is scored so."""
    place = census.columns.index("sex")
    asked = classify.target_of(census.codes, census.schema, census.columns, "sex")
    skewed = census.codes.copy()
    skewed[:, place] = census.codes[np.flatnonzero(asked.of(census.codes))[0], place]
    (found,) = classify.scores(
        skewed, census.codes, census.schema, census.columns, target="sex", using=("tree",)
    ).values()
    share = asked.of(census.codes).mean()
    assert found == pytest.approx(2 * share / (1 + share)) and 0 < share < 0.5
    # The naive twin asks what is rarer among the rows made: nobody says yes.
    naive = classify.target_of(skewed, census.schema, census.columns, "sex")
    assert naive != asked and not naive.of(skewed).any()


def test_rows_that_all_say_the_same_teach_to_say_it(census):
    same = census.codes.copy()
    asked = classify.target_of(census.codes, census.schema, census.columns, "sex")
    same[:, census.columns.index("sex")] = asked.level
    found = classify.scores(
        same, census.codes, census.schema, census.columns, target="sex", using=("logistic", "tree")
    )
    constant = np.full(len(same), bool(asked.of(same)[0]))
    assert set(found.values()) == {classify.f1(constant, asked.of(census.codes))}


def test_all_nine_are_there_with_their_default_settings():
    """But for the seed, and the number of threads, which changes nothing. The perceptron is held to the default one elsewhere."""
    made = classify.classifiers(3)
    assert tuple(made) == classify.NINE and len(made) == 9
    assert made.pop("mlp") == SparseMLP(random_state=3)
    for name, model in made.items():
        default, found = type(model)().get_params(), model.get_params()
        changed = {key for key in found if repr(found[key]) != repr(default[key])}
        assert changed <= {"random_state", "n_jobs"}, name


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name.startswith(("sklearn", "xgboost")):
            raise ImportError
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ReticentError, match=r"reticent\[judge\]"):
        classify.classifiers(0)


def test_a_target_that_is_no_column_is_refused(census):
    with pytest.raises(PlanError):
        classify.target_of(census.codes, census.schema, census.columns, "shoes")
