"""A perceptron with one hidden layer, fitted as scikit-learn fits its `MLPClassifier` as it comes, for rows that are mostly zeros.

Rows of levels as yes and no have some fifteen features of a hundred that are not zero, and products with the others need
not be made: that takes a third of the time, which was more than half of what the nine classifiers took. First weights,
batches, steps and stopping are scikit-learn's, drawn by the same generator, so the same is said of every row; sums are
added up in another order, which changes the last digits of a weight.

Adam: Kingma and Ba, *Adam: A method for stochastic optimization* (2015). First weights: Glorot and Bengio (2010).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, inf, log, sqrt
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Truths = NDArray[np.bool_]

HIDDEN, BATCH, PASSES = 100, 200, 200
PENALTY, STEP, BETA_1, BETA_2, TINY = 1e-4, 1e-3, 0.9, 0.999, 1e-8
TOLERANCE, PATIENCE = 1e-4, 10
"""Passes in which the loss did not fall by the tolerance; with one more the fit ends."""


def compiled(function: F) -> F:
    """As machine code that looks for no division by zero, of which there is none: so it divides several at once."""
    return cast(F, numba.njit(nogil=True, error_model="numpy")(function))


class SparseRows(NamedTuple):
    """Rows without their zeros: those of row r are `values[starts[r]:starts[r + 1]]`, in the columns `places` says."""

    starts: Indices
    places: Indices
    values: Floats


def sparse(rows: Floats) -> SparseRows:
    """The same rows without their zeros."""
    at, places = np.nonzero(rows)
    starts = np.searchsorted(at, np.arange(len(rows) + 1))
    return SparseRows(starts, places, np.asarray(rows[at, places], dtype=np.float64))


class MLPWeights(NamedTuple):
    """Of the hidden layer, a line for each feature, its biases, those of the one output, and its bias."""

    inner: Floats
    shift: Floats
    outer: Floats
    last: Floats


def first_weights(features: int, rng: np.random.RandomState) -> MLPWeights:
    """Drawn evenly, within bounds that keep the size of what goes through a layer."""
    inner, outer = sqrt(6 / (features + HIDDEN)), sqrt(6 / (HIDDEN + 1))
    return MLPWeights(
        rng.uniform(-inner, inner, (features, HIDDEN)),
        rng.uniform(-inner, inner, HIDDEN),
        rng.uniform(-outer, outer, (HIDDEN, 1))[:, 0].copy(),
        rng.uniform(-outer, outer, 1),
    )


def zeros(weights: MLPWeights) -> MLPWeights:
    """As many zeros."""
    return MLPWeights(*(np.zeros_like(each) for each in weights))


@compiled
def hidden_of(row: int, rows: SparseRows, weights: MLPWeights, hidden: Floats) -> float:
    """What the network says of one row, before it is made a chance; its hidden layer is left in `hidden`."""
    hidden[:] = weights.shift
    for at in range(rows.starts[row], rows.starts[row + 1]):
        line, value = weights.inner[rows.places[at]], rows.values[at]
        for unit in range(HIDDEN):
            hidden[unit] += value * line[unit]
    said: float = weights.last[0]
    for unit in range(HIDDEN):
        hidden[unit] = max(hidden[unit], 0.0)
        said += hidden[unit] * weights.outer[unit]
    return said


@compiled
def add_gradient(
    row: int, error: float, rows: SparseRows, weights: MLPWeights, hidden: Floats, gradient: MLPWeights
) -> None:
    """Add one row's part, of which `error` is the chance less the truth. Its hidden layer is written over."""
    gradient.last[0] += error
    for unit in range(HIDDEN):
        gradient.outer[unit] += error * hidden[unit]
        hidden[unit] = error * weights.outer[unit] if hidden[unit] > 0 else 0.0
        gradient.shift[unit] += hidden[unit]
    for at in range(rows.starts[row], rows.starts[row + 1]):
        line, value = gradient.inner[rows.places[at]], rows.values[at]
        for unit in range(HIDDEN):
            line[unit] += value * hidden[unit]


