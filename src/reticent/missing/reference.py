"""Whether a noisy table shows silence that goes with answers, and what it would show if silence went with nothing.

A table has a line for 0, 1, 2, ... missing answers and a column for each group of what was answered. If silence is
independent of the answer, every group has the same mean m of missing answers, so A_c - m n_c is zero on average, n_c the
size of group c and A_c its missing answers, noise or no noise. Its variance is s^2 n_c from sampling and v t from the
noise: s^2 the variance of the number missing, v that of one cell's noise, t = sum (r - m)^2 over the lines.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.noise.bits import Bits, words

Floats = NDArray[np.float64]

EXACT_TO = 50.0  # smaller Poisson means are drawn from the law itself, larger ones from the normal law


def statistic(tables: Floats, *, variance: float) -> Floats:
    """sum (A_c - m n_c)^2 / V_c with m fitted, for each of several noisy tables; `variance` is that of a cell's noise."""
    missing = np.arange(tables.shape[1], dtype=float)
    size, silent = tables.sum(axis=1), np.einsum("r,brc->bc", missing, tables)
    lines = np.maximum(tables.sum(axis=2), 0.0)
    share = lines / np.maximum(lines.sum(axis=1), 1.0)[:, None]
    mean = share @ missing
    spread = np.maximum(share @ missing**2 - mean**2, 0.0)
    noise = variance * ((missing - mean[:, None]) ** 2).sum(axis=1)
    v = spread[:, None] * np.maximum(size, 0.0) + noise[:, None] + 1e-9
    fitted = (silent * size / v).sum(axis=1) / np.maximum((size**2 / v).sum(axis=1), 1e-9)
    fitted = np.clip(fitted, 0.0, missing[-1])
    return np.asarray(((silent - fitted[:, None] * size) ** 2 / v).sum(axis=1))


def tail(table: Floats, *, scale: float, draws: int, bits: Bits) -> tuple[float, float]:
    """The statistic of a noisy table, and its p: the share of `draws` simulated ones that reach it, itself counted.

    Tables are simulated from the noisy margins, independent, with noise of the same law; released numbers alone.
    """
    variance = laplace_variance(scale)
    seen = float(statistic(table[None], variance=variance)[0])
    lines, groups = np.maximum(table.sum(axis=1), 0.0), np.maximum(table.sum(axis=0), 0.0)
    means = np.outer(lines / max(lines.sum(), 1.0), groups)
    drawn = poisson(means, draws, bits) + laplace((draws, *table.shape), scale, bits)
    reached = int((statistic(drawn, variance=variance) >= seen).sum())
    return seen, (1 + reached) / (1 + draws)


def laplace_variance(scale: float) -> float:
    """The variance of discrete Laplace noise, P(x) ~ e^(-|x| / scale)."""
    q = float(np.exp(-1 / scale))
    return 2 * q / (1 - q) ** 2


def uniforms(shape: tuple[int, ...], bits: Bits) -> Floats:
    """Numbers uniform inside (0, 1). They are part of a p-value and not of the promise, so doubles will do."""
    count = int(np.prod(shape))
    drawn = words(count, bits) >> np.uint64(11) if count else np.zeros(0, dtype=np.uint64)
    return (drawn.astype(np.float64) + 0.5).reshape(shape) * 2.0**-53


def laplace(shape: tuple[int, ...], scale: float, bits: Bits) -> Floats:
    """Discrete Laplace noise: the difference of two geometric numbers."""
    first, second = (np.floor(-scale * np.log(uniforms(shape, bits))) for _ in range(2))
    return np.asarray(first - second)


def poisson(means: Floats, draws: int, bits: Bits) -> Floats:
    """`draws` tables of independent Poisson numbers with these means."""
    u, angle = uniforms((2, draws, *means.shape), bits)
    normal = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * angle)
    drawn = np.rint(means + np.sqrt(means) * normal)
    for place in np.argwhere(means <= EXACT_TO):
        mean = means[tuple(place)]
        count = np.arange(int(mean + 12 * np.sqrt(mean)) + 30)
        chance = np.cumsum(np.exp(-mean + count * np.log(max(mean, 1e-300)) - _log_factorials(len(count))))
        drawn[:, *place] = np.searchsorted(chance, u[:, *place])
    return np.asarray(drawn)


def _log_factorials(count: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count)))])
