"""Carry a plan out on rows: everything between the charge and the document, alike for a release and a rehearsal."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from reticent.engine.protocol import Engine
from reticent.engine.results import SufficientStatistics, Tallies
from reticent.engine.sql.sampling import Lot
from reticent.noise.bits import SystemBits
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.privacy.units import cost
from reticent.release.document import document
from reticent.release.product import PlanRun, Producer, Result, Step
from reticent.release.products import producers

NOTHING = Tallies(statistics=SufficientStatistics(sums={}), tables={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a plan gave, product by product, after the noise."""

    products: tuple[Result, ...] = field(repr=False)

    @property
    def epsilon(self) -> Fraction:
        """What was spent on all of it."""
        return sum((each.epsilon for each in self.products), Fraction(0))

    def spent(self, plan: Plan) -> Fraction:
        """The same in the plan's unit: where that is rho, of every claim that was asked of what was run."""
        if plan.unit == "epsilon":
            return self.epsilon
        ran = (claim for each in self.products for claim in (*each.claims, *each.ground_claims))
        return sum((cost(claim, plan.unit) for claim in ran), Fraction(0))

    def is_as_planned(self, plan: Plan) -> bool:
        """Whether it cost what was planned, and every statistic was measured as planned. Both sides are public."""
        return self.spent(plan) == plan.cost and all(each.is_as_planned for each in self.products)

    def told(
        self,
        plan: Plan,
        *,
        receipt: Mapping[str, Any] | None,
        engine: str,
        beside: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The document of it; without a receipt that of a rehearsal."""
        return document(plan, self.products, receipt=receipt, engine=engine, beside=beside)


def run_plan(plan: Plan, engine: Engine, lot: Lot | None, *, step: Step = lambda _: None) -> Results:
    """Read the rows and add the noise. Nothing but `Results` comes of it; `step` hears names of the plan alone."""
    on = PlanRun(
        plan=plan,
        engine=engine,
        lot=lot,
        noise=SystemNoise(),
        bits=SystemBits(),
        step=step,
        repair=plan.repair,
        tallies=NOTHING,
    )
    made = producers(plan)
    for producer in made:
        on = _after(producer, on) if producer.fills else on
    wants = [want for producer in made for want in producer.wants()]
    if wants:
        on = replace(on, tallies=engine.tally(plan.schema, wants, on.repair, lot))
    step("tallied")
    for producer in made:
        on = on if producer.fills else _after(producer, on)
    return Results(products=on.results)


def _after(producer: Producer[Any], on: PlanRun) -> PlanRun:
    """The run with what one product gave, and with rows filled as it says."""
    done = producer.run(on)
    return replace(on, results=(*on.results, done), repair=done.repair or on.repair)
