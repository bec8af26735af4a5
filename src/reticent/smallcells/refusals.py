"""What a `[[cells]]` section may not ask for, though each of its keys can be read."""

from collections.abc import Mapping

from reticent.decimals import show
from reticent.engine.wants import MOST_PLACES, PointsByCell
from reticent.errors import PlanError
from reticent.predicate.tree import columns_used
from reticent.prepare.donors import Repair
from reticent.query.rows import COMPLETE
from reticent.schema import Schema
from reticent.smallcells.cells import MOST_CELLS, Method, SmallCells
from reticent.smallcells.keys import CellsSection
from reticent.smallcells.observed_table import LABEL
from reticent.words import nearest

MOST_LEVEL_NOISE = (
    2  # scale of the noise on ln S: intervals are then some hundred times as wide as they could be
)
WHY_NOT_SUPPRESS = (
    "suppression publishes exact numbers, for which no epsilon stands and no ledger can be charged; "
    "reticent.smallcells.suppress shows what it does, from Python"
)
ONLY: Mapping[str, tuple[Method, ...]] = {
    "noise_epsilon": (Method.SMOOTH, Method.POOLED),
    "delta": (Method.POOLED,),
    "error_epsilon": (Method.OBSERVED,),
    "least": (Method.POOLED, Method.OBSERVED),
    "groups": (Method.OBSERVED,),
    "changes": (Method.OBSERVED,),
    "envelope": (Method.OBSERVED,),
    "accept_observed": (Method.OBSERVED,),
    "smoothness": (Method.SMOOTH, Method.POOLED),
    "matchings": (Method.THEIL_SEN,),
}


def method_of(section: CellsSection, at: str) -> Method:
    if section.method == "suppress":
        raise PlanError(WHY_NOT_SUPPRESS, field=f"{at}.method")
    try:
        method = Method(section.method)
    except ValueError:
        listed = ", ".join(Method)
        hint = nearest(section.method[:80], [each.value for each in Method])
        raise PlanError(f"is one of {listed}{hint}", field=f"{at}.method") from None
    for key, methods in ONLY.items():
        if getattr(section, key) is not None and method not in methods:
            raise PlanError(f"does not go with method = {method.value!r}; remove it", field=f"{at}.{key}")
    if method is Method.OBSERVED and section.accept_observed is not True:
        raise PlanError(
            f"the method is {LABEL}; write accept_observed = true to go on, or use method = 'smooth'",
            field=f"{at}.accept_observed",
        )
    if method is Method.THEIL_SEN and section.estimate.mean:
        raise PlanError("a mean has no line through two points; use another method", field=f"{at}.estimate")
    return method


def check_size(want: PointsByCell, schema: Schema, at: str) -> None:
    cells = want.cells(schema)
    if cells > MOST_CELLS:
        raise PlanError(f"has more than {MOST_CELLS} cells; declare fewer", field=f"{at}.cell")
    if want.size(schema) > MOST_PLACES:
        raise PlanError("has too many grid steps for 64 bits; declare coarser grids for x and y", field=at)


def check_given(cells: SmallCells, at: str) -> None:
    """The pooled envelope is three releases and a delta, the observed method two."""
    needed = {
        Method.POOLED: ("count_epsilon", "noise_epsilon", "delta", "least"),
        Method.OBSERVED: ("count_epsilon",),
    }
    for key in needed.get(cells.method, ()):
        if not getattr(cells, key):
            raise PlanError(
                f"is missing; method = {cells.method.value!r} cannot do without it", field=f"{at}.{key}"
            )


def check_level(cells: SmallCells, at: str) -> None:
    """A noise level with so much noise of its own that it would say nothing is not sold."""
    least = cells.epsilon / (cells.m * MOST_LEVEL_NOISE)
    if cells.method is Method.SMOOTH and 0 < cells.noise_epsilon < least:
        raise PlanError(
            f"is too small to say anything of noise at epsilon {show(cells.epsilon)} and smoothness {cells.m}; "
            f"give it at least {show(least)}, or nothing",
            field=f"{at}.noise_epsilon",
        )


def check_repair(cells: SmallCells, repair: Repair, at: str) -> None:
    filled = {donors.column for donors in repair.donors}
    used = {cells.cell, cells.y, cells.x or cells.y, *columns_used(cells.among.where)}
    touched = sorted(filled if cells.among.missing == COMPLETE else filled & used)
    if touched:
        raise PlanError(
            f"{touched[0]} is filled by donors, and nothing bounds a small cell of donated answers; "
            "use a column that no donor fills",
            field=at,
        )
