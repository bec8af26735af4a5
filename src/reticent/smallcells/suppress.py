"""Count-based cell suppression: the rule that small-cell tables are published by, its bias, and an attack on it.

A baseline to compare with. It adds no noise; what it publishes is exact, and *not differentially private*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.smallcells.estimators import Estimator, estimates
from reticent.smallcells.fits import Floats
from reticent.smallcells.moments import moments
from reticent.smallcells.points import GridPoints

LABEL = "count suppression, exact numbers, not differentially private"
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRespondents:
    """Withholds cells with fewer than `least` respondents."""

    least: int

    def keeps(self, sizes: Counts, events: Counts) -> Flags:
        """Which cells are published."""
        return np.asarray(sizes >= self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class FewEvents:
    """Withholds cells with `low` to `high` events and keeps those with none: the rule of the paper's Figure 3."""

    low: int = 1
    high: int = 4

    def keeps(self, sizes: Counts, events: Counts) -> Flags:
        """Which cells are published."""
        return np.asarray((events < self.low) | (events > self.high))


Rule = FewRespondents | FewEvents


def suppress(points: GridPoints, estimator: Estimator, rule: Rule) -> tuple[Fraction | None, ...]:
    """Exact estimates of the cells that the rule keeps; None for those withheld or undefined. Events have y = 1."""
    of = moments(points)
    found = estimates(estimator, of)
    is_event = np.concatenate([[0], np.cumsum(points.y == points.y_steps)])
    events = is_event[points.starts[1:]] - is_event[points.starts[:-1]]
    kept = rule.keeps(of.n.astype(np.int64), events)
    return tuple(found.of(g) if kept[g] else None for g in range(points.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Means of x and y within bins of x of equal count, and the least-squares slope over all cells used."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    slope: float
    cells: int


def binned_scatter(x: Floats, y: Floats, *, bins: int = 20) -> Scatter:
    """The scatter of cells, in bins: what Figure 3 draws."""
    if bins < 1 or len(x) < 2 or x.min() == x.max():
        raise PlanError("a scatter needs a bin, and cells with two different x.", field="bins")
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    about = x - x.mean()
    return Scatter(
        x=tuple(float(x[part].mean()) for part in parts),
        y=tuple(float(y[part].mean()) for part in parts),
        slope=float((about * y).sum() / (about * about).sum()),
        cells=len(x),
    )


def scatters(
    x: Floats, sizes: Counts, events: Counts, rule: Rule, *, bins: int = 20
) -> tuple[Scatter, Scatter]:
    """The rate of events against x, over all cells and over those the rule keeps."""
    if (sizes < 1).any():
        raise PlanError("a rate needs at least one respondent in each cell.", field="sizes")
    rate, kept = events / sizes, rule.keeps(sizes, events)
    return binned_scatter(x, rate, bins=bins), binned_scatter(x[kept], rate[kept], bins=bins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An exact mean over so many people, as suppression publishes it once a cell is large enough."""

    people: int
    mean: Fraction


def newcomer(before: Published, after: Published) -> Fraction:
    """The answer of the one person who is in the second release and not in the first.

    The differencing attack: both cells are far above any threshold, and the difference of two exact sums is one
    person's answer.
    """
    if after.people != before.people + 1:
        raise PlanError("the second release has one person more than the first.", field="people")
    return after.people * after.mean - before.people * before.mean


def worked_example(
    answers: Sequence[Fraction], rule: FewRespondents
) -> tuple[Published, Published, Fraction]:
    """150 people, then 151: two releases that the rule lets pass, and what they say of the last person."""
    last = len(answers) - 1
    if last < rule.least:
        raise PlanError("the rule withholds the first release.", field="least")
    before = Published(people=last, mean=sum(answers[:last], Fraction(0)) / last)
    after = Published(people=last + 1, mean=sum(answers, Fraction(0)) / (last + 1))
    return before, after, newcomer(before, after)
