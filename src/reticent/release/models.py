"""Regression imputation in a release: private lines and chances, fitted one after the other on rows filled so far.

First what a model asks of the rows: sums of products, or a table. Then the fit, with its noise. Then the released fit as an
engine can follow it and as a release tells it, which is post-processing and reads no row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import floor, isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.engine.protocol import Engine
from reticent.engine.sql.predict import keys_of
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import (
    ALWAYS,
    Aggregate,
    ContingencyTable,
    Key,
    Rows,
    SufficientStatistics,
    Sum,
    Table,
    Tallies,
)
from reticent.errors import PlanError
from reticent.exact import show
from reticent.models.design import Bounded, RegressionDesign, Sums
from reticent.models.fit import Estimator, Fit, ModelNoise, SystemModelNoise
from reticent.models.imputing import normal
from reticent.models.moments import Uncertain, uncertain
from reticent.models.perturbed import Output
from reticent.models.privgene import PrivGene
from reticent.models.sums import AdaSSP, Centred, Functional
from reticent.models.table import TableDesign, TabledFit, fit_table
from reticent.noise.bits import Bits, words
from reticent.plan import models
from reticent.plan.models import (
    TABLE,
    AnyModel,
    ClassRepair,
    Feature,
    ImputationModels,
    ModelRepair,
    grounds,
)
from reticent.plan.plan import Plan
from reticent.prepare.repair import FINE, NO_REPAIR, SCALE, WHOLE, Chances, RegressionLine, Repair, Term
from reticent.privacy.claim import Claim
from reticent.release.product import PlanRun, Producer, Result
from reticent.schema import Levels, Schema
from reticent.schema.bind import AllOf, Bound, CodeIn
from reticent.sensitivity.bounds import Neighbours

Wanted = Mapping[tuple[int, int], Sum | None]


def design_of(model: ModelRepair, schema: Schema) -> RegressionDesign:
    """The model's columns with their public bounds. The number of rows is that of complete ones: not public."""
    predictors = tuple(Bounded(name=f.name, low=f.low, high=f.high, grid=f.grid) for f in model.features)
    return RegressionDesign(predictors=predictors, response=Bounded.of(schema.coded[model.column]))


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


def sums_of(design: RegressionDesign, wanted: Wanted, found: SufficientStatistics) -> Sums:
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


def table_design_of(model: ClassRepair, schema: Schema) -> TableDesign:
    """The model's table."""
    response = schema.coded[model.column]
    if not isinstance(response, Levels):
        raise TypeError("chances are for columns with levels")
    return models.design_of(model.sides, response, schema, field=model.column)


def table_of(model: ClassRepair) -> Table:
    """What an engine must count: every cell of the predictors by every level, of those who answered."""
    keys = (*keys_of(model.sides), Key(column=model.column))
    return Table(rows=Rows(answered=(model.column,)), keys=keys)


def fit_classes(
    model: ClassRepair, schema: Schema, found: ContingencyTable, *, neighbours: Neighbours, noise: ModelNoise
) -> TabledFit:
    """The chances of every cell, for the model's epsilon."""
    design = table_design_of(model, schema)
    return fit_table(design, found.cells, epsilon=model.epsilon, neighbours=neighbours, noise=noise)


def chances_of(model: ClassRepair, fit: TabledFit, schema: Schema, *, bits: Bits) -> Chances:
    """The released chances in whole steps. Post-processing: reads no row."""
    column = schema.coded[model.column]
    rows = [_reached(row) if model.draws else _mode(row) for row in fit.chances.tolist()]
    return Chances(
        column=model.column,
        low=column.low,
        high=column.high,
        sides=model.sides,
        steps=tuple(zip(*rows, strict=True)),
        draw=partial(_uniform, bits=bits) if model.draws else None,
    )


def _reached(chances: list[float]) -> list[int]:
    """At which number of the draw each level but the first begins."""
    return [min(round(WHOLE * upto), WHOLE) for upto in accumulate(chances[:-1])]


