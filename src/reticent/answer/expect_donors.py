"""The noise of an ask that donors' answers enter, as it would be if the busiest donor served so many recipients.

How many recipients a donor serves is read off the rows, so a preview cannot know the scale of smooth noise. It can say
what follows from an assumed number, and the floor: what is left when nobody is missing.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, floor, inf, sqrt

from reticent.answer.parts import Measurement, plan_part
from reticent.answer.shares import SumSpec, is_published, planned
from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Lomax
from reticent.prepare.repair import Repair
from reticent.query.base import RowQuery
from reticent.refine.pivot import Pivot, pivot
from reticent.refine.quantiles import half_width
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.donors import Moves
from reticent.sensitivity.hubs import published_beta

NOBODY = 0
HUBS = (NOBODY, 5, 20, 100)
ASSUMED_HUB = 5
FINITE_VARIANCE = 3  # Cauchy noise has a variance beyond this tail exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedNoise:
    """A part under an assumption: `smooth` is the bound it would have, `bound` the most that one's own row adds."""

    what: str
    bound: Fraction
    smooth: Fraction
    scale: Fraction
    family: Lomax | Cauchy
    pivot: Pivot | None = None

    @property
    def sd(self) -> float:
        """Standard deviation of the noise, in the answer's own unit; infinite where the noise has none."""
        if isinstance(self.family, Cauchy) and self.family.gamma <= FINITE_VARIANCE:
            return inf
        return float(self.scale) * sqrt(float(self.family.variance()))

    def half_width(self, level: Fraction) -> Fraction:
        """Half of the error bar that was bought, at its median; of the noise's own, where none was."""
        if self.pivot is not None:
            return self.smooth * Fraction(replace(self.pivot, level=level).factor())
        return self.scale * Fraction(float(half_width(self.family, level=level)))


def foreseen_parts(
    query: RowQuery,
    epsilon: Fraction,
    bar: Fraction,
    *,
    hub: int,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair,
) -> tuple[Measurement | AssumedNoise, ...]:
    """One part for each sum of the ask, if each filled column's busiest donor served `hub` recipients."""
    shares = planned(query, schema, neighbours, repair)
    sold = sum((share for task, share in shares if task.is_smooth), Fraction(0))
    found: list[Measurement | AssumedNoise] = []
    for task, share in shares:
        if not task.is_smooth:
            found.append(plan_part(task.what, bound=task.bound, grid=task.grid, epsilon=epsilon * share))
            continue
        each = epsilon * share / neighbours.steps
        base, slope = _line(task.moves, hub, schema)
        if is_published(task, repair):
            found.append(_cauchy(task, base + slope * (hub == NOBODY), each))
        else:
            law = _pivot(each, repair.smoothness, bar * share / sold, neighbours) if bar else None
            found.append(_lomax(task, base, slope, each, repair.smoothness, law))
    return tuple(found)


def _line(moves: Moves, hub: int, schema: Schema) -> tuple[Fraction, Fraction]:
    """Base and slope of U_k = c0 + sum of c1 (hub + k), by weight where recipients are weighed."""
    tops = [(c1, schema.coded[ring.weight].high if ring.weight else 1) for ring, c1 in moves.c1]
    slope = sum((c1 * top for c1, top in tops), Fraction(0))
    return moves.c0 + slope * hub, slope


def _lomax(
    task: SumSpec, base: Fraction, slope: Fraction, each: Fraction, m: int, law: Pivot | None
) -> AssumedNoise:
    smooth = highest(base, slope, each / m) * task.grid
    scale = smooth / calibrate.lomax(epsilon=each, beta=each / m)
    return AssumedNoise(
        what=task.what,
        bound=task.moves.c0 * task.grid,
        smooth=smooth,
        scale=scale,
        family=Lomax(m),
        pivot=law,
    )


def highest(base: Fraction, slope: Fraction, beta: Fraction) -> Fraction:
    """max over k of e^(-beta k)(base + slope k), which rises up to k = 1/beta - base/slope; in floating point."""
    top = max(Fraction(0), 1 / beta - base / slope)
    rungs = (floor(top), floor(top) + 1)
    return Fraction(max(exp(-float(beta) * k) * float(base + slope * k) for k in rungs))


def _cauchy(task: SumSpec, bound: Fraction, each: Fraction) -> AssumedNoise:
    """As published: one donee at least, and no ladder."""
    beta = published_beta(each)
    gamma = 1 + each / (2 * beta)
    smooth = bound * task.grid
    scale = smooth / calibrate.cauchy_as_published(epsilon=each, beta=beta, gamma=gamma)
    own = task.moves.c0 * task.grid
    return AssumedNoise(what=task.what, bound=own, smooth=smooth, scale=scale, family=Cauchy(gamma))


def _pivot(each: Fraction, m: int, bar: Fraction, neighbours: Neighbours) -> Pivot:
    half = Fraction(1, 2)  # any level; `half_width` puts in its own
    return pivot(epsilon=each, beta=each / m, epsilon_scale=bar, level=half, steps=neighbours.steps)
