"""Generators of made-up rows, the half of an adversarial network that reads none: all of it comes after the noise.

A generator turns random numbers into logits, these into chances by a softmax for every column, and chances into answers by lot.
It learns from a critic's slope at its rows as if each answer were its chance (the straight-through estimator of Bengio, Léonard
and Courville 2013). Biases of its outputs start at noisy shares of single columns and are set to them again at the end.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from reticent.noise.bits import Bits
from reticent.synth.base import Floats
from reticent.synth.domain import uniforms
from reticent.synth.learned.descent import LEAST
from reticent.synth.learned.onehot import OneHot, Whole
from reticent.synth.learned.perceptron import Perceptron


def normals(rows: int, columns: int, bits: Bits) -> Floats:
    """Standard normal numbers by Box and Muller's formula; for what comes after the noise only."""
    half = -(-rows * columns // 2)
    far = np.sqrt(-2 * np.log1p(-uniforms(half, bits)))
    turn = 2 * np.pi * uniforms(half, bits)
    made = np.concatenate([far * np.cos(turn), far * np.sin(turn)])
    return np.asarray(made[: rows * columns].reshape(rows, columns))


def chances(layout: OneHot, logits: Floats) -> Floats:
    """A softmax for every column."""
    starts, sizes = [part.start for part in layout.parts], layout.sizes
    odds = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts, axis=1), sizes, axis=1))
    sums = np.stack([odds[:, part].sum(axis=1) for part in layout.parts], axis=1)
    return np.asarray(odds / np.repeat(sums, sizes, axis=1))


def answers(layout: OneHot, shares: Floats, bits: Bits) -> Whole:
    """One group for every row and column, by its chances."""
    even = uniforms(len(shares) * len(layout.sizes), bits).reshape(len(shares), -1)
    made = [
        np.minimum((np.cumsum(shares[:, part], axis=1) <= even[:, [j]]).sum(axis=1), layout.sizes[j] - 1)
        for j, part in enumerate(layout.parts)
    ]
    return np.stack(made, axis=1).astype(np.int64)


def softmax_back(layout: OneHot, shares: Floats, slopes: Floats) -> Floats:
    """The slope at the logits, from the slope at the chances."""
    made = shares * slopes
    for part in layout.parts:
        made[:, part] -= shares[:, part] * made[:, part].sum(axis=1, keepdims=True)
    return made


def log_shares(shares: Sequence[Floats]) -> Floats:
    """Biases under which every column has its share."""
    return np.concatenate([np.log(np.maximum(each, LEAST)) for each in shares])


ROUNDS = 8


def met(layout: OneHot, logits: Floats, shares: Sequence[Floats]) -> Floats:
    """What has to be added to the biases so that columns drawn from these logits have their shares on average."""
    wanted, factor = np.maximum(np.concatenate(list(shares)), LEAST), np.ones(layout.width)
    for _ in range(ROUNDS):
        mean = chances(layout, logits + np.log(factor)).mean(axis=0)
        factor *= np.clip(wanted / np.maximum(mean, LEAST), 0.1, 10.0)
    return np.asarray(np.log(factor))


def count_of(*widths: Sequence[int]) -> int:
    """How many numbers perceptrons of these widths have, together."""
    return sum((n + 1) * m for each in widths for n, m in pairwise(each))


def bias_of(network: Perceptron) -> Floats:
    """The biases of the last layer, as a view: what is written there stays."""
    return network.layers(network.values)[-1][1]
