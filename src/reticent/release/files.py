"""The files of an answer: JSON, which holds every number and every synthetic row, and the tables written from it."""

from collections.abc import Callable, Mapping

from reticent.release.plan import Plan
from reticent.release.release import Release
from reticent.release.synth_pages import synth_pages

JSON = ".json"
Files = Mapping[str, Callable[[Release], bytes]]


def files_of(release: Release) -> Files:
    """By their ending, JSON first. Each is a function of the release alone: no chance, no clock, no row."""
    synths = sum(len(table["tables"]) for table in release.document.get("synth", []))
    return _files(has_cells=bool(release.document.get("cells")), synths=synths)


def planned_files(plan: Plan) -> tuple[str, ...]:
    """The endings of the files that a release of `plan` will have."""
    return tuple(_files(has_cells=bool(plan.cells), synths=sum(synth.tables for synth in plan.synths)))


def _files(*, has_cells: bool, synths: int) -> Files:
    cells: Files = {".cells.csv": Release.cells_csv} if has_cells else {}
    return {JSON: Release.to_bytes, ".csv": Release.to_csv, **cells, **synth_pages(synths)}
