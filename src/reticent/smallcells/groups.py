"""Groups of cells, such as the state a tract lies in: public facts from a plan or a public file, never from rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from reticent.errors import PlanError
from reticent.publicfiles import PublicCell, PublicFiles
from reticent.schema import Levels, Number
from reticent.tomlfile import Section
from reticent.words import is_printable

MOST_GROUPS = 10_000
_RANGE = re.compile(r"(-?[0-9]{1,15})\.\.(-?[0-9]{1,15})")


class GroupsSection(Section):
    """Either `of`, cells by group, or a `file` with a header, its column of `cell`s and its column of `group`s."""

    of: dict[str, list[Any]] = Field(default={})  # cells of a file keep their lines
    file: str | None = None
    cell: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """One group for every declared cell: `place[g]` is the number of cell g's group among `names`."""

    names: tuple[str, ...]
    place: tuple[int, ...] = field(repr=False)


def with_files(sections: Sequence[Any], files: PublicFiles) -> list[Any]:
    """`[[cells]]` entries with the groups that stand in public files written out."""
    return [with_file(raw, files, field=f"cells[{place}].groups") for place, raw in enumerate(sections)]


def with_file(raw: Any, files: PublicFiles, *, field: str) -> Any:
    """A `[[cells]]` entry whose groups, if they stand in a public file, are written out; else as it was."""
    groups = raw.get("groups") if isinstance(raw, Mapping) else None
    if not isinstance(groups, Mapping) or not isinstance(groups.get("file"), str):
        return raw
    if set(groups) != {"file", "cell", "group"} or not all(isinstance(v, str) for v in groups.values()):
        raise PlanError("a file of groups goes with the names of its columns 'cell' and 'group'", field=field)
    at, found = f"{field}.file", dict[str, list[PublicCell]]()
    for line in files.lines(groups["file"], field=at):
        if not {groups["cell"], groups["group"]} <= set(line):
            raise PlanError(
                f"has no columns {groups['cell']!r} and {groups['group']!r} in its first line", field=at
            )
        found.setdefault(str(line[groups["group"]]), []).append(line[groups["cell"]])
    files.publish(field=at, what="names of groups", texts=found)
    return {**raw, "groups": {"of": found}}


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
        for each in cells:
            at = f"{field}.file, line {each.line}" if isinstance(each, PublicCell) else f"{field}.of"
            for cell in _spread(each, numbers, column, at):
                if place[cell] not in (-1, number):
                    shown = column.text(cell + column.low)
                    which = "its cell" if isinstance(each, PublicCell) else f"cell {shown}"
                    raise PlanError(f"{which} is in two groups", field=at)
                place[cell] = number
    if -1 in place:
        lost = column.text(place.index(-1) + column.low)
        raise PlanError(f"cell {lost} is in no group; put every cell into one", field=f"{field}.of")
    return Groups(names=tuple(section.of), place=tuple(place))


def _spread(cell: object, numbers: Mapping[str, int], column: Levels | Number, field: str) -> Iterator[int]:
    """The numbers of a cell, or of a range of them."""
    if not isinstance(cell, str | int) or isinstance(cell, bool):
        raise PlanError("a cell is a text or a whole number", field=field)
    text = str(cell)
    span = _RANGE.fullmatch(text) if isinstance(column, Number) else None
    ends = (span[1], span[2]) if span else (text, text)
    unknown = next((end for end in ends if end not in numbers), None)
    if unknown is not None:
        shown = "of that name" if isinstance(cell, PublicCell) else repr(unknown[:80])
        raise PlanError(f"there is no cell {shown} in the codebook", field=field)
    yield from range(numbers[ends[0]], numbers[ends[1]] + 1)
