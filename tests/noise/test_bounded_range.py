"""The exponential mechanism in zCDP: a bounded range, and an eighth of epsilon squared."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

Law = Callable[[NDArray[np.int64], float], NDArray[np.float64]]
ORDERS = np.array([1.01, 1.5, 2, 4, 8, 32, 200])
EPSILONS = (0.1, 1.0, 3.0)


def exponential_law(scores: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    weights = np.exp(epsilon / 2 * (scores - scores.max()))
    return np.asarray(weights / weights.sum())


def permute_and_flip_law(scores: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Formula (1) of the proof page, by Gauss-Legendre quadrature, exact for these polynomials."""
    heads = np.exp(epsilon / 2 * (scores - scores.max()))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    coins = 1 - np.outer((nodes + 1) / 2, heads)
    others = np.array([np.delete(coins, i, axis=1).prod(axis=1) for i in range(len(heads))])
    return np.asarray(heads * (others @ (weights / 2)))


def randomised_response_law(scores: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """epsilon-DP whatever the scores: says whether the first one is above 1, with a chance of a lie."""
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.array([truth, 1 - truth] if scores[0] > 1 else [1 - truth, truth])


def pairs() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Three scores and all their moves by -1, 0 or 1."""
    for scores in ((0, 0, 0), (2, 0, 0), (1, 2, 5), (2, 2, 1)):
        for move in product((-1, 0, 1), repeat=3):
            yield np.array(scores), np.array(scores) + np.array(move)


def worst(law: Law, epsilon: float) -> tuple[float, float]:
    """The widest range of log ratios over epsilon; the largest Renyi divergence over order * epsilon^2 / 8."""
    width = loss = 0.0
    for here, there in pairs():
        p, q = law(here, epsilon), law(there, epsilon)
        ratio = np.log(p / q)
        width = max(width, float(np.ptp(ratio)) / epsilon)
        renyi = np.log((q * np.exp(np.outer(ORDERS, ratio))).sum(axis=1)) / (ORDERS - 1)
        loss = max(loss, float((renyi / (ORDERS * epsilon**2 / 8)).max()))
    return width, loss


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_exponential_mechanism_costs_an_eighth_of_epsilon_squared(epsilon: float) -> None:
    """Every move of three scores: the range is epsilon, attained; the divergence never above the line."""
    width, loss = worst(exponential_law, epsilon)
    assert width == pytest.approx(1)
    assert loss <= 1 + 1e-9


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_eighth_would_be_wrong_for_other_mechanisms(epsilon: float) -> None:
    """The naive twin: any epsilon-DP mechanism at an eighth. Randomised response loses up to four times as much."""
    width, loss = worst(randomised_response_law, epsilon)
    assert width == pytest.approx(2)
    assert loss > 1.5


def test_permute_and_flip_has_no_such_range() -> None:
    """The second naive twin: the other selection mechanism at the same price is refused."""
    assert worst(permute_and_flip_law, 3.0)[0] > 1.001
