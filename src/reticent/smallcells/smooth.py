"""The smooth cell mechanism: one estimate for every cell, each with noise scaled to its own smooth bound.

A respondent stands in one cell, so the whole table costs what one cell costs. What the noise was scaled to stays
confidential; a noise level may be bought, from which a reader gets intervals and the variance of the noise.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise import calibrate
from reticent.noise.bits import Bits
from reticent.noise.vector import add_lomax_many, draw_laplace
from reticent.refine.pivot import Pivot, pivot
from reticent.sensitivity.bounds import Smooth
from reticent.smallcells.ladder import smooth_bounds
from reticent.smallcells.points import GridPoints
from reticent.smallcells.readings import CellReadings
from reticent.smallcells.table import Estimand, steps_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothCells:
    """The public numbers of one table. beta is epsilon / m; without `noise_epsilon` no noise level is bought."""

    aim: Estimand
    epsilon: Fraction
    m: int = 8
    noise_epsilon: Fraction | None = None
    level: Fraction = Fraction(95, 100)

    def __post_init__(self) -> None:
        calibrate.lomax(epsilon=self.epsilon, beta=self.beta)  # refuses what no Lomax noise can carry
        if self.noise_epsilon is not None:
            _ = self.pivot

    @property
    def beta(self) -> Fraction:
        """How fast the bounds may drift."""
        return self.epsilon / self.m

    @property
    def cost(self) -> Fraction:
        """What the whole table costs: the estimates, and the noise level where it is bought."""
        return self.epsilon + (self.noise_epsilon or 0)

    @property
    def pivot(self) -> Pivot:
        """The law of an error measured in noise levels."""
        if self.noise_epsilon is None:
            raise PlanError("an interval needs it; the scale is confidential.", field="noise_epsilon")
        return pivot(epsilon=self.epsilon, beta=self.beta, epsilon_scale=self.noise_epsilon, level=self.level)

    def measure(self, points: GridPoints, *, bits: Bits) -> "SmoothTable":
        """The noisy estimate of every cell in whole steps, and its noise level where one is bought.

        Guarantee   `cost`-DP for the whole table.
        Adjacency   one point added to or removed from one cell.
        Theorem     THEORY 8.4 and 3.5a; parallel composition.
        Proof       proofs/smallcells/smooth.md
        Assumes     the cells, the aim and every other field are public.
        Keeps back  the bounds, and the estimates before their noise.
        """
        return self.noised(self.read(points), bits=bits)

    def read(self, points: GridPoints) -> CellReadings:
        """The estimate of every cell in whole steps, and its bound. Private."""
        steps, bounds = steps_of(points, self.aim), smooth_bounds(points, self.aim, beta=self.beta)
        return CellReadings(sizes=points.sizes, steps=np.array(steps, object), bounds=bounds)

    def noised(self, read: CellReadings, *, bits: Bits) -> "SmoothTable":
        """What `measure` gives, from what was read off the points of all cells."""
        noisy = add_lomax_many(
            read.steps.tolist(), bounds=read.bounds, beta=self.beta, epsilon=self.epsilon, bits=bits
        )
        levels = None if self.noise_epsilon is None else self._levels(read.bounds, bits)
        return SmoothTable(asked=self, steps=noisy, levels=levels)

    def _levels(self, bounds: Floats, bits: Bits) -> list[int]:
        """round(ln S / grid) of every cell, with discrete Laplace noise."""
        law = self.pivot
        smooth = (Smooth(bound=Fraction(float(bound)), beta=self.beta) for bound in bounds)
        noise = draw_laplace(len(bounds), scale=law.scale, bits=bits)
        return [law.height(each) + more for each, more in zip(smooth, noise, strict=True)]

    def sd_of(self, size: int) -> float:
        """The standard deviation of the noise in a cell of `size` evenly spread points. No row is read."""
        bound = float(smooth_bounds(even_cell(size), self.aim, beta=self.beta)[0])
        return bound * float(self.aim.step) * math.sqrt(self.unit_variance)

    @property
    def unit_variance(self) -> float:
        """The variance of X/a."""
        a = calibrate.lomax(epsilon=self.epsilon, beta=self.beta)
        return float(Fraction(2, (self.m - 1) * (self.m - 2)) / a**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothTable:
    """What leaves: a whole number of steps per cell, and of grid units of ln S where a noise level was bought."""

    asked: SmoothCells
    steps: list[int] = field(repr=False)
    levels: list[int] | None = field(repr=False)

    def estimates(self) -> list[Fraction]:
        """The noisy estimates, exactly; they may lie outside the range, and clamping them is free."""
        return [self.asked.aim.value(step) for step in self.steps]

    def half_widths(self) -> Floats:
        """Half of each interval: it covers the cell's estimate, kept within the range, with at least `level`.

        One step more than the pivot's: half for the rounding of the estimate, half for that of the noise.
        """
        law = self.asked.pivot
        return (law.factor() * self._scales(1.0) + 1.0) * float(self.asked.aim.step)

    def noise_variance(self) -> Floats:
        """An estimate of the variance of each cell's noise, unbiased up to a factor within e^(+-grid) of its pivot.

        e^(2 psi) over E e^(2 L), times Var(X)/a^2. There is none for a noise level bought so cheaply that E e^(2 L)
        has no value: not a number then.
        """
        growth = _growth(self.asked.pivot)
        return self._scales(2.0) * (self.asked.unit_variance / growth * float(self.asked.aim.step) ** 2)

    def _scales(self, power: float) -> Floats:
        law = self.asked.pivot
        told = np.array(self.levels or [], dtype=np.float64)
        return np.asarray(np.exp(np.minimum(power * float(law.grid) * told, 700.0)))


def _growth(law: Pivot) -> float:
    """E e^(2 grid N) of the discrete Laplace noise N on a noise level: two geometric series."""
    rate, turn = float(1 / law.scale), 2 * float(law.grid)
    if not 2 * law.grid * law.scale < 1:
        return math.nan
    both = 1 / -math.expm1(turn - rate) + 1 / -math.expm1(-turn - rate) - 1
    return math.tanh(rate / 2) * both


def even_cell(size: int) -> GridPoints:
    """One cell of evenly spread points, y by turns 0 and 1: what a preview assumes."""
    last = max(1, size - 1)
    places = np.arange(size, dtype=np.int64)
    return GridPoints(starts=np.array([0, size]), x=places, y=places % 2, x_steps=last, y_steps=1)
