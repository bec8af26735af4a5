"""A finished table of small cells: released numbers only, one line for every declared cell, in the order of the codebook.

With it: what is estimated in every cell, on which public scale it is published, and noisy counts of points.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import show
from reticent.noise.bits import Bits
from reticent.noise.vector import draw_laplace
from reticent.privacy.claim import Change
from reticent.schema import Schema
from reticent.smallcells.cells import SmallCells
from reticent.smallcells.estimators import Estimator, Predict, Ratios, estimates
from reticent.smallcells.points import GridPoints, Wholes, moments

COLUMNS = ("cell", "estimate", "noise_variance", "standard_error", "low", "high", "count")
LINE = ("release", "table", *COLUMNS, "level", "method", "guarantee", "meaning")
DECIMALS, FINE = 9, 10.0**9
Number = float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellTable:
    """What a method gives, in the unit square: None where a number is withheld or was not bought.

    `errors` are standard errors of what `meaning` says; `widths` are half-widths of intervals. `epsilon` and `delta` are
    asked of what was run. `chi` is the envelope by group, where it is published.
    """

    estimates: Sequence[Fraction | None] = field(repr=False)
    variances: Sequence[Number] = field(repr=False)
    errors: Sequence[Number] = field(repr=False)
    widths: Sequence[Number] = field(repr=False)
    counts: Sequence[int | None] = field(repr=False)
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    meaning: str
    chi: Mapping[str, Fraction] = field(default_factory=dict)
    count_variance: float | None = None
    unprotected: tuple[str, ...] = ()


def described(cells: SmallCells, made: CellTable, schema: Schema, change: Change) -> dict[str, Any]:
    """The table as it stands in a release, in the units of the columns."""
    claim, label = cells.claim(change), cells.label
    budgets = {
        "estimates": cells.epsilon,
        "counts": cells.count_epsilon,
        "noise level": cells.noise_epsilon,
        "standard errors": cells.error_epsilon,
    }
    return {
        "name": cells.name,
        "words": cells.words(),
        "method": cells.method.value,
        "label": label,
        "unprotected": list(made.unprotected),
        "guarantee": {"words": str(claim), **claim.as_dict()},
        "epsilon": {name: show(budget) for name, budget in budgets.items() if budget},
        "cell": cells.cell,
        "unit": _unit(cells, schema),
        "range": [_nearest(cells.low), _nearest(cells.high)],
        "level": float(cells.level),
        "meaning": made.meaning,
        "chi": {group: _nearest(chi * cells.unit(schema)[1]) for group, chi in made.chi.items()},
        "count_noise_variance": made.count_variance,
        "columns": {"cell": cells.labels(schema), **_columns(cells, made, schema)},
    }


def _unit(cells: SmallCells, schema: Schema) -> str | None:
    """The unit of the estimates: that of y; of a slope, so much of it for one unit of x."""
    unit = schema.columns[cells.y].unit
    return f"{unit or cells.y} per unit of {cells.x}" if cells.estimate.kind == "slope" else unit


def _columns(cells: SmallCells, made: CellTable, schema: Schema) -> dict[str, list[Any]]:
    shift, scale = cells.unit(schema)
    size = float(scale)
    estimates = [None if t is None else shift + scale * t for t in made.estimates]
    ends = [
        (None, None) if t is None or w is None else (_down(t, w * size), _up(t, w * size))
        for t, w in zip(estimates, made.widths, strict=True)
    ]
    return {
        "estimate": [None if t is None else _nearest(t) for t in estimates],
        "noise_variance": [_short(v, size * size) for v in made.variances],
        "standard_error": [_short(e, size) for e in made.errors],
        "low": [low for low, _ in ends],
        "high": [high for _, high in ends],
        "count": list(made.counts),
    }


def lines(table: Mapping[str, Any], release_id: str) -> Iterator[list[Any]]:
    """The lines of one table under `LINE`."""
    guarantee = table["label"] or table["guarantee"]["words"]
    columns = [table["columns"][name] for name in COLUMNS]
    for values in zip(*columns, strict=True):
        yield [
            release_id,
            table["name"],
            *values,
            table["level"],
            table["method"],
            guarantee,
            table["meaning"],
        ]


def rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of one table as dictionaries."""
    columns = [table["columns"][name] for name in COLUMNS]
    return [dict(zip(COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]


def roots(variances: Sequence[Number]) -> list[Number]:
    """Standard deviations."""
    return [None if variance is None else sqrt(variance) for variance in variances]


def finite(values: Sequence[Number]) -> list[Number]:
    """What is no number becomes None."""
    return [None if value is None or not isfinite(value) else float(value) for value in values]


def _nearest(value: Fraction) -> float:
    return round(float(value), DECIMALS)


def _down(value: Fraction, width: float) -> float:
    """The lower end, rounded away."""
    return floor((float(value) - width) * FINE) / FINE


def _up(value: Fraction, width: float) -> float:
    return ceil((float(value) + width) * FINE) / FINE


def _short(value: Number, scale: float) -> Number:
    """Six digits are plenty for an estimate of a variance."""
    return None if value is None else float(f"{value * scale:.6g}")


def noisy_counts(sizes: NDArray[np.int64], *, epsilon: Fraction, bits: Bits) -> list[int]:
    """The size of every cell, empty ones too, with discrete Laplace noise of scale 1 / epsilon; it may be negative.

    Guarantee   epsilon-DP for the whole list.
    Adjacency   one point added to or removed from one cell.
    Theorem     the Laplace mechanism on the integers, in the L1 norm.
    Proof       proofs/smallcells/counts.md
    Assumes     the cells are public.
    Keeps back  nothing more: the scale is public.
    """
    if epsilon <= 0:
        raise PlanError("it must be positive.", field="count_epsilon")
    noise = draw_laplace(len(sizes), scale=1 / Fraction(epsilon), bits=bits)
    return [size + more for size, more in zip(sizes.tolist(), noise, strict=True)]


MOST_STEPS = 1 << 40
MOST_DIGITS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimand:
    """One estimate per cell, kept within [low, high] and published in whole steps from low. All of it is public.

    Units are those of the unit square: y lies in [0, 1], and a slope is theta(1) - theta(0). A cell that has no
    estimate gets the step `fallback`; where that is not said, the one in the middle.
    """

    estimator: Estimator
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    steps: int = 10**6
    fallback: int | None = None

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise PlanError(f"it runs from {self.low} to {self.high}, but must rise.", field="range")
        if not 1 <= self.steps <= MOST_STEPS:
            raise PlanError(f"it is {self.steps}, but must be from 1 to 2^40.", field="steps")
        if not 0 <= self.otherwise <= self.steps:
            raise PlanError(
                f"it is {self.fallback}, but must be a step from 0 to {self.steps}.", field="fallback"
            )
        if isinstance(self.estimator, Predict) and self.estimator.at.denominator > MOST_DIGITS:
            raise PlanError("it has too many digits; a place needs no more than six.", field="predict")

    @property
    def otherwise(self) -> int:
        """The step of a cell that has no estimate."""
        return self.steps // 2 if self.fallback is None else self.fallback

    @property
    def step(self) -> Fraction:
        """The width of a step."""
        return (self.high - self.low) / self.steps

    def value(self, step: int) -> Fraction:
        """The estimate that a released whole number of steps stands for."""
        return self.low + step * self.step


def steps_of(points: GridPoints, aim: Estimand) -> list[int]:
    """The estimate of every cell: exact, rounded half up to a whole step, kept within 0 .. aim.steps. Private."""
    found = estimates(aim.estimator, moments(points))
    return [int(step) for step in np.where(found.is_defined, _nearest_steps(found, aim), aim.otherwise)]


def _nearest_steps(found: Ratios, aim: Estimand) -> Wholes:
    # (top/bottom - low)/step + 1/2, over one denominator; an undefined estimate is replaced by the caller.
    low, step = aim.low, aim.step
    bottom = np.where(found.is_defined, found.bottom, 1)
    over = low.denominator * step.numerator * bottom
    above = (low.denominator * found.top - low.numerator * bottom) * step.denominator
    return np.asarray(np.minimum(np.maximum((2 * above + over) // (2 * over), 0), aim.steps))
