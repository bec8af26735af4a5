"""Try a plan on nobody before anything is charged: whatever can fail from public numbers fails here, and costs nothing.

The trial is the release itself, on an engine that holds no rows: the same noise at the same scales, the same estimates, the
same files. Nothing of it is kept. Each product says how much of it is tried: tables of small cells are tried on one cell,
and of synthetic rows a few are drawn.
"""

from collections.abc import Callable
from dataclasses import replace
from secrets import token_hex

from reticent.engine.nobody import Nobody
from reticent.errors import PlanError
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.release.products import producers
from reticent.release.release import Release, files_of
from reticent.release.run import run_plan

FAILED = (
    "cannot be computed: its epsilon, bounds, grids or weights are too large or too small for each other; change them. "
    "Nothing was charged"
)

BETA = (
    "no noise for a confidential scale is proved at this epsilon; take a smaller one, or another smoothness"
)


def try_plan(plan: Plan) -> None:
    """Refuse what a release could not do, naming the statistic. Reads no row; two trials may draw different noise."""
    for producer in producers(plan):
        producer.check()
    tried = _small(plan)
    if all(producer.fills for producer in producers(tried)):
        return
    reached: list[str] = []
    said = ""
    try:
        _carry_out(tried, reached.append)
    except PlanError as problem:
        said = BETA if problem.field == "beta" else str(problem.args[0])
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a failure on nobody is one of public numbers, and becomes a refusal
        said = FAILED
    if said:
        raise PlanError(said, field=_place(tried, reached))


def _carry_out(plan: Plan, step: Callable[[str], None]) -> None:
    lot = plan.partition.lot(token_hex(32)) if plan.partition else None
    done = run_plan(plan, Nobody(), lot, step=step)
    if not done.is_as_planned(plan):
        raise PlanError(f"was planned at {show(plan.cost)} but would run otherwise", field="statistic")
    made = Release(done.told(plan, receipt=None, engine=Nobody.version))
    for write in files_of(made).values():
        write(Release.from_bytes(made.to_bytes()))


def _small(plan: Plan) -> Plan:
    """The plan with as much of each product as its producer tries together with the others."""
    small = (producer.small() for producer in producers(plan))
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
