"""Masks driven by other columns: completely at random, at random, not at random. For trials, on rows whose truth is known.

A mask is true where an answer is lost. `values` are codes, a row for each respondent and a column for each question.
Codes of `nominal` columns have no order, so each level counts by a normal effect of its own. Scales are those of the
sample at hand: a mask is made where the truth is known and never for a release. Cells outside `asked` are not lost,
and the rate of a column is a share of its asked cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.missing.chances import Flags, Floats, logistic, standard

Codes = NDArray[np.integer]
Rng = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrivenMask:
    """A mask, the columns whose values drive it, and those that stay complete, by number."""

    mask: Flags = field(repr=False)
    drivers: tuple[int, ...] = ()
    complete: tuple[int, ...] = ()


def mcar(shape: tuple[int, int], rate: float, rng: Rng) -> DrivenMask:
    """Completely at random: every cell of every column on its own."""
    check_rate(rate)
    return DrivenMask(mask=rng.random(shape) < rate)


def mar(
    values: Codes, rate: float, rng: Rng, *, nominal: Sequence[int] = (), asked: Flags | None = None
) -> DrivenMask:
    """At random: half of the columns (rounded down), by lot, stay complete and drive the loss of the others.

    A driven column is lost with probability sigmoid(w·x + b) of the complete ones: w normal and scaled such that
    w·x has unit variance, b such that the column's mean is `rate`. So about half of `rate` of all cells is lost.
    """
    lots, asked, drivers, driven = _drawn(values, rate, asked, values.shape[1] // 2, rng)
    chances = driven_by(values, drivers, driven, rate, rng, nominal=nominal, asked=asked)
    mask = np.zeros(values.shape, dtype=bool)
    mask[:, driven] = lots[:, driven] < chances
    return DrivenMask(mask=mask & asked, drivers=drivers, complete=drivers)


def mnar(
    values: Codes, rate: float, rng: Rng, *, nominal: Sequence[int] = (), asked: Flags | None = None
) -> DrivenMask:
    """Not at random: three columns in ten (rounded down), by lot, drive the others as in `mar`, then are lost `mcar`."""
    lots, asked, drivers, driven = _drawn(values, rate, asked, 3 * values.shape[1] // 10, rng)
    chances = np.full(values.shape, float(rate))
    chances[:, driven] = driven_by(values, drivers, driven, rate, rng, nominal=nominal, asked=asked)
    return DrivenMask(mask=(lots < chances) & asked, drivers=drivers)


def driven_by(
    values: Codes,
    drivers: Sequence[int],
    driven: Sequence[int],
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags,
) -> Floats:
    """For every cell of the `driven` columns, the probability of loss that the drivers give it."""
    x = np.column_stack(
        [np.zeros(len(values)), *(scores(values[:, k], asked[:, k], rng, k in nominal) for k in drivers)]
    )
    chances = np.zeros((len(values), len(driven)))
    for place, column in enumerate(driven):
        pull = (x * rng.normal(size=x.shape[1])).sum(
            axis=1
        )  # in one order, so that equal rows get equal pulls
        chances[:, place] = logistic(pull / (pull.std() or 1), asked[:, column], rate)
    return chances


def scores(column: Codes, asked: Flags, rng: Rng, is_nominal: bool) -> Floats:
    """A column on a common scale: mean 0, variance 1 over its asked cells."""
    numbers = np.asarray(column, dtype=float)
    if is_nominal:
        levels, place = np.unique(column, return_inverse=True)
        numbers = rng.normal(size=len(levels))[place]
    return standard(numbers, asked)


def check_rate(rate: float) -> None:
    """Refuse what is no share."""
    if not 0 <= rate <= 1:
        raise PlanError("a rate lies between 0 and 1.", field="rate")


def asked_of(values: Codes, asked: Flags | None) -> Flags:
    """Which cells could be answered: all of them where nothing is said."""
    return np.ones(values.shape, dtype=bool) if asked is None else np.asarray(asked, dtype=bool)


def _drawn(
    values: Codes, rate: float, asked: Flags | None, count: int, rng: Rng
) -> tuple[Floats, Flags, tuple[int, ...], tuple[int, ...]]:
    """A uniform draw for each cell, who was asked, `count` columns by lot, and the others."""
    check_rate(rate)
    lots = rng.random(values.shape)
    chosen = set(rng.permutation(values.shape[1])[:count].tolist())
    every = range(values.shape[1])
    others = tuple(k for k in every if k not in chosen)
    return lots, asked_of(values, asked), tuple(k for k in every if k in chosen), others
