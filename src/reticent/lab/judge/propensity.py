"""Can a model tell synthetic rows from true ones? The propensity score's mean squared error, and what chance makes of it.

Snoke, Raab, Nowok, Dibben and Slavkovic 2018. Truth and synthetic rows are put together, a logistic model guesses which is which,
and the guesses' mean squared distance from the share of synthetic rows is taken. It has a term for each feature, and one for
each product of two columns with an order: without products, rows with the right margins and nothing else could not be told from the
truth. Were both drawn from one law, the error would be (k - 1)(1 - c)² c / N on average, with k terms (the constant is
one), N rows and a share c.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.lab.judge.classify import Features, has_order, learn
from reticent.lab.trials.tables import Codes
from reticent.schema import Schema

Floats = NDArray[np.float64]
STEPS, RIDGE, CLOSE = 25, 1e-6, 1e-7
MOST = 15_000  # rows of each kind, taken evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class Propensity:
    """`error` is the mean squared error, `ratio` how many times that of chance alone."""

    error: float
    ratio: float


def propensity(
    truth: Codes, made: Codes, schema: Schema, columns: tuple[str, ...], *, most: int = MOST
) -> Propensity:
    """0 and about 1 where nothing tells them apart; up to c (1 - c) and very large where everything does."""
    truth, made = _evenly(truth, most), _evenly(made, most)
    features = learn(truth, schema, columns, range(len(columns)))
    x = np.concatenate([_terms(features, truth), _terms(features, made)])
    x = np.column_stack([np.ones(len(x)), x[:, x.std(axis=0) > 0]])
    y = np.repeat([0.0, 1.0], [len(truth), len(made)])
    share = float(y.mean())
    error = float(np.mean((_guesses(x, y) - share) ** 2))
    terms = int(np.linalg.matrix_rank(x.T @ x, hermitian=True))
    chance = (terms - 1) * (1 - share) ** 2 * share / len(y)
    return Propensity(error=error, ratio=error / chance if chance else 0.0)


def _evenly(codes: Codes, most: int) -> Codes:
    return codes if len(codes) <= most else codes[np.linspace(0, len(codes) - 1, most).astype(int)]


def _terms(features: Features, codes: Codes) -> Floats:
    """The features, and the products of columns with an order."""
    names = [features.columns[place] for place in features.places]
    alone = [i for i, name in enumerate(names) if has_order(features.schema, name)]
    scaled = {i: features.one(codes, i)[:, 0] for i in alone}
    products = [scaled[a] * scaled[b] for a, b in combinations(alone, 2)]
    return np.column_stack([features.of(codes), *products])


def _guesses(x: Floats, y: Floats) -> Floats:
    """Fitted chances, by Newton's steps with a little ridge: columns of yes and no are not independent.

    Where a rare level is on one side alone its term grows without end; the steps stop when the fit no longer does.
    """
    beta, before = np.zeros(x.shape[1]), np.inf
    for _ in range(STEPS):
        chance = _logistic(x @ beta)
        loss = -float(np.mean(np.log(np.where(y > 0, chance, 1 - chance))))
        if before - loss < CLOSE:
            break
        before = loss
        weight = (chance * (1 - chance))[:, None]
        curve = x.T @ (weight * x) + RIDGE * len(y) * np.eye(len(beta))
        beta = beta + np.linalg.solve(curve, x.T @ (y - chance) - RIDGE * len(y) * beta)
    return _logistic(x @ beta)


def _logistic(z: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(z, -30, 30))))
