"""Training by noisy sums: what a step costs, optimisers, and the effort that a preview foretells. Public, but for `NoisySteps`.

Rows are met through `NoisySteps` alone: it asks the engine for a sum of clipped gradients, pays for it and adds the noise
in one call. All else here is a function of such sums.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from reticent.engine.protocol import RowSum
from reticent.synth.base import Counts, Floats, Step
from reticent.synth.spending import Accountant


@dataclass(slots=True, kw_only=True)
class NoisySteps:
    """Sums of clipped gradients with their noise, `steps` of them, each paid from `purse` before a row is read.

    Guarantee   all calls together cost `amount` of the purse: zCDP, in equal parts.
    Adjacency   that of the purse.
    Theorem     the Gaussian mechanism on a sum of vectors of bounded length; adaptive composition of zCDP.
    Proof       proofs/synth/learned/training.md
    Assumes     a record moves the sum of `work` by a whole vector no longer than `length`.
    Keeps back  the sums before the noise.

    Parameters
    ----------
    rows : the rows, in the engine
    purse : what is paid from
    amount : what all steps cost together
    steps : how many there are
    length : how far one record moves a sum, in its own steps
    step : told after each, for a progress bar
    """

    rows: Counts = field(repr=False)
    purse: Accountant
    amount: Fraction
    steps: int
    length: int
    step: Step

    def noisy(self, work: RowSum) -> Floats:
        """The noisy sum, in units in which one record's vector is no longer than one."""
        summed = self.rows.summed(work)
        self.step("gradient")
        return self.purse.add(summed, length=self.length, amount=self.amount / self.steps) / self.length


@dataclass(slots=True)
class Adam:
    """Kingma and Ba 2015: steps of even size, from running means of a gradient and of its square."""

    rate: float
    first: float = 0.9
    second: float = 0.999
    taken: int = 0
    mean: Floats = field(default_factory=lambda: np.zeros(1), repr=False)
    square: Floats = field(default_factory=lambda: np.zeros(1), repr=False)

    def moved(self, values: Floats, gradient: Floats) -> Floats:
        """The values one step downhill."""
        self.taken += 1
        self.mean = self.first * self.mean + (1 - self.first) * gradient
        self.square = self.second * self.square + (1 - self.second) * gradient * gradient
        mean = self.mean / (1 - self.first**self.taken)
        square = self.square / (1 - self.second**self.taken)
        return np.asarray(values - self.rate * mean / (np.sqrt(square) + 1e-8))


@dataclass(slots=True)
class Momentum:
    """A share `kept` of the last direction is kept in each step."""

    rate: float
    kept: float = 0.5
    direction: Floats = field(default_factory=lambda: np.zeros(1), repr=False)

    def moved(self, values: Floats, gradient: Floats) -> Floats:
        """The values one step downhill."""
        self.direction = self.kept * self.direction + (1 - self.kept) * gradient
        return np.asarray(values - self.rate * self.direction)
