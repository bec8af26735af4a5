"""Error bars when the noise scale is confidential: a noisy logarithm of the scale, and a quantile that knows it.

The smooth bound S may not be printed. ln S moves by at most beta between neighbours, so the integer
round(ln S / grid), noised with discrete Laplace noise at a cost of its own, may. The error of the answer,
divided by the noisy scale, is (X/a) e^-L up to the rounding: a law free of the data, whose quantile we know.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.noise.calibrate import lomax
from reticent.refine.quantiles import falling_root
from reticent.sensitivity.bounds import Global, Smooth

_PRECISIONS = (64, 128, 256, 512, 1024, 4096)
_FINENESS = 256
_WIDEST = 2**17  # steps of the noise on a height; beyond them a bar spans dozens of orders of magnitude
_FORGOTTEN = 1e-16
_Law = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """The public parameters of one error bar: Lomax noise at epsilon with bounds smooth in beta, a grid for ln S.

    epsilon and beta are for one record; `epsilon_scale` pays for neighbours who differ in `steps` of them. Where
    the height of another ask's bound is used, `lent` is the beta of that one, at most this one's.
    """

    epsilon: Fraction
    beta: Fraction
    epsilon_scale: Fraction
    level: Fraction
    grid: Fraction
    steps: int = 1
    lent: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "beta", "epsilon_scale", "grid", "steps"):
            if not getattr(self, name) > 0:
                raise PlanError(f"it is {getattr(self, name)}, but must be positive.", field=name)
        if not 0 < self.level < 1:
            raise PlanError(f"it is {self.level}, but must lie between 0 and 1.", field="level")
        lomax(
            epsilon=self.epsilon, beta=self.beta
        )  # refuses what no Lomax noise can carry, while it is early
        if not 0 < self.smooth_in <= self.beta:
            raise PlanError(f"it is {self.lent}, but at most {self.beta} is of use here.", field="lent")
        if self.smooth_in / self.grid > 10**4:
            raise PlanError(f"it is {self.grid}; a grid below beta/10000 gains nothing.", field="grid")
        if self.scale > _WIDEST:
            least = float(self.sensitivity.bound / _WIDEST)
            raise PlanError(
                f"{float(self.epsilon_scale):.2g} for the error bar of one part blurs it beyond use, and sums too long to "
                f"be taken; give the error bar more: {least:.2g} for each part, or leave it out.",
                field="epsilon_scale",
            )

    @property
    def a(self) -> Fraction:
        return lomax(epsilon=self.epsilon, beta=self.beta)

    @property
    def smooth_in(self) -> Fraction:
        """The beta of the bound whose height is released."""
        return self.beta if self.lent is None else self.lent

    @property
    def sensitivity(self) -> Global:
        """How far one respondent moves round(ln S / grid): ceil(steps beta/grid), and one to spare."""
        return Global(bound=Fraction(math.ceil(self.steps * self.smooth_in / self.grid) + 1))

    @property
    def spread(self) -> float:
        """The scale of the noise on ln S itself."""
        return float(self.grid * self.scale)

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noise on round(ln S / grid)."""
        return self.sensitivity.bound / self.epsilon_scale

    def height(self, smooth: Smooth) -> int:
        """round(ln S / grid) by the rule floor(x + 1/2), decided exactly. Private until noised.

        Guarantee   adding discrete Laplace noise of `scale` to it is epsilon_scale-DP.
        Adjacency   the one the smooth bound was proved for.
        Theorem     THEORY 3.5a.
        Proof       proofs/refine/pivot.md
        Assumes     smooth.beta is the beta the height was planned for.
        Keeps back  the height itself.
        """
        if smooth.beta != self.smooth_in:
            raise PlanError(
                f"it is {smooth.beta}, but the error bar was planned for {self.smooth_in}.", field="beta"
            )
        return _rounded_log(smooth.bound, self.grid)

    def miss(self, t: float) -> float:
        """The chance that |X| e^(-grid N)/a exceeds t: sum over n of P(N = n)(1 + a t e^(grid n))^-m."""
        return _miss(t, self._law(), m=int(self.epsilon / self.beta))

    def _law(self) -> _Law:
        """a e^(grid n) and P(N = n) for the n that matter."""
        n, weight = _discrete_laplace(float(1 / self.scale))
        return float(self.a) * np.exp(np.clip(float(self.grid) * n, -700.0, 700.0)), weight

    def factor(self) -> float:
        """Q: the half-width is Q e^(grid k) with k the released integer. It covers with at least `level`.

        S e^(-grid round(ln S / grid)) lies within e^(-grid/2) and e^(grid/2), whatever S is, so the quantile is
        widened by e^(grid/2); the last factor covers the rounding of this sum.
        """
        return _factor(self)

    def half_width(self, released: int) -> float:
        """Half the interval around the noisy answer, from the released integer alone."""
        return self.factor() * math.exp(min(float(self.grid) * released, 700.0))


@lru_cache(maxsize=256)
def _factor(bar: Pivot) -> float:
    law, m = bar._law(), int(bar.epsilon / bar.beta)
    quantile = falling_root(lambda t: _miss(t, law, m=m), float(1 - bar.level), start=1.0)
    return quantile * math.exp(float(bar.grid) / 2) * (1 + 1e-9)


def pivot(
    *, epsilon: Fraction, beta: Fraction, epsilon_scale: Fraction, level: Fraction, steps: int = 1
) -> Pivot:
    """The pivot on the usual grid, beta/256, where rounding widens a bar by less than one part in 200."""
    return Pivot(
        epsilon=epsilon,
        beta=beta,
        epsilon_scale=epsilon_scale,
        level=level,
        grid=beta / _FINENESS,
        steps=steps,
    )


def _miss(t: float, law: _Law, *, m: int) -> float:
    scale, weight = law
    return float(np.sum(weight * np.exp(-m * np.log1p(scale * t))))


def _discrete_laplace(rate: float) -> _Law:
    """The values n that matter and P(N = n), proportional to e^(-rate |n|); what is cut off misses, to be safe."""
    reach = math.ceil(-math.log(_FORGOTTEN) / rate) + 1
    n = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-rate * np.abs(n)) * math.tanh(rate / 2)
    weight[0] += max(0.0, 1.0 - float(np.sum(weight)))
    return n, weight


def _rounded_log(value: Fraction, grid: Fraction) -> int:
    """floor(ln(value)/grid + 1/2). ln of a rational other than 1 is irrational, so precision decides."""
    if value == 1:
        return 0
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            place = (ball(value).log() / ball(grid) + arb(1) / 2).floor().unique_fmpz()
            if place is not None:
                return int(place)
    raise PlanError("the scale could not be placed on its grid; choose a coarser one.", field="grid")
