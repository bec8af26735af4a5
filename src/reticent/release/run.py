"""Carry a plan out on rows: everything between the charge and the document, alike for a release and a rehearsal.

Before anything is charged a plan is tried on nobody: whatever can fail from public numbers fails there, and costs nothing.
The trial is the release itself, on an engine that holds no rows: the same noise at the same scales, the same estimates, the
same files. Nothing of it is kept. Each product says how much of it is tried: tables of small cells are tried on one cell,
and of synthetic rows a few are drawn.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from secrets import token_hex
from typing import Any

from reticent.engine.open import Nobody
from reticent.engine.protocol import Engine
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import SufficientStatistics, Tallies
from reticent.errors import PlanError
from reticent.exact import show
from reticent.noise.bits import SystemBits
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan, naming
from reticent.privacy.claim import cost
from reticent.release.document import document
from reticent.release.product import PlanRun, Producer, Result, Step
from reticent.release.release import Release, files_of, producers

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

    def to_document(
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
    filled = done.repair if producer.fills else None
    return replace(on, results=(*on.results, done), repair=filled or on.repair)


FAILED = (
    "cannot be computed: its epsilon, bounds, grids or weights are too large or too small for each other; change them. "
    "Nothing was charged"
)

BETA = (
    "no noise for a confidential scale is proved at this epsilon; take a smaller one, or another smoothness"
)


def try_plan(plan: Plan, on: Engine | None = None) -> None:
    """Refuse what a release could not do, naming the statistic. Reads no row; two trials may draw different noise.

    `on` is an engine without rows that refuses what the one with the rows cannot do.
    """
    names = {
        f"{product.section}[{place}]": f"{product.section} {name!r}"
        for product in plan.products
        for place, name in enumerate(product.names)
    }
    with naming(names):
        for producer in producers(plan):
            producer.check()
    tried = _small(plan)
    if all(producer.fills for producer in producers(tried)):
        return
    reached: list[str] = []
    said = ""
    try:
        _carry_out(tried, on or Nobody(), reached.append)
    except PlanError as problem:
        said = BETA if problem.field == "beta" else str(problem.args[0])
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a failure on nobody is one of public numbers, and becomes a refusal
        said = FAILED
    if said:
        raise PlanError(said, field=_place(tried, reached))


def _carry_out(plan: Plan, engine: Engine, step: Callable[[str], None]) -> None:
    lot = plan.partition.lot(token_hex(32)) if plan.partition else None
    done = run_plan(plan, engine, lot, step=step)
    if not done.is_as_planned(plan):
        raise PlanError(f"was planned at {show(plan.cost)} but would run otherwise", field="statistic")
    made = Release(done.to_document(plan, receipt=None, engine=Nobody.version))
    held = made.to_bytes()
    for write in files_of(made).values():
        write(Release.from_bytes(held))


def _small(plan: Plan) -> Plan:
    """The plan with as much of each product as its producer tries together with the others."""
    made = producers(plan)
    small = [producer.asked if producer.is_tried_whole else producer.small() for producer in made]
    return replace(plan, products=tuple(product for product in small if product is not None))


def _place(plan: Plan, reached: list[str]) -> str:
    """The first statistic or table that was not reached, as the plan calls it."""
    named = [
        (f"{product.section}[{place}]", name)
        for product in plan.products
        for place, name in enumerate(product.names)
    ]
    at = next((f"{at} {name!r}" for at, name in named if name not in reached), "plan")
    return at if "tallied" in reached else "impute"
