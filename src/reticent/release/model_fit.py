"""Fit the private lines of a plan, one after the other, each on rows that the lines before it have filled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.engine.base import Engine
from reticent.engine.lots import Lot
from reticent.engine.results import ContingencyTable, Tallies
from reticent.engine.wants import Aggregate
from reticent.errors import PlanError
from reticent.models.adassp import AdaSSP
from reticent.models.centred import Centred
from reticent.models.fit import Estimator, Fit
from reticent.models.functional import Functional
from reticent.models.output import Output
from reticent.models.privgene import PrivGene
from reticent.models.sources import ModelNoise, SystemModelNoise
from reticent.models.sums import Sums
from reticent.models.tabled import TabledFit
from reticent.models.uncertainty import Uncertain, uncertain
from reticent.noise.bits import Bits
from reticent.prepare.chances import Chances
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.prepare.lines import RegressionLine
from reticent.privacy.claim import Claim
from reticent.release.class_fit import chances_of, fit_classes, table_of
from reticent.release.class_repair import ClassRepair
from reticent.release.model_lines import line_of
from reticent.release.model_repair import FILLING, AnyModel, ModelRepair
from reticent.release.model_sums import design_of, products, sums_of
from reticent.release.plan import Plan
from reticent.sensitivity.neighbours import Neighbours

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
    found = Modelled(repair=plan.repair)
    for model in plan.models:
        made = _tabled if isinstance(model, ClassRepair) else _lined
        fit, filling, line = made(model, plan, _reading(engine, plan, found, lot), noise=noise, bits=bits)
        found = Modelled(
            repair=replace(found.repair, lines=(*found.repair.lines, filling)),
            fits=(*found.fits, fit),
            lines=(*found.lines, *line),
        )
    return found


Tally = Callable[[Sequence[Aggregate]], Tallies]
Made = tuple[Fit | TabledFit, RegressionLine | Chances, tuple[Uncertain, ...]]


def _reading(engine: Engine, plan: Plan, found: Modelled, lot: Lot | None) -> Tally:
    """The rows as the models so far have filled them."""
    return lambda wants: engine.tally(plan.schema, wants, found.repair, lot)


def _tabled(model: AnyModel, plan: Plan, tally: Tally, *, noise: ModelNoise, bits: Bits) -> Made:
    if not isinstance(model, ClassRepair):
        raise TypeError("a line is no table")
    want = table_of(model)
    counts = tally([want]).tables[want]
    fit = fit_classes(model, plan.schema, counts, neighbours=plan.neighbours, noise=noise)
    return fit, chances_of(model, fit, plan.schema, bits=bits), ()


def _lined(model: AnyModel, plan: Plan, tally: Tally, *, noise: ModelNoise, bits: Bits) -> Made:
    if isinstance(model, ClassRepair):
        raise TypeError("a table is no line")
    wanted = products(model)
    statistics = tally([want for want in wanted.values() if want]).statistics
    sums = sums_of(design_of(model, plan.schema), wanted, statistics)
    fit, line = _fit(model, sums, plan.neighbours, noise)
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
        if Modelled(repair=plan.repair, fits=(fit,)).claims != [model.claim(plan.change)]:
            raise PlanError("a line would promise otherwise than was planned.", field=f"models[{place}]")


def _nobody(model: AnyModel, plan: Plan) -> Fit | TabledFit:
    noise = SystemModelNoise()
    if isinstance(model, ClassRepair):
        want = table_of(model)
        empty = ContingencyTable(want=want, cells=(0,) * want.size(plan.schema))
        return fit_classes(model, plan.schema, empty, neighbours=plan.neighbours, noise=noise)
    design = design_of(model, plan.schema)
    size = len(design.widths)
    nobody = Sums(design=design, products=((0,) * size,) * size)
    try:
        estimator = ESTIMATORS[model.estimator]()
        return estimator.fit(nobody, epsilon=model.epsilon, neighbours=plan.neighbours, noise=noise)
    except PlanError as problem:
        raise PlanError(f"{model.estimator}: {problem.args[0]}", field=model.column) from None
