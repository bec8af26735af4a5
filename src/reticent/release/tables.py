"""The tables of a release that add up: made, told, and written as a CSV with a line for every cell and total."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

from reticent.answer.add_up import MarginAnswer, MarginTables, TableLine, answer_tables
from reticent.engine.wants import Aggregate
from reticent.errors import PlanError, ResourceError
from reticent.exact import show
from reticent.files import tidy_csv
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from reticent.privacy.claim import Claim
from reticent.release.labels import KeyColumns, Labels
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result

CSV = ".tables.csv"
LINE = (
    "release",
    "table",
    "margin",
    "cell",
    "value",
    "unit",
    "level",
    "privacy_low",
    "privacy_high",
    "noise_sd",
    "guarantee",
    "meaning",
)
KEYS = LINE.index("value")  # where a column for each key stands
FINE = 10**6
UNIT = "respondents"


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesResult(Result):
    """What was made of every `[[tables]]`, by name."""

    asked: AddUpTables
    plan: Plan
    answers: Mapping[str, MarginAnswer] = field(repr=False)

    @property
    def epsilon(self) -> Fraction:
        pure = (self.answers[each.name].epsilon for each in self.asked.tables if not each.in_rho)
        return sum(pure, start=Fraction(0))

    @property
    def claims(self) -> Sequence[Claim]:
        return self.asked.claims(self.plan)

    @property
    def keys(self) -> Sequence[str]:
        asked = self.asked.tables
        return [name for each in asked for axes in each.margins for name in each.columns(axes)]

    def document(self) -> dict[str, Any]:
        return {"tables": [_told(each, self.answers[each.name], self.plan) for each in self.asked.tables]}


class TablesProducer(Producer[AddUpTables]):
    """Measures the tables of every `[[tables]]`, and makes them agree."""

    __slots__ = ()

    @property
    def endings(self) -> tuple[str, ...]:
        return (CSV,)

    def check(self) -> None:
        if self.plan.partition is not None:
            raise PlanError(
                "are for a whole survey; ask for them in a plan without [partition], or for a table as a statistic",
                field="tables",
            )

    def wants(self) -> Sequence[Aggregate]:
        schema, neighbours = self.plan.schema, self.plan.neighbours
        return [want for table in self.asked.tables for want in table.wants(schema, neighbours)]

    def run(self, on: PlanRun) -> TablesResult:
        answers: dict[str, MarginAnswer] = {}
        schema, neighbours = on.plan.schema, on.plan.neighbours
        for table in self.asked.tables:
            made = answer_tables(table, on.tallies, on.noise, schema=schema, neighbours=neighbours)
            if made.amount != table.epsilon:
                raise ResourceError("was planned otherwise than it ran; nothing is published", field="tables")
            answers[table.name] = made
            on.step(table.name)
        return TablesResult(asked=self.asked, plan=on.plan, answers=answers)


def _told(asked: MarginTables, made: MarginAnswer, plan: Plan) -> dict[str, Any]:
    claim = asked.claim(plan.change, plan.schema)
    return {
        "name": asked.name,
        "words": asked.words(),
        "guarantee": {"words": str(claim), **claim.as_dict()},
        "rho" if asked.in_rho else "epsilon": show(asked.epsilon),
        "add_up": asked.add_up,
        "whole": asked.whole,
        "unit": UNIT,
        "level": float(asked.level),
        "meaning": made.meaning,
        "measured": [
            {
                "what": part.what,
                "rho" if asked.in_rho else "epsilon": str(part.amount),
                "noise_sd": round(part.sd, 6),
            }
            for part in made.parts
        ],
        "margins": [
            {
                "columns": list(asked.columns(axes)),
                "lines": [_line(line, whole=asked.whole) for line in lines],
            }
            for axes, lines in zip(asked.margins, made.margins, strict=True)
        ],
    }


def _line(line: TableLine, *, whole: bool) -> dict[str, Any]:
    """Whole numbers as such; others to six places, ends of intervals rounded away."""
    if whole:
        value, low, high = (int(each) for each in (line.value, line.low, line.high))
        numbers: dict[str, float] = {"value": value, "privacy_low": low, "privacy_high": high}
    else:
        numbers = {
            "value": round(line.value, 6),
            "privacy_low": floor(line.low * FINE) / FINE,
            "privacy_high": ceil(line.high * FINE) / FINE,
        }
    return {"cell": dict(line.cell), **numbers, "noise_sd": round(line.noise_sd, 6)}


def tables_csv(document: Document) -> bytes:
    """One line for each cell and total of each margin, with a column for each key; a key that was summed over is (all)."""
    tables = document.get("tables", [])
    names = [name for table in tables for margin in table["margins"] for name in margin["columns"]]
    keys = KeyColumns(names=list(dict.fromkeys(names)), labels=Labels.of(document), taken=LINE)
    header = [*LINE[:KEYS], *keys.header, *LINE[KEYS:]]
    lines = (line for table in tables for line in _lines(table, str(document["id"]), keys))
    return tidy_csv(header, lines)


def _lines(table: Document, release_id: str, keys: KeyColumns) -> Iterator[list[Any]]:
    guarantee = table["guarantee"]["words"]
    for margin in table["margins"]:
        over = " by ".join(margin["columns"])
        for line in margin["lines"]:
            cell = "; ".join(f"{name} = {level}" for name, level in line["cell"].items())
            numbers = [
                line["value"],
                table["unit"],
                table["level"],
                line["privacy_low"],
                line["privacy_high"],
            ]
            tail = [line["noise_sd"], guarantee, table["meaning"]]
            yield [release_id, table["name"], over, cell, *keys.values(line["cell"]), *numbers, *tail]


def _rows(table: Document) -> list[dict[str, Any]]:
    """Every cell and total, with the margin it stands in."""
    return [
        {"margin": tuple(margin["columns"]), **line}
        for margin in table["margins"]
        for line in margin["lines"]
    ]


def _files(document: Document) -> dict[str, Callable[[Document], bytes]]:
    return {CSV: tables_csv}


TABLES = ReleasedSection(rows=_rows, files=_files)
