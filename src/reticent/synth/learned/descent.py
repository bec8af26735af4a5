"""Gradient descent on noisy sums: momentum, averaging, and biases that meet the noisy columns. Public throughout.

Rows are met through `noisy` alone, which gives the sum of clipped gradients with its noise. Everything here is a function
of such sums, of released tables and of the plan, so it costs nothing beyond them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.noise.bits import Bits
from reticent.synth.base import Floats
from reticent.synth.learned.gradient import GRID, ChainLayout, Whole
from reticent.synth.learned.model import drawn

Noisy = Callable[[Whole], Floats]
"""Weights on the grid to the noisy sum of gradients at them, none of which is longer than one."""

FARTHEST = 30.0
"""Weights are kept this near to zero: beyond it a chance is below what the table of exponentials tells apart."""
LEAST = 1e-6
SIMULATED = 1 << 15
ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a chain is trained. Constants chosen on one public table; see the decision on learned synthesizers.

    Parameters
    ----------
    steps : how many noisy gradients are taken
    rate : how far a mean gradient of length one moves the weights, once momentum has gathered
    momentum : which share of the last direction is kept
    decay : which share of every weight is given up in a step, biases excepted: what the data do not hold up falls to zero
    averaged : which share of the steps, the last ones, the weights are averaged over
    """

    steps: int = 60
    rate: float = 30.0
    momentum: float = 0.5
    decay: float = 0.005
    averaged: float = 0.5


def descend(noisy: Noisy, layout: ChainLayout, start: Floats, rows: float, pace: Pace) -> Floats:
    """The averaged weights after all steps; `rows` is the noisy number of respondents, which a mean is taken over."""
    held = np.where(layout.is_bias, 1.0, 1.0 - pace.decay)
    weights, direction = start.copy(), np.zeros_like(start)
    kept, summed = int(pace.steps * pace.averaged), np.zeros_like(start)
    for left in range(pace.steps, 0, -1):
        mean = noisy(np.rint(weights * GRID).astype(np.int64)) / rows
        direction = pace.momentum * direction + (1 - pace.momentum) * mean
        weights = np.clip(held * (weights - pace.rate * direction), -FARTHEST, FARTHEST)
        if left <= kept:
            summed += weights
    return summed / kept


def starting(layout: ChainLayout, shares: Sequence[Floats]) -> Floats:
    """No column depends on another, and each has its noisy shares."""
    weights = np.zeros(layout.parameters)
    for place, share in enumerate(shares):
        layout.block(weights, place)[-1] = np.log(np.maximum(share, LEAST))
    return weights


def calibrated(layout: ChainLayout, weights: Floats, shares: Sequence[Floats], bits: Bits) -> Floats:
    """The same weights with biases under which columns have the noisy `shares`, once earlier columns are drawn."""
    made = weights.copy()
    rows = np.zeros((SIMULATED, len(shares)), dtype=np.int64)
    for place, share in enumerate(shares):
        block = layout.block(made, place)
        odds = np.exp(logits(layout, block, rows, place))
        shift = shifted(odds, np.maximum(share, LEAST))
        block[-1] += shift
        rows[:, place] = drawn(odds * np.exp(shift), bits)
    return made


def logits(layout: ChainLayout, block: Floats, rows: Whole, place: int) -> Floats:
    """For every row the logits of one column, less the largest of the row."""
    found = np.repeat(block[-1][None, :], len(rows), axis=0)
    for given in range(place):
        found += block[layout.lines(given)][rows[:, given]]
    return np.asarray(found - found.max(axis=1, keepdims=True))


def shifted(odds: Floats, share: Floats) -> Floats:
    """What has to be added to the bias so that the mean chances are `share`: a few rounds of proportional fitting."""
    factor = np.ones(len(share))
    for _ in range(ROUNDS):
        chances = odds * factor
        mean = (chances / chances.sum(axis=1, keepdims=True)).mean(axis=0)
        factor *= np.clip(share / np.maximum(mean, LEAST), 0.1, 10.0)
    return np.asarray(np.log(factor))
