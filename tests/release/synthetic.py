"""A small survey with holes and a universe, and plans that ask for synthetic rows of it."""

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import Ledger, Survey
from reticent.plan.plan import Plan
from reticent.privacy.claim import Claim
from reticent.synth.base import Conditional, FitTask, MissingMethod, Spend
from reticent.synth.domain import Domain
from reticent.synth.network import Network
from tests.tables import ADD, book

COLUMNS: dict[str, Any] = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "sex": {"kind": "categorical", "levels": ["f", "=1+1"], "source": "Sex, as told"},
    "job": {"kind": "categorical", "levels": ["yes", "no, never"], "universe": "age >= 15"},
    "pay": {"kind": "decimal", "bounds": [-50, 150], "grid": "0.25", "universe": "age >= 15"},
    "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.25", "role": "weight"},
}
BOOK = book(COLUMNS)
TABLE: dict[str, Any] = {"name": "people", "method": "independent", "rows": 200, "epsilon": "1"}


def rows(count: int = 400, seed: int = 1) -> pa.Table:
    """Respondents of whom a tenth is silent here and there; the young were not asked about work."""
    dice = np.random.default_rng(seed)
    age = dice.integers(0, 100, count)
    old = age >= 15

    def some(values: Any, kind: pa.DataType, asked: Any = True) -> pa.Array:
        return pa.array(values, kind, mask=(dice.random(count) < 0.1) | ~np.broadcast_to(asked, count))

    return pa.table(
        {
            "age": some(age, pa.int64()),
            "Sex, as told": some(np.where(age % 2, "f", "=1+1"), pa.string()),
            "job": some(np.where(age < 60, "yes", "no, never"), pa.string(), old),
            "pay": some(np.round(dice.normal(20, 30, count) * 4) / 4, pa.float64(), old),
            "w": some(np.ones(count), pa.float64()),
        }
    )


ODD: dict[str, Any] = {
    "age": 471_104_711_047,
    "Sex, as told": "canary-of-sex",
    "job": "canary-of-job",
    "pay": 123_456_789_012.5,
    "w": 1.0,
}
"""A respondent outside every column's domain. No digest and no packed row says so much by chance, as one may say four digits."""


def odd_row(schema: pa.Schema) -> pa.Table:
    return pa.table({name: [value] for name, value in ODD.items()}, schema=schema)


def said_of_odd(text: bytes) -> list[str]:
    """Which of the odd respondent's answers stand in a file, as text or as the number that a machine writes."""
    ways = {str(value) for name, value in ODD.items() if name != "w"}
    ways |= {f"{ODD['age']:,}", f"{ODD['pay']:,}", str(int(ODD["pay"]))}
    return sorted(way for way in ways if way.encode() in text)


def survey(table: pa.Table | None = None, codebook: dict[str, Any] | None = None) -> Survey:
    return Survey(rows() if table is None else table, codebook=codebook or BOOK)


def plan(*tables: dict[str, Any], release_id: str = "s1", epsilon: str = "9", **sections: Any) -> Plan:
    """A plan of the given sections, each on top of `TABLE`."""
    written = [{**TABLE, **each} for each in tables or ({},)]
    return survey(codebook=sections.pop("codebook", None)).plan(
        release_id, epsilon=epsilon, synth=written, **sections
    )


def open_ledger(folder: Path, epsilon: str = "20", change: str = ADD, unit: str = "epsilon") -> Ledger:
    return Ledger.create(
        folder / "ledger.db",
        dataset="tiny",
        change=change,
        unit=unit,
        budget=epsilon,
        outputs=folder / "out",
    )


@dataclass(frozen=True)
class Flat:
    """A stand-in that looks at the rows and learns nothing: every cell of every column is as likely as the others."""

    name: str = "flat"
    claimed: Fraction | None = None
    fails: Exception | None = None
    seen: list[int] = field(default_factory=list)

    def check(self, domain: Domain, holes: MissingMethod, spend: Spend) -> None:
        pass

    def claim(self, domain: Domain, holes: MissingMethod, spend: Spend) -> Claim:
        return Claim(measure="pure", epsilon=spend.epsilon, change=spend.change)

    def rounds(self, domain: Domain) -> int:
        return 3

    def fit(self, task: FitTask) -> Network:
        domain, spend = task.domain, task.spend
        self.seen.append(int(task.counts.count([()])[0]))
        for round_ in range(3):
            task.step(f"round {round_}")
        if self.fails is not None:
            raise self.fails
        chances = [np.r_[np.ones(axis.answers), np.zeros(axis.size - axis.answers)] for axis in domain.axes]
        steps = [Conditional(place=i, given=(), table=each / each.sum()) for i, each in enumerate(chances)]
        claim = self.claim(domain, task.missing, spend)
        if self.claimed is not None:
            claim = Claim(measure="pure", epsilon=self.claimed, change=spend.change)
        return Network(domain=domain, steps=tuple(steps), total=1.0, claim=claim)
