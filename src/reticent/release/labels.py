"""Value labels and column labels of a release: told once, in a section of their own, and looked up by every output.

Numbers, files and filter expressions go by codes; labels are for readers. They come from the codebook, which is public, and
are plain text wherever they are written: whoever draws a page escapes them, and a table for spreadsheets defuses them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reticent.schema import Levels, Schema

Document = Mapping[str, Any]


def labels_section(schema: Schema, names: Iterable[str]) -> dict[str, Any]:
    """The labels of the columns `names`, with those of their levels; nothing where the codebook gives none."""
    told = {name: _labels(schema, name) for name in dict.fromkeys(names)}
    found = {name: each for name, each in told.items() if each}
    return {"labels": found} if found else {}


def _labels(schema: Schema, name: str) -> dict[str, Any]:
    column = schema.columns.get(name)
    if column is None:
        return {}
    told: dict[str, Any] = {"label": column.label} if column.label else {}
    told |= {"concept": column.concept} if column.concept else {}
    if isinstance(column, Levels) and column.labels:
        pairs = zip(column.levels, column.labels, strict=True)
        told["levels"] = {level: label for level, label in pairs if label}
    return told


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that a document holds. What has none is shown as it is.

    **Parameters**

    - `told`: the section `labels` of a release.
    """

    told: Mapping[str, Any]

    @classmethod
    def of(cls, document: Document) -> "Labels":
        """Those of a release; none where it tells none."""
        return cls(document.get("labels") or {})

    def column(self, name: str) -> str:
        """A column as a reader sees it."""
        return str((self.told.get(name) or {}).get("label") or name)

    def named(self) -> dict[str, str]:
        """Every column that has a label of its own, with it and with what its levels are called."""
        return {name: self._spelled_out(name) for name in self.told if self._spelled_out(name)}

    def _spelled_out(self, name: str) -> str:
        levels = ", ".join(f"{level}: {label}" for level, label in self.levels(name).items())
        label = self.column(name) if self.column(name) != name else ""
        return " ".join(filter(None, (label, f"({levels})" if levels else "")))

    def level(self, name: str, level: Any) -> str:
        """A level of a column as a reader sees it."""
        return str(self.levels(name).get(str(level)) or level)

    def term(self, term: str) -> str:
        """A term of a regression as a reader sees it: `Region = New England` for `region = 1`; a number by its label."""
        column, mark, level = term.partition(" = ")
        return f"{self.column(column)} = {self.level(column, level)}" if mark else self.column(term)

    def against(self, term: str, level: str) -> str:
        """What a term is compared with, as a reader sees it; nothing where it is compared with nothing."""
        return self.level(term.partition(" = ")[0], level) if level else ""

    def levels(self, name: str) -> Mapping[str, str]:
        """The labels of the levels of a column, by level; empty where it has none."""
        return (self.told.get(name) or {}).get("levels") or {}

    def cell(self, cell: Mapping[str, Any]) -> str:
        """`Region = New England; sex = female`."""
        return "; ".join(f"{self.column(name)} = {self.level(name, level)}" for name, level in cell.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumns:
    """The columns of a tidy table that its cells are told by: one for each key, and its label beside it.

    A key that is named like a column of the table itself, or like another's label, is written `key_NAME`.
    """

    names: Sequence[str]
    labels: Labels
    taken: Sequence[str] = ()

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        found: list[str] = []
        for name in self.names:
            plain = self._free(name, found)
            found += [plain, self._free(f"{plain}_label", found)] if self.labels.levels(name) else [plain]
        return found

    def values(self, cell: Mapping[str, Any]) -> list[Any]:
        """What stands under them in the line of a cell: its code, and its label; nothing under another's keys."""
        found: list[Any] = []
        for name in self.names:
            level = cell.get(name)
            found.append(level)
            if self.labels.levels(name):
                found.append(None if level is None else self.labels.level(name, level))
        return found

    def _free(self, name: str, found: Sequence[str]) -> str:
        while name in self.taken or name in found:
            name = f"key_{name}"
        return name


def keys_of(cells: Iterable[Mapping[str, Any]], order: Sequence[str] = ()) -> list[str]:
    """The keys of all cells: those of `order` first, then the others as they come."""
    found = dict.fromkeys(name for cell in cells for name in cell)
    return [name for name in order if name in found] + [name for name in found if name not in order]
