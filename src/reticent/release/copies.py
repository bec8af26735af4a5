"""Several copies of the rows, each filled from a line as uncertain as the released one, and what asks need of them all."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reticent.answer.context import CompletedSums
from reticent.answer.copies import CopiesRoute, copied_wants, is_straight
from reticent.engine.protocol import Engine
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import SufficientStatistics, Sum
from reticent.models.fit import Fit, tell
from reticent.models.imputing import normal
from reticent.models.moments import Uncertain
from reticent.models.table import TabledFit
from reticent.noise.bits import Bits
from reticent.plan.models import ModelRepair
from reticent.plan.plan import Plan
from reticent.prepare.repair import Chances, RegressionLine, Repair, apart
from reticent.release.models import Modelled, chances_of, design_of, line_of

Floats = NDArray[np.float64]
NEAR = 1 / 8
"""A line is tried no farther off than this part of half the response's width, and half its spread."""

FARTHEST = 32.0
"""Nor farther than so many standard deviations."""


def tally_copies(
    plan: Plan, engine: Engine, lot: Lot | None, modelled: Modelled, *, bits: Bits
) -> CompletedSums | None:
    """The sums of every copy, added; CONFIDENTIAL. None where no ask needs them."""
    routes = [route for route in plan.routes if isinstance(route, CopiesRoute)]
    wants = list(dict.fromkeys(want for route in routes for want in copied_wants(route.query, plan.schema)))
    if not wants:
        return None

    def sums(repair: Repair) -> SufficientStatistics:
        return engine.tally(plan.schema, wants, repair, lot).statistics

    copies = max(model.copies for model in plan.models)
    found = [sums(_filling(plan, modelled, _drawn(modelled, bits), bits)) for _ in range(copies)]
    bought = [route.query for route in routes if route.statistic.bar]
    tried = list(_tried(modelled.lines)) if bought else []
    filled = [model.column for model in plan.models]
    kinds = {is_straight(query, filled) for query in bought}

    def differences(draws: bool) -> tuple[list[dict[Sum, int]], list[dict[str, int]]]:
        made, reaches = [], []
        for up, down, _ in tried if (not draws) in kinds else []:
            one, two = (_filling(plan, modelled, each, bits, draws=draws) for each in (up, down))
            over, under = sums(one), sums(two)
            made.append({want: over[want] - under[want] for want in wants})
            reaches.append({} if draws else apart(one.lines, two.lines))
        return made, reaches

    drawn, (straight, reaches) = differences(True)[0], differences(False)
    return CompletedSums(
        copies=copies,
        lines=modelled.lines,
        widths=tuple(width for _, _, width in tried),
        total=SufficientStatistics(sums={want: sum(each[want] for each in found) for want in wants}),
        unfilled=sums(plan.repair) if tried else found[0],
        apart=tuple(drawn),
        straight=tuple(straight),
        reaches=tuple(reaches),
        filled=tuple(filled),
        drawn=drawn_variances(plan, modelled),
    )


def drawn_variances(plan: Plan, modelled: Modelled) -> dict[str, float]:
    """The variance of a draw of every column that a line fills, its filled predictors' draws included."""
    known: dict[str, float] = {}
    for model, fit in zip(plan.models, modelled.fits, strict=True):
        if not isinstance(model, ModelRepair) or not isinstance(fit, Fit):
            continue
        through = zip(fit.slopes, model.features, strict=True)
        known[model.column] = float(fit.variance) + sum(
            float(slope) ** 2 * known.get(feature.column, 0.0) for slope, feature in through
        )
    return known


def _drawn(modelled: Modelled, bits: Bits) -> list[Floats]:
    """A line for every model, as uncertain as it is."""
    return [line.theta + line.root @ normal(len(line.theta), bits) for line in modelled.lines]


def _tried(lines: Sequence[Uncertain]) -> Iterator[tuple[list[Floats], list[Floats], float]]:
    """Every line a step up and a step down in every direction in which it is uncertain, the others as they are."""
    middle = [line.theta for line in lines]
    for place, line in enumerate(lines):
        for way in line.root.T:
            far = min(NEAR, line.variance**0.5 / 2) / max(float(np.abs(way).sum()), 1e-12)
            width = min(max(far, 1.0), FARTHEST)
            up, down = list(middle), list(middle)
            up[place], down[place] = line.theta + width * way, line.theta - width * way
            yield up, down, width


def _filling(
    plan: Plan, modelled: Modelled, thetas: Sequence[Floats], bits: Bits, *, draws: bool = True
) -> Repair:
    """The repair with these lines, and with chances as they were released. Post-processing: reads no row.

    Without draws everybody lies on the line, and has the likeliest level.
    """
    made: list[RegressionLine | Chances] = []
    lines = iter(zip(thetas, modelled.lines, strict=True))
    for model, fit in zip(plan.models, modelled.fits, strict=True):
        if isinstance(model, ModelRepair):
            theta, line = next(lines)
            moved = tell(design_of(model, plan.schema), theta.tolist(), line.variance, fit.claim)
            drawn = replace(model, draws=model.draws and draws)
            made.append(line_of(drawn, moved, plan.schema, bits=bits))
        elif isinstance(fit, TabledFit):
            chosen = replace(model, draws=model.draws and draws)
            made.append(chances_of(chosen, fit, plan.schema, bits=bits))
    return replace(plan.repair, lines=tuple(made))
