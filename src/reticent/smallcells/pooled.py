"""The pooled envelope: Laplace noise of a public scale, chi / (n + 1), from noisy counts and a noisy chi.

It promises (epsilon, delta). What it gives for the delta is a noise that every reader knows exactly.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from flint import ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.noise.bits import Bits
from reticent.noise.vector import draw_laplace, draw_laplace_each
from reticent.refine.quantiles import laplace_half_width
from reticent.smallcells.ladder import largest_of, pooled_bounds
from reticent.smallcells.points import GridPoints
from reticent.smallcells.readings import CellReadings
from reticent.smallcells.table import Estimand, noisy_counts, steps_of

FINENESS = 256
"""ln chi is told in units of beta / 256."""

_PRECISIONS = (64, 128, 256, 512, 1024, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledCells:
    """The public numbers of one table. Estimates of cells whose noisy count is below `least` are withheld.

    `epsilon` is for the estimates, `count_epsilon` for the counts, `noise_epsilon` for chi, whose bound may drift by
    beta = noise_epsilon / m. Half of delta is that a count comes out too high, half that chi comes out too low.
    """

    aim: Estimand
    epsilon: Fraction
    count_epsilon: Fraction
    noise_epsilon: Fraction
    delta: Fraction
    least: int
    m: int = 8

    def __post_init__(self) -> None:
        for name in ("epsilon", "count_epsilon", "noise_epsilon"):
            if getattr(self, name) <= 0:
                raise PlanError("it must be positive.", field=name)
        if not 0 < self.delta < 1:
            raise PlanError("it must lie between 0 and 1.", field="delta")
        if self.least < 0 or self.m < 1:
            raise PlanError("it must not be negative.", field="least" if self.least < 0 else "smoothness")

    @property
    def beta(self) -> Fraction:
        """How fast chi may drift."""
        return self.noise_epsilon / self.m

    @property
    def cost(self) -> Fraction:
        """What the whole table costs in epsilon; delta comes on top."""
        return self.epsilon + self.count_epsilon + self.noise_epsilon

    @property
    def grid(self) -> Fraction:
        """The unit in which ln chi is told."""
        return self.beta / FINENESS

    @property
    def chi_scale(self) -> Fraction:
        """The scale of the noise on ln chi, in units: one respondent moves it by at most 256 of them."""
        return FINENESS / self.noise_epsilon

    @property
    def count_margin(self) -> int:
        """What is taken off a noisy count: with chance at most delta / 2 its noise was more."""
        return laplace_half_width(1 / self.count_epsilon, 1 - self.delta)

    @property
    def chi_margin(self) -> int:
        """What is added to the noisy ln chi, in units: with chance at most delta / 2 its noise was lower."""
        return laplace_half_width(self.chi_scale, 1 - self.delta)

    def measure(self, points: GridPoints, *, bits: Bits) -> "PooledTable":
        """Noisy counts, a noisy chi, and the noisy estimate of every cell that is not withheld.

        Guarantee   (`cost`, `delta`)-DP for the whole table.
        Adjacency   one point added to or removed from one cell.
        Theorem     THEORY 8.5.
        Proof       proofs/smallcells/pooled.md
        Assumes     the cells, the aim and every other field are public.
        Keeps back  chi before its noise, and the estimates before theirs.
        """
        return self.noised(self.read(points), bits=bits)

    def read(self, points: GridPoints) -> CellReadings:
        """The estimate of every cell in whole steps, and its part in chi, whether or not it will count. Private."""
        steps, bounds = steps_of(points, self.aim), pooled_bounds(points, self.aim, beta=self.beta)
        return CellReadings(sizes=points.sizes, steps=np.array(steps, object), bounds=bounds)

    def noised(self, read: CellReadings, *, bits: Bits) -> "PooledTable":
        """What `measure` gives, from what was read off the points of all cells."""
        counts = noisy_counts(read.sizes, epsilon=self.count_epsilon, bits=bits)
        is_left_out = np.array([count < self.least for count in counts], np.bool_)
        bound = largest_of(read.bounds, is_left_out)
        (noise,) = draw_laplace(1, scale=self.chi_scale, bits=bits)
        chi = self.chi_of(log_above(Fraction(bound), self.grid) + noise)
        kept = [g for g, is_withheld in enumerate(is_left_out) if not is_withheld]
        noises = draw_laplace_each([self.scale(counts[g], chi) for g in kept], bits=bits)
        noisy = dict(zip(kept, noises, strict=True))
        told = [step + noisy[g] if g in noisy else None for g, step in enumerate(read.steps.tolist())]
        return PooledTable(asked=self, counts=counts, chi=chi, steps=told)

    def chi_of(self, told: int) -> int:
        """The published chi in steps, from the noisy unit of ln chi: a margin higher, and rounded up."""
        with ctx.workprec(128):
            mantissa, exponent = ball(self.grid * (told + self.chi_margin)).exp().upper().man_exp()
        return max(1, math.ceil(int(mantissa) * Fraction(2) ** int(exponent)))

    def scale(self, count: int, chi: int) -> Fraction:
        """The scale of the noise on an estimate, in steps, from a noisy count and the published chi."""
        size = max(0, count - self.count_margin)
        return min(Fraction(self.aim.steps), Fraction(chi, size + 1)) / self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledTable:
    """What leaves: counts, chi in steps, and a whole number of steps per cell, None where it is withheld."""

    asked: PooledCells
    counts: list[int] = field(repr=False)
    chi: int
    steps: list[int | None] = field(repr=False)

    def estimates(self) -> list[Fraction | None]:
        """The noisy estimates, exactly."""
        return [None if step is None else self.asked.aim.value(step) for step in self.steps]

    def scales(self) -> list[Fraction]:
        """The scale of each cell's noise in steps: public."""
        return [self.asked.scale(count, self.chi) for count in self.counts]

    def noise_variance(self) -> list[float]:
        """The variance of each cell's noise: 2 r / (1 - r)^2 steps for r = e^(-1/scale)."""
        step = float(self.asked.aim.step)
        return [step**2 / (2 * math.sinh(1 / (2 * float(scale))) ** 2) for scale in self.scales()]

    def half_widths(self, level: Fraction) -> list[float]:
        """Half of each interval, half a step for the rounding of the estimate included."""
        step = self.asked.aim.step
        of = {s: float((laplace_half_width(s, level) + Fraction(1, 2)) * step) for s in set(self.scales())}
        return [of[scale] for scale in self.scales()]


def log_above(value: Fraction, grid: Fraction) -> int:
    """ceil(ln(value) / grid), decided exactly. ln of a rational other than 1 is irrational, so precision decides."""
    if value == 1:
        return 0
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            place = (ball(value).log() / ball(grid)).ceil().unique_fmpz()
            if place is not None:
                return int(place)
    raise PlanError("chi could not be placed on its grid; choose a coarser one.", field="noise_epsilon")
