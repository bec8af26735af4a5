"""The perceptron (MLP) says of every row what scikit-learn's `MLPClassifier` says as it comes."""

import warnings

import numpy as np
import pytest

from reticent.lab.judge import mlp
from reticent.lab.judge.classify import learn, target_of
from reticent.lab.judge.mlp import SparseMLP, sparse
from reticent.lab.trials import tables
from reticent.synth.domain import HOLE


def pair(x: np.ndarray, y: np.ndarray, seed: int) -> tuple:
    """Ours and scikit-learn's, which warns where it would have gone on."""
    neural_network = pytest.importorskip("sklearn.neural_network")
    ours, theirs = SparseMLP(random_state=seed), neural_network.MLPClassifier(random_state=seed)
    ours.fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(x, y)
    return ours, theirs


def question(codes: np.ndarray, table: tables.Trial, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features of all columns but this one, and the question about it."""
    asked = target_of(table.codes, table.schema, table.columns, name)
    places = [place for place in range(len(table.columns)) if place != asked.place]
    return learn(codes, table.schema, table.columns, places).of(codes), asked.of(codes)


@pytest.mark.parametrize(
    ("target", "rows", "seed"),
    [("employment", 1_000, 0), ("wage", 730, 0), ("sex", 730, 5), ("region", 150, 1), ("marital", 201, 2)],
)
def test_the_same_is_said_as_by_the_default_of_scikit_learn(census, target, rows, seed):
    """Full batches and a last one that is short, fewer rows than a batch, and a batch of a single row. With some holes."""
    holes = np.random.default_rng(4).random(census.codes.shape) < 0.1
    x, y = question(np.where(holes, HOLE, census.codes), census, target)
    ours, theirs = pair(x[:rows], y[:rows], seed)
    assert np.array_equal(ours.predict(x), theirs.predict(x)) and 0 < ours.predict(x).mean() < 1
    assert np.abs(ours.weights.inner - theirs.coefs_[0]).max() < 1e-9
    assert np.abs(ours.weights.outer - theirs.coefs_[1][:, 0]).max() < 1e-9
    assert np.abs(ours.weights.shift - theirs.intercepts_[0]).max() < 1e-9
    assert abs(ours.weights.last[0] - theirs.intercepts_[1][0]) < 1e-9


def test_it_stops_when_scikit_learn_does(monkeypatch):
    """Two points far apart are learned long before the last pass; a fit that stops earlier has other weights."""
    x = np.repeat([[3.0, 0.0, 0.0], [0.0, 0.0, -3.0]], 600, axis=0)
    y = np.repeat([True, False], 600)
    ours, theirs = pair(x, y, 0)
    assert theirs.n_iter_ < mlp.PASSES
    assert np.abs(ours.weights.inner - theirs.coefs_[0]).max() < 1e-9
    monkeypatch.setattr(mlp, "PATIENCE", 2)
    ours.fit(x, y)
    assert np.abs(ours.weights.inner - theirs.coefs_[0]).max() > 1e-6


@pytest.mark.parametrize(("setting", "value"), [("PENALTY", 0.0), ("BATCH", 100)])
def test_another_setting_is_noticed(census, monkeypatch, setting, value):
    """The twins with one setting changed are not scikit-learn's."""
    x, y = question(census.codes, census, "employment")
    with monkeypatch.context() as patch:
        patch.setattr(mlp, setting, value)
        for name in ("one_pass", "adam"):  # a compiled function keeps the settings that it was compiled with
            patch.setattr(mlp, name, getattr(mlp, name).py_func)
        for name in ("one_pass", "adam"):
            patch.setattr(mlp, name, mlp.compiled(getattr(mlp, name)))
        changed, theirs = pair(x[:450], y[:450], 0)
    assert np.abs(changed.weights.inner - theirs.coefs_[0]).max() > 1e-6


def test_rows_without_their_zeros_are_the_same_rows():
    """Also one that holds nothing else, and none at all."""
    rows = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.5]])
    held = sparse(rows)
    assert held.starts.tolist() == [0, 1, 1, 3]
    assert held.places.tolist() == [1, 0, 2] and held.values.tolist() == [2.0, -1.0, 0.5]
    assert sparse(rows[:0]).starts.tolist() == [0]
