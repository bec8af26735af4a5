"""Multiple imputation of synthetic rows: silent cells filled, as often as wanted. After the noise, so filling is free.

Chained equations (van Buuren and Groothuis-Oudshoorn 2011) with tables for equations: each column with silent cells is drawn
anew, in turns, from the columns that tell most about it, chosen one by one while each is worth its cells. Where silence
depends on what is answered elsewhere, this is right and leaving silent cells out is not.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.synth.base import Floats, Places
from reticent.synth.domain import Domain, uniforms

Cells = NDArray[np.int64]

MOST_GIVEN = 4
MOST_CELLS = 1 << 21
LOOKED_AT = 50_000
"""Rows looked at when choosing, taken at even distances."""


def associated(cells: Cells, domain: Domain, place: int) -> Places:
    """Columns to fill `place` from, the best first, silence in them taken as a value.

    The next one is that which raises the likelihood of the answers most, less one for each free number that it adds
    (Akaike 1974); none, where nothing is gained.
    """
    rows = cells[:: max(1, len(cells) // LOOKED_AT)]
    rows = rows[rows[:, place] < domain.axes[place].answers]
    chosen: Places = ()
    worth = _worth(rows, domain, place, chosen)
    while len(chosen) < MOST_GIVEN:
        others = [p for p in range(len(domain.axes)) if p != place and p not in chosen]
        tries = {
            p: _worth(rows, domain, place, (*chosen, p)) for p in others if _fits(domain, place, (*chosen, p))
        }
        best = max(tries, key=lambda p: tries[p], default=place)
        if best == place or tries[best] <= worth:
            break
        chosen, worth = (*chosen, best), tries[best]
    return chosen


def _fits(domain: Domain, place: int, given: Places) -> bool:
    return prod(domain.sizes((*given, place))) <= MOST_CELLS


def _worth(rows: Cells, domain: Domain, place: int, given: Places) -> float:
    """The log likelihood of the answers, less the free numbers of the lines that occur."""
    answers = domain.axes[place].answers
    line = numbered(rows, domain, given)
    each = np.bincount(line)
    joint = np.bincount(line * answers + rows[:, place])
    return _sum(joint) - _sum(each) - (answers - 1) * float((each > 0).sum())


def _sum(counts: Cells) -> float:
    some = counts[counts > 0].astype(np.float64)
    return float((some * np.log(some)).sum())


def numbered(rows: Cells, domain: Domain, given: Places) -> Cells:
    """The number of each row's line in a table over the cells of `given`."""
    line = np.zeros(len(rows), dtype=np.int64)
    for place in given:
        line = line * domain.axes[place].size + rows[:, place]
    return line


SWEEPS = 8
BLOCK = 1 << 16
Flags = NDArray[np.bool_]


def complete_rows(
    cells: NDArray[np.integer], domain: Domain, bits: Bits, copies: int = 1, *, sweeps: int = SWEEPS
) -> list[Cells]:
    """`copies` of the rows, each with every silent cell drawn once more. Other cells stay as they are.

    Whoever was silent was asked: a cell of the unasked is never drawn.
    """
    if copies < 1:
        raise PlanError("is a whole number from 1 up", field="copies")
    rows = np.array(cells, dtype=np.int64)
    silent = rows == np.array([axis.silence for axis in domain.axes])
    open_ = [place for place in range(len(domain.axes)) if silent[:, place].any()]
    given = {place: associated(rows, domain, place) for place in open_}
    return [_completed(rows, silent, given, domain, bits, sweeps) for _ in range(copies)]


def _completed(
    rows: Cells, silent: Flags, given: dict[int, Places], domain: Domain, bits: Bits, sweeps: int
) -> Cells:
    """First from the rows as they are, silence a value like others; then sweep by sweep from rows filled so far."""
    made = rows.copy()
    for place, near in given.items():
        made[silent[:, place], place] = _drawn(rows, rows, silent[:, place], place, near, domain, bits)
    for _ in range(sweeps if len(given) > 1 else 0):
        for place, near in given.items():
            made[silent[:, place], place] = _drawn(made, rows, silent[:, place], place, near, domain, bits)
    return made


def _drawn(
    made: Cells, rows: Cells, silent: Flags, place: int, near: Places, domain: Domain, bits: Bits
) -> Cells:
    """An answer for each silent row, from the answers of rows alike in `near`."""
    answers = domain.axes[place].answers
    spoke = rows[:, place] < answers
    tables = _tables(made[spoke], domain, place, near)
    line = numbered(made[silent], domain, near)
    u = uniforms(len(line), bits)
    return np.concatenate(
        [_inverse(tables[line[i : i + BLOCK]], u[i : i + BLOCK]) for i in range(0, max(1, len(line)), BLOCK)]
    )


def _inverse(chances: Floats, u: Floats) -> Cells:
    """Draws by inversion, one in each line."""
    sums = chances.cumsum(axis=1)
    return np.asarray((sums[:, :-1] <= (u * sums[:, -1])[:, None]).sum(axis=1))


def _tables(rows: Cells, domain: Domain, place: int, near: Places) -> Floats:
    """Conditional lines, each drawn towards that without the last given column by as many rows as there are answers.

    So a line with few rows leans on the coarser one, and one without any is the coarser one.
    """
    answers = domain.axes[place].answers
    lines = np.full((1, answers), 1 / answers)
    for depth in range(len(near) + 1):
        if depth:
            lines = np.repeat(lines, domain.axes[near[depth - 1]].size, axis=0)
        line = numbered(rows, domain, near[:depth])
        joint = np.bincount(line * answers + rows[:, place], minlength=lines.size).reshape(lines.shape)
        weight = float(answers) if depth else 1e-9
        lines = (joint + weight * lines) / (joint.sum(axis=1, keepdims=True) + weight)
    return lines
