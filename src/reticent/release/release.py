"""A release: the only thing that leaves. JSON for machines, tidy CSV for statisticians, same numbers.

The JSON holds every number and every synthetic row; CSV and Parquet are written from it, synthetic tables numbered over
all of them.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from reticent.errors import ReticentError
from reticent.plan.plan import Plan
from reticent.release.document import written
from reticent.release.format import FORMAT
from reticent.release.former_release import FORMER, in_todays_words
from reticent.release.synth_table import to_arrow, to_csv, to_parquet
from reticent.smallcells.table import LINE
from reticent.smallcells.table import lines as cell_lines
from reticent.smallcells.table import rows as cell_rows

if TYPE_CHECKING:
    import pyarrow as pa


COLUMNS = (
    "release",
    "statistic",
    "cell",
    "value",
    "unit",
    "level",
    "privacy_low",
    "privacy_high",
    "total_low",
    "total_high",
    "total_margin",
    "cv",
    "reliability",
    "guarantee",
    "meaning",
    "total_meaning",
)
NUMBERS = COLUMNS[COLUMNS.index("privacy_low") : COLUMNS.index("guarantee")]
"""The columns that an estimate has a number for; a release written before there was one leaves it empty."""


@dataclass(frozen=True, slots=True)
class Release:
    """A finished release. Arithmetic on its numbers gives plain numbers, without guarantee or interval.

    **Parameters**

    - `document`: what its JSON holds: statistics, guarantee, receipt.
    - `stored`: the bytes it was read from, where they are of an earlier format.
    """

    document: Mapping[str, Any]
    stored: bytes | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Release":
        """A release read back from its JSON. One of format 1 is read in today's words, and stays the same bytes."""
        try:
            document = json.loads(data)
        except ValueError:
            document = None
        if isinstance(document, dict) and document.get("format") == FORMER:
            return cls(in_todays_words(document), data)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ReticentError(f"is not a release of format {FORMAT}", field="release")
        return cls(document)

    def to_bytes(self) -> bytes:
        """The same release is the same bytes; keys stand in the order of the document, cells in the plan's."""
        return written(self.document).encode() + b"\n" if self.stored is None else self.stored

    @property
    def id(self) -> str:
        """The release's id, which is also the name of its files."""
        return str(self.document["id"])

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        """The estimates of one statistic, or the lines of one table of cells, by its name."""
        for answer in self.document["statistics"]:
            if answer["name"] == name:
                return list(answer["estimates"])
        for table in self.document.get("cells", []):
            if table["name"] == name:
                return cell_rows(table)
        raise KeyError(name)

    def synthetic(self, name: str, copy: int = 1) -> "pa.Table":
        """The rows of one synthetic table, or of one of its completed copies, as an Arrow table."""
        for table in self.document.get("synth", []):
            if table["name"] == name and 1 <= copy <= len(table["tables"]):
                return to_arrow(table, copy - 1)
        raise KeyError(name)

    def to_csv(self) -> bytes:
        """One line per estimate. Text that a spreadsheet would execute is defused by a leading quote (T28)."""
        return _csv(COLUMNS, self.lines())

    def cells_csv(self) -> bytes:
        """One line for each cell of each table, ready for a regression."""
        tables = self.document.get("cells", [])
        return _csv(LINE, (line for table in tables for line in cell_lines(table, self.id)))

    def lines(self) -> Iterator[list[Any]]:
        """The estimates as tidy lines under `COLUMNS`, in the order of the plan."""
        for answer in self.document["statistics"]:
            for estimate in answer["estimates"]:
                yield self._line(answer, estimate)

    def _line(self, answer: Mapping[str, Any], estimate: Mapping[str, Any]) -> list[Any]:
        cell = "; ".join(f"{name} = {level}" for name, level in estimate["cell"].items())
        numbers = [estimate.get(key) for key in NUMBERS]
        return [
            self.id,
            answer["name"],
            cell,
            estimate["value"],
            answer["unit"],
            answer["interval"]["level"],
            *numbers,
            answer["guarantee"]["words"],
            answer["interval"]["meaning"],
            _total_words(answer),
        ]


def _total_words(answer: Mapping[str, Any]) -> str:
    """What the total interval means, or why it is empty."""
    total = answer.get("total") or {}
    return f"empty: {total['empty']}" if total.get("empty") else str(total.get("meaning") or "")


def _csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_defused(value) for value in line] for line in lines)
    return out.getvalue().encode()


def _defused(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return "" if value is None else value


WRITERS: Mapping[str, Callable[[Mapping[str, Any], int], bytes]] = {".csv": to_csv, ".parquet": to_parquet}


def synth_pages(count: int) -> dict[str, Callable[[Release], bytes]]:
    """By ending: `.1.synth.csv`, `.1.synth.parquet`, and so on for `count` tables."""
    return {
        f".{number}.synth{ending}": partial(_page, number=number, write=write)
        for number in range(1, count + 1)
        for ending, write in WRITERS.items()
    }


def _page(release: Release, *, number: int, write: Callable[[Mapping[str, Any], int], bytes]) -> bytes:
    tables = [
        (table, copy) for table in release.document.get("synth", []) for copy in range(len(table["tables"]))
    ]
    return write(*tables[number - 1])


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
