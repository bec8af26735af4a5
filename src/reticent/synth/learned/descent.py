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
SIMULATED = 1 << 16
ROUNDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a chain is trained. Constants chosen on one public table; see the decision on learned synthesizers.

    A line of weights is learned from the respondents who gave its answer, so its gradient is small where these are few.
    Steps are therefore divided by the share of every two answers, as far as `least` allows: nearly as Newton's method does
    for common answers, and much less for rare ones, whose gradients are mostly noise.

    Parameters
    ----------
    steps : how many noisy gradients are taken
    rate : how far a step goes where the noise is `noise`; the less noise there is, the farther
    noise : the noise of the mean gradient over all steps at which the rate was chosen
    least : what is added to the share of two answers before it divides
    momentum : which share of the last direction is kept
    averaged : which share of the steps, the last ones, the weights are averaged over
    """

    steps: int = 60
    rate: float = 4.0
    noise: float = 1.8e-4
    least: float = 0.1
    momentum: float = 0.5
    averaged: float = 0.5

    def rate_at(self, noise: float) -> float:
        """The rate for a mean gradient with this noise: noise adds up with the steps' length, and so does what is learned."""
        return float(np.clip(self.rate * (self.noise / noise) ** (2 / 3), self.rate / 8, 3 * self.rate))


def descend(noisy: Noisy, scale: Floats, start: Floats, rate: float, pace: Pace) -> Floats:
    """The averaged weights after all steps of `noisy` mean gradients, each number times its own `scale`."""
    weights, direction = start.copy(), np.zeros_like(start)
    kept, summed = max(1, int(pace.steps * pace.averaged)), np.zeros_like(start)
    for left in range(pace.steps, 0, -1):
        mean = noisy(np.rint(weights * GRID).astype(np.int64))
        direction = pace.momentum * direction + (1 - pace.momentum) * mean
        weights = np.clip(weights - rate * scale * direction, -FARTHEST, FARTHEST)
        if left <= kept:
            summed += weights
    return summed / kept


def scales(layout: ChainLayout, shares: Sequence[Floats], least: float) -> Floats:
    """For every weight one over the share of its two answers, were columns independent; none for biases."""
    found = np.zeros(layout.parameters)
    for place, share in enumerate(shares):
        block = layout.block(found, place)
        for given in range(place):
            block[layout.lines(given)] = 1 / (np.outer(shares[given], share) + least)
    return found


def levelled(layout: ChainLayout, gradient: Floats) -> Floats:
    """The same with lines that add up to zero, as they do before the noise: chances less the row's own cell add up to it."""
    made = gradient.copy()
    for place in range(len(layout.sizes)):
        block = layout.block(made, place)
        block -= block.mean(axis=1, keepdims=True)
    return made


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
        shift = shifted(odds, np.maximum(share, LEAST), ROUNDS)
        block[-1] += shift
        rows[:, place] = drawn(odds * np.exp(shift), bits)
    return made


def logits(layout: ChainLayout, block: Floats, rows: Whole, place: int) -> Floats:
    """For every row the logits of one column, less the largest of the row."""
    found = np.repeat(block[-1][None, :], len(rows), axis=0)
    for given in range(place):
        found += block[layout.lines(given)][rows[:, given]]
    return np.asarray(found - found.max(axis=1, keepdims=True))


def shifted(odds: Floats, share: Floats, rounds: int) -> Floats:
    """What has to be added to the bias so that the mean chances are `share`: a few rounds of proportional fitting."""
    factor = np.ones(len(share))
    for _ in range(rounds):
        mean = factor * ((1 / (odds @ factor)) @ odds) / len(odds)
        factor *= np.clip(share / np.maximum(mean, LEAST), 0.1, 10.0)
    return np.asarray(np.log(factor))
