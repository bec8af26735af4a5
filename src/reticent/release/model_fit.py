"""Fit the private lines of a plan, one after the other, each on rows that the lines before it have filled."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.engine.base import Engine
from reticent.engine.lots import Lot
from reticent.errors import PlanError
from reticent.models.adassp import AdaSSP
from reticent.models.centred import Centred
from reticent.models.fit import Estimator, Fit
from reticent.models.functional import Functional
from reticent.models.objective import Objective
from reticent.models.output import Output
from reticent.models.privgene import PrivGene
from reticent.models.sources import ModelNoise, SystemModelNoise
from reticent.models.sums import Sums
from reticent.models.uncertainty import Uncertain, uncertain
from reticent.noise.bits import Bits
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.privacy.claim import Claim
from reticent.release.model_lines import line_of
from reticent.release.model_repair import FILLING, ModelRepair
from reticent.release.model_sums import design_of, products, sums_of
from reticent.release.plan import Plan
from reticent.sensitivity.neighbours import Neighbours

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
    """The repair with its lines, what was released of each, and, for several copies, how uncertain each is."""

    repair: Repair = NO_REPAIR
    fits: tuple[Fit, ...] = ()
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
        wanted = products(model)
        tallies = engine.tally(plan.schema, [want for want in wanted.values() if want], found.repair, lot)
        sums = sums_of(design_of(model, plan.schema), wanted, tallies.statistics)
        fit, line = _fit(model, sums, plan.neighbours, noise)
        filling = line_of(model, fit, plan.schema, bits=bits)
        found = Modelled(
            repair=replace(found.repair, lines=(*found.repair.lines, filling)),
            fits=(*found.fits, fit),
            lines=(*found.lines, *line),
        )
    return found


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
