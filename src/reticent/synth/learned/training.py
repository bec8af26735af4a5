"""Training by noisy sums: what a step costs, optimisers, and the effort that a preview foretells. Public, but for `NoisySteps`.

Rows are met through `NoisySteps` alone: it asks the engine for a sum of clipped gradients, pays for it and adds the noise
in one call. All else here is a function of such sums.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

import numpy as np

from reticent.engine.protocol import RowSum
from reticent.errors import PlanError
from reticent.exact import show
from reticent.privacy.renyi import multiplier_within
from reticent.synth.base import Counts, Floats, Spend, Step
from reticent.synth.spending import Accountant

HALF, MOST_STEPS = Fraction(1, 2), 100_000


@dataclass(slots=True, kw_only=True)
class NoisySteps:
    """Sums of clipped gradients with their noise, `steps` of them, each paid from `accountant` before a row is read.

    Guarantee   all calls together cost `amount` of the budget: zCDP, in equal parts.
    Adjacency   that of the budget.
    Theorem     the Gaussian mechanism on a sum of vectors of bounded length; adaptive composition of zCDP.
    Proof       proofs/synth/learned/training.md
    Assumes     a record moves the sum of `work` by a whole vector no longer than `length`.
    Keeps back  the sums before the noise.

    Parameters
    ----------
    rows : the rows, in the engine
    accountant : what is paid from
    amount : what all steps cost together
    steps : how many there are
    length : how far one record moves a sum, in its own steps
    step : told after each, for a progress bar
    """

    rows: Counts = field(repr=False)
    accountant: Accountant
    amount: Fraction
    steps: int
    length: int
    step: Step

    @property
    def deviation(self) -> float:
        """That of every number's noise in a step, in records of full length."""
        return noise_of(self.steps, self.amount, self.accountant.spend)

    def noisy(self, work: RowSum) -> Floats:
        """The noisy sum, in units in which one record's vector is no longer than one."""
        summed = self.rows.summed(work)
        self.step("gradient")
        return self.accountant.add(summed, length=self.length, amount=self.amount / self.steps) / self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSample:
    """Which records a step looks at: each by a coin of its own, of chance `rate`, in each of `steps` steps."""

    rate: Fraction
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.rate <= HALF:
            raise PlanError(
                f"the rate is {show(self.rate)}, but lies above 0 and at most at 0.5; leave sampling out, and all rows are in "
                "every step",
                field="sampling",
            )
        if not 1 <= self.steps <= MOST_STEPS:
            raise PlanError(f"has 1 to {MOST_STEPS:,} steps", field="sampling")


@dataclass(slots=True, kw_only=True)
class SampledSteps:
    """Noisy sums of clipped gradients over Poisson samples. What `spent` of the budget bought before composes with them.

    Guarantee   with all that the budget bought before, `spend.epsilon` and `spend.delta`.
    Adjacency   one record added or removed.
    Theorem     Mironov, Talwar and Zhang 2019, theorem 5; composition of Rényi divergences.
    Proof       proofs/synth/learned/training.md
    Assumes     a record moves the sum of `work` by a whole vector no longer than `length`; a respondent has one record.
    Keeps back  the sums before the noise, who was drawn, and how many.

    Parameters
    ----------
    rows : the rows, in the engine
    accountant : what the tables before were paid from; the rest of it is set aside
    sample : rate and number of steps
    length : how far one record moves a sum, in its own steps
    step : told after each, for a progress bar
    """

    rows: Counts = field(repr=False)
    accountant: Accountant
    sample: PoissonSample
    length: int
    step: Step
    multiplier: Fraction = field(init=False)
    taken: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.multiplier = sampled_multiplier(self.accountant.spend, self.sample, self.accountant.set_aside())

    @property
    def deviation(self) -> float:
        """That of every number's noise in a step, in records of full length."""
        return float(self.multiplier)

    def noisy(self, work: RowSum) -> Floats:
        """The noisy sum over a fresh sample, in units in which one record's vector is no longer than one."""
        if self.taken == self.sample.steps:
            raise PlanError("this step would spend more than was set aside; ask for less.", field="epsilon")
        self.taken += 1
        summed = self.rows.sampled_sum(work, self.sample.rate, self.accountant.noise.bits)
        self.step("gradient")
        made = self.accountant.noise.gaussian_many(
            summed.tolist(), sensitivity=self.length, rho=1 / (2 * self.multiplier**2)
        )
        return np.array(made, np.float64) / self.length


def noise_of(steps: int, amount: Fraction, spend: Spend) -> float:
    """The deviation of each number's noise in one of so many steps for that amount, in respondents of full length."""
    return spend.neighbours.steps * sqrt(steps / (2 * float(amount)))


def sampled_multiplier(spend: Spend, sample: PoissonSample, before: Fraction) -> Fraction:
    """The noise of each step, in lengths of a record, where `before` of rho was spent on tables; refused from public words."""
    if spend.rho or not spend.delta:
        raise PlanError("is counted in epsilon and delta; give both, and no rho", field="sampling")
    if spend.neighbours.steps != 1:
        raise PlanError(
            "is known to hide one record that comes or goes: not an answer that is replaced, nor several records of one "
            "respondent, as many as there are of rows that donors filled; leave it out",
            field="sampling",
        )
    return multiplier_within(
        epsilon=spend.epsilon, delta=spend.delta, rho=before, steps=sample.steps, rate=sample.rate
    )


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