@compiled
def adam(
    weights: Floats, gradient: Floats, mean: Floats, square: Floats, rows: int, penalty: float, step: float
) -> float:
    """Move some weights by the mean gradient of so many rows, which is cleared; the sum of their squares before."""
    squares = 0.0
    for place in range(len(weights)):
        weight = weights[place]
        squares += weight * weight
        slope = (gradient[place] + penalty * weight) / rows
        gradient[place] = 0.0
        mean[place] = BETA_1 * mean[place] + (1 - BETA_1) * slope
        square[place] = BETA_2 * square[place] + (1 - BETA_2) * (slope * slope)
        weights[place] = weight - step * mean[place] / (sqrt(square[place]) + TINY)
    return squares


@compiled
def one_pass(
    rows: SparseRows,
    truths: Truths,
    order: Indices,
    state: tuple[MLPWeights, MLPWeights, MLPWeights, MLPWeights],
    steps: int,
) -> float:
    """One pass over the rows in this order, batch by batch; their mean loss, each before the step of its batch."""
    weights, gradient, mean, square = state
    hidden, loss, count = np.empty(HIDDEN), 0.0, len(order)
    least = np.finfo(np.float64).eps
    for start in range(0, count, BATCH):
        stop = min(start + BATCH, count)
        for row in order[start:stop]:
            chance = 1 / (1 + exp(-hidden_of(row, rows, weights, hidden)))
            told = chance if truths[row] else 1 - chance
            loss -= log(min(max(told, least), 1 - least))
            add_gradient(row, chance - truths[row], rows, weights, hidden, gradient)
        steps += 1
        step = STEP * sqrt(1 - BETA_2**steps) / (1 - BETA_1**steps)
        size = stop - start
        squares = adam(
            weights.inner.ravel(),
            gradient.inner.ravel(),
            mean.inner.ravel(),
            square.inner.ravel(),
            size,
            PENALTY,
            step,
        )
        squares += adam(weights.outer, gradient.outer, mean.outer, square.outer, size, PENALTY, step)
        adam(weights.shift, gradient.shift, mean.shift, square.shift, size, 0.0, step)
        adam(weights.last, gradient.last, mean.last, square.last, size, 0.0, step)
        loss += 0.5 * PENALTY * squares
    return loss / count


@compiled
def said_of(rows: SparseRows, weights: MLPWeights) -> Truths:
    """Whether the chance of each row is above one half."""
    count, hidden = len(rows.starts) - 1, np.empty(HIDDEN)
    told = np.empty(count, dtype=np.bool_)
    for row in range(count):
        told[row] = hidden_of(row, rows, weights, hidden) > 0
    return told


@dataclass(slots=True)
class SparseMLP:
    """A classifier of yes or no: `fit`, then `predict`."""

    random_state: int
    weights: MLPWeights = field(init=False, repr=False, compare=False)

    def fit(self, rows: Floats, truths: Truths) -> None:
        """Until the loss has not fallen for some passes, or so many were made."""
        rng = np.random.RandomState(self.random_state)
        held, weights = sparse(rows), first_weights(rows.shape[1], rng)
        state = weights, zeros(weights), zeros(weights), zeros(weights)
        order, best, waited = np.arange(len(rows)), inf, 0
        batches = -(-len(rows) // BATCH)
        for made in range(PASSES):
            order = order[rng.permutation(len(rows))]
            loss = one_pass(held, truths, order, state, made * batches)
            waited = waited + 1 if loss > best - TOLERANCE else 0
            best = min(best, loss)
            if waited > PATIENCE:
                break
        self.weights = weights

    def predict(self, rows: Floats) -> Truths:
        """Of each row, whether yes is likelier."""
        return np.asarray(said_of(sparse(rows), self.weights))
