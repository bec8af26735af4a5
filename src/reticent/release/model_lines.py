"""A released fit as a line that an engine can follow, and as a release tells it. Post-processing: reads no row."""

from fractions import Fraction
from functools import partial
from math import floor, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.decimals import show
from reticent.models.design import Bounded
from reticent.models.fit import Fit
from reticent.models.imputing import normal
from reticent.models.tabled import TabledFit
from reticent.noise.bits import Bits
from reticent.prepare.lines import FINE, SCALE, RegressionLine, Term
from reticent.release.class_fit import told_classes
from reticent.release.class_repair import ClassRepair
from reticent.release.model_repair import AnyModel, Feature, ModelRepair
from reticent.release.plan import Plan
from reticent.schema import Schema


def line_of(model: ModelRepair, fit: Fit, schema: Schema, *, bits: Bits) -> RegressionLine:
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
    return RegressionLine(
        column=model.column,
        low=column.low,
        high=column.high,
        base=_steps(start + Fraction(1, 2)),
        terms=terms,
        spread=spread,
        draw=partial(_draw, bits=bits) if model.draws else None,
    )


def models_section(plan: Plan, fits: tuple[Fit | TabledFit, ...]) -> dict[str, Any]:
    """What a release says of its lines; nothing where it has none."""
    if not plan.models:
        return {}
    return {"models": [_told_any(m, fit, plan.schema) for m, fit in zip(plan.models, fits, strict=True)]}


def _told_any(model: AnyModel, fit: Fit | TabledFit, schema: Schema) -> dict[str, Any]:
    if isinstance(model, ClassRepair) and isinstance(fit, TabledFit):
        return told_classes(model, fit, schema)
    if isinstance(model, ModelRepair) and isinstance(fit, Fit):
        return _told(model, fit, schema)
    raise TypeError("a line is told of a number, chances of levels")


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
        "guarantee": {"words": str(fit.claim), **fit.claim.as_dict()},
    }


def _level(feature: Feature, schema: Schema) -> dict[str, str]:
    return {} if feature.level is None else {"level": schema.coded[feature.column].text(feature.level)}


def _steps(value: Fraction) -> int:
    return floor(value * (1 << SCALE) + Fraction(1, 2))


def _gap(feature: Feature) -> int:
    return (feature.low + feature.high) // 2 if feature.level is None else 0


def _draw(n: int, *, bits: Bits) -> NDArray[np.int32]:
    return np.floor(normal(n, bits) * (1 << FINE) + 0.5).astype(np.int32)
