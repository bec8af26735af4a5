"""Statistical tests of mechanisms, each with its false alarm stated and tried (tests/noise/test_samplers_audit.py).

Every p-value here is valid: under the claim, P(p <= alpha) <= alpha. Tests compare it with 1e-9.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom, chi2

ALARM = 1e-9
"""The chance of a false alarm in a test on the system's generator."""

Draw = Callable[[int, int], Any]
"""draw(b, n): n outputs of the mechanism on data set b, 0 or 1."""

Event = Callable[[Any], NDArray[np.bool_]]


@dataclass(frozen=True)
class Coins:
    """Of the runs where the event was seen, how many had data set 1 and how many data set 0."""

    ones: int
    zeros: int

    def p_value(self, epsilon: float) -> float:
        """Under epsilon-DP each coin is 1 with chance at most q = e**eps / (1 + e**eps) given the event, and so is 0."""
        q = 1 / (1 + np.exp(-epsilon))
        n = self.ones + self.zeros
        tail = float(binom.sf(max(self.ones, self.zeros) - 1, n, q))
        return min(1.0, 2 * tail)  # two directions


def coin_audit(draw: Draw, event: Event, *, runs: int, seed: int) -> Coins:
    """Flip a fair coin for every run, run on that data set, note the event."""
    ones = int(np.random.default_rng(seed).binomial(runs, 0.5))
    seen = [int(np.count_nonzero(event(draw(b, k)))) for b, k in ((0, runs - ones), (1, ones))]
    return Coins(ones=seen[1], zeros=seen[0])


def threshold_events(values: Sequence[int]) -> list[Event]:
    """Above and below each of 100 quantiles, and each of up to 20 single values."""
    cuts = np.unique(np.quantile(np.asarray(values, dtype=float), np.linspace(0, 1, 100)))
    single = np.unique(np.asarray(values))[:20]
    above: list[Event] = [lambda y, c=c: np.asarray(y) >= c for c in cuts]
    beneath: list[Event] = [lambda y, c=c: np.asarray(y) <= c for c in cuts]
    return above + beneath + [lambda y, v=v: np.asarray(y) == v for v in single]


def audit(draw: Draw, *, epsilon: float, runs: int, seed: int, events: list[Event] | None = None) -> float:
    """Choose the most telling event on as many separate runs, then test it on fresh ones; the p-value."""
    trial = [draw(b, runs // 2) for b in (0, 1)]
    offered = events or threshold_events(list(trial[0]) + list(trial[1]))

    def evidence(event: Event) -> float:
        seen = [int(np.count_nonzero(event(y))) for y in trial]
        return Coins(ones=seen[1], zeros=seen[0]).p_value(epsilon)

    return coin_audit(draw, min(offered, key=evidence), runs=runs, seed=seed).p_value(epsilon)


def epsilon_at_least(seen: tuple[int, int], runs: tuple[int, int], *, delta: float, alpha: float) -> float:
    """A lower bound on epsilon for (epsilon, delta)-DP, wrong with chance at most alpha; -inf if nothing is shown.

    P1(E) <= e**eps P0(E) + delta, with exact (Clopper-Pearson) bounds on both: P1 from below, P0 from above.
    """
    low = float(beta.ppf(alpha / 2, seen[1], runs[1] - seen[1] + 1)) if seen[1] else 0.0
    high = float(beta.ppf(1 - alpha / 2, seen[0] + 1, runs[0] - seen[0])) if seen[0] < runs[0] else 1.0
    return float(np.log((low - delta) / high)) if low > delta else -np.inf


def early_stop(coins: Iterable[bool], *, epsilon: float, alpha: float) -> int | None:
    """After how many coins the likelihood ratio of 2 eps against eps reaches 1/alpha; None if it never does.

    Under the claim the ratio is a supermartingale that starts at 1, so it ever reaches 1/alpha with chance at most alpha.
    """
    q0, q1 = 1 / (1 + np.exp(-epsilon)), 1 / (1 + np.exp(-2 * epsilon))
    up, down = np.log(q1 / q0), np.log((1 - q1) / (1 - q0))
    level = 0.0
    for count, is_one in enumerate(coins, 1):
        level += up if is_one else down
        if level >= -np.log(alpha):
            return count
    return None


def chi_square(draws: Sequence[int], cdf: Callable[[Any], Any], *, cells: int = 24) -> float:
    """Whether whole numbers follow the law P(X <= k) = cdf(k): the p-value of Pearson's statistic.

    The edges are quantiles of the stated law, found without the draws; each cell expects at least 25 draws.
    """
    n = len(draws)
    edges = _edges(cdf, cells, n)
    assert edges, "the law has too little spread for this many draws; count one value instead"
    expected = n * np.diff(np.concatenate(([0.0], cdf(np.array(edges, dtype=float)), [1.0])))
    at = np.searchsorted(np.array(edges, dtype=float), np.asarray(draws, dtype=float), side="left")
    seen = np.bincount(at, minlength=len(edges) + 1)
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, len(expected) - 1))


def _edges(cdf: Callable[[Any], Any], cells: int, n: int) -> list[int]:
    """Whole numbers that cut the law into cells of near equal chance, at least 25/n each."""
    edges: list[int] = []
    last, least = 0.0, 25.0 / n
    for level in [least, *np.linspace(0, 1, cells + 1)[1:-1], 1 - least]:
        edge = _quantile(cdf, level)
        here = float(cdf(float(edge)))
        if here - last >= least and 1 - here >= least:
            edges, last = [*edges, edge], here
    return edges


def _quantile(cdf: Callable[[Any], Any], level: float) -> int:
    """The least whole k with cdf(k) >= level, by doubling and halving."""
    low, high = -1, 1
    while float(cdf(float(low))) >= level:
        low *= 2
    while float(cdf(float(high))) < level:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if float(cdf(float(middle))) >= level else (middle, high)
    return high
