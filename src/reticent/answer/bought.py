"""What an error bar over copies buys: how an answer moves with its lines, rows with gaps, and how far rows are apart."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from reticent.answer.context import Context
from reticent.answer.linear import Copiable, Linear, decided, linear, squares
from reticent.answer.parts import FINE, Measurement, measure_table, plan_part, plan_table
from reticent.engine.results import SufficientStatistics
from reticent.engine.wants import Sum
from reticent.models.uncertainty import Uncertain
from reticent.predicate.tree import columns_compared
from reticent.query.kinds import Mean, Total
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.linear import bound_sum
from reticent.sensitivity.neighbours import Neighbours

GAPS = SQUARES = Fraction(1, 4)
"""Of an error bar's epsilon, for the rows with gaps and for the squares; the steps of the lines get the rest."""

PAGE = "proofs/answer/copied.md"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompletedSums:
    """Sums over all `copies` of the rows, over the rows unfilled, and how sums differ a step up and down each line.

    `apart` has an entry for each direction in which some line is uncertain, line by line: the sums with the line `width`
    standard deviations up, less those with it as far down. `straight` has the same without draws, and `reaches` how far a row's codes
    can then be apart. Confidential but for `copies`, `lines`, `widths` and `reaches`.
    """

    copies: int
    lines: tuple[Uncertain, ...]
    widths: tuple[float, ...]
    total: SufficientStatistics = field(repr=False)
    unfilled: SufficientStatistics = field(repr=False)
    apart: tuple[Mapping[Sum, int], ...] = field(repr=False)
    straight: tuple[Mapping[Sum, int], ...] = field(default=(), repr=False)
    reaches: tuple[Mapping[str, int], ...] = ()
    filled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BarMeasurements:
    """What an error bar bought: the variance that lines give the sum, rows with gaps, squares; all in the sum's unit."""

    parts: tuple[Measurement, ...]
    sampled: float
    heavy: float
    gaps: float
    squares: float


def bar_parts(
    query: Copiable, bar: Fraction, *, directions: int, schema: Schema, neighbours: Neighbours
) -> tuple[Measurement, ...]:
    """What a bar will be made of, from public numbers alone; squares and steps at their largest."""
    shape = linear(query, schema, None)
    bound, shift = _steps_bound([shape.reach] * directions, neighbours)
    made = plan_table(
        "steps of the lines", bound=bound, grid=shape.unit * 2**shift, epsilon=_rest(query) * bar
    )
    one = bound_sum(-1, 1, neighbours=neighbours)
    gaps = plan_part("rows with gaps", bound=one, grid=Fraction(1), epsilon=GAPS * bar)
    parts = [made, gaps]
    if isinstance(query, Total | Mean):
        top = bound_sum(0, shape.farthest**2, neighbours=neighbours)
        parts.append(plan_part("squares", bound=top, grid=shape.unit**2, epsilon=SQUARES * bar))
    return tuple(replace(part, proof=PAGE) for part in parts)


def _rest(query: Copiable) -> Fraction:
    return 1 - GAPS - (SQUARES if isinstance(query, Total | Mean) else 0)


def _steps_bound(reaches: Sequence[int], neighbours: Neighbours) -> tuple[Global, int]:
    """In the L1 norm over all directions, after rounding to steps of 2^shift."""
    exact = max(1, neighbours.steps * sum(reaches))
    shift = max(0, exact.bit_length() - FINE)
    return Global(bound=Fraction(ceil(Fraction(exact, 2**shift)) + (len(reaches) if shift else 0))), shift


def is_straight(query: Copiable, filled: Collection[str]) -> bool:
    """Whether an answer moves with a line as the line does, draws or not: means and totals among rows that are fixed."""
    return isinstance(query, Total | Mean) and not set(columns_compared(query.among.where)) & set(filled)


def _steps(query: Copiable, shape: Linear, copied: CompletedSums) -> tuple[list[int], list[int]]:
    """The sum's difference along each direction, and how far one row can move it."""
    if not isinstance(query, Total | Mean) or not is_straight(query, copied.filled):
        return [shape.of(each) for each in copied.apart], [shape.reach] * len(copied.apart)
    times = shape.terms[0][1]
    reaches = [min(shape.reach, times * reach.get(query.column, 0)) for reach in copied.reaches]
    return [shape.of(each) for each in copied.straight], reaches


def buy(
    query: Copiable, value: Fraction, bar: Fraction, context: Context, copied: CompletedSums
) -> BarMeasurements:
    """The numbers a bar rests on.

    Guarantee   bar-DP for one call, given the lines and the answer.
    Adjacency   context.neighbours.
    Theorem     a row moves each difference of copies by at most the reach of one term, and each other sum by its own.
    Proof       proofs/answer/copied.md
    Assumes     as `answer_copied`.
    Keeps back  the exact sums.
    """
    schema, neighbours, m = context.schema, context.neighbours, copied.copies
    shape = linear(query, schema, value)
    moved, reaches = _steps(query, shape, copied)
    bound, shift = _steps_bound(reaches, neighbours)
    exact = [(each + (1 << shift >> 1)) >> shift for each in moved]
    steps = measure_table(
        exact,
        "steps of the lines",
        bound=bound,
        grid=shape.unit * 2**shift,
        epsilon=_rest(query) * bar,
        noise=context.noise,
    )
    who = decided(query, schema)
    silent = context.measure(
        copied.total[who] - m * copied.unfilled[who],
        "rows with gaps",
        bound=bound_sum(-1, 1, neighbours=neighbours),
        grid=Fraction(1),
        epsilon=GAPS * bar,
    )
    parts, spread = [steps[0].part, silent.part], 0.0
    if isinstance(query, Total | Mean):
        squared = context.measure(
            squares(query, schema, shape, copied.total.sums),
            "squares",
            bound=bound_sum(0, shape.farthest**2, neighbours=neighbours),
            grid=shape.unit**2,
            epsilon=SQUARES * bar,
        )
        parts, spread = [*parts, squared.part], float(squared.estimate)
    sampled, heavy = _of_lines(np.array([float(step.estimate) for step in steps]), copied)
    return BarMeasurements(
        parts=tuple(replace(part, proof=PAGE) for part in parts),
        sampled=sampled,
        heavy=heavy,
        gaps=max(0.0, float(silent.estimate)),
        squares=max(0.0, spread),
    )


def _of_lines(steps: NDArray[np.float64], copied: CompletedSums) -> tuple[float, float]:
    """The variance of the sum from sampling and from the noise of the lines: slope' covariance slope, line by line.

    A step of `width` standard deviations up and one down are twice that apart. Directions in which a line is certain
    have no part.
    """
    sampled, heavy, start = 0.0, 0.0, 0
    for line in copied.lines:
        root = line.root
        end = start + root.shape[1]
        each = steps[start:end] / (2 * np.array(copied.widths[start:end]))
        slope = np.linalg.lstsq(root.T, each, rcond=1e-12)[0]
        sampled += float(slope @ line.sampling @ slope)
        heavy += float(slope @ line.noise @ slope)
        start = end
    return max(0.0, sampled), max(0.0, heavy)
