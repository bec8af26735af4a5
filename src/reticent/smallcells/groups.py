"""Groups of cells, such as the state a tract lies in: public facts from a plan or a public file, never from rows."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from reticent.errors import PlanError
from reticent.schema import Levels, Number
from reticent.tomlfile import Section
from reticent.words import is_printable

LARGEST_FILE = 2**26
MOST_GROUPS = 10_000
_RANGE = re.compile(r"(-?[0-9]{1,15})\.\.(-?[0-9]{1,15})")


class GroupsSection(Section):
    """Either `of`, cells by group, or a `file` with a header, its column of `cell`s and its column of `group`s."""

    of: dict[str, list[str | int]] = Field(default={})
    file: str | None = None
    cell: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """One group for every declared cell: `place[g]` is the number of cell g's group among `names`."""

    names: tuple[str, ...]
    place: tuple[int, ...] = field(repr=False)


def with_files(sections: Sequence[Any], folder: Path, *, rows: str) -> list[Any]:
    """`[[cells]]` entries with the groups that stand in public files written out. The `rows` are not public."""
    for place, raw in enumerate(sections):
        groups = raw.get("groups") if isinstance(raw, Mapping) else None
        if isinstance(groups, Mapping) and groups.get("file") == rows:
            raise PlanError(
                "holds the rows; groups come from a public file", field=f"cells[{place}].groups.file"
            )
    return [with_file(raw, folder, field=f"cells[{place}].groups") for place, raw in enumerate(sections)]


def with_file(raw: Any, folder: Path, *, field: str) -> Any:
    """A `[[cells]]` entry whose groups, if they stand in a public file, are written out; else as it was."""
    groups = raw.get("groups") if isinstance(raw, Mapping) else None
    if not isinstance(groups, Mapping) or not isinstance(groups.get("file"), str):
        return raw
    if set(groups) != {"file", "cell", "group"} or not all(isinstance(v, str) for v in groups.values()):
        raise PlanError("a file of groups goes with the names of its columns 'cell' and 'group'", field=field)
    name = groups["file"]
    if not name or name.startswith(("/", "~")) or ".." in name.split("/") or any(c in name for c in "\\$:~"):
        raise PlanError("stays inside the plan's folder", field=f"{field}.file")
    found: dict[str, list[str]] = {}
    for cell, group in _lines(folder / name, groups["cell"], groups["group"], field=f"{field}.file"):
        found.setdefault(group, []).append(cell)
    return {**raw, "groups": {"of": found}}


def _lines(path: Path, cell: str, group: str, *, field: str) -> Iterator[tuple[str, str]]:
    text = None
    try:
        if path.stat().st_size <= LARGEST_FILE:
            text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        pass
    if text is None:
        raise PlanError("cannot be read; give a UTF-8 CSV file of at most 64 MiB", field=field)
    try:
        table = csv.DictReader(io.StringIO(text), strict=True)
        if not {cell, group} <= set(table.fieldnames or ()):
            raise PlanError(f"has no columns {cell!r} and {group!r} in its first line", field=field)
        for line in table:
            yield str(line[cell]).strip(), str(line[group]).strip()
    except csv.Error:
        raise PlanError("is not a CSV file that can be read to its end", field=field) from None


def read_groups(section: GroupsSection, column: Levels | Number, *, field: str) -> Groups:
    """Every cell in exactly one group; cells by their text in the codebook, or as ranges `1..600`."""
    if section.file is not None or section.cell is not None or section.group is not None:
        raise PlanError(
            "a file of groups is read from a plan file; here write groups = { of = ... }", field=field
        )
    if not 1 <= len(section.of) <= MOST_GROUPS:
        raise PlanError(f"names from 1 to {MOST_GROUPS} groups", field=f"{field}.of")
    numbers = {column.text(code): code - column.low for code in range(column.low, column.high + 1)}
    place = [-1] * len(numbers)
    for number, (name, cells) in enumerate(section.of.items()):
        if not name or len(name) > 100 or not is_printable(name):
            raise PlanError("a group's name is up to 100 printable characters", field=f"{field}.of")
        for cell in _spread(cells, numbers, column, f"{field}.of.{name}"):
            if place[cell] not in (-1, number):
                raise PlanError(
                    f"cell {column.text(cell + column.low)} is in two groups", field=f"{field}.of"
                )
            place[cell] = number
    if -1 in place:
        lost = column.text(place.index(-1) + column.low)
        raise PlanError(f"cell {lost} is in no group; put every cell into one", field=f"{field}.of")
    return Groups(names=tuple(section.of), place=tuple(place))


def _spread(
    cells: list[str | int], numbers: Mapping[str, int], column: Levels | Number, field: str
) -> Iterator[int]:
    for cell in cells:
        text = str(cell)
        span = _RANGE.fullmatch(text) if isinstance(column, Number) else None
        ends = (span[1], span[2]) if span else (text, text)
        unknown = next((end for end in ends if end not in numbers), None)
        if unknown is not None:
            raise PlanError(f"there is no cell {unknown[:80]!r} in the codebook", field=field)
        yield from range(numbers[ends[0]], numbers[ends[1]] + 1)
