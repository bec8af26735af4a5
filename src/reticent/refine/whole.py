"""Tables of whole numbers, none negative, that add up: one joint table near the noisy margins, and its margins.

Least squares leaves negative cells where few people are. The nearest joint table without them is found by splitting the
two conditions (ADMM): near the margins, which residuals solve in closed form, and not negative, cell by cell. Then the
joint table is rounded, each cell up or down so that the errors of all margins stay small. Whatever joint table comes out,
its margins add up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, fsum, log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.refine.residuals import Axes, Floats, centred, subsets

Whole = NDArray[np.int64]

MOST_JOINT = 1_000_000
"""Cells of the joint table: a few seconds."""
ROUNDS = 1000
SETTLED = 0.001
"""In people: margins that move by no more in ten rounds are settled."""
SWEEPS = 20
TOTALS_FIRST = 100.0
"""Many cells near zero that may not be negative would push a total up together; an error in a total counts so much more."""
COMPILED_FROM = 20_000
"""Cells of all margins together; for fewer, compiling takes longer than the loops do."""


@dataclass(frozen=True)
class Margins:
    """Consistent margins over axes of the lengths `shape`: for each set of axes its table and the variance of a cell.

    Rounds end when margins move by no more than `settled`.
    """

    shape: tuple[int, ...]
    tables: Mapping[Axes, tuple[Floats, float]]
    settled: float = SETTLED

    def __post_init__(self) -> None:
        if prod(self.shape) > MOST_JOINT:
            raise PlanError(
                f"the joint table of {len(self.shape)} columns has more than {MOST_JOINT} cells; take coarser bins, "
                "or ask for the margins in several tables.",
                field="margins",
            )

    @property
    def largest(self) -> tuple[Axes, ...]:
        """Those that are no margin of another."""
        return tuple(t for t in self.tables if not any(set(t) < set(other) for other in self.tables))

    def sums(self, joint: Floats) -> dict[Axes, Floats]:
        """The margins of a joint table; the joint table itself is read once for each of the largest."""
        found: dict[Axes, Floats] = {}
        for big in self.largest:
            table = joint.sum(axis=tuple(a for a in range(len(self.shape)) if a not in big))
            for axes in self.tables:
                if set(axes) <= set(big) and axes not in found:
                    found[axes] = table.sum(axis=tuple(i for i, a in enumerate(big) if a not in axes))
        return found

    def stiffness(self, s: Axes) -> float:
        """How strongly the joint table's residual over `s` is held: every margin over more pulls at it."""
        return sum(
            prod(self.shape) / table.size * self.weight(axes)
            for axes, (table, _) in self.tables.items()
            if set(s) <= set(axes)
        )

    def weight(self, axes: Axes) -> float:
        """What a squared error in the margin counts: totals come first, then what they are broken down by."""
        deepest = max(map(len, self.tables))
        return TOTALS_FIRST ** (deepest - len(axes)) / self.tables[axes][1]

    def spread(self, residuals: Mapping[Axes, Floats]) -> Floats:
        """The joint table of these residuals, each spread evenly over the axes it does not speak of."""
        joint, left = np.zeros(self.shape), dict(residuals)
        for big in self.largest:
            table = np.zeros([self.shape[axis] for axis in big])
            for s in subsets(big):
                if s in left:
                    part = left.pop(s)
                    table += part.reshape([self.shape[a] if a in s else 1 for a in big]) * (
                        part.size / joint.size
                    )
            joint += table.reshape([self.shape[a] if a in big else 1 for a in range(joint.ndim)])
        return joint


def nearest_joint(margins: Margins) -> Floats:
    """A joint table without negative cells whose margins are near the given ones, in units of their standard deviations.

    Where the margins can be met they are; then nothing is lost by asking that no cell be negative. A projection onto a
    convex set that holds the truth never leads away from it, in the distance in which it is one (THEORY 15.1).
    """
    residuals = {s: centred(table) for s, (table, _) in margins.tables.items()}
    pull = {s: margins.stiffness(s) for s in residuals}
    # Between the softest residual and the middle one: rounds enough for both are few.
    rate = exp((log(min(pull.values())) + fsum(map(log, pull.values())) / len(pull)) / 2)
    gain = {s: each / (each + rate) for s, each in pull.items()}
    joint = np.maximum(margins.spread(residuals), 0.0)
    dual, before = np.zeros(margins.shape), None
    for number in range(ROUNDS):
        start = joint - dual
        found = margins.sums(start)
        wrong = {s: gain[s] * (residuals[s] - centred(found[s])) for s in residuals}
        free = start + margins.spread(wrong)
        joint = np.maximum(free + dual, 0.0)
        dual = dual + free - joint
        if number % 10 == 9:
            now = margins.sums(joint)
            if before is not None and _moved(now, before) <= margins.settled:
                break
            before = now
    return joint


