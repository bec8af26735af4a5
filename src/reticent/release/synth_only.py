"""The part of a plan that makes synthetic tables, as a plan of its own.

Where a plan holds nothing else, the part is the plan: same id, same words, same digest. Otherwise statistics and cells are left
out, and what is left is another plan with another id, so that the ledger can tell the two apart.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reticent.errors import PlanError
from reticent.release.plan import Plan, read_plan

OTHERS = ("statistic", "cells", "weight")
SUFFIX = "-synth"


def read_synth_plan(path: Path, *, rows: str | None = None, ledger: Path | None = None) -> Plan:
    """The synthetic tables of the plan at `path`, after the whole of it was found in order."""
    whole = read_plan(path, rows=rows, ledger=ledger)
    if not whole.synths:
        raise PlanError("holds no synthetic table; add a [[synth]]", field="synth")
    return read_plan(path, part=only_synth, rows=rows, ledger=ledger)


def only_synth(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same words without statistics, cells and weights; under the id with `-synth` where anything was left out."""
    if not any(data.get(section) for section in OTHERS):
        return dict(data)
    left = {key: value for key, value in data.items() if key not in OTHERS}
    left["release"] = {**data["release"], "id": f"{data['release']['id']}{SUFFIX}"}
    if not any("delta" in each for each in data["synth"]):
        left["protect"] = {key: value for key, value in data["protect"].items() if key != "delta"}
    return left
