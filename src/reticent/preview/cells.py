"""What can be said of a table of cells before a row is read: how noisy it is in cells of an assumed size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from reticent.exact import margin_text, show
from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan
from reticent.preview.foreseen import Foreseen
from reticent.release.product import Document, Grid, Line
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.smallcells.cells import SmallCells
from reticent.smallcells.ladder import pooled_bound
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.observed import ObservedCells, unprotected
from reticent.smallcells.pooled import PooledCells, log_above
from reticent.smallcells.run import spec_of
from reticent.smallcells.smooth import SmoothCells, even_cell

SIZES = (20, 100, 500)
ASSUMED = "cells of evenly spread x, y by turns at its lowest and its highest"
NOT_KNOWN = "a choice among candidates: how far it falls from the median depends on the rows; rehearse it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCells:
    """The standard deviation of the noise by the size of a cell, None where it is not known or withheld."""

    spreads: tuple[tuple[int, float | None], ...]
    how: str
    unprotected: tuple[str, ...] = ()


def foresee(cells: SmallCells, schema: Schema, neighbours: Neighbours) -> ExpectedCells:
    """The noise of one table in the units of the estimate."""
    spec, scale = spec_of(cells, schema, neighbours), float(cells.unit(schema)[1])
    found: list[tuple[int, float | None]] = []
    hidden: tuple[str, ...] = ()
    if isinstance(spec, SmoothCells):
        found = [(n, scale * spec.sd_of(n)) for n in SIZES]
        how = f"the noise in {ASSUMED}; its scale there was not read off any row"
    elif isinstance(spec, PooledCells):
        found = [(n, _scaled(scale, _pooled(spec, n))) for n in SIZES]
        how = f"the noise at the chi of {ASSUMED}, without chi's own noise; cells below {spec.least} are withheld"
    elif isinstance(spec, ObservedCells):
        found = [(n, _scaled(scale, _observed(spec, n))) for n in SIZES]
        how = f"the noise at the chi of {ASSUMED}"
        hidden = unprotected(spec)
    else:
        found, how = [(n, None) for n in SIZES], NOT_KNOWN
    return ExpectedCells(spreads=tuple(found), how=how, unprotected=hidden)


def _scaled(scale: float, spread: float | None) -> float | None:
    return None if spread is None else scale * spread


def _pooled(spec: PooledCells, size: int) -> float | None:
    """At the chi that cells of this size have by themselves, with the margin that is added to it."""
    if size < spec.least:
        return None
    bound = pooled_bound(even_cell(size), spec.aim, beta=spec.beta, is_left_out=np.zeros(1, np.bool_))
    chi = spec.chi_of(log_above(Fraction(bound), spec.grid))
    return sqrt(2) * float(spec.scale(size, chi) * spec.aim.step)


def _observed(spec: ObservedCells, size: int) -> float | None:
    """chi / (epsilon n) times the square root of two, chi of these cells alone."""
    if size < spec.least:
        return None
    local = local_sensitivity(
        even_cell(size),
        spec.estimator,
        corners_only=spec.corners_only,
        removals=spec.removals,
        span=spec.span,
    )
    return sqrt(2) * float(local[0]) / float(spec.epsilon)


def foresee_cells(asked: CellTables, plan: Plan, cv: float = 0.0) -> Foreseen:
    """What each table of cells will cost and how noisy it will be."""
    told = [_section(cells, plan) for cells in asked.tables]
    return Foreseen(key="cells", told=told, lines=tuple(_lines(told)))


def _section(cells: SmallCells, plan: Plan) -> dict[str, Any]:
    seen = foresee(cells, plan.schema, plan.neighbours)
    return {
        "name": cells.name,
        "words": cells.words(),
        "method": cells.method.value,
        "label": cells.label,
        "guarantee": plan.worded(plan.resting(cells.claim(plan.change))),
        "epsilon": show(cells.cost),
        "delta": show(cells.delta) if cells.delta else None,
        "cells": cells.want(plan.schema).cells(plan.schema),
        "noise_sd": {str(size): spread for size, spread in seen.spreads},
        "how": seen.how,
        "unprotected": list(seen.unprotected),
    }


def _lines(told: Sequence[Document]) -> Iterator[Line]:
    """Cost, promise, and the noise in cells of three sizes."""
    headings = ("cells", "method", "epsilon", "delta", *(f"sd, n = {size}" for size in SIZES))
    yield Grid(headings=headings, rows=[_row(each) for each in told])
    for each in told:
        yield f"{each['name']}: {each['label'] or each['guarantee']}"
        yield f"  {each['words']}; {each['cells']:,} cells"
        yield f"  sd: {each['how']}"
        yield from (f"  not protected: {said}" for said in each["unprotected"])


def _row(each: Document) -> tuple[str, ...]:
    spreads = ("not given" if spread is None else margin_text(spread) for spread in each["noise_sd"].values())
    return (each["name"], each["label"] or each["method"], each["epsilon"], each["delta"] or "", *spreads)
