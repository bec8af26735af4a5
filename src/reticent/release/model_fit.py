"""Fit the private lines of a plan, one after the other, each on rows that the lines before it have filled."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.decimals import show
from reticent.engine.base import Engine
from reticent.engine.lots import Lot
from reticent.engine.results import SufficientStatistics
from reticent.engine.wants import ALWAYS, Rows, Sum
from reticent.errors import PlanError
from reticent.models.adassp import AdaSSP
from reticent.models.centred import Centred
from reticent.models.design import Bounded, Design
from reticent.models.fit import Estimator, Fit
from reticent.models.functional import Functional
from reticent.models.imputing import normal
from reticent.models.objective import Objective
from reticent.models.output import Output
from reticent.models.privgene import PrivGene
from reticent.models.sources import ModelNoise, SystemModelNoise
from reticent.models.sums import Sums
from reticent.noise.bits import Bits
from reticent.predicate.bind import AllOf, Bound, CodeIn
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.prepare.lines import FINE, SCALE, Line, Term
from reticent.privacy.claim import Claim
from reticent.release.model_repair import FILLING, Feature, ModelRepair
from reticent.release.plan import Plan
from reticent.schema import Schema

ESTIMATORS: dict[str, Callable[[], Estimator]] = {
    "centred": Centred,
    "functional": Functional,
    "adassp": AdaSSP,
    "output": Output,
    "privgene": PrivGene,
    "objective": Objective,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """The repair with its lines, and what was released of each."""

    repair: Repair = NO_REPAIR
    fits: tuple[Fit, ...] = ()

    @property
    def epsilon(self) -> Fraction:
        """What the lines have cost."""
        return sum((fit.claim.epsilon for fit in self.fits), Fraction(0))

    @property
    def claims(self) -> list[Claim]:
        """What they promise, filling included."""
        return [replace(fit.claim, rests_on=(*fit.claim.rests_on, FILLING)) for fit in self.fits]


NO_MODELS = Modelled()


def fit_models(plan: Plan, engine: Engine, lot: Lot | None, *, noise: ModelNoise, bits: Bits) -> Modelled:
    """All lines of the plan, in its order.

    Guarantee   epsilon-DP, epsilon the sum of the lines'; what is asked of the filled rows costs what it costs.
    Adjacency   plan.neighbours.
    Theorem     THEORY 7.1, line by line: adaptive composition.
    Proof       proofs/release/model_fit.md
    Assumes     each estimator keeps its promise; the engine fills rows as proofs/engine/predict.md says.
    Keeps back  the sums, which rows had gaps, and every draw.
    """
    repair, fits = plan.repair, list[Fit]()
    for model in plan.models:
        design = design_of(model, plan.schema)
        wanted = products(model)
        tallies = engine.tally(plan.schema, [want for want in wanted.values() if want], repair, lot)
        fit = ESTIMATORS[model.estimator]().fit(
            sums_of(design, wanted, tallies.statistics),
            epsilon=model.epsilon,
            neighbours=plan.neighbours,
            noise=noise,
        )
        line = line_of(model, fit, plan.schema, bits=bits)
        repair, fits = replace(repair, lines=(*repair.lines, line)), [*fits, fit]
    return Modelled(repair=repair, fits=tuple(fits))


def check_models(plan: Plan) -> None:
    """Refuse what a release could not do, by trying every line on nobody; no row is read for it."""
    for place, model in enumerate(plan.models):
        design = design_of(model, plan.schema)
        size = len(design.widths)
        nobody = Sums(design=design, products=((0,) * size,) * size)
        try:
            fit = ESTIMATORS[model.estimator]().fit(
                nobody, epsilon=model.epsilon, neighbours=plan.neighbours, noise=SystemModelNoise()
            )
        except PlanError as problem:
            raise PlanError(
                f"{model.estimator}: {problem.args[0]}", field=f"repair: {model.column}"
            ) from None
        if Modelled(repair=plan.repair, fits=(fit,)).claims != [model.claim(plan.change)]:
            raise PlanError("a line would promise otherwise than was planned.", field=f"models[{place}]")


def design_of(model: ModelRepair, schema: Schema) -> Design:
    """The model's columns with their public bounds. The number of rows is that of complete ones: not public."""
    predictors = tuple(Bounded(name=f.name, low=f.low, high=f.high, grid=f.grid) for f in model.features)
    return Design(predictors=predictors, response=Bounded.of(schema.coded[model.column]))


Wanted = Mapping[tuple[int, int], Sum | None]


