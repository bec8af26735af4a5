"""The tables of a release that add up: made, told, and written as a CSV with a line for every cell and total."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

from reticent.answer.add_up import MarginAnswer, MarginTables, TableLine, answer_tables
from reticent.engine.wants import Aggregate, Tallies
from reticent.errors import PlanError, ResourceError
from reticent.exact import show
from reticent.files import Tidy
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from reticent.privacy.claim import Claim
from reticent.release.document import sampling_section
from reticent.release.labels import KeyColumns, Labels
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.release.sampling import Sampled
from reticent.release.statistics import StatisticsResult, asked_of_engine
from reticent.release.table_totals import FINE, TOTAL_COLUMNS, total_section, total_told
from reticent.schema import Schema

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
    *TOTAL_COLUMNS,
    "noise_sd",
    "guarantee",
    "meaning",
    "total_meaning",
)
KEYS = LINE.index("value")  # where a column for each key stands
NUMBERS = frozenset(LINE[KEYS : LINE.index("guarantee")]) - {"unit", "reliability"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesResult(Result):
    """What was made of every `[[tables]]`, by name."""

    asked: AddUpTables
    plan: Plan
    answers: Mapping[str, MarginAnswer] = field(repr=False)
    sampled: Sampled

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

    def grounds(self) -> dict[str, Any]:
        return sampling_section(self.sampled)

    def document(self) -> dict[str, Any]:
        asked = self.asked.tables
        return {"tables": [_section(each, self.answers[each.name], self.sampled) for each in asked]}


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
        return asked_of_engine(self.plan, self._wanted(self.plan.setting.schema))

    def _wanted(self, schema: Schema) -> list[Aggregate]:
        neighbours = self.plan.neighbours
        return [want for table in self.asked.tables for want in table.wants(schema, neighbours)]

    def run(self, on: PlanRun) -> TablesResult:
        answers: dict[str, MarginAnswer] = {}
        neighbours, (schema, tallies) = on.plan.neighbours, self._weighted(on)
        for table in self.asked.tables:
            made = answer_tables(table, tallies, on.noise, schema=schema, neighbours=neighbours)
            if made.amount != table.epsilon:
                raise ResourceError("was planned otherwise than it ran; nothing is published", field="tables")
            answers[table.name] = made
            on.step(table.name)
        return TablesResult(asked=self.asked, plan=on.plan, answers=answers, sampled=_sampled(on))

    def _weighted(self, on: PlanRun) -> tuple[Schema, Tallies]:
        """The codebook and the sums as the factors make them that were released before; as they are where there are none."""
        found = (done.weighed for done in on.results if isinstance(done, StatisticsResult))
        weighed = next((each for each in found if each is not None), None)
        if weighed is None or weighed.factors is None:
            return on.plan.schema, on.tallies
        wants = self._wanted(on.plan.setting.schema)
        made = weighed.factors.contracted(wants, on.tallies, on.plan.schema)
        return weighed.factors.schema(on.plan.schema), made


def _sampled(on: PlanRun) -> Sampled:
    """What is known of the sampling error: as bought with the statistics, or as declared."""
    found = (done.sampled for done in on.results if isinstance(done, StatisticsResult))
    return next(found, None) or Sampled(plan=on.plan)


def _section(asked: MarginTables, made: MarginAnswer, sampled: Sampled) -> dict[str, Any]:
    plan = sampled.plan
    claim = asked.claim(plan.change, plan.schema)
    return {
        "name": asked.name,
        "words": asked.words(),
        "guarantee": {"words": plan.worded(claim), **claim.as_dict()},
        "rho" if asked.in_rho else "epsilon": show(asked.epsilon),
        "add_up": asked.add_up,
        "whole": asked.whole,
        "unit": asked.among.counted,
        "level": float(asked.level),
        "meaning": made.meaning,
        "total": total_section(asked, sampled),
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
                "lines": [
                    {
                        "cell": dict(line.cell),
                        **_privacy_told(line, whole=asked.whole),
                        **total_told(asked, line, sampled),
                        "noise_sd": round(line.noise_sd, 6),
                    }
                    for line in lines
                ],
            }
            for axes, lines in zip(asked.margins, made.margins, strict=True)
        ],
    }


def _privacy_told(line: TableLine, *, whole: bool) -> dict[str, float]:
    """Whole numbers as such; others to six places, ends of intervals rounded away."""
    if whole:
        value, low, high = (int(each) for each in (line.value, line.low, line.high))
        return {"value": value, "privacy_low": low, "privacy_high": high}
    return {
        "value": round(line.value, 6),
        "privacy_low": floor(line.low * FINE) / FINE,
        "privacy_high": ceil(line.high * FINE) / FINE,
    }


def tables_tidy(document: Document) -> Tidy:
    """One line for each cell and total of each margin, with a column for each key; a key that was summed over is (all)."""
    tables = document.get("tables", [])
    names = [name for table in tables for margin in table["margins"] for name in margin["columns"]]
    keys = KeyColumns(names=list(dict.fromkeys(names)), labels=Labels.of(document), taken=LINE)
    header = [*LINE[:KEYS], *keys.header, *LINE[KEYS:]]
    lines = [line for table in tables for line in _lines(table, str(document["id"]), keys)]
    return Tidy(header=header, lines=lines, numbers=NUMBERS)


def tables_csv(document: Document) -> bytes:
    """The same as a file."""
    return tables_tidy(document).to_csv()


def _lines(table: Document, release_id: str, keys: KeyColumns) -> Iterator[list[Any]]:
    guarantee, total = table["guarantee"]["words"], table.get("total") or {}
    total_meaning = f"empty: {total['empty']}" if total.get("empty") else total.get("meaning")
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
                *(line.get(key) for key in TOTAL_COLUMNS),
            ]
            tail = [line["noise_sd"], guarantee, table["meaning"], total_meaning]
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


TABLES = ReleasedSection(rows=_rows, files=_files, tidy=tables_tidy)
