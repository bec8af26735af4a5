"""Exact binomial bounds for the lab's random tests."""

from scipy.stats import binom

ALARM = 1e-9  # chance of a false alarm, per comparison


def fits(hits: int, n: int, p: float, *, alarm: float = ALARM) -> bool:
    """Whether `hits` out of `n` is within the exact binomial bounds for rate `p`.

    With unequal chances of mean p the bounds hold too: Hoeffding (1956) shows that far tails only shrink.
    """
    return bool(binom.ppf(alarm / 2, n, p) <= hits <= binom.isf(alarm / 2, n, p))