def _mode(chances: list[float]) -> list[int]:
    """The same, so that every number reaches the likeliest level; the first of several."""
    best = chances.index(max(chances))
    return [0 if level < best else WHOLE for level in range(len(chances) - 1)]


def _uniform(n: int, *, bits: Bits) -> NDArray[np.int32]:
    return (words(n, bits) >> np.uint64(64 - 19)).astype(np.int32) if n else np.zeros(0, np.int32)


def classes_section(model: ClassRepair, fit: TabledFit, schema: Schema) -> dict[str, Any]:
    """What a release says of its chances: of each level in each cell, to four digits."""
    return {
        "column": model.column,
        "words": model.words(),
        "estimator": TABLE,
        "epsilon": show(model.epsilon),
        "given": list(model.predictors),
        "chances": [[round(chance, 4) for chance in row] for row in fit.chances.tolist()],
        "guarantee": {"words": str(fit.claim), **fit.claim.as_dict()},
    }


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
    return {"models": [_model_section(m, fit, plan.schema) for m, fit in zip(plan.models, fits, strict=True)]}


def _model_section(model: AnyModel, fit: Fit | TabledFit, schema: Schema) -> dict[str, Any]:
    if isinstance(model, ClassRepair) and isinstance(fit, TabledFit):
        return classes_section(model, fit, schema)
    if isinstance(model, ModelRepair) and isinstance(fit, Fit):
        return _section(model, fit, schema)
    raise TypeError("a line is told of a number, chances of levels")


def _section(model: ModelRepair, fit: Fit, schema: Schema) -> dict[str, Any]:
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


