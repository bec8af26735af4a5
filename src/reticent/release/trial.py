"""Try a plan on nobody before anything is charged: whatever can fail from public numbers fails here, and costs nothing.

The trial is the release itself, on an engine that holds no rows: the same noise at the same scales, the same estimates, the
same files. Nothing of it is kept. Tables of small cells are tried on one cell, and of synthetic rows a few are drawn.
"""

from collections.abc import Callable
from dataclasses import replace
from secrets import token_hex

from reticent.engine.nobody import Nobody
from reticent.errors import PlanError
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.release.asks import wants_of
from reticent.release.cells import check_cells
from reticent.release.models import check_models
from reticent.release.release import Release, files_of
from reticent.release.run import run_plan

ROWS = 20
FAILED = (
    "cannot be computed: its epsilon, bounds, grids or weights are too large or too small for each other; change them. "
    "Nothing was charged"
)

BETA = (
    "no noise for a confidential scale is proved at this epsilon; take a smaller one, or another smoothness"
)


def try_plan(plan: Plan) -> None:
    """Refuse what a release could not do, naming the statistic. Reads no row; two trials may draw different noise."""
    wants_of(plan)
    check_cells(plan)
    check_models(plan)
    if not (plan.asks or plan.synths):
        return
    reached: list[str] = []
    said = ""
    try:
        _carry_out(_small(plan), reached.append)
    except PlanError as problem:
        said = BETA if problem.field == "beta" else str(problem.args[0])
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a failure on nobody is one of public numbers, and becomes a refusal
        said = FAILED
    if said:
        raise PlanError(said, field=_place(plan, reached))


def _carry_out(plan: Plan, step: Callable[[str], None]) -> None:
    lot = plan.partition.lot(token_hex(32)) if plan.partition else None
    done = run_plan(plan, Nobody(), lot, step=step)
    if not done.is_as_planned(plan):
        raise PlanError(f"was planned at {show(plan.cost)} but would run otherwise", field="statistic")
    made = Release(done.told(plan, receipt=None, engine=Nobody.version))
    for write in files_of(made).values():
        write(Release.from_bytes(made.to_bytes()))


def _small(plan: Plan) -> Plan:
    """The plan without cells, which have a trial of their own, and with a few synthetic rows: more are more of the same."""
    few = tuple(replace(synth, rows=min(synth.rows, ROWS)) for synth in plan.synths)
    return replace(plan, cells=(), synths=few)


def _place(plan: Plan, reached: list[str]) -> str:
    """The first statistic that was not reached, as the plan calls it."""
    named = [(f"statistic[{place}]", ask.name) for place, ask in enumerate(plan.asks)]
    named += [(f"synth[{place}]", synth.name) for place, synth in enumerate(plan.synths)]
    at = next((f"{at} {name!r}" for at, name in named if name not in reached), "plan")
    return at if "tallied" in reached else "impute"