def products(model: ModelRepair) -> Wanted:
    """What an engine must sum for each pair of columns; 0 is the count. Two levels of one column never meet."""
    names = (*model.predictors, model.column)
    sides = [None, *model.features, Feature(column=model.column, low=0, high=1)]
    size = len(sides)
    return {(i, j): _product(sides[i], sides[j], names) for i in range(size) for j in range(i, size)}


def _product(a: Feature | None, b: Feature | None, names: tuple[str, ...]) -> Sum | None:
    levels = list(dict.fromkeys((f.column, f.level) for f in (a, b) if f and f.level is not None))
    values = [f.column for f in (a, b) if f and f.level is None]
    if len(levels) == 2 and levels[0][0] == levels[1][0]:
        return None
    held: list[Bound] = [CodeIn(name, ((level, level),)) for name, level in levels]
    where = AllOf(tuple(held)) if len(held) > 1 else held[0] if held else ALWAYS
    rows = Rows(where=where, answered=names)
    if not values:
        return Sum(rows=rows)
    if len(values) == 2 and values[0] != values[1]:
        return Sum(rows=rows, value=values[0], power=1, other=values[1])
    return Sum(rows=rows, value=values[0], power=len(values))


def sums_of(design: Design, wanted: Wanted, found: SufficientStatistics) -> Sums:
    """Sums of products of z = 2 code - m, from those of codes: all whole."""
    raw = {at: found[want] if want else 0 for at, want in wanted.items()}
    middle = [0, *(design.centre(column) for column in design.columns)]
    twice = [1, *[2] * len(design.columns)]
    size = len(middle)
    table = [[0] * size for _ in range(size)]
    for (i, j), both in raw.items():
        # (s a - m)(t b - n) = st ab - sn a - tm b + mn, where 1 stands for the count
        ends = twice[i] * middle[j] * raw[0, i] + twice[j] * middle[i] * raw[0, j]
        whole = twice[i] * twice[j] * both - ends + middle[i] * middle[j] * raw[0, 0]
        table[i][j] = table[j][i] = whole
    return Sums(design=design, products=tuple(map(tuple, table)))


def line_of(model: ModelRepair, fit: Fit, schema: Schema, *, bits: Bits) -> Line:
    """The released line in whole steps of 2^-32 of the response's grid. Post-processing: reads no row."""
    column = schema.coded[model.column]
    grid = Bounded.of(column).grid
    slopes = [slope * f.grid / grid for slope, f in zip(fit.slopes, model.features, strict=True)]
    start = sum(
        (slope * f.low for slope, f in zip(slopes, model.features, strict=True)), fit.intercept / grid
    )
    terms = tuple(
        Term(column=f.column, slope=_steps(slope), low=f.low, high=f.high, level=f.level, gap=_gap(f))
        for slope, f in zip(slopes, model.features, strict=True)
    )
    spread = isqrt(floor(fit.variance / grid**2 * 4**FINE)) if model.draws else 0
    return Line(
        column=model.column,
        low=column.low,
        high=column.high,
        base=_steps(start + Fraction(1, 2)),
        terms=terms,
        spread=spread,
        draw=partial(_draw, bits=bits) if model.draws else None,
    )


def told_models(plan: Plan, fits: tuple[Fit, ...]) -> dict[str, Any]:
    """What a release says of its lines; nothing where it has none."""
    if not plan.models:
        return {}
    return {"models": [_told(m, fit, plan.schema) for m, fit in zip(plan.models, fits, strict=True)]}


def _told(model: ModelRepair, fit: Fit, schema: Schema) -> dict[str, Any]:
    return {
        "column": model.column,
        "words": model.words(),
        "estimator": model.estimator,
        "epsilon": show(model.epsilon),
        "intercept": float(fit.intercept),
        "slopes": [
            {"column": f.column, **_level(f, schema), "slope": float(slope)}
            for f, slope in zip(model.features, fit.slopes, strict=True)
        ],
        "residual_sd": float(fit.variance) ** 0.5,
        "claim": {"words": str(fit.claim), **fit.claim.as_dict()},
    }


def _level(feature: Feature, schema: Schema) -> dict[str, str]:
    return {} if feature.level is None else {"level": schema.coded[feature.column].text(feature.level)}


def _steps(value: Fraction) -> int:
    return floor(value * (1 << SCALE) + Fraction(1, 2))


def _gap(feature: Feature) -> int:
    return (feature.low + feature.high) // 2 if feature.level is None else 0


def _draw(n: int, *, bits: Bits) -> NDArray[np.int32]:
    return np.floor(normal(n, bits) * (1 << FINE) + 0.5).astype(np.int32)
