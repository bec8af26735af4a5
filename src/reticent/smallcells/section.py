"""Read the `[[cells]]` sections of a plan, naming what does not fit. No row has been read."""

from collections.abc import Mapping, Sequence
from typing import Any

from reticent.errors import PlanError
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.query.rows import Subpopulation
from reticent.schema import Schema
from reticent.smallcells import keys
from reticent.smallcells.cells import CHANGES, ENVELOPES, SmallCells
from reticent.smallcells.groups import Groups, read_groups
from reticent.smallcells.keys import CellsSection
from reticent.smallcells.refusals import check_given, check_level, check_repair, check_size, method_of
from reticent.tomlfile import fill
from reticent.words import is_printable

MOST_SECTIONS = 100


def read_cells(
    raw: Sequence[Mapping[str, Any]], schema: Schema, *, repair: Repair = NO_REPAIR
) -> tuple[SmallCells, ...]:
    """All sections of a plan, in order."""
    if len(raw) > MOST_SECTIONS:
        raise PlanError(f"has more than {MOST_SECTIONS} entries; drop some", field="cells")
    found: list[SmallCells] = []
    for place, each in enumerate(raw):
        at = f"cells[{place}]"
        section = fill(CellsSection, each, error=PlanError, at=at)
        found.append(_cells(section, each, schema, repair, at))
        if found[-1].name in [before.name for before in found[:-1]]:
            raise PlanError(f"two sections are called {section.name!r}", field=f"{at}.name")
    return tuple(found)


def _cells(
    section: CellsSection, written: Mapping[str, Any], schema: Schema, repair: Repair, at: str
) -> SmallCells:
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    method = method_of(section, at)
    estimate = keys.read_estimate(section, schema, at)
    x = None if estimate.kind == "mean" else section.x
    among = Subpopulation(where=keys.read_where(section, schema, at), missing=keys.read_missing(section, at))
    low, high = keys.read_range(section, estimate, schema, at)
    cells = SmallCells(
        name=section.name,
        cell=section.cell,
        y=section.y,
        x=x,
        among=among,
        estimate=estimate,
        method=method,
        epsilon=keys.read_amount(section.epsilon, f"{at}.epsilon"),
        count_epsilon=keys.read_budget(section.count_epsilon, f"{at}.count_epsilon"),
        noise_epsilon=keys.read_budget(section.noise_epsilon, f"{at}.noise_epsilon"),
        error_epsilon=keys.read_budget(section.error_epsilon, f"{at}.error_epsilon"),
        delta=keys.read_delta(section.delta, f"{at}.delta"),
        low=low,
        high=high,
        least=section.least or 0,
        level=keys.read_level(section.level, f"{at}.level"),
        groups=_groups(section, schema, at),
        smoothness=section.smoothness,
        matchings=section.matchings,
        is_bounded=bool(section.range),
        changes=keys.read_choice(section.changes, CHANGES, f"{at}.changes"),
        envelope=keys.read_choice(section.envelope, ENVELOPES, f"{at}.envelope"),
        written=written,
    )
    check_size(cells.want(schema), schema, at)
    check_given(cells, at)
    check_level(cells, at)
    check_repair(cells, repair, at)
    return cells


def _groups(section: CellsSection, schema: Schema, at: str) -> Groups | None:
    if section.groups is None:
        return None
    return read_groups(section.groups, schema.coded[section.cell], field=f"{at}.groups")
