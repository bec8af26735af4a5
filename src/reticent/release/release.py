"""A release: the only thing that leaves. JSON for machines, tidy CSV for statisticians, same numbers.

The JSON holds every number and every synthetic row; CSV and Parquet are written from it, synthetic tables numbered over
all of them. Who makes each product of a plan, and how its section is read back, has one line for each kind here.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from reticent.errors import ReticentError
from reticent.files import Tidy
from reticent.plan.budgets import Product
from reticent.plan.cells import CellTables
from reticent.plan.models import ImputationModels
from reticent.plan.plan import Plan
from reticent.plan.regression import Regressions
from reticent.plan.statistics import Statistics
from reticent.plan.synth import SyntheticTables
from reticent.plan.tables import AddUpTables
from reticent.release.cells import CELLS, CellsProducer
from reticent.release.document import written
from reticent.release.format import FORMAT
from reticent.release.former_release import FORMER, in_todays_words
from reticent.release.labels import KeyColumns, Labels, keys_of
from reticent.release.models import ModelsProducer
from reticent.release.product import Document, Producer, ReleasedSection
from reticent.release.regression import REGRESSION, RegressionProducer
from reticent.release.shown import release_html
from reticent.release.statistics import STATISTICS, StatisticsProducer
from reticent.release.synth import SYNTH, SyntheticProducer
from reticent.release.synth_answers import query as ask
from reticent.release.synth_table import to_arrow
from reticent.release.tables import TABLES, TablesProducer

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.synth.answer import DirectAnswer

PRODUCERS: Mapping[type[Product], type[Producer[Any]]] = {
    ImputationModels: ModelsProducer,
    Statistics: StatisticsProducer,
    CellTables: CellsProducer,
    AddUpTables: TablesProducer,
    Regressions: RegressionProducer,
    SyntheticTables: SyntheticProducer,
}

RELEASED: Mapping[str, ReleasedSection] = {
    "statistics": STATISTICS,
    "cells": CELLS,
    "tables": TABLES,
    "regression": REGRESSION,
    "synth": SYNTH,
}
"""By their key in a document."""


def producers(plan: Plan) -> list[Producer[Any]]:
    """One for each product that the plan asks for, in its order."""
    return [PRODUCERS[type(product)](product, plan) for product in plan.products]


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
KEYS = COLUMNS.index("value")  # where a column for each key stands
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
            raise ReticentError(
                f"is not a release of format {FORMAT}; name the JSON file of one", field="release"
            )
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
        for key, section in RELEASED.items():
            for each in self.document.get(key, []):
                if each["name"] == name and section.rows is not None:
                    return section.rows(each)
        raise KeyError(name)

    def synthetic(self, name: str, copy: int = 1) -> "pa.Table":
        """The rows of one synthetic table, or of one of its completed copies, as an Arrow table."""
        for table in self.document.get("synth", []):
            if table["name"] == name and 1 <= copy <= len(table["tables"]):
                return to_arrow(table, copy - 1)
        raise KeyError(name)

    def query(
        self,
        query: Mapping[str, Any],
        *,
        table: str | None = None,
        level: float = 0.95,
        design_effect: float | str | None = None,
    ) -> "tuple[DirectAnswer, ...]":
        """Ask the noisy tables behind a synthetic table: `release.query({"mean": "hours", "where": "sex = 'Female'"})`.

        An answer has an interval for sampling and privacy noise where tables of its columns were measured, and is the model's
        own number, marked so, where not. Costs nothing: everything it reads was released. A regression has one answer for
        each coefficient. Sampling takes the `design_effect` given here, else the design factor that the release tells, bought or
        declared; the answer's `design` says which.
        """
        return ask(self.document, query, table=table, level=level, design_effect=design_effect)

    def __repr__(self) -> str:
        """What it is, without its numbers."""
        names = [str(each.get("name")) for key in RELEASED for each in self.document.get(key) or []]
        state = "" if self.document.get("published") is True else "rehearsal "
        return f"<{state}release {self.id!r}: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}>"

    def _repr_html_(self) -> str:
        return release_html(self.document, list(RELEASED))

    def to_arrow(self, of: str = "statistics") -> "pa.Table":
        """The estimates as an Arrow table: the columns of the CSV, numbers as numbers, nothing where there is none.

        **Parameters**

        - `of`: `"statistics"`, or another part of the release: `"tables"`, `"cells"` or `"regression"`.
        """
        return self.tidy(of).to_arrow()

    def to_pandas(self, of: str = "statistics") -> Any:
        """The same as a pandas frame."""
        return self.to_arrow(of).to_pandas()

    def to_polars(self, of: str = "statistics") -> Any:
        """The same as a Polars frame."""
        import polars  # the caller's own: no part of this library needs it

        return polars.from_arrow(self.to_arrow(of))

    def to_csv(self) -> bytes:
        """One line per estimate. Text that a spreadsheet would execute is defused by a leading quote (T28)."""
        return self.tidy().to_csv()

    def tidy(self, of: str = "statistics") -> Tidy:
        """A part of the release with a line for each of its numbers: `"statistics"`, `"tables"`, `"cells"` or `"regression"`."""
        if of == "statistics":
            return Tidy(header=self.header, lines=list(self.lines()), numbers=frozenset(DECIMALS))
        held = self.parts[1:]
        section = RELEASED[of] if of in held else None
        if section is None or section.tidy is None:
            rows = "; synthetic rows are had by synthetic(name)" if self.document.get("synth") else ""
            raise ReticentError(f"is one of {', '.join(self.parts)}{rows}", field="of")
        return section.tidy(self.document)

    @property
    def parts(self) -> list[str]:
        """The parts that `tidy` and the frames know: the statistics first, then what else the release holds."""
        held = [key for key, section in RELEASED.items() if section.tidy and self.document.get(key)]
        return ["statistics", *held]

    @property
    def header(self) -> list[str]:
        """The columns of the tidy table: `COLUMNS`, and after the cell one for each key that any cell has, with its label."""
        return [*COLUMNS[:KEYS], *self._keys.header, *COLUMNS[KEYS:]]

    def lines(self) -> Iterator[list[Any]]:
        """The estimates as tidy lines under `header`, in the order of the plan."""
        keys = self._keys
        for answer in self.document["statistics"]:
            for estimate in answer["estimates"]:
                line = self._line(answer, estimate)
                yield [*line[:KEYS], *keys.values(estimate["cell"]), *line[KEYS:]]

    @property
    def _keys(self) -> KeyColumns:
        """The keys of all statistics, in the order in which each was asked for."""
        names: dict[str, None] = {}
        for answer in self.document["statistics"]:
            cells = [estimate["cell"] for estimate in answer["estimates"]]
            names |= dict.fromkeys(keys_of(cells, asked_keys(answer)))
        return KeyColumns(names=list(names), labels=Labels.of(self.document), taken=COLUMNS)

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


DECIMALS = ("value", "level", *NUMBERS[: NUMBERS.index("reliability")])


def asked_keys(answer: Mapping[str, Any]) -> list[str]:
    """The keys of a table in the order of its query; none where the query tells none."""
    query = answer.get("query") or {}
    asked = query.get("table") or query.get("by") or []
    return [str(each) for each in asked] if isinstance(asked, list) else [str(asked)]


def _total_words(answer: Mapping[str, Any]) -> str:
    """What the total interval means, or why it is empty."""
    total = answer.get("total") or {}
    return f"empty: {total['empty']}" if total.get("empty") else str(total.get("meaning") or "")


JSON, CSV = ".json", ".csv"
Files = Mapping[str, Callable[[Release], bytes]]


def files_of(release: Release) -> Files:
    """By their ending, JSON first. Each is a function of the release alone: no chance, no clock, no row."""
    made: dict[str, Callable[[Release], bytes]] = {JSON: Release.to_bytes, CSV: Release.to_csv}
    for key, section in RELEASED.items():
        if section.files is not None and release.document.get(key):
            found = section.files(release.document).items()
            made |= {ending: partial(_written, write=write) for ending, write in found}
    return made


def _written(release: Release, *, write: Callable[[Document], bytes]) -> bytes:
    return write(release.document)


def planned_files(plan: Plan) -> tuple[str, ...]:
    """The endings of the files that a release of `plan` will have."""
    return (JSON, CSV, *(ending for producer in producers(plan) for ending in producer.endings))