def _moved(now: Mapping[Axes, Floats], before: Mapping[Axes, Floats]) -> float:
    return max(float(np.abs(table - before[axes]).max()) for axes, table in now.items())


def whole_joint(margins: Margins, joint: Floats) -> Whole:
    """The joint table in whole numbers: no cell negative, every margin near what it was, the total rounded.

    Cells are taken in order and rounded up or down, whichever leaves the margins so far nearer; then single cells are
    changed by one, as long as that brings the margins nearer.
    """
    whole, places = np.floor(joint).astype(np.int64).ravel(), _places(margins)
    if places.size >= COMPILED_FROM:
        _compiled()(whole, joint.ravel(), places, np.zeros(places.max() + 1), SWEEPS)
        return whole.reshape(margins.shape)
    found = whole.tolist()
    _diffuse(found, joint.ravel().tolist(), places.tolist(), [0.0] * (int(places.max()) + 1), SWEEPS)
    return np.array(found, dtype=np.int64).reshape(margins.shape)


@cache
def _compiled() -> Callable[..., None]:
    """The same loops, compiled: the same numbers, since both add and double doubles one by one."""
    import numba  # slow to load, and of use for large tables alone

    made: Callable[..., None] = numba.njit(nogil=True)(_diffuse)
    return made


def _places(margins: Margins) -> NDArray[np.int64]:
    """For each margin and joint cell, where the cell is counted in one long list of all margins' cells."""
    index = np.indices(margins.shape).reshape(len(margins.shape), -1)
    found, first = [], 0
    for axes in margins.tables:
        at = np.zeros(index.shape[1], dtype=np.int64)
        for axis in axes:
            at = at * margins.shape[axis] + index[axis]
        found.append(at + first)
        first += prod(margins.shape[axis] for axis in axes)
    return np.array(found)


def _diffuse(whole: Any, exact: Any, places: Any, off: Any, sweeps: int) -> None:
    """Change `whole`, which begins as the floor of `exact`, so that its margins are near those of `exact`.

    `off` begins as zeros: how far each cell of a margin is off so far.
    """
    tables = len(places)
    for cell in range(len(whole)):
        down = whole[cell] - exact[cell]
        gain = 0.0  # of rounding up instead of down: the sum of (off + down + 1)^2 - (off + down)^2
        for t in range(tables):
            gain += 2.0 * (off[places[t][cell]] + down) + 1.0
        if gain < 0.0:
            whole[cell] += 1
        for t in range(tables):
            off[places[t][cell]] += whole[cell] - exact[cell]
    for _ in range(sweeps):
        changed = False
        for cell in range(len(whole)):
            pull = 0.0
            for t in range(tables):
                pull += 2.0 * off[places[t][cell]]
            step = 1 if pull + tables < -1e-9 else -1 if (tables - pull < -1e-9 and whole[cell] > 0) else 0
            if step != 0:
                changed = True
                whole[cell] += step
                for t in range(tables):
                    off[places[t][cell]] += step
        if not changed:
            break


def whole_tables(margins: Margins) -> dict[Axes, Whole]:
    """All margins in whole numbers, none negative, that add up: those of one joint table of whole numbers.

    Guarantee   every margin is that of one table of whole numbers that are not negative. No privacy is spent.
    Adjacency   none: it is a function of released numbers.
    Theorem     THEORY 15.2.
    Proof       proofs/refine/whole.md
    Assumes     the given margins are released.
    Keeps back  nothing.
    """
    joint = whole_joint(margins, nearest_joint(margins))
    return {
        axes: np.asarray(joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in axes)), dtype=np.int64)
        for axes in margins.tables
    }