ESTIMATORS: dict[str, Callable[[], Estimator]] = {
    "centred": Centred,
    "functional": Functional,
    "adassp": AdaSSP,
    "output": Output,
    "privgene": PrivGene,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """The repair with its lines, what was released of each, and, for several copies, how uncertain each is."""

    repair: Repair = NO_REPAIR
    fits: tuple[Fit | TabledFit, ...] = ()
    lines: tuple[Uncertain, ...] = ()

    @property
    def epsilon(self) -> Fraction:
        """What the lines have cost."""
        return sum((fit.claim.epsilon for fit in self.fits), Fraction(0))

    def claims(self, plan: Plan) -> list[Claim]:
        """What they promise to one respondent of the survey, filling included."""
        return [
            replace(fit.claim, change=plan.change, rests_on=(*fit.claim.rests_on, *grounds(model)))
            for model, fit in zip(plan.models, self.fits, strict=False)
        ]


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
    found = Modelled(repair=plan.repair)
    for model in plan.models:
        made = _tabled if isinstance(model, ClassRepair) else _lined
        tally = _reading(engine, plan, found, lot, unfilled=model.stands_in)
        fit, filling, line = made(model, plan, tally, noise=noise, bits=bits)
        found = Modelled(
            repair=replace(found.repair, lines=(*found.repair.lines, filling)),
            fits=(*found.fits, fit),
            lines=(*found.lines, *line),
        )
    return found


Tally = Callable[[Sequence[Aggregate]], Tallies]
Made = tuple[Fit | TabledFit, RegressionLine | Chances, tuple[Uncertain, ...]]


def _reading(
    engine: Engine, plan: Plan, found: Modelled, lot: Lot | None, *, unfilled: bool = False
) -> Tally:
    """The rows as donors and the models so far have filled them, all completions; or `unfilled`, after edits alone."""
    repair = Repair(edits=plan.repair.edits) if unfilled else found.repair

    def tally(wants: Sequence[Aggregate]) -> Tallies:
        return engine.tally(plan.schema, wants, repair, lot)

    return tally


def _completed(model: AnyModel, tallies: Tallies) -> Tallies:
    """The sums over the completions of all rings, where donors fill a predictor."""
    return tallies.fractions or tallies if model.donees else tallies


def _tabled(model: AnyModel, plan: Plan, tally: Tally, *, noise: ModelNoise, bits: Bits) -> Made:
    if not isinstance(model, ClassRepair):
        raise TypeError("a line is no table")
    want = table_of(model)
    counts = _completed(model, tally([want])).tables[want]
    fit = fit_classes(model, plan.schema, counts, neighbours=model.neighbours(plan.neighbours), noise=noise)
    return fit, chances_of(model, fit, plan.schema, bits=bits), ()


def _lined(model: AnyModel, plan: Plan, tally: Tally, *, noise: ModelNoise, bits: Bits) -> Made:
    if isinstance(model, ClassRepair):
        raise TypeError("a table is no line")
    wanted = products(model)
    statistics = _completed(model, tally([want for want in wanted.values() if want])).statistics
    sums = sums_of(design_of(model, plan.schema), wanted, statistics)
    fit, line = _fit(model, sums, model.neighbours(plan.neighbours), noise)
    return fit, line_of(model, fit, plan.schema, bits=bits), line


def _fit(
    model: ModelRepair, sums: Sums, neighbours: Neighbours, noise: ModelNoise
) -> tuple[Fit, tuple[Uncertain, ...]]:
    """The fit, and for several copies how uncertain it is: from the same released sums."""
    if model.copies == 1:
        estimator = ESTIMATORS[model.estimator]()
        return estimator.fit(sums, epsilon=model.epsilon, neighbours=neighbours, noise=noise), ()
    centred = Centred()
    moments = centred.moments(sums, epsilon=model.epsilon, neighbours=neighbours, noise=noise)
    return centred.line(moments, epsilon=model.epsilon, neighbours=neighbours), (uncertain(moments),)


def check_models(plan: Plan) -> None:
    """Refuse what a release could not do, by trying every line on nobody; no row is read for it."""
    for place, model in enumerate(plan.models):
        try:
            fit = _nobody(model, plan)
        except PlanError as problem:
            raise PlanError(str(problem.args[0]), field=f"impute: {model.column}") from None
        told = replace(fit.claim, change=plan.change, rests_on=(*fit.claim.rests_on, *grounds(model)))
        if told != model.claim(plan.change):
            raise PlanError("a line would guarantee otherwise than was planned.", field=f"models[{place}]")


def _nobody(model: AnyModel, plan: Plan) -> Fit | TabledFit:
    noise = SystemModelNoise()
    if isinstance(model, ClassRepair):
        want = table_of(model)
        empty = ContingencyTable(want=want, cells=(0,) * want.size(plan.schema))
        return fit_classes(
            model, plan.schema, empty, neighbours=model.neighbours(plan.neighbours), noise=noise
        )
    design = design_of(model, plan.schema)
    size = len(design.widths)
    nobody = Sums(design=design, products=((0,) * size,) * size)
    try:
        estimator = ESTIMATORS[model.estimator]()
        return estimator.fit(
            nobody, epsilon=model.epsilon, neighbours=model.neighbours(plan.neighbours), noise=noise
        )
    except PlanError as problem:
        raise PlanError(f"{model.estimator}: {problem.args[0]}", field=model.column) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsResult(Result):
    """The models of a plan as they were fitted."""

    plan: Plan
    modelled: Modelled

    @property
    def epsilon(self) -> Fraction:
        return self.modelled.epsilon

    @property
    def claims(self) -> Sequence[Claim]:
        return self.modelled.claims(self.plan)

    @property
    def repair(self) -> Repair:
        return self.modelled.repair

    def grounds(self) -> dict[str, Any]:
        return models_section(self.plan, self.modelled.fits)


class ModelsProducer(Producer[ImputationModels]):
    """Fits every model, in order, each on rows that those before it have filled."""

    __slots__ = ()
    fills: ClassVar[bool] = True

    def check(self) -> None:
        check_models(self.plan)

    def run(self, on: PlanRun) -> ModelsResult:
        fitted = fit_models(on.plan, on.engine, on.lot, noise=SystemModelNoise(), bits=on.bits)
        return ModelsResult(plan=on.plan, modelled=fitted)
